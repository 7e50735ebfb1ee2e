"""The end of a run: its traces verified, one table, one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.errors import RunError
from ordercast.trace.rows import SUFFIX, RowReader
from ordercast.trace.trace import Trace


def read(directory: Path) -> Trace:
    """The one run whose row files are in a directory."""
    readers = [RowReader(path) for path in sorted(directory.glob("*" + SUFFIX))]
    if not readers:
        raise RunError(f"{directory}: no trace was written")
    return Trace(readers[0].header, [row for reader in readers for row in reader.rows()])


def plain(directory: Path) -> list[dict[str, Any]]:
    """By the short loops of verify/plain, in this process."""
    from ordercast.verify import check

    return [
        {"promise": v.promise, "verdict": v.state, "judged": v.judged, "text": v.text, "example": v.example}
        for v in check(read(directory))
    ]


def table(verdicts: list[dict[str, Any]]) -> list[str]:
    """promise, verdict, judged: one line each; what is not plainly kept says why."""
    lines = [f"  {'promise':<30} {'verdict':<13} {'judged':>12}"]
    for each in verdicts:
        name, _, why = each["text"].partition(": ")
        lines.append(f"  {name:<30} {each['verdict']:<13} {each['judged']:>12,}")
        if each["verdict"] != "holds":
            lines.append(f"        {why}")
        lines += [f"        {row}" for row in each["example"]]
    return lines
