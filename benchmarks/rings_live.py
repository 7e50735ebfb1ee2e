"""Several rings of real processes: beside one ring, when a gateway dies, flooded, and idle.

    python benchmarks/rings_live.py beside [--rounds 3] [--secs 4] [--loopback]
    python benchmarks/rings_live.py verified
    python benchmarks/rings_live.py cycle two [--kills 10]
    python benchmarks/rings_live.py flood full [--minutes 1]
    python benchmarks/rings_live.py idle

beside   three rings of three members and two gateways that only join them, beside one ring of nine, in turns, each ring
         on a bridge of its own (root; else --loopback): a flood of 1 kB of which one in ten, or one in two, leaves its
         ring; then 2000 messages a second, for the latency
verified the same rings at 2000 messages a second, every promise judged by Spark
cycle    kill -9 of a gateway of a cycle of three rings, under 2000 messages a second; two: of the only one between two
flood    two rings whose members all send as fast as they can, everything for everybody: memory, then all drains
full     a cycle of four rings under the same flood, and one application that does not read for half of the time
idle     three rings without messages: processor share of members and gateways; then one every 250 ms: its latency
What is asked for is put beside what is in benchmarks/results/rings_live.json (--out).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crash_recovery
import ring_conditions
from here import here

from ordercast.lab.bench import BenchPlan, bench, make_config
from ordercast.lab.rings import Rings

OUT = Path(__file__).parent / "results" / "rings_live.json"
NINE: dict[str, Any] = {"protocol": "totem", "members": 9, "senders": 9, "size": 1000}
THREE: dict[str, Any] = {
    "protocol": "multiring", "members": 11, "senders": 9, "size": 1000, "pure": (10, 11),
    "rings": ((1, 2, 3, 10), (4, 5, 6, 10, 11), (7, 8, 9, 11)),
}  # fmt: skip
MTU = 1500
RATE = 2000.0
CYCLE: Rings = ((1, 2, 3), (3, 4, 5), (5, 6, 1))
TWO: Rings = ((1, 2, 3), (3, 4, 5))
CHAIN: Rings = ((1, 2, 3), (3, 4, 5), (5, 6, 7))
FOUR: Rings = ((1, 2, 3), (3, 4, 5), (5, 6, 7), (1, 7, 8))
KEPT = ("msgs_s", "cpu_us_per_msg", "cpu_percent", "p50_us", "p99_us", "most_mib", "view_changes", "same_order")


def beside(asked: argparse.Namespace) -> dict[str, Any]:
    """Interleaved; ratios are of one round, the median of them counts."""
    mtu = 0 if asked.loopback else MTU
    kinds: dict[str, dict[str, Any]] = {"nine": NINE, "three, 0.1": THREE | {"crossing": 0.1},
                                        "three, 0.5": THREE | {"crossing": 0.5}}  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {f"{kind}{at}": [] for at in ("", ", 2000/s") for kind in kinds}
    for _ in range(asked.rounds):
        for rate, at in ((0.0, ""), (RATE, ", 2000/s")):
            for kind, plan in kinds.items():
                found = bench(BenchPlan(**plan, rate=rate, seconds=asked.secs, mtu=mtu))
                rows[f"{kind}{at}"].append({name: found[name] for name in KEPT})
                print(f"{kind}{at}: {rows[f'{kind}{at}'][-1]}", file=sys.stderr, flush=True)
    medians = {kind: _medians(each) for kind, each in rows.items()}
    ratios = {kind: _ratios(rows[kind], rows["nine"]) for kind in ("three, 0.1", "three, 0.5")}
    fine = all(row["same_order"] for each in rows.values() for row in each)
    return {"mtu": mtu or None, "rounds": asked.rounds, "of nine's": ratios, "medians": medians, "same_order": fine}


def _medians(rows: list[dict[str, Any]]) -> dict[str, float]:
    names = ("msgs_s", "cpu_us_per_msg", "p50_us", "p99_us", "view_changes")
    return {name: round(statistics.median(row[name] for row in rows), 1) for name in names}


def _ratios(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> dict[str, float]:
    pairs = list(zip(rows, others, strict=True))
    names = ("msgs_s", "cpu_us_per_msg")
    return {name: round(statistics.median(a[name] / b[name] for a, b in pairs), 3) for name in names}


def verified(asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ordercast-rings-") as base:
        mtu = 0 if asked.loopback else MTU
        bench(BenchPlan(**THREE, rate=RATE, seconds=asked.secs, crossing=0.1, mtu=mtu, trace=f"{base}/trace"))
        command = [
            sys.executable,
            "-m",
            "ordercast",
            "verify",
            f"{base}/trace",
            "--json",
            "--force",
            "--out",
            f"{base}/o",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr.strip())
    answer = json.loads(done.stdout)
    words = ("holds", "broken", "cannot_judge", "nothing")
    counts = {word: sum(promise[word] > 0 for promise in answer["promises"]) for word in words}
    return {"engine": answer["engine"], "rows": answer["rows"], "promises": counts}


def killed(rings: Rings, victim: int) -> Callable[[argparse.Namespace], dict[str, Any]]:
    def measure(asked: argparse.Namespace) -> dict[str, Any]:
        words = ["--protocol", "multiring"]
        for ring in rings:
            words += ["--ring", ",".join(map(str, ring))]
        faults = crash_recovery.plan(asked.kills, 0, (victim,))
        found = crash_recovery.recovery(words, max(map(max, rings)), faults, int(RATE), 1000)
        return {name: value for name, value in found.items() if name != "pauses" and value != {}}

    return measure


def flooded(rings: Rings, slow: bool) -> Callable[[argparse.Namespace], dict[str, Any]]:
    def measure(asked: argparse.Namespace) -> dict[str, Any]:
        seconds = 60 * asked.minutes
        with tempfile.TemporaryDirectory(prefix="ordercast-rings-") as base:
            plan = BenchPlan(protocol="multiring", members=max(map(max, rings)), rings=rings)
            config = make_config(plan, Path(base), [])
            pause = seconds / 2 if slow else 0.0
            return {"seconds": seconds, **ring_conditions.flood(config, Path(base), seconds, pause, not slow)}

    return measure


def idle(asked: argparse.Namespace) -> dict[str, Any]:
    plan: dict[str, Any] = {"protocol": "multiring", "members": 7, "senders": 7, "size": 100, "rings": CHAIN}
    nothing = bench(BenchPlan(**plan, rate=0.01, seconds=20.0))["cpu_percent_each"]
    some = bench(BenchPlan(**plan, rate=4.0, seconds=40.0))
    gateways = {3, 5}
    return {
        "cpu_percent": {
            "members": max(share for me, share in nothing.items() if me not in gateways),
            "gateways": max(share for me, share in nothing.items() if me in gateways),
        },
        **{name: some[name] for name in ("p50_us", "p99_us", "view_changes", "same_order")},
    }


MEASURES: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "beside": beside, "verified": verified, "cycle": killed(CYCLE, 3), "two": killed(TWO, 3),
    "flood": flooded(TWO, slow=False), "full": flooded(FOUR, slow=True), "idle": idle,
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="+", choices=MEASURES, metavar="WHAT", help=", ".join(MEASURES))
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--secs", type=float, default=4.0)
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--loopback", action="store_true", help="where namespaces are not allowed")
    options.add_argument("--out", type=Path, default=OUT)
    asked = options.parse_args()
    for what in asked.what:
        print(f"{what} ...", file=sys.stderr, flush=True)
        found = {**here(), **MEASURES[what](asked)}
        result = json.loads(asked.out.read_text()) if asked.out.exists() else {}
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(result | {what: found}, indent=1) + "\n")
        print(json.dumps({what: found}), flush=True)


if __name__ == "__main__":
    main()
