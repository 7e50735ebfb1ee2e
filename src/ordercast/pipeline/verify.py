"""verify: every run under some paths against every promise that applies to it, one task per few files.

Spark hands out names of files; the task reads them itself and judges run after run with the checkers over arrays
(ordercast.verify.columns), so no row of a trace ever passes through the JVM.  A run sits in one unit, so nothing is
shuffled, and the verdicts do not depend on how units were spread or in which order they were named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.scatter import arrow_schema, batch, scatter
from ordercast.trace.find import Unit, find
from ordercast.trace.load import runs_of, sound, traces_of
from ordercast.trace.parquet import ParquetFile
from ordercast.trace.schema import Header
from ordercast.verify.catalogue import CATALOGUE, chosen
from ordercast.verify.verdict import BROKEN, CANNOT_JUDGE, HOLDS, NOTHING, Verdict

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Paths = Iterable[str | os.PathLike[str]]

UNREADABLE = "unreadable"
SCHEMA = (
    "path string, run string, protocol string, service string, rows bigint, promise string, state string, "
    "judged bigint, text string, example string, told_by string, offset bigint"
)
BATCH_ROWS = 4096


def verify_paths(
    spark: SparkSession, paths: Paths, promises: Sequence[str] | None = None, tasks: int | None = None
) -> DataFrame:
    """One row per run and promise (SCHEMA): state holds, broken, cannot judge or nothing to judge.

    `example` is JSON, the rows of a break; `told_by` the promise whose finding it is, too: one cause, one finding.
    A file that cannot be read is one row with state `unreadable`, no run and no promise; its text says why.
    `promises`: judge by these instead of those the runs' headers name.
    """
    if promises is not None:
        promises = [promise.id for promise in chosen(list(promises))]
    return verify_units(spark, find(paths), promises, tasks)


def verify_units(
    spark: SparkSession, units: Sequence[Unit], promises: Sequence[str] | None = None, tasks: int | None = None
) -> DataFrame:
    return scatter(spark, units, partial(_verify, promises), SCHEMA, tasks)


def verify_here(paths: Paths, promises: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The same rows without Spark, one run after the other, by the plain checkers."""
    if promises is not None:
        promises = [promise.id for promise in chosen(list(promises))]
    for unit in find(paths):
        yield from judge_plain(unit, promises)


def _verify(promises: Sequence[str] | None, units: list[Unit]) -> Iterator[pa.RecordBatch]:
    """The work of one task."""
    rows = (row for unit in units for row in judge_columns(unit, promises))
    while some := list(islice(rows, BATCH_ROWS)):
        yield batch(some, SCHEMA)


Judged = tuple["Header", int, list[Verdict]]  # a run, its rows, what is said of it


