"""The long campaign: `python -m tests.fuzz [PROTOCOL ...] [--packets 1000000] [--out out/fuzz]` (``make fuzz``).

In pieces of 5,000 forged packets, each a group of its own by its seed; goes on where it was interrupted.  Prints
counts per protocol and packet type, the longest step, the heaviest stack and the longest way back to one view.  It ends
where a member fares ill; the piece is named and can be run alone (`--piece`).

With `--inputs 10000000` damaged inputs at every door instead (`inputs.py`), so many in all.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import msgspec
from tests.fuzz import inputs
from tests.fuzz.campaign import Piece, piece

from ordercast import registry

PACKETS = 5_000
INPUTS = 10_000
STEP_MS = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("protocols", nargs="*", help="all when none are named")
    parser.add_argument("--packets", type=int, default=1_000_000, help="forged, per protocol")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--piece", type=int, help="run this one alone, and keep nothing")
    parser.add_argument("--inputs", type=int, help="damaged inputs of all targets together, instead of packets")
    arguments = parser.parse_args()
    if arguments.inputs is not None:
        return damage(arguments.inputs, arguments.out)
    for protocol in arguments.protocols or registry.names():
        if arguments.piece is not None:
            print(msgspec.json.encode(piece(protocol, arguments.piece, PACKETS)).decode())
            continue
        done = read(arguments.out / f"{protocol}.jsonl")
        while sum(sum(each.forged.values()) for each in done) < arguments.packets:
            done.append(piece(protocol, len(done), PACKETS))
            arguments.out.mkdir(parents=True, exist_ok=True)
            with (arguments.out / f"{protocol}.jsonl").open("ab") as file:
                file.write(msgspec.json.encode(done[-1]) + b"\n")
            print(f"{protocol}: {sum(sum(each.forged.values()) for each in done):,} forged packets", file=sys.stderr)
        tell(protocol, done)
    return 0


def damage(wanted: int, out: Path) -> int:
    """So many inputs, in pieces; the counts per target are kept."""
    path, shares = out / "inputs.json", inputs.targets()
    kept: dict[str, int] = msgspec.json.decode(path.read_bytes()) if path.exists() else {}
    done = {target: count for target, count in kept.items() if target in shares}
    out.mkdir(parents=True, exist_ok=True)
    for target, share in shares.items():
        while done.get(target, 0) < wanted * share // sum(shares.values()):
            inputs.run(target, done.get(target, 0), INPUTS)
            done[target] = done.get(target, 0) + INPUTS
            path.write_bytes(msgspec.json.encode(done))
    print(f"{sum(done.values()):,} damaged inputs: " + ", ".join(f"{name} {count:,}" for name, count in done.items()))
    return 0


def read(path: Path) -> list[Piece]:
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Piece) for line in path.read_bytes().splitlines()]


def tell(protocol: str, done: list[Piece]) -> None:
    forged, dropped = Counter[str](), Counter[str]()
    for each in done:
        forged.update(each.forged)
        dropped.update(each.dropped)
    by_type = ", ".join(f"{name} {count:,}" for name, count in sorted(forged.items()))
    by_reason = ", ".join(f"{reason} {count:,}" for reason, count in dropped.most_common())
    print(f"{protocol}: {forged.total():,} forged packets in {len(done)} groups: {by_type}")
    print(f"    dropped: {by_reason}")
    slow = sum(each.longest_ms > STEP_MS for each in done)
    heaviest, after = max(each.weight for each in done), max(each.weight_after for each in done)
    print(f"    longest step {max(each.longest_ms for each in done):.1f} ms; above {STEP_MS} ms in {slow} groups")
    print(f"    heaviest stack {heaviest / 2**20:.1f} MiB; when all was over {after / 2**20:.1f} MiB")
    print(f"    one view after at most {max(each.one_view_ms for each in done):,.0f} ms of virtual time")
    print(f"    something waited in vain in that view in {sum(each.left > 0 for each in done)} groups")


if __name__ == "__main__":
    sys.exit(main())
