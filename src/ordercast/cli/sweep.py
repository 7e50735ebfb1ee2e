"""ordercast sweep: simulate a grid of scenarios."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import (
    Choice,
    Number,
    Whole,
    emit,
    force_option,
    going_on,
    json_option,
    progress,
    resumable_directory,
)
from ordercast.cli.spark_options import open_session, spark_options
from ordercast.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 5  # errors named in words


@click.command("sweep")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Its directory (default: out/sweep-NAME).")
@click.option(
    "--trace", type=Choice("deliver", "full"), default="deliver", show_default=True, help="What is traced and judged."
)
@click.option("--keep", is_flag=True, help="Keep the traces of the runs, for `verify`, `measure` and `report`.")
@click.option("--limit", type=Number(above=True), default=None, help="Seconds one run may take (else the file's).")
@click.option("--tasks", type=Whole(1, 100_000), default=None, help="Into how many tasks the runs are cut.")
@click.option("--retry", is_flag=True, help="Run failed ones again.")
@click.option("--plain", is_flag=True, help="Without Spark, on the cores of this machine.")
@force_option
@spark_options
@json_option
def command(
    file: Path,
    out: Path | None,
    trace: str,
    keep: bool,
    limit: float | None,
    tasks: int | None,
    retry: bool,
    plain: bool,
    force: bool,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Run every simulation of an experiment FILE (TOML: base, grid, choices, cases, seeds) and make one table of them.

    A run that fails is a row with its error.  Started again, it goes on with what is not done.
    """
    from ordercast.pipeline import sweep as stage
    from ordercast.pipeline.experiment import from_file

    if plain and (master or conf):
        raise UsageError("--plain runs without Spark: it excludes --master and --conf")
    experiment = from_file(file)
    out = out or Path("out") / f"sweep-{experiment.name}"
    resumable_directory(out, force, "experiment.json")
    options = stage.Options(limit_s=limit or experiment.limit_s, level=trace, traces=keep)
    since = time.monotonic()
    total = len(experiment.points)
    with (
        progress("sweep", total) as shown,
        going_on(out, lambda: f"{stage.done_count(out)} of {total} runs were finished"),
    ):
        begun: list[float] = []

        def watch(done: int, total: int) -> None:
            begun[:] = begun or [time.monotonic() - 0.5, done]
            rate = (done - begun[1]) / (time.monotonic() - begun[0])
            left = f", {_span((total - done) / rate)} left" if rate > 0 else ""
            shown.at(done, f"{done} of {total} runs, {rate:.1f}/s{left}")

        if plain:
            shown.label = "sweep"
            table = stage.sweep_here(experiment, out, options=options, retry=retry, watch=watch)
        else:
            spark = open_session(master, conf, shown, small=True)
            shown.say("sweep")
            table = stage.sweep(spark, experiment, out, options=options, tasks=tasks, retry=retry, watch=watch)
    result = summary(table, out)
    result["wall_seconds"] = round(time.monotonic() - since, 3)
    emit(result, as_json, lambda: words(result))
    return 1 if result["failed"] or result["broken"] else 0


def summary(table: pa.Table, out: Path) -> dict[str, Any]:
    """What the table says in short."""
    rows = table.select(["run", "ok", "error", "broken", "cannot_judge", "messages"]).to_pylist()
    failed = [row for row in rows if not row["ok"]]
    broken: Counter[str] = Counter(promise for row in rows for promise in (row["broken"] or "").split())
    return {
        "runs": len(rows),
        "ok": len(rows) - len(failed),
        "failed": len(failed),
        "errors": [{"run": row["run"], "error": row["error"]} for row in failed[:100]],
        "broken": dict(sorted(broken.items())),
        "broken_runs": [row["run"] for row in rows if row["broken"]][:100],
        "not_judged": sum(bool(row["cannot_judge"]) for row in rows),
        "messages": sum(row["messages"] or 0 for row in rows),
        "results": str(out / "results.parquet"),
    }


def words(result: dict[str, Any]) -> str:
    lines = [f"{result['runs']} runs, {result['ok']} ok, {result['failed']} failed in {result['wall_seconds']:.1f} s"]
    for error in result["errors"][:SHOWN]:
        lines.append(f"  {error['run']}: {error['error']}")
    if result["failed"] > SHOWN:
        lines.append(f"  ... and {result['failed'] - SHOWN} more")
    if result["broken"]:
        kinds = ", ".join(f"{promise} in {count} runs" for promise, count in result["broken"].items())
        lines.append(f"broken promises: {kinds}")
        lines.append(
            f"  in {', '.join(result['broken_runs'][:SHOWN])}{' ...' if len(result['broken_runs']) > SHOWN else ''}"
        )
    else:
        lines.append("every promise that could be judged held")
    lines.append(f"table: {result['results']}")
    return "\n".join(lines)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
