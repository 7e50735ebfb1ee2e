"""How long a group is silent after one of its members is killed or stopped, and how soon that one is back.

    python benchmarks/crash_recovery.py [--kills 10] [--pauses 3] [--rate 2000] [--size 1000]
        [--option crash_hint=false]

One `ordercast run` under load: members are killed with SIGKILL and started again one after the other, then stopped
for a second with SIGSTOP.  Times are read from the traces: from the crash (or stop) to the first delivery of each
survivor in the view without the victim, and from the launch of the new process (or SIGCONT) to the view of all.
Prints one JSON object; the run is verified, and what was broken is listed.
Our modules are compiled first, as an installation does: where Python may not write bytecode, every start would do it.
"""

from __future__ import annotations

import argparse
import compileall
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from here import here

import ordercast
from ordercast.trace.load import load
from ordercast.trace.schema import Kind, Row
from ordercast.types import ViewKind

MEMBERS = 4
SPACING = 4.0  # seconds between two faults
AWAY = 1.5  # seconds a killed member stays dead
STOPPED = 1.0
NOTED = 0.5  # seconds within which the launcher notes what it did


def plan(kills: int, pauses: int, victims: Sequence[int] = range(1, MEMBERS + 1)) -> tuple[list[str], float]:
    words: list[str] = []
    at = 2.0
    for k in range(kills + pauses):
        member = victims[k % len(victims)]
        begin, end, away = ("--kill", "--restart", AWAY) if k < kills else ("--pause", "--resume", STOPPED)
        words += [begin, f"{member}@{at:g}", end, f"{member}@{at + away:g}"]
        at += SPACING
    return words, at


def silences(fault: Row, lives: dict[tuple[int, int], list[Row]]) -> list[float]:
    """Milliseconds from a fault to each survivor's first delivery in a view without the victim.

    The launcher notes a fault after it happened: on a busy machine a survivor's view may be older than that note.
    """
    out = []
    soon, late = fault.time_ns - int(NOTED * 1e9), fault.time_ns + int(SPACING * 1e9)
    for (member, _), rows in lives.items():
        if member in (0, fault.sender) or not rows[0].time_ns < fault.time_ns < rows[-1].time_ns:
            continue
        near = [row for row in rows if soon < row.time_ns < late]
        views = (row for row in near if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR)
        view = next((row.time_ns for row in views if fault.sender not in (row.members or ())), None)
        if view is None:
            continue  # nothing was noticed: a short stop
        again = next((row.time_ns for row in near if row.kind == Kind.DELIVER and row.time_ns >= view), None)
        out.append(max(0.0, (again - fault.time_ns) / 1e6) if again is not None else float("inf"))
    return out


def returns(sign: Row, lives: dict[tuple[int, int], list[Row]], members: int = MEMBERS) -> float:
    """Milliseconds until the member is in a view of all: from its resumption, or from the launch of its process."""
    since = (sign.detail or {}).get("launched_ns", sign.time_ns)
    rows = lives[sign.sender or 0, sign.sender_incarnation or 0]
    full = [r.time_ns for r in rows if r.kind == Kind.VIEW and len(r.members or ()) == members and r.view_kind == 1]
    return min(((at - since) / 1e6 for at in full if at > since), default=float("inf"))


def figures(values: list[float]) -> dict[str, Any]:
    return {"median_ms": round(statistics.median(values), 1), "worst_ms": round(max(values), 1)} if values else {}


def recovery(command: list[str], members: int, faults: tuple[list[str], float], rate: int, size: int) -> dict[str, Any]:
    """Figures of one `ordercast run` with these options under these faults."""
    words, seconds = faults
    compileall.compile_dir(Path(ordercast.__file__).parent, quiet=2)
    with tempfile.TemporaryDirectory(prefix="ordercast-crash-") as base:
        command = [sys.executable, "-m", "ordercast", "run", *command, "--members", str(members)]
        command += ["--rate", str(rate), "--messages", str(int(rate * (seconds + 1))), "--json"]
        command += ["--size", str(size), "--out", f"{base}/o", "--verify", "plain", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.stdout:
            sys.exit(done.stderr.strip())
        run = json.loads(done.stdout)
        (trace,) = load(Path(base) / "o" / "trace")
    lives: dict[tuple[int, int], list[Row]] = {}
    for row in trace.rows:
        lives.setdefault((row.member, row.incarnation), []).append(row)
    world = [row for row in trace.rows if row.member == 0]
    first = min(row.time_ns for row in world if row.kind == Kind.STABLE)
    crashes = [row for row in world if row.kind == Kind.CRASH]
    stops = [row for row in world if row.kind == Kind.PAUSE]
    starts = [row for row in world if row.kind == Kind.START and row.time_ns > first]
    resumed = [row for row in world if row.kind == Kind.RESUME]
    back = [returns(row, lives, members) for row in starts]
    back += [float("inf")] * (words.count("--restart") - len(starts))  # killed again before they were in a view
    return {
        "members": members,
        "rate": rate,
        "size": size,
        "kills": len(crashes),
        "silence_after_kill": figures([ms for row in crashes for ms in silences(row, lives)]),
        "back_after_restart": figures(back),
        "pauses": len(stops),
        "silence_after_stop": figures([ms for row in stops for ms in silences(row, lives)]),
        "back_after_resume": figures([returns(row, lives, members) for row in resumed]),
        "views": sorted({view["cause"].split(" (told")[0] for view in run["views"]}),
        "broken": [v["text"] for v in run["verdicts"] if v["verdict"] == "broken"],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--pauses", type=int, default=3)
    options.add_argument("--rate", type=int, default=2000)
    options.add_argument("--size", type=int, default=1000)
    options.add_argument("--protocol", default="totem")
    options.add_argument("--option", action="append", default=[], help="KEY=VALUE of the protocol: crash_hint=false")
    options.add_argument("--out", type=Path)
    asked = options.parse_args()
    words = ["--protocol", asked.protocol, *(word for pair in asked.option for word in ("--option", pair))]
    found = recovery(words, MEMBERS, plan(asked.kills, asked.pauses), asked.rate, asked.size)
    result = {**here(), "protocol": asked.protocol, "options": asked.option, **found}
    text = json.dumps(result)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
