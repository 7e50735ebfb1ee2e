"""ingest: traces of live members and of simulations become typed tables, whole runs per file, sorted.

A live run is a directory with one row file per life, perhaps still growing, perhaps cut short by a crash; what is whole
at this moment goes in.  What cannot be used is set aside in a table of its own with path, offset and reason, counted,
never silently dropped; a run that lost rows this way is later judged "cannot judge" where it matters.

    OUT/runs/*.parquet       the runs, in the form of ordercast.trace.parquet
    OUT/set-aside/*.parquet  path, offset, reason
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.errors import TraceError
from ordercast.pipeline.scatter import arrow_schema, batch, scatter
from ordercast.trace.find import Unit, find, row_files
from ordercast.trace.load import joint_header, life_named
from ordercast.trace.reader import Life, RowReader

if TYPE_CHECKING:
    import os

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.trace.columns import Columns
    from ordercast.trace.schema import Header

RUNS, ASIDE = "runs", "set-aside"
FILE_ROWS = 1 << 22
ASIDE_SCHEMA = "path string, offset bigint, reason string"
SCHEMA = "path string, run string, protocol string, service string, rows bigint, offset bigint, reason string"


def ingest(
    spark: SparkSession, paths: Iterable[str | os.PathLike[str]], out: str | Path, tasks: int | None = None
) -> DataFrame:
    """Write everything under `paths` as tables into `out`; one row per run (reason null) and per thing set aside."""
    directory = Path(out).resolve()
    units = find(paths)
    for part in (RUNS, ASIDE):
        shutil.rmtree(directory / part, ignore_errors=True)
        (directory / part).mkdir(parents=True)
    done = scatter(spark, units, partial(_ingest, str(directory)), SCHEMA, tasks)
    rows = done.toArrow().sort_by([("path", "ascending"), ("run", "ascending"), ("offset", "ascending")])
    return spark.createDataFrame(rows)


def _ingest(out: str, units: list[Unit]) -> Iterator[pa.RecordBatch]:
    """The work of one task: its units into files of its own."""
    yield batch(list(_write(units, Path(out))), SCHEMA)


def _write(units: Sequence[Unit], out: Path) -> Iterator[dict[str, Any]]:
    """Read units, write runs; the name of a file follows from what is in it, so a repeated task replaces its own."""
    from ordercast.trace.parquet import Writer

    writer: Writer | None = None
    names: set[str] = set()
    bad: list[TraceError] = []
    key = hashlib.blake2b("\n".join(unit.path for unit in units).encode(), digest_size=8).hexdigest()
    number = 0
    for unit in units:
        for header, columns in read(unit, bad):
            if writer is not None and (writer.rows >= FILE_ROWS or header.run in names):
                writer.close()
                writer = None
            if writer is None:
                writer = Writer(out / RUNS / f"{key}-{number:04d}.parquet")
                number, names = number + 1, set()
            names.add(header.run)
            writer.add(header, columns)
            yield {"path": unit.path, "run": header.run, "protocol": header.protocol, "service": header.service,
                   "rows": len(columns)}  # fmt: skip
    if writer is not None:
        writer.close()
    aside = [{"path": why.path, "offset": why.offset, "reason": why.why} for why in bad]
    if aside:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(aside, schema=arrow_schema(ASIDE_SCHEMA))
        pq.write_table(table, out / ASIDE / f"{key}.parquet")
    yield from aside


# ------------------------------------------------------------------------------------------------ reading with care


def read(unit: Unit, bad: list[TraceError]) -> Iterator[tuple[Header, Columns]]:
    """The runs of a unit with every row that can be used; why the rest cannot goes to `bad`."""
    if unit.kind == "rows":
        yield from _live(unit, bad)
        return
    from ordercast.trace.parquet import ParquetFile

    try:
        yield from ParquetFile(unit.path).runs()
    except TraceError as why:
        bad.append(why)


def _live(unit: Unit, bad: list[TraceError]) -> Iterator[tuple[Header, Columns]]:
    """Row files by the run they name; one directory may hold several runs."""
    from ordercast.trace.columns import from_life, joined

    runs: dict[str, dict[tuple[int, int, int], tuple[Header, Life]]] = {}
    lost: set[tuple[int, int]] = set()
    for path in row_files(unit):
        try:
            reader = RowReader(path)
        except TraceError as why:
            bad.append(why)
            lost.add(life_named(path))
            continue
        try:
            lives = runs.setdefault(reader.header.run, {})
            if reader.order in lives:
                raise TraceError(path, 0, f"a second file of member {reader.member} in the same incarnation")
            told = len(bad)
            lives[reader.order] = (reader.header, reader.read(bad=bad))
            lost |= {(reader.member, reader.incarnation)} if len(bad) > told else set()
        except TraceError as why:
            if path.exists():  # else it was no longer kept
                bad.append(why)
    for _, lives in sorted(runs.items()):
        of = [lives[key] for key in sorted(lives)]
        if not of:
            continue
        header = joint_header([header for header, _ in of])
        header.lost = tuple(sorted(lost))
        yield header, joined([from_life(life) for _, life in of])
