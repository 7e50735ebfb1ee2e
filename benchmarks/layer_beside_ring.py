"""The view-synchronous layer and the protocols on it beside the token ring, interleaved with totem, medians.

    python benchmarks/layer_beside_ring.py [bench cost votes cores memory] [--protocol P]... [--rounds 5] [--secs 3]
                                           [--out FILE]

bench   four members on loopback, each protocol in turn, round by round: messages/s and processor time per message at
        100 B and 1 kB, latency at 2000 messages/s of 1 kB, processor share of an idle group; ratios to totem; of a quasi
        order (`--protocol dpg`) the frames that violate it
cost    what one reception costs the layer alone: the packets that one of n members gets of the others are recorded,
        fed to a fresh core and timed, beside a fixed loop that tells how fast this machine is just now
votes   the same messages, in causal order, fed to the core of toto alone
cores   what one reception costs the core of each protocol on the layer: all it was given at one of n saturated members
        of a simulated run, one message per frame, fed to a fresh one and timed
memory  bytes that each member of a simulated run holds at its end, after 10^5 and 10^6 messages in frames of 100
`crash_recovery.py --protocol P` and `ring_conditions.py idle slow stopped --protocol P` measure the rest.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections import deque
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from here import here

from ordercast import registry
from ordercast.contract import Layer, Packet, Received, Setup, UnicastReceived, ViewChange
from ordercast.lab.bench import BenchPlan, bench
from ordercast.protocols.causal import Sent
from ordercast.protocols.toto.core import Null, Toto
from ordercast.protocols.toto.core import Sent as Vote
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import World
from ordercast.stack import Stack
from ordercast.transis.link import Link
from ordercast.transis.reception import Reception
from ordercast.transis.traffic import Traffic
from ordercast.types import Frame, Identity, Peer, Service, View, ViewId, ViewKind

VIEW, T_NS = ViewId(8, 1), 200_000_000
PROTOCOLS = ("totem", *(name for name in registry.names() if "the view-synchronous layer" in registry.get(name).needs))
CELLS: dict[str, dict[str, Any]] = {
    "100 B, all send": {"size": 100},
    "1 kB, all send": {"size": 1000},
    "1 kB at 2000/s": {"size": 1000, "rate": 2000.0},
    "idle": {"size": 100, "senders": 1, "rate": 0.01},
}
FIGURES = ("msgs_s", "cpu_us_per_msg", "cpu_percent", "p50_us", "p99_us")
MEMBERS = (4, 8, 16, 32, 64)


def interleaved(protocols: tuple[str, ...], rounds: int, secs: float) -> dict[str, Any]:
    """Medians of each cell and protocol, and of how many times totem's they are; protocols take turns in a round."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for k in range(rounds):
        for cell, plan in CELLS.items():
            for protocol in protocols:
                figures = bench(BenchPlan(**{"protocol": protocol, "members": 4, "senders": 4, "seconds": secs} | plan))
                exact = registry.get(protocol).exact
                assert figures["same_order"] or cell == "idle" or not exact, f"{protocol}, {cell}: the order differs"
                found.setdefault((cell, protocol), []).append(figures)
                print(f"round {k + 1}, {cell}, {protocol}: {figures['msgs_s']}/s", file=sys.stderr, flush=True)
    out: dict[str, Any] = {}
    for (cell, protocol), runs in found.items():
        middle = {name: _median([run[name] for run in runs if run[name] is not None]) for name in FIGURES}
        ring = found[cell, "totem"]
        for name in ("msgs_s", "cpu_us_per_msg"):
            pairs = [(run[name], beside[name]) for run, beside in zip(runs, ring, strict=True)]
            middle[f"{name}_of_totem"] = _median([own / theirs for own, theirs in pairs if own and theirs])
        middle |= {name: sum(run[name] for run in runs) for name in ("violating", "judged") if name in runs[0]}
        out.setdefault(cell, {})[protocol] = middle
    return out


def _median(values: list[float]) -> float | None:
    return round(statistics.median(values), 2) if values else None


# ------------------------------------------------------------------------------------------------------ cost by itself


