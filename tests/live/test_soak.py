"""Members killed, restarted and stopped at random under load; every promise of the order is kept.

`SOAK_SECONDS` says for how long (25 by default; `make soak` takes 600), `SOAK_PROTOCOL` under which protocol,
`SOAK_RINGS` on which rings (as "1,2,3 3,4,5 5,6,1"), `SOAK_SEED` repeats the faults of a run.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from .conftest import Cli

MEMBERS = 4
RATE = 400


def faults(seconds: float, seed: int, members: int = MEMBERS) -> list[str]:
    """Options of `ordercast run`; at most two members are away at a time."""
    rng = random.Random(seed)
    words: list[str] = []
    free_at = dict.fromkeys(range(1, members + 1), 0.0)  # when a member is up again, for certain
    at = 1.0
    while at < seconds - 8:
        away = [m for m, until in free_at.items() if until > at]
        up = [m for m in free_at if m not in away]
        if len(away) < 2:
            member, length = rng.choice(up), rng.uniform(0.1, 3.0)
            begin, end = ("--kill", "--restart") if rng.random() < 0.6 else ("--pause", "--resume")
            words += [begin, f"{member}@{at:.2f}", end, f"{member}@{at + length:.2f}"]
            free_at[member] = at + length + (3.0 if begin == "--kill" else 0.5)
        at += rng.uniform(0.2, 4.0)
    return words


def test_the_order_survives_random_crashes_and_pauses(cli: Cli, tmp_path: Path) -> None:
    seconds = float(os.environ.get("SOAK_SECONDS", "25"))
    seed = int(os.environ.get("SOAK_SEED", random.randrange(2**32)))
    protocol = os.environ.get("SOAK_PROTOCOL", "totem")
    rings = os.environ.get("SOAK_RINGS", "").split()
    members = max((int(member) for ring in rings for member in ring.split(",")), default=MEMBERS)
    print(f"SOAK_SEED={seed} SOAK_SECONDS={seconds:g} SOAK_PROTOCOL={protocol} SOAK_RINGS={' '.join(rings)!r}")
    words = ["--protocol", protocol, "--members", str(members), "--rate", str(RATE), "--size", "200", "--out", "o"]
    words += [word for ring in rings for word in ("--ring", ring)]
    words += ["--messages", str(int(RATE * (seconds - 5))), "--verify", "plain", "--json"]
    words += faults(seconds, seed, members)
    process = cli.start("run", *words)
    out, err = process.communicate(timeout=10 * seconds + 300)
    assert out, err
    answer = json.loads(out)
    print(*answer["faults"], sep="\n")
    broken = [v for v in answer["verdicts"] if v["verdict"] == "broken"]
    in_time = {"L1", "L2", "L3", "L5", "L7", "L8"}  # a busy machine may miss a bound; the order must never break
    assert not [v for v in broken if v["promise"] not in in_time], f"SOAK_SEED={seed}: {broken}"
    judged = {v["promise"]: v["judged"] for v in answer["verdicts"]}
    assert judged["S15"] > 1_000 and judged["S11"] > 0
