"""ordercast verify: judge recorded runs against the promises."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ordercast.cli.common import BadValue, emit, output_directory, progress
from ordercast.cli.spark_options import Reading, trace_options
from ordercast.errors import TraceError
from ordercast.verify.verdict import BROKEN, CANNOT_JUDGE, HOLDS, NOTHING

if TYPE_CHECKING:
    from ordercast.pipeline.verify import Summary

SHOWN_BREAKS = 5
SHOWN_ROWS = 8  # of one break's example


class Promises(click.ParamType):
    """S1,S15,L3: ids of the catalogue."""

    name = "ids"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        from ordercast.verify.catalogue import CATALOGUE

        ids = [part.strip().upper() for part in str(value).split(",") if part.strip()]
        unknown = [id for id in ids if id not in CATALOGUE]
        if unknown or not ids:
            raise BadValue(f"{value}: expected ids such as S1,S17,L3 (S1 to S26, L1 to L12)", ctx, param)
        return ids


@click.command("verify")
@click.option(
    "--promises", type=Promises(), default=None, help="Judge by these alone, as S1,S17 (else by all that apply)."
)
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for the table of verdicts.")
@trace_options
def command(reading: Reading, promises: list[str] | None, out: Path | None, as_json: bool) -> int:
    """Judge the traces at PATH... (files or directories, of live runs or simulations) against the promises.

    A promise holds, is broken, cannot be judged (something is missing) or had nothing to judge.

    Exit code 0: every promise that could be judged held; 1: one was broken, or of some run nothing could be judged.
    """
    from ordercast.pipeline import verify as stage
    from ordercast.trace.find import find

    if out is not None:
        output_directory(out, reading.force)
    since = time.monotonic()
    with progress("verifying") as shown:
        if reading.plain:
            rows = list(stage.verify_here(reading.paths, promises))
            summary = stage.summarise_rows(rows)
            if out is not None:
                stage.write_rows(rows, out)
        else:
            units = find(reading.paths)  # what a person got wrong is said before Spark starts
            spark = reading.session(shown, small=True)
            shown.say(f"verifying {len(units)} files ...")
            verdicts = stage.verify_units(spark, units, promises, reading.tasks)
            if out is not None:
                verdicts = stage.write(verdicts, out)
            summary = stage.summarise(verdicts)
    if summary.unreadable and not reading.skip_bad:
        first = summary.unreadable[0]
        raise TraceError(first["path"], first["offset"] or 0, first["text"])
    result = {
        "engine": reading.engine,
        "ok": summary.ok,
        "runs": summary.runs,
        "rows": summary.rows,
        "promises": [msgspec.to_builtins(line) for line in summary.lines],
        "broken": [_example(row) for row in summary.broken],
        "broken_total": summary.broken_total,
        "cannot_judge": [_example(row) for row in summary.doubts],
        "unjudged_runs": summary.unjudged_runs,
        "skipped": [{"path": row["path"], "offset": row["offset"], "why": row["text"]} for row in summary.unreadable],
        "wall_seconds": round(time.monotonic() - since, 3),
    }
    emit(result, as_json, lambda: words(summary, reading.engine))
    return 0 if summary.ok else 1


def _example(row: dict[str, Any]) -> dict[str, Any]:
    rows = msgspec.json.decode(row["example"]) if row.get("example") else []
    return {"run": row["run"], "promise": row["promise"], "text": row["text"], "rows": rows, "path": row["path"]}


def words(summary: Summary, engine: str) -> str:
    """The verdict as a table, then what broke."""
    lines = [f"{summary.runs} run{'' if summary.runs == 1 else 's'}, {summary.rows} rows, judged by {engine}"]
    width = max((len(line.name) for line in summary.lines), default=0)
    for line in summary.lines:
        parts = {"broken": line.broken, "hold": line.holds, "not judged": line.cannot_judge, "empty": line.nothing}
        counts = [f"{n} {word}" for word, n in parts.items() if n]
        more = f"  ({', '.join(counts)})" if line.broken or len(counts) > 1 else ""
        lines.append(f"  {line.promise:<4} {line.name:<{width}}  {state_of(line)}{more}")
    for row in summary.broken[:SHOWN_BREAKS]:
        lines.append(f"\n{row['run']}: {row['text']}")
        lines += [f"  {_row_words(example)}" for example in _example(row)["rows"][:SHOWN_ROWS]]
    if summary.broken_total > SHOWN_BREAKS:
        lines.append(f"\n... and {summary.broken_total - SHOWN_BREAKS} more broken")
    for row in summary.doubts[:SHOWN_BREAKS]:
        lines.append(f"not judged in {row['run']}: {row['text']}")
    if summary.unreadable:
        lines.append(f"left out: {len(summary.unreadable)} files")
        lines += [
            f"  {row['path']}: at byte {row['offset']}: {row['text']}" for row in summary.unreadable[:SHOWN_BREAKS]
        ]
    if summary.broken_total:
        lines.append("a promise was broken")
    elif summary.unjudged_runs:
        lines.append(f"of {summary.unjudged_runs} runs nothing could be judged")
    elif summary.runs:
        lines.append("every promise that could be judged held")
    else:
        lines.append("there was no run to judge")
    return "\n".join(lines)


def state_of(line: Any) -> str:
    """One word for a promise over all runs: the worst there is, and "holds" only where something was judged."""
    if line.broken:
        return BROKEN
    return HOLDS if line.holds else CANNOT_JUDGE if line.cannot_judge else NOTHING


def _row_words(row: dict[str, Any]) -> str:
    about = {name: value for name, value in row.items() if name not in ("member", "kind", "incarnation", "index")}
    rest = " ".join(f"{name}={value}" for name, value in about.items())
    return f"member {row.get('member')} #{row.get('index')} {row.get('kind')} {rest}"
