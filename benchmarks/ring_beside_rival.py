"""The token ring beside another group-communication system, in one run, interleaved, medians.

    python benchmarks/ring_beside_rival.py --rival "python3 rival.py --mtu 65535 --netmtu 65000" \
        --rival-1500 "python3 rival.py" [--reps 3] [--secs 2] [--out benchmarks/results/ring.json]

A rival's command must take ``--sizes S --senders K|all --secs T --reps 1 --latency-rate R`` and print, as its last
line, one JSON object with "cells": [{"size", "senders", "rate_per_sender", "msgs_s", "mb_s", "p50_us", "p99_us",
"cpu_us_per_msg_all_nodes", "same_order"}], where figures are {"median": x}.  It should make a bridge of the same kind
as ours: four network namespaces, MTU 65535 for --rival, 1500 for --rival-1500.  Ours is also measured on loopback.
Prints one JSON object.  Needs root for the namespaces; without --rival only our own figures are measured.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from here import here

MEMBERS = 4
CELLS = [  # name, size, senders, rate, rival's MTU
    ("100 B, 4 senders", 100, 4, 0, 65535),
    ("1 kB, 4 senders", 1000, 4, 0, 65535),
    ("10 kB, 1 sender", 10_000, 1, 0, 65535),
    ("1 kB at 2000/s", 1000, 1, 2000, 65535),
    ("1 kB, 4 senders, MTU 1500", 1000, 4, 0, 1500),
]
FIGURES = ("msgs_s", "mb_s", "cpu_us_per_msg", "p50_us", "p99_us")


def last_json(command: list[str], seconds: float) -> dict[str, Any]:
    """The last line a command prints, as JSON; a command that fails says so in `error`."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {seconds:g} s"}
    lines = done.stdout.strip().splitlines()
    try:
        answer: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        return {"error": (done.stderr or done.stdout).strip()[-300:]}
    return answer


def ours(cell: tuple[str, int, int, int, int], secs: float, mtu: int | None, nice: list[str]) -> dict[str, Any]:
    _, size, senders, rate, _ = cell
    command = [*nice, sys.executable, "-m", "ordercast", "bench", "--protocol", "totem", "--members", str(MEMBERS)]
    command += ["--size", str(size), "--senders", str(senders), "--seconds", str(secs), "--json"]
    command += ["--rate", str(rate)] if rate else []
    command += ["--mtu", str(mtu)] if mtu else []
    return last_json(command, secs + 60)


def rival(command: str, cell: tuple[str, int, int, int, int], secs: float, nice: list[str]) -> dict[str, Any]:
    _, size, senders, rate, _ = cell
    words = [*nice, *shlex.split(command), "--secs", str(secs), "--reps", "1"]
    if rate:
        words += ["--sizes", "", "--latency-rate", str(rate)]
    else:
        words += ["--sizes", str(size), "--senders", "all" if senders == MEMBERS else str(senders)]
        words += ["--latency-rate", "0"]
    answer = last_json(words, secs + 120)
    for found in answer.get("cells", []):
        if found["senders"] == senders and found["size"] == size:
            figure = {name: found[name]["median"] for name in ("msgs_s", "mb_s", "p50_us", "p99_us")}
            cpu = found["cpu_us_per_msg_all_nodes"]["median"]
            return {**figure, "cpu_us_per_msg": cpu, "same_order": found["same_order"]}
    return {"error": answer.get("error", "no such cell in its answer")}


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    good = [run for run in runs if "error" not in run]
    out: dict[str, Any] = {"runs": len(runs), "failed": [run["error"] for run in runs if "error" in run]}
    if good:
        out |= {name: round(statistics.median(run[name] for run in good), 2) for name in FIGURES}
        out["msgs_s_all"] = [round(run["msgs_s"]) for run in good]
        out["same_order"] = all(run["same_order"] for run in good)
    return out


def ratios(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    both = [name for name in FIGURES if mine.get(name) and other.get(name)]
    return {name: round(mine[name] / other[name], 3) for name in both}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rival", default="", help="command of the rival on MTU 65535")
    options.add_argument("--rival-1500", default="", help="command of the rival on MTU 1500")
    options.add_argument("--reps", type=int, default=3)
    options.add_argument("--secs", type=float, default=2.0)
    options.add_argument("--nice", type=int, default=-15, help="priority of both sides, where allowed")
    options.add_argument("--out", type=Path, default=None, help="also write the result to this file")
    given = options.parse_args()
    nice = ["nice", "-n", str(given.nice)] if given.nice else []
    found: dict[str, dict[str, list[dict[str, Any]]]] = {cell[0]: {} for cell in CELLS}
    for rep in range(given.reps):
        for cell in CELLS:
            name, mtu = cell[0], cell[4]
            command = given.rival if mtu > 1500 else given.rival_1500
            sides = {"bridge": lambda c=cell: ours(c, given.secs, c[4], nice)}
            if mtu > 1500:
                sides["loopback"] = lambda c=cell: ours(c, given.secs, None, nice)
            if command:
                sides["rival"] = lambda c=cell, w=command: rival(w, c, given.secs, nice)
            for side, measure in sides.items():
                print(f"round {rep + 1} of {given.reps}: {name}, {side}", file=sys.stderr, flush=True)
                found[name].setdefault(side, []).append(measure())
    result: dict[str, Any] = {
        "benchmark": "ring_beside_rival",
        **here(),
        "compared": bool(given.rival),
        "cells": [],
    }
    for name, sides in found.items():
        row: dict[str, Any] = {"cell": name, **{side: middle(runs) for side, runs in sides.items()}}
        if "rival" in row:
            row["ratio"] = {side: ratios(row[side], row["rival"]) for side in ("bridge", "loopback") if side in row}
        result["cells"].append(row)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
