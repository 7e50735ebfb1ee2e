"""What a protocol's core costs by itself: processor time per reception, and memory after many messages.

    python benchmarks/cores.py [cost memory] [--protocol P]... [--members 4,8,16,32,64] [--out FILE]

cost    all that member 1 of n is given, when everybody talks over an ideal view-synchronous layer, is recorded (frames
        of one message each, answers, alarms) and fed to a fresh core of the protocol alone; beside it a fixed loop
        tells how fast this machine is just now
memory  bytes that each of four members of a simulated run holds at its end, after 10^5 and 10^6 messages in frames of
        100; the whole stack, the layer below included
Prints one JSON object.  What the layer itself costs: layer_beside_ring.py cost.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from here import calibration, here

from ordercast import registry
from ordercast.contract import (
    Action,
    CancelTimer,
    Down,
    Layer,
    Multicast,
    Ordered,
    Received,
    SetTimer,
    Setup,
    Submit,
    UnicastReceived,
    UnicastTo,
    Up,
    ViewChange,
    Window,
)
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import World
from ordercast.stack import Stack
from ordercast.transis.link import Link
from ordercast.transis.reception import Reception
from ordercast.types import Identity, Submission, View, ViewId, ViewKind

LAYER = "the view-synchronous layer"
PROTOCOLS = tuple(name for name in registry.names() if LAYER in registry.get(name).needs)
VIEW, T_NS, MS = ViewId(8, 1), 200_000_000, 1_000_000
PER_MS = 50  # messages of all members together; a way takes half a millisecond to one and a half
Call = tuple[str, tuple[Any, ...]]


class Group:
    """Cores 1..n in one view over an ideal layer: nothing is lost, multicasts come mixed and enter in causal order."""

    def __init__(self, make: Callable[[int], Layer], n: int, messages: int) -> None:
        self.random, self.now, self.count = random.Random(n), 0, 0
        self.queue: list[tuple[int, int, int, Any]] = []  # when, number, member, what
        self.timers: dict[tuple[int, str], int] = {}
        self.tape: list[Call] = []  # of member 1
        self.delivered = 0  # by member 1
        members = tuple(range(1, n + 1))
        self.cores = {me: make(me) for me in members}
        self.lines: dict[int, Reception[Any]] = {me: Reception(n) for me in members}
        for me in members:
            self._call(me, "up", ViewChange(View(VIEW, ViewKind.REGULAR, members)), 0)
            self._call(me, "up", Window(10**9), 0)
        self.end = messages * MS // PER_MS  # of the load, and of what is recorded
        for k in range(messages):
            self._later(k * MS // PER_MS, self.random.choice(members), Submit(Submission([bytes(100)])))

    def run(self) -> None:
        while self.queue and self.queue[0][0] < self.end:
            self.now, _, me, what = heappop(self.queue)
            if isinstance(what, Submit):
                self._call(me, "down", what)
            elif isinstance(what, str):
                if self.timers.get((me, what)) == self.now:
                    del self.timers[me, what]
                    self._call(me, "timer", what, self.now)
            elif isinstance(what, UnicastReceived):
                self._heard(me, what)
            else:
                for _, _, event in self.lines[me].offer(what.sender - 1, what.seq, what.vec, what) or ():
                    self._heard(me, event)

    def _heard(self, me: int, event: Received | UnicastReceived) -> None:
        self._call(me, "up", event, 0)
        self._call(me, "drained", 0)

    def _call(self, me: int, name: str, *given: Any) -> None:
        if me == 1:
            self.tape.append((name, (self.now, *given)))
        for action in getattr(self.cores[me], name)(self.now, *given):
            self._do(me, action)

    def _do(self, me: int, action: Action) -> None:
        match action:
            case Down(event=Multicast(body=body)):
                have = self.lines[me].have
                have[me - 1] += 1
                event = Received(me, have[me - 1], body, tuple(have))
                for other in self.cores:
                    if other != me:
                        self._later(self.now + self.random.randrange(MS // 2, 3 * MS // 2), other, event)
                self._call(me, "up", event, 0)
            case Down(event=UnicastTo(to=to, body=body)):
                self._later(self.now + MS, to, UnicastReceived(me, body))
            case SetTimer(name=name, at=at):
                self.timers[me, name] = at
                self._later(at, me, name)
            case CancelTimer(name=name):
                self.timers.pop((me, name), None)
            case Up(event=Ordered()) if me == 1:
                self.delivered += 1

    def _later(self, when: int, me: int, what: Any) -> None:
        self.count += 1
        heappush(self.queue, (when, self.count, me, what))


def core_cost(protocol: str, n: int, rounds: int = 5) -> dict[str, Any]:
    """Microseconds of process time for one reception by a protocol's core, at one of n members."""
    info, members = registry.get(protocol), tuple(range(1, n + 1))

    def fresh(me: int = 1) -> Layer:
        setup = Setup(Identity(me, 1, members), T_NS, info.options(), 1400, random.Random(me))
        return core_of(info.factory(setup))

    group = Group(fresh, n, 4000 if n < 32 else 2000)
    group.run()
    receptions = sum(name == "up" and type(given[1]) in (Received, UnicastReceived) for name, given in group.tape)
    found = []
    for _ in range(rounds):
        core = fresh()
        calls = [(getattr(core, name), given) for name, given in group.tape]
        begun = time.process_time_ns()
        for call, given in calls:
            call(*given)
        found.append((time.process_time_ns() - begun) / receptions / 1e3)
    return {
        "protocol": protocol, "members": n, "receptions": receptions, "delivered": group.delivered,
        "us": round(statistics.median(found), 2), "loop_us": calibration(),
    }  # fmt: skip


