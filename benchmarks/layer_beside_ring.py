"""The view-synchronous layer and the protocols on it beside the token ring, interleaved with totem, medians.

    python benchmarks/layer_beside_ring.py [bench cost] [--protocol P]... [--rounds 5] [--secs 3] [--out FILE]

bench   four members on loopback, each protocol in turn, round by round: messages/s and processor time per message at
        100 B and 1 kB, latency at 2000 messages/s of 1 kB, processor share of an idle group; ratios to totem; of a
        quasi order (`--protocol dpg`) the frames that violate it
cost    what one reception costs the layer alone: the packets that one of n members gets of the others are recorded,
        fed to a fresh core and timed, beside a fixed loop that tells how fast this machine is just now
What the cores on it cost, and what members hold: cores.py.
`crash_recovery.py --protocol P` and `ring_conditions.py idle slow stopped --protocol P` measure the rest.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from here import calibration, here

from ordercast import registry
from ordercast.contract import Packet, Setup
from ordercast.lab.bench import BenchPlan, bench
from ordercast.protocols.causal import Sent
from ordercast.transis.link import Link
from ordercast.transis.traffic import Traffic
from ordercast.types import Frame, Identity, Peer, Service, ViewId

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


def _in_view(n: int) -> Link:
    """A layer in a working view of n members that all hear each other."""
    identity = Identity(1, 1, tuple(range(1, n + 1)))
    link = Link(Setup(identity, T_NS, None, 1400, random.Random(1)))
    for q in identity.members[1:]:
        link.membership.sight.hear(0, Peer(q, 1))
        link.membership.sight.evidence.links[q].hears = True
    link.talk = link._talk(0, VIEW, identity.members)
    return link


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", metavar="WHAT", default=["bench", "cost"])
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
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
