"""The end of a run: its traces verified, one table, one HTML page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import RunError, TraceError
from ordercast.pipeline.verify import UNREADABLE
from ordercast.trace.load import live_trace
from ordercast.trace.rows import SUFFIX
from ordercast.trace.trace import Trace
from ordercast.verify.catalogue import CATALOGUE
from ordercast.verify.verdict import HOLDS, NOTHING


def read(directory: Path) -> Trace:
    """The one run whose row files are in a directory."""
    files = sorted(directory.glob("*" + SUFFIX))
    if not files:
        raise RunError(f"{directory}: no trace was written")
    return live_trace(files, None)


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of ordercast.pipeline.verify as `run` shows them; a file that cannot be read is an error."""
    for row in rows:
        if row["state"] == UNREADABLE:
            raise TraceError(row["path"], row["offset"] or 0, row["text"])
    return [
        {
            "promise": row["promise"],
            "verdict": row["state"],
            "judged": row["judged"],
            "text": row["text"] or _promised(row["promise"]),
            "example": msgspec.json.decode(row["example"]) if row["example"] else [],
            "told_by": row["told_by"],
        }
        for row in rows
    ]


def _promised(id: str) -> str:
    promise = CATALOGUE[id]
    return f"{id} {promise.name}: {promise.statement}"


def report(directory: Path, rows: list[dict[str, Any]], engine: str) -> Path | None:
    """DIR/report.html, where numpy is there to measure the trace."""
    if find_spec("numpy") is None:
        return None
    from ordercast.pipeline.report import write_run

    return write_run(directory / "report.html", [directory / "trace"], verdicts=rows, engine=engine)


def table(verdicts: list[dict[str, Any]]) -> list[str]:
    """promise, verdict, judged: one line each; what is not plainly kept says why."""
    lines = [f"  {'promise':<30} {'verdict':<16} {'judged':>12}"]
    for each in verdicts:
        name, _, why = each["text"].partition(": ")
        lines.append(f"  {name:<30} {each['verdict']:<16} {each['judged']:>12,}")
        if each["told_by"]:
            lines.append(f"        the same finding as {each['told_by']}")
            continue
        if each["verdict"] not in (HOLDS, NOTHING):
            lines.append(f"        {why}")
        lines += [f"        {row}" for row in each["example"]]
    return lines