def core_of(stack: Stack) -> Layer:
    """The layer above the view-synchronous one."""
    return next(node.layer for node in stack.nodes if any(isinstance(child.layer, Link) for child in node.children))


# --------------------------------------------------------------------------------------------------------------- memory


def memory(protocol: str) -> dict[str, Any]:
    """Bytes behind each member's core at the end of a run of 10^5 messages, and of 10^6."""
    out: dict[str, Any] = {"protocol": protocol}
    load = Load(regime="saturate", window=2_000, batch=100)
    for messages in (10**5, 10**6):
        scenario = Scenario(
            protocol=protocol, members=4, messages=messages, sizes=(8,), load=load, limit_ms=3.6e6,
            tagger=registry.get(protocol).tagger is not None,
        )  # fmt: skip
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", metavar="WHAT", default=["cost", "memory"])
    options.add_argument("--protocol", dest="protocols", action="append", choices=registry.names(),
                         help="for cost one above the view-synchronous layer")  # fmt: skip
    options.add_argument("--members", default="4,8,16,32,64", help="comma-separated, for cost")
    options.add_argument("--out", type=Path, help="what is there of other protocols and numbers of members stays")
    given = options.parse_args()
    if "cost" in given.what and (others := set(given.protocols or ()).difference(PROTOCOLS)):
        options.error(f"cost of {', '.join(sorted(others))}: expected one above the view-synchronous layer")
    result: dict[str, Any] = {"cost": [], "memory": []}
    if given.out and given.out.exists():
        result = json.loads(given.out.read_text())
    result |= here()
    for protocol in given.protocols or PROTOCOLS:
        for n in map(int, given.members.split(",")) if "cost" in given.what else ():
            keep(result["cost"], core_cost(protocol, n))
        if "memory" in given.what:
            keep(result["memory"], memory(protocol))
        if given.out:
            given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


def keep(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    """In the place of what was known of this protocol and number of members."""
    print(json.dumps(row), file=sys.stderr, flush=True)
    rows[:] = [one for one in rows if (one["protocol"], one.get("members")) != (row["protocol"], row.get("members"))]
    rows.append(row)


if __name__ == "__main__":
    main()
