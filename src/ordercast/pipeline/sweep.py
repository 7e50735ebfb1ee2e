"""sweep: an experiment becomes one simulated run per row, inside Spark tasks.

Each task starts one child process and gives it one simulation after the other (ordercast.swarm.runner); a run that
raises, does not end or kills its process is a row with its error, and the job goes on.  What a task has finished it
writes at once as a small file, so progress is seen, and an interrupted sweep goes on where it was.  The table does not
depend on how the work was cut: rows are numbered by the experiment, and nothing in them tells the time of day.

A sweep's directory: `experiment.json` (what is run), `parts/` (finished rows), `trace/` (if asked), and at the end
`results.parquet` with all rows in order.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import UsageError
from ordercast.pipeline.experiment import Experiment, Point
from ordercast.pipeline.scatter import arrow_schema, batch, scatter
from ordercast.sim.scenario import Scenario
from ordercast.swarm.runner import Result, Runner
from ordercast.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

WORK = "ordercast.swarm.work:simulate"
FLUSH_S = 2.0  # a task writes what it has so often
SINGLE = "run-of-"  # begins the name of a trace that is not gathered yet
_USUAL = Scenario()  # what a scenario means that leaves it out
Watch = Callable[[int, int], None]
# result columns after the axes; those of a failed run are null
FIGURES: tuple[tuple[str, str], ...] = (
    ("messages", "bigint"), ("delivered", "bigint"), ("deliveries", "bigint"), ("events", "bigint"),
    ("datagrams", "bigint"), ("transmitted", "bigint"), ("sim_ns", "bigint"), ("ended", "string"),
    ("latency_count", "bigint"), ("latency_sum_ns", "bigint"), ("latency_p50_ns", "bigint"),
    ("latency_p99_ns", "bigint"), ("latency_max_ns", "bigint"), ("views", "bigint"), ("holds", "bigint"),
    ("broken", "string"), ("cannot_judge", "string"), ("notes", "string"), ("faults", "string"), ("digest", "string"),
)  # fmt: skip
SCHEMA = (
    "number bigint, run string, protocol string, service string, members bigint, seed bigint, repetition bigint, "
    "parameters string, ok boolean, error string, " + ", ".join(f"{name} {kind}" for name, kind in FIGURES)
)


class Options(msgspec.Struct, frozen=True):
    """How the runs are made; travels to the tasks."""

    limit_s: float = 60.0
    level: str = "deliver"  # of the trace the promises are judged on
    traces: bool = False  # keep them
    memory_bytes: int | None = None
    work: str = WORK
    flush_s: float = FLUSH_S
    out: str | None = None


def run_points(spark: SparkSession, points: Sequence[Point], options: Options, tasks: int | None = None) -> DataFrame:
    """The points as a table of results, SCHEMA; evaluated when the table is used."""
    return scatter(spark, points, partial(_simulate, options), SCHEMA, tasks)


def run_here(points: Sequence[Point], options: Options, workers: int | None = None) -> Iterator[dict[str, Any]]:
    """The same rows without Spark, on this machine's cores, as they finish."""
    by_number = {point.number: point for point in points}
    with Runner(options.work, workers=workers, limit_s=options.limit_s, memory_bytes=options.memory_bytes) as runner:
        for result in runner.map((point.number, _argument(point, options)) for point in points):
            yield row(by_number[result.key], result)


def _argument(point: Point, options: Options) -> dict[str, Any]:
    trace = f"{options.out}/trace/{SINGLE}{point.run}.parquet" if options.traces and options.out else None
    named = {"run": point.run, "scenario": point.scenario, "parameters": point.parameters}
    return named | {"level": options.level, "trace": trace}


def row(point: Point, result: Result) -> dict[str, Any]:
    """One line of the table."""
    scenario = point.scenario
    value = result.value if isinstance(result.value, dict) else {}
    return {
        "number": point.number,
        "run": point.run,
        "protocol": scenario.get("protocol", _USUAL.protocol),
        "service": value.get("service") or scenario.get("service") or None,
        "members": scenario.get("members", _USUAL.members),
        "seed": scenario.get("seed", _USUAL.seed),
        "repetition": point.repetition,
        "parameters": msgspec.json.encode(point.parameters, order="sorted").decode(),
        "ok": result.ok,
        "error": result.error,
        **{name: value.get(name) for name, _ in FIGURES},
    }


def _simulate(options: Options, points: list[Point]) -> Iterable[pa.RecordBatch]:
    """The work of one Spark task."""
    for part in _batches(run_here(points, options, workers=1), options.flush_s):
        if options.out is not None:
            keep(Path(options.out), part)
        yield part


def _batches(rows: Iterable[dict[str, Any]], every_s: float) -> Iterator[pa.RecordBatch]:
    """Rows as they finish, together every few seconds."""
    waiting: list[dict[str, Any]] = []
    since = time.monotonic()
    for row in rows:
        waiting.append(row)
        if time.monotonic() - since >= every_s:
            yield batch(waiting, SCHEMA)
            waiting, since = [], time.monotonic()
    if waiting:
        yield batch(waiting, SCHEMA)


# ------------------------------------------------------------------------------------------------------ tables on disk


def keep(out: Path, rows: pa.RecordBatch) -> None:
    """Finished rows, and the traces of their runs."""
    write_part(out, rows)
    gather(out, rows)


