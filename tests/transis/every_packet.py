"""V22: a fault after every single packet of a view change: n = 3 and 4, seven kinds of change, two protocols.

    python tests/transis/every_packet.py [--every K] [--protocol P]     (make every-packet)

Faults: crash, isolation and pause of each member, loss of the packet itself (a token's with its repetitions).  Every
run must keep all promises, the invariants R1 to R11, and end in one view.  `cases` gives the whole table, from which
the tests take a sample.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from vs_world import CHANGES, Strike, Struck, hurt, scenario

PROTOCOLS = ("token_site", "causal")
SIZES = (3, 4)


def _lose_last(length: float) -> Strike:
    """The packet itself, and what repeats it for a while."""

    def strike(world: Struck) -> None:
        assert world.last is not None
        who, action = world.last
        kind = type(action.packet)
        world.lose(lambda source, to, packet: source == who and type(packet) is kind, length)

    return strike


def strikes(n: int) -> dict[str, Strike]:
    out: dict[str, Strike] = {"lost": _lose_last(0.5), "lost for long": _lose_last(2.0)}
    for member in range(1, n + 1):
        out[f"crash of {member}"] = lambda world, m=member: world.crash(m)  # type: ignore[misc]
        out[f"isolation of {member}"] = lambda world, m=member: world.isolate(m)  # type: ignore[misc]
        out[f"pause of {member}"] = lambda world, m=member: world.pause(m)  # type: ignore[misc]
    return out


def packets(protocol: str, n: int, change: str) -> int:
    """How many packets a change takes when nothing else happens."""
    world = Struck(scenario(n, protocol, CHANGES[change](n)), inspect=False)
    world.run()
    return world.count


Case = tuple[str, str, int, str, int]


def cases(protocols: tuple[str, ...] = PROTOCOLS) -> Iterator[Case]:
    """(protocol, change, n, strike, after which packet), all of them."""
    for protocol in protocols:
        for n in SIZES:
            for change in CHANGES:
                for after in range(1, packets(protocol, n, change) + 1):
                    for strike in strikes(n):
                        yield protocol, change, n, strike, after


def run(case: Case, inspect: bool = True) -> list[str]:
    protocol, change, n, strike, after = case
    return hurt(Struck(scenario(n, protocol, CHANGES[change](n)), after, strikes(n)[strike], inspect=inspect))


def campaign(chosen: list[Case], say: Callable[[str], None]) -> int:
    bad, begun = 0, time.monotonic()
    for k, case in enumerate(chosen, 1):
        try:
            found = run(case)
        except AssertionError as why:
            found = [f"raises: {why}"]
        if found:
            bad += 1
            say(f"{case}: {found[0]}")
        if k % 200 == 0:
            say(f"{k} of {len(chosen)} runs, {bad} bad, {time.monotonic() - begun:.0f} s")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every K-th case")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="begin with the K-th case")
    parser.add_argument("--protocol", action="append", help="instead of those named above")
    wanted = parser.parse_args()
    chosen = list(cases(tuple(wanted.protocol or PROTOCOLS)))[wanted.first :: wanted.every]
    bad = campaign(chosen, lambda line: print(line, flush=True))
    print(f"{len(chosen)} runs, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
