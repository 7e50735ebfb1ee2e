"""`ordercast replay`: golden vectors and recorded members, replayed into the shipped code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import emit, json_option, progress
from ordercast.conformance import golden, recording
from ordercast.errors import UsageError

SHOWN = 5  # failures described per file


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@json_option
def command(paths: tuple[Path, ...], as_json: bool) -> int:
    """Replay golden vectors (JSON files) or recorded members (*.inputs, or a run's directory).

    Golden vectors are fed to the protocols' own code and the results compared.  The inputs of a member recorded with
    trace level `record` are fed to a fresh core, whose actions must be the recorded ones, byte for byte.
    Exit code 1 if anything differs.
    """
    jobs: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file; expected golden vectors (JSON) or a run's directory")
        jobs += [path] if path.suffix == ".json" else recording.find(path)
    files = []
    with progress("replaying", len(jobs)) as bar:
        for job in jobs:
            files.append(_golden(job) if job.suffix == ".json" else _recording(job))
            bar.advance()
    emit({"files": files}, as_json, lambda: "\n".join(line for each in files for line in _lines(each)))
    return int(any(each["failed"] for each in files))


def _golden(path: Path) -> dict[str, Any]:
    result = golden.replay(path)
    failures = [{"where": f"{f.case} ({f.kind})", "differences": f.differences} for f in result.failures]
    return {"name": result.file, "passed": result.passed, "failed": len(failures), "failures": failures}


def _recording(path: Path) -> dict[str, Any]:
    result = recording.replay_file(path)
    failures = [{"where": f"record {result.record}" if result.record else "file", "differences": [result.difference]}]
    failures = failures if result.difference else []
    return {
        "name": result.name,
        "passed": result.inputs,
        "failed": len(failures),
        "failures": failures,
        "note": result.note,
    }


def _lines(each: dict[str, Any]) -> list[str]:
    note = f" ({each['note']})" if each.get("note") else ""
    lines = [f"{each['name']}: {each['passed']} passed, {each['failed']} failed{note}"]
    for failure in each["failures"][:SHOWN]:
        lines.append(f"  {failure['where']}: {failure['differences'][0]}")
    if len(each["failures"]) > SHOWN:
        lines.append(f"  and {len(each['failures']) - SHOWN} more")
    return lines