def write_part(out: Path, batch: pa.RecordBatch) -> None:
    """A finished piece of the table; its name says how many rows it holds, and it appears whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = batch.column("number")[0].as_py()
    path = out / "parts" / f"part-{first:07d}-{batch.num_rows}-{os.getpid()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".half")
    pq.write_table(pa.Table.from_batches([batch]), half)
    half.rename(path)


def gather(out: Path, batch: pa.RecordBatch) -> None:
    """The traces of finished runs into one file, so that thousands of runs do not make thousands of files."""
    columns = (batch.column(name).to_pylist() for name in ("number", "run", "ok"))
    done = {number: out / "trace" / f"{SINGLE}{run}.parquet" for number, run, ok in zip(*columns, strict=True) if ok}
    singles = [path for path in done.values() if path.exists()]
    if not singles:
        return
    from ordercast.trace.parquet import ParquetFile, Writer

    with Writer(out / "trace" / f"runs-{min(done):07d}.parquet") as writer:
        for single in singles:
            for header, rows in ParquetFile(single).runs():
                writer.add(header, rows)
    for single in singles:
        single.unlink()


def done_rows(out: Path) -> pa.Table:
    """Everything finished so far, once per number, in order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = sorted((out / "parts").glob("part-*.parquet"))
    if not parts:
        return arrow_schema(SCHEMA).empty_table()
    table = pa.concat_tables([pq.read_table(part) for part in parts]).sort_by("number")
    seen: dict[int, int] = {}
    for k, number in enumerate(table["number"].to_pylist()):
        seen.setdefault(number, k)
    return table.take(pa.array(list(seen.values()), pa.int64()))


def done_count(out: Path) -> int:
    """Rows finished so far, from the names of the parts alone."""
    return sum(int(part.stem.split("-")[2]) for part in (out / "parts").glob("part-*.parquet"))


def prepare(out: Path, experiment: Experiment, retry: bool = False) -> set[int]:
    """Make the sweep's directory, or go on with it; the numbers that are done.  `retry`: failed runs are not done."""
    record = out / "experiment.json"
    said = {
        "name": experiment.name,
        "digest": experiment.digest,
        "runs": len(experiment.points),
        "version": __version__,
    }
    if record.exists():
        old = msgspec.json.decode(record.read_bytes())
        if old.get("digest") != said["digest"]:
            raise UsageError(f"--out {out}: holds another experiment ({old.get('name')}): name a new directory")
    out.mkdir(parents=True, exist_ok=True)
    record.write_bytes(msgspec.json.encode(said) + b"\n")
    for single in (out / "trace").glob(f"{SINGLE}*"):  # of runs that were not done, or are in a gathered file already
        single.unlink()
    return kept(out, retry)


def kept(out: Path, retry: bool = False) -> set[int]:
    """The numbers that are done; with `retry` failed runs are forgotten."""
    table = done_rows(out)
    rows = zip(table["number"].to_pylist(), table["ok"].to_pylist(), strict=True)
    done = {number for number, ok in rows if ok or not retry}
    if retry and len(done) < len(table):
        import pyarrow as pa

        good = table.filter(pa.array([number in done for number in table["number"].to_pylist()], pa.bool_()))
        for part in (out / "parts").glob("part-*.parquet"):
            part.unlink()
        for batch in good.combine_chunks().to_batches():
            write_part(out, batch)
    return done


def finish(out: Path) -> pa.Table:
    """The whole table as one file, the same bytes however the work was cut."""
    import pyarrow.parquet as pq

    table = done_rows(out).combine_chunks()
    pq.write_table(table, out / "results.half")
    (out / "results.half").rename(out / "results.parquet")
    return table


def sweep(
    spark: SparkSession,
    experiment: Experiment,
    out: Path,
    *,
    options: Options | None = None,
    tasks: int | None = None,
    retry: bool = False,
    watch: Watch | None = None,
) -> pa.Table:
    """Run what is not done yet and give the whole table; `watch(done, total)` is called now and then."""
    options, left = _left(experiment, out, options, retry)
    run_left(left, options, spark=spark, tasks=tasks, watch=_counting(experiment, left, watch))
    return finish(out)


def sweep_here(
    experiment: Experiment,
    out: Path,
    *,
    options: Options | None = None,
    workers: int | None = None,
    retry: bool = False,
    watch: Watch | None = None,
) -> pa.Table:
    """The same without Spark."""
    options, left = _left(experiment, out, options, retry)
    run_left(left, options, workers=workers, watch=_counting(experiment, left, watch))
    return finish(out)


def run_left(
    left: Sequence[Point],
    options: Options,
    *,
    spark: SparkSession | None = None,
    tasks: int | None = None,
    workers: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Run these and keep each row in `options.out` as soon as it is there; `watch(how many of them are done)`."""
    from ordercast.pipeline.watch import watching

    assert options.out is not None
    out, done = Path(options.out), 0
    if spark is not None and left:
        before = done_count(out)
        with watching(lambda: watch(done_count(out) - before) if watch else None):
            run_points(spark, left, options, tasks).write.format("noop").mode("overwrite").save()
        return
    for part in _batches(run_here(left, options, workers), options.flush_s):
        keep(out, part)
        done += part.num_rows
        if watch:
            watch(done)


def _counting(experiment: Experiment, left: Sequence[Point], watch: Watch | None) -> Callable[[int], None] | None:
    """Runs that were done before count, too."""
    total = len(experiment.points)
    return (lambda done: watch(total - len(left) + done, total)) if watch else None


def _left(experiment: Experiment, out: Path, options: Options | None, retry: bool) -> tuple[Options, list[Point]]:
    options = msgspec.structs.replace(options or Options(limit_s=experiment.limit_s), out=str(out.resolve()))
    done = prepare(out, experiment, retry)
    return options, [point for point in experiment.points if point.number not in done]