def judge_columns(unit: Unit, promises: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Verdicts by the checkers over arrays, all runs of a row group at once."""
    from ordercast.verify.columns import check, check_many, columns_for

    def judge(bad: list[TraceError]) -> Iterator[Judged]:
        if unit.kind == "rows":
            for header, columns in runs_of(unit, bad):
                yield header, len(columns), check(columns, header, _named(unit, header, promises))
            return
        file = ParquetFile(unit.path)
        wanted = promises or list(dict.fromkeys(id for header in file.headers.values() for id in header.promises))
        for headers, cuts, columns in file.groups(columns_for(wanted)):
            for header in headers:
                _named(unit, header, promises)
            sound(unit.path, headers, cuts, columns)
            verdicts = check_many(columns, cuts, headers, promises)
            for k, header in enumerate(headers):
                yield header, cuts[k + 1] - cuts[k], verdicts[k]

    return _rows(unit, judge)


def judge_plain(unit: Unit, promises: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Verdicts by the plain checkers; of live runs without numpy."""
    from ordercast.verify import check

    def judge(bad: list[TraceError]) -> Iterator[Judged]:
        for trace in traces_of(unit, bad):
            yield trace.header, len(trace), check(trace, _named(unit, trace.header, promises))

    return _rows(unit, judge)


def _rows(unit: Unit, judge: Callable[[list[TraceError]], Iterator[Judged]]) -> Iterator[dict[str, Any]]:
    """Verdicts on every run of a unit, as rows; what cannot be read becomes a row, too."""
    bad: list[TraceError] = []
    try:
        for header, rows, verdicts in judge(bad):
            for verdict in verdicts:
                yield _row(unit, header, rows, verdict)
    except TraceError as why:
        bad.append(why)
    for entry in bad:
        yield {"path": entry.path, "state": UNREADABLE, "text": entry.why, "offset": entry.offset}


def _named(unit: Unit, header: Header, promises: Sequence[str] | None) -> Sequence[str] | None:
    """Judge by these, or by those of the header, which must be known here."""
    unknown = [] if promises is not None else [id for id in header.promises if id not in CATALOGUE]
    if unknown:
        why = f"run {header.run!r} is to be judged by {unknown[0]!r}, a promise that is not known here"
        raise TraceError(unit.path, 0, why)
    return promises


def _row(unit: Unit, header: Header, rows: int, verdict: Verdict) -> dict[str, Any]:
    example = msgspec.json.encode(verdict.example).decode() if verdict.example else None
    return {
        "path": unit.path,
        "run": header.run,
        "protocol": header.protocol,
        "service": header.service,
        "rows": rows,
        "promise": verdict.promise,
        "state": verdict.state,
        "judged": verdict.judged,
        "text": verdict.text if verdict.state != HOLDS else None,
        "example": example,
        "told_by": verdict.told_by or None,
    }


# ------------------------------------------------------------------------------------------------------- what it means


class Line(msgspec.Struct):
    """One promise over all runs."""

    promise: str
    name: str
    holds: int = 0
    broken: int = 0
    cannot_judge: int = 0
    nothing: int = 0  # to judge
    judged: int = 0


class Summary(msgspec.Struct):
    """What a table of verdicts says in short; a few breaks and doubts with all their words."""

    runs: int
    rows: int
    lines: list[Line]
    broken: list[dict[str, Any]]
    doubts: list[dict[str, Any]]
    unreadable: list[dict[str, Any]]
    broken_total: int  # findings; one may be of several promises
    unjudged_runs: int  # runs of which nothing could be judged

    @property
    def ok(self) -> bool:
        return self.runs > 0 and self.broken_total == 0 and self.unjudged_runs == 0


def summarise(verdicts: DataFrame, shown: int = 100) -> Summary:
    """Aggregate a table of verdicts; only counts and the first few breaks leave the executors."""
    from pyspark.sql import functions as F

    verdicts = verdicts.persist()
    try:
        counted = (
            verdicts.groupBy("promise", "state")
            .agg(
                F.count("*").alias("n"),
                F.coalesce(F.sum("judged"), F.lit(0)).alias("judged"),
                F.count("told_by").alias("told"),
            )
            .toArrow()
            .to_pylist()
        )
        per_run = (
            verdicts.where(F.col("promise").isNotNull())
            .groupBy("path", "run")
            .agg(F.max("rows").alias("rows"), F.max((F.col("state") != CANNOT_JUDGE).cast("int")).alias("judged"))
        )
        whole = per_run.agg(
            F.count("*").alias("runs"), F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
            F.coalesce(F.sum(1 - F.col("judged")), F.lit(0)).alias("unjudged"),
        ).toArrow().to_pylist()[0]  # fmt: skip
        some: dict[str, list[dict[str, Any]]] = {}
        for state in (BROKEN, CANNOT_JUDGE, UNREADABLE):
            some[state] = []
            if any(line["state"] == state for line in counted):
                told = verdicts.where((F.col("state") == state) & F.col("told_by").isNull())
                rows = told.orderBy("run", "path", "promise", "offset").limit(shown)
                some[state] = sorted(rows.toArrow().to_pylist(), key=_place)
    finally:
        verdicts.unpersist()
    return _summary(counted, whole["runs"], whole["rows"], whole["unjudged"], some)


def summarise_rows(rows: Iterable[dict[str, Any]], shown: int = 100) -> Summary:
    """The same of rows in memory."""
    counts: dict[tuple[Any, str], list[int]] = {}  # promise, state -> rows, judged, told by another
    runs: dict[tuple[str, Any], tuple[int, bool]] = {}
    some: dict[str, list[dict[str, Any]]] = {BROKEN: [], CANNOT_JUDGE: [], UNREADABLE: []}
    for row in rows:
        entry = counts.setdefault((row.get("promise"), row["state"]), [0, 0, 0])
        entry[0] += 1
        entry[1] += row.get("judged") or 0
        entry[2] += row.get("told_by") is not None
        if row.get("promise"):
            key = row["path"], row["run"]
            runs[key] = row["rows"], runs.get(key, (0, False))[1] or row["state"] != CANNOT_JUDGE
        if row["state"] in some and row.get("told_by") is None:
            some[row["state"]].append(row)
    names = ("n", "judged", "told")
    counted = [{"promise": p, "state": s, **dict(zip(names, of, strict=True))} for (p, s), of in counts.items()]
    some = {state: sorted(found, key=_place)[:shown] for state, found in some.items()}
    unjudged = sum(not judged for _, judged in runs.values())
    return _summary(counted, len(runs), sum(rows for rows, _ in runs.values()), unjudged, some)


def _place(row: dict[str, Any]) -> tuple[str, str, int, int]:
    order = list(CATALOGUE)
    promise = row.get("promise")
    return row.get("run") or "", row["path"], order.index(promise) if promise in order else -1, row.get("offset") or 0


def _summary(
    counted: list[dict[str, Any]], runs: int, rows: int, unjudged: int, some: dict[str, list[dict[str, Any]]]
) -> Summary:
    lines: dict[str, Line] = {}
    for entry in counted:
        promise = entry["promise"]
        if promise is None:
            continue
        line = lines.setdefault(promise, Line(promise, CATALOGUE[promise].name))
        attribute = {HOLDS: "holds", BROKEN: "broken", CANNOT_JUDGE: "cannot_judge", NOTHING: "nothing"}[entry["state"]]
        setattr(line, attribute, getattr(line, attribute) + entry["n"])
        line.judged += int(entry["judged"])
    ordered = [lines[promise] for promise in CATALOGUE if promise in lines]
    total = sum(entry["n"] - entry["told"] for entry in counted if entry["state"] == BROKEN)
    return Summary(runs, int(rows), ordered, some[BROKEN], some[CANNOT_JUDGE], some[UNREADABLE], total, int(unjudged))


def write(verdicts: DataFrame, out: Path) -> DataFrame:
    """The table of verdicts as Parquet under `out`; read back, so that it is computed once."""
    path = str((out / "tables" / "verdicts").resolve())
    verdicts.write.mode("overwrite").parquet(path)
    return verdicts.sparkSession.read.parquet(path)


def write_rows(rows: list[dict[str, Any]], out: Path) -> None:
    """The same without Spark."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = out / "tables" / "verdicts"
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(SCHEMA)), path / "part-0.parquet")


def judge_paths(
    paths: Paths, engine: str = "spark", promises: Sequence[str] | None = None, master: str | None = None
) -> list[dict[str, Any]]:
    """Verdicts on a few traces as rows (SCHEMA) sorted by run and promise, by Spark or by the plain checkers here."""
    if engine == "plain":
        rows = list(verify_here(paths, promises))
    else:
        from ordercast.pipeline.session import session

        rows = verify_paths(session(master), paths, promises).toArrow().to_pylist()
    return sorted(rows, key=_place)
