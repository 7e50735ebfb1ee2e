"""`ordercast replay`: golden vectors and recorded members, replayed into the shipped code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import emit, json_option, progress
from ordercast.conformance import golden, recording
from ordercast.errors import UsageError
from ordercast.words import short

SHOWN = 5  # failures described per file


@click.command("replay")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--partial", is_flag=True, help="Allow that parts of a file are not replayed, if others are.")
@json_option
def command(paths: tuple[Path, ...], partial: bool, as_json: bool) -> int:
    """Replay golden vectors (JSON files) or recorded members (*.inputs, or a run's directory).

    Golden vectors are fed to the protocols' own code and the results compared.  The inputs of a member recorded with
    trace level `record` are fed to a fresh core, whose actions must be the recorded ones, byte for byte.
    What this version has no code for is not replayed, and counted.  Exit code 1 if anything differs or was not
    replayed; with --partial, only if nothing at all of a file could be.
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
    untouched = [each["name"] for each in files if not each["passed"] and not each["failed"]]
    rest = [each["name"] for each in files if each["not_replayed"] and each["name"] not in untouched and not partial]
    emit({"files": files, "nothing_replayed": untouched}, as_json, lambda: _words(files, untouched, rest))
    return int(bool(untouched or rest) or any(each["failed"] for each in files))


def _golden(path: Path) -> dict[str, Any]:
    result = golden.replay(path)
    failures = [{"where": f"{f.case} ({f.kind})", "differences": f.differences} for f in result.failures]
    missing = ""
    if result.unknown:
        missing = f"no such {'kind' if len(result.unknown) == 1 else 'kinds'} here: {', '.join(result.unknown)}"
    return _file(result.file, result.passed, failures, not_replayed=sum(result.unknown.values()), missing=missing)


def _recording(path: Path) -> dict[str, Any]:
    result = recording.replay_file(path)
    if result.unknown:
        return _file(result.name, 0, [], not_replayed=1, missing=f"no such protocol here: {short(result.unknown)}")
    failures = [{"where": f"record {result.record}" if result.record else "file", "differences": [result.difference]}]
    return _file(result.name, result.inputs, failures if result.difference else [], note=result.note)


def _file(
    name: str,
    passed: int,
    failures: list[dict[str, Any]],
    *,
    not_replayed: int = 0,
    missing: str = "",
    note: str = "",
) -> dict[str, Any]:
    return {
        "name": name,
        "passed": passed,
        "failed": len(failures),
        "not_replayed": not_replayed,
        "missing": missing,
        "failures": failures,
        "note": note,
    }


def _words(files: list[dict[str, Any]], untouched: list[str], rest: list[str]) -> str:
    lines = [line for each in files for line in _lines(each)]
    if untouched:
        lines.append(f"nothing at all could be replayed of {', '.join(untouched)}")
    if rest:
        lines.append(f"not all was replayed of {', '.join(rest)}; --partial allows it")
    return "\n".join(lines)


def _lines(each: dict[str, Any]) -> list[str]:
    line = f"{each['name']}: {each['passed']} passed, {each['failed']} failed"
    if each["not_replayed"]:
        line += f", {each['not_replayed']} not replayed: {each['missing']}"
    lines = [line + (f" ({each['note']})" if each["note"] else "")]
    for failure in each["failures"][:SHOWN]:
        lines.append(f"  {failure['where']}: {failure['differences'][0]}")
    if len(each["failures"]) > SHOWN:
        lines.append(f"  and {len(each['failures']) - SHOWN} more")
    return lines
