"""A crash of the only gateway before every single packet it sends, in a small run on two rings of two and a gateway.

    python tests/totem/gateway_crashes.py [--every K]     (make every-packet)

The gateway returns, or does not; every run must keep all promises, and end in one topology of all who are there.
"""

from __future__ import annotations

import argparse
import sys

from ordercast import registry
from ordercast.sim.faults import Crash
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.swarm.judge import judge
from ordercast.trace.schema import Kind
from ordercast.wire.codec import origin

NETS = (Net(members=(1, 2, 3)), Net(members=(3, 4, 5)))
PACKETS = tuple(origin(kind).__name__ for kind in registry.get("multiring").packets)
Case = tuple[str, int, bool]  # before which packet of which type it dies, and whether it returns


def run(case: Case, service: str = "safe") -> tuple[bool, list[str]]:
    """Whether it died at all, and what was broken."""
    packet, nth, returns = case
    crash = Crash(member=3, at_ms=0.0, on=packet, nth=nth, down_ms=100.0 if returns else None)
    scenario = Scenario(
        protocol="multiring", service=service, members=5, nets=NETS, messages=20, load=Load(rate=40.0), faults=(crash,),
        heal_ms=700.0, core=() if returns else (1, 2), away="crashed", closing=2,
    )  # fmt: skip
    found = judge(scenario)
    assert found.outcome is not None, found.breaks[0].text
    died = any(row.kind == Kind.CRASH and row.sender == 3 and row.time_ns < 7e8 for row in found.outcome.trace.rows)
    return died, [broken.text for broken in found.breaks]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th packet")
    every = parser.parse_args().every
    runs = bad = 0
    for packet in PACKETS:
        for returns in (True, False):
            nth, died = 1, True
            while died:
                died, broken = run((packet, nth, returns))
                runs, bad = runs + died, bad + bool(broken)
                for text in broken:
                    print(f"{packet} {nth}, {'returns' if returns else 'stays away'}: {text}", flush=True)
                nth += every
            print(f"{packet}: {runs} runs, {bad} bad", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
