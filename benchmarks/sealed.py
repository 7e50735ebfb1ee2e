"""What sealing costs: throughput and latency on a bridge, sealed and not, in turns.

    python benchmarks/sealed.py [--rounds 5] [--seconds 3] [--mtu 65535] [--protocol totem] [--out sealed.json]

Each round measures both, one after the other, so that what else the machine does falls on both alike; told is the
median of each and of the rounds' own ratios.  Needs root (network namespaces).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from ordercast.errors import OrdercastError
from ordercast.lab.bench import BenchPlan, bench

SIZES = (100, 1_000, 10_000)
LATENCY_RATE, LATENCY_SIZE = 2_000.0, 1_000


def rounds(plan: dict[str, Any], count: int, figure: str) -> dict[str, Any]:
    sealed, plain = [], []
    for _ in range(count):
        for figures, insecure in ((sealed, False), (plain, True)):
            got = bench(BenchPlan(**plan, insecure=insecure))
            if not got["same_order"]:
                raise SystemExit(f"the members disagree on the order: {got}")
            figures.append(got[figure])
    ratios = [a / b for a, b in zip(sealed, plain, strict=True)]
    return {
        "sealed": statistics.median(sealed), "plain": statistics.median(plain),
        "ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--mtu", type=int, default=65_535)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--protocol", default="totem")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    plan = {"protocol": args.protocol, "members": args.members, "senders": args.members, "seconds": args.seconds,
            "mtu": args.mtu}  # fmt: skip
    figures: dict[str, Any] = {"protocol": args.protocol, "members": args.members, "mtu": args.mtu}
    try:
        for size in SIZES:
            figures[f"msgs_s at {size}"] = told = rounds(plan | {"size": size}, args.rounds, "msgs_s")
            print(f"{size:6} bytes: {told['sealed']:>9,.0f} msg/s sealed, {told['plain']:>9,.0f} not: {told['ratio']}")
        busy = plan | {"size": LATENCY_SIZE, "rate": LATENCY_RATE}
        figures["p50_us at 2000 msg/s of 1000"] = told = rounds(busy, args.rounds, "p50_us")
        print(f"p50 at 2000 msg/s of 1 kB: {told['sealed']:.0f} us sealed, {told['plain']:.0f} us not: {told['ratio']}")
    except OrdercastError as why:
        print(f"sealed: {why}", file=sys.stderr)
        return 1
    if args.out is not None:
        args.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