def stream(n: int) -> list[tuple[int, Packet]]:
    """What member 1 of n receives of the others: multicasts in the order of a lossless network that mixes senders.

    Member 1 is silent, so nothing becomes stable: no sender may have more under way than its window.
    """
    messages = min(4_000, 48_000 // n, 500 * (n - 1))
    rng = random.Random(n)
    members = tuple(range(1, n + 1))
    made = {me: Traffic(me, VIEW, members, timeout_ns=T_NS, frame_bytes=1400, causal=True) for me in members}
    body = Sent(Frame(1, 1, 1, 1, int(Service.CAUSAL), b"\x64\0\0\0", bytes(100)))
    ways: dict[int, deque[tuple[int, Packet]]] = {me: deque() for me in members}
    tape: list[tuple[int, Packet]] = []
    for _ in range(messages):
        sender = rng.choice(members[1:])
        data = made[sender].multicast(0, body)[0].packet  # type: ignore[attr-defined]
        for me in members:
            if me != sender:
                ways[me].append((sender, data))
            for _ in range(rng.randint(0, 2)):
                if ways[me]:
                    source, packet = ways[me].popleft()
                    made[me].data(0, source - 1, source - 1, packet, [])
                    tape += [(source, packet)] if me == 1 else []
    return tape


def reception(n: int, rounds: int = 5) -> dict[str, Any]:
    """Microseconds of process time for one reception of Data, at one of n members, by the whole layer."""
    tape = stream(n)
    found = []
    for _ in range(rounds):
        link = _in_view(n)
        begun = time.process_time_ns()
        for source, packet in tape:
            link.receive(1_000, 0, Peer(source, 1), packet, 0)
        found.append((time.process_time_ns() - begun) / len(tape) / 1e3)
        assert sum(link.talk.traffic.have) == len(tape)
    us = statistics.median(found)
    return {"members": n, "receptions": len(tape), "us": round(us, 2), "loop_us": calibration()}


def votes(n: int, rounds: int = 5) -> dict[str, Any]:
    """Microseconds of process time for one reception by the core of toto, at one of n members."""
    events = ballots_of(n)
    found = []
    for _ in range(rounds):
        core = _voter(n)
        begun = time.process_time_ns()
        for event in events:
            core.up(1_000, event, 0)
        found.append((time.process_time_ns() - begun) / len(events) / 1e3)
    us, sets = round(statistics.median(found), 2), core.ballots.activations
    return {"members": n, "receptions": len(events), "sets": sets, "us": us, "loop_us": calibration()}


def ballots_of(n: int) -> list[Received]:
    """The stream in causal order, every message agreed; member 1 adds a null wherever its vote is waited for."""
    reception: Reception[Packet] = Reception(n)
    core, events = _voter(n), list[Received]()

    def hear(rank: int, seq: int, body: Vote | Null, vec: tuple[int, ...]) -> None:
        events.append(Received(rank + 1, seq, body, vec))
        core.up(1_000, events[-1], 0)

    for source, packet in stream(n):
        for rank, seq, data in reception.offer(source - 1, packet.seq, packet.vec, packet) or ():  # type: ignore[attr-defined]
            frame = Frame(rank + 1, 1, seq, 1, int(Service.AGREED), b"\x64\0\0\0", bytes(100))
            hear(rank, seq, Vote(frame), data.vec)  # type: ignore[attr-defined]
            if core.ballots.lacks(0):
                hear(0, core.have[0] + 1, Null(), (core.have[0] + 1, *core.have[1:]))
    return events


def _voter(n: int) -> Toto:
    members = tuple(range(1, n + 1))
    core = Toto(Setup(Identity(1, 1, members), T_NS, None, 1400, random.Random(1)), lambda size: size // 2 + 1)
    core.up(0, ViewChange(View(VIEW, ViewKind.REGULAR, members)), 0)
    return core


def core_cost(protocol: str, n: int, rounds: int = 5) -> dict[str, Any]:
    """Microseconds of process time for one reception by a protocol's core, at one of n members."""
    tape, fresh = tape_of(protocol, n)
    receptions = sum(name == "up" and type(given[1]) in (Received, UnicastReceived) for name, given in tape)
    found = []
    for _ in range(rounds):
        core = fresh()
        calls = [(getattr(core, name), given) for name, given in tape]
        begun = time.process_time_ns()
        for call, given in calls:
            call(*given)
        found.append((time.process_time_ns() - begun) / receptions / 1e3)
    us = round(statistics.median(found), 2)
    return {"protocol": protocol, "members": n, "receptions": receptions, "us": us, "loop_us": calibration()}


def tape_of(protocol: str, n: int) -> tuple[list[tuple[str, Any]], Any]:
    """All calls of member 1's core in a simulated run; and how to make a fresh one."""
    factory, setups, tape = registry.get(protocol).factory, list[Setup](), list[tuple[str, Any]]()

    def fresh() -> Layer:
        return core_of(factory(setups[0]))

    def maker(setup: Setup) -> Stack:
        stack = factory(setup)
        if setup.identity.me == 1 and not setups:
            setups.append(setup)
            core = core_of(stack)

            class Taped(type(core)):  # type: ignore[misc]
                pass

            for name in ("up", "down", "drained", "timer"):
                setattr(Taped, name, _taped(name, getattr(type(core), name), tape))
            core.__class__ = Taped
            for node in stack.nodes:  # what was bound before
                node.tell_up = node.parent.layer.up if node.parent else None
                node.tell_down = [child.layer.down for child in node.children]
            stack.__init__(stack.top)  # type: ignore[misc]
        return stack

    timeout = max(40.0, 20.0 * n)  # many members take long to find each other
    scenario = Scenario(
        protocol=protocol, members=n, messages=max(2 * n, 12_000 // n), pack=False, timeout_ms=timeout,
        settle_ms=timeout, load=Load(regime="saturate", window=4, start_ms=10 * timeout), limit_ms=100 * timeout,
    )  # fmt: skip
    World(scenario, level="off", maker=maker).run()
    return tape, fresh


def _taped(name: str, method: Any, tape: list[tuple[str, Any]]) -> Any:
    def call(self: Layer, *given: Any) -> Any:
        tape.append((name, given))
        return method(self, *given)

    return call


def core_of(stack: Stack) -> Layer:
    """The layer above the view-synchronous one."""
    return next(node.layer for node in stack.nodes if any(isinstance(child.layer, Link) for child in node.children))


# --------------------------------------------------------------------------------------------------------------- memory


def memory(protocol: str) -> dict[str, Any]:
    """Bytes behind each member's core at the end of a run of 10^5 messages, and of 10^6."""
    out: dict[str, Any] = {"protocol": protocol}
    load = Load(regime="saturate", window=2_000, batch=100)
    for messages in (10**5, 10**6):
        scenario = Scenario(protocol=protocol, members=4, messages=messages, sizes=(8,), load=load, limit_ms=3.6e6)
        world = World(scenario, level="off")
        outcome = world.run()
        assert outcome.delivered == messages, f"{protocol}: {outcome.ended} after {outcome.delivered}"
        out[str(messages)] = [_held(host.stack) for host in world.hosts.values()]
    return out


SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, MethodType, random.Random)


def _held(stack: Any) -> int:
    """What is reached from the layers' own values, each thing once."""
    todo: list[Any] = [value for node in stack.nodes for value in vars(node.layer).values()]
    seen: set[int] = set()
    total = 0
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, SHARED):
            seen.add(id(one))
            total += sys.getsizeof(one)
            todo += gc.get_referents(one)
    return total


def _in_view(n: int) -> Link:
    """A layer in a working view of n members that all hear each other."""
    identity = Identity(1, 1, tuple(range(1, n + 1)))
    link = Link(Setup(identity, T_NS, None, 1400, random.Random(1)))
    for q in identity.members[1:]:
        link.membership.sight.hear(0, Peer(q, 1))
        link.membership.sight.evidence.links[q].hears = True
    link.talk = link._talk(0, VIEW, identity.members)
    return link


def calibration() -> float:
    """Microseconds of a fixed loop: how fast the machine is just now."""
    begun = time.process_time_ns()
    total = 0
    for k in range(100_000):
        total += k % 7
    return round((time.process_time_ns() - begun) / 1e3, 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", metavar="WHAT", default=["bench", "cost", "votes", "cores", "memory"])
    options.add_argument("--protocol", dest="protocols", action="append", choices=registry.names(), help="beside totem")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--secs", type=float, default=3.0)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    protocols = tuple(given.protocols or PROTOCOLS)
    result: dict[str, Any] = here()
    if given.out and given.out.exists():
        result = json.loads(given.out.read_text()) | result  # what is not asked for now stays
    if "bench" in given.what:
        result["bench"] = interleaved(tuple(dict.fromkeys(("totem", *protocols))), given.rounds, given.secs)
    if "cost" in given.what:
        result["cost"] = [reception(n) for n in MEMBERS]
    if "votes" in given.what:
        result["votes"] = [votes(n) for n in MEMBERS]
    if "cores" in given.what:
        result["cores"] = [core_cost(name, n) for name in protocols if name != "totem" for n in MEMBERS]
    if "memory" in given.what:
        result["memory"] = [memory(name) for name in protocols]
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
