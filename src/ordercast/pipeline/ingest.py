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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.scatter import arrow_schema, scatter
from ordercast.trace.find import Unit, find, row_files
from ordercast.trace.load import joint_header
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


class Aside(msgspec.Struct, frozen=True):
    """Something that could not be used."""

    path: str
    offset: int
    reason: str


def ingest(
    spark: SparkSession, paths: Iterable[str | os.PathLike[str]], out: str | Path, tasks: int | None = None
) -> DataFrame:
    """Write everything under `paths` as tables into `out`; one row per run (reason null) and per thing set aside."""
    directory = Path(out).resolve()
    units = find(paths)
    for part in (RUNS, ASIDE):
        shutil.rmtree(directory / part, ignore_errors=True)
        (directory / part).mkdir(parents=True)
    pieces = [msgspec.json.encode(unit).decode() for unit in units]
    done = scatter(spark, pieces, [unit.bytes for unit in units], _Ingest(str(directory)), SCHEMA, tasks)
    rows = done.toArrow().sort_by([("path", "ascending"), ("run", "ascending"), ("offset", "ascending")])
    return spark.createDataFrame(rows)


class _Ingest:
    """The work of one task: its units into files of its own."""

    def __init__(self, out: str) -> None:
        self.out = out

    def __call__(self, pieces: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        units = [msgspec.json.decode(piece, type=Unit) for piece in pieces]
        rows = list(_write(units, Path(self.out)))
        yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(SCHEMA))


def _write(units: Sequence[Unit], out: Path) -> Iterator[dict[str, Any]]:
    """Read units, write runs; the name of a file follows from what is in it, so a repeated task replaces its own."""
    from ordercast.trace.parquet import Writer

    writer: Writer | None = None
    names: set[str] = set()
    aside: list[Aside] = []
    key = hashlib.blake2b("\n".join(unit.path for unit in units).encode(), digest_size=8).hexdigest()
    number = 0
    for unit in units:
        for header, columns in read(unit, aside):
            if writer is not None and (writer.rows >= FILE_ROWS or header.run in names):
                writer.close()
                writer = None
            if writer is None:
                writer = Writer(out / RUNS / f"{key}-{number:04d}.parquet")
                number, names = number + 1, set()
            names.add(header.run)
            writer.add(header, columns)
            yield _line(unit.path, header, len(columns))
    if writer is not None:
        writer.close()
    if aside:
        _write_aside(out / ASIDE / f"{key}.parquet", aside)
    for entry in aside:
        yield {"path": entry.path, "offset": entry.offset, "reason": entry.reason}


def _line(path: str, header: Header, rows: int) -> dict[str, Any]:
    return {"path": path, "run": header.run, "protocol": header.protocol, "service": header.service, "rows": rows}


def _write_aside(path: Path, aside: list[Aside]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([msgspec.structs.asdict(entry) for entry in aside], schema=arrow_schema(ASIDE_SCHEMA))
    pq.write_table(table, path)


# ------------------------------------------------------------------------------------------------ reading with care


def read(unit: Unit, aside: list[Aside]) -> Iterator[tuple[Header, Columns]]:
    """The runs of a unit with every row that can be used; the rest goes to `aside`."""
    if unit.kind == "rows":
        yield from _live(unit, aside)
        return
    from ordercast.trace.parquet import ParquetFile

    try:
        yield from ParquetFile(unit.path).runs()
    except TraceError as why:
        aside.append(Aside(why.path, why.offset, why.why))


def _live(unit: Unit, aside: list[Aside]) -> Iterator[tuple[Header, Columns]]:
    """Row files by the run they name; one directory may hold several runs."""
    from ordercast.trace.columns import from_life, joined

    runs: dict[str, dict[tuple[int, int], tuple[Header, Life]]] = {}
    bad: list[TraceError] = []
    for path in row_files(unit):
        try:
            reader = RowReader(path)
            lives = runs.setdefault(reader.header.run, {})
            if (reader.member, reader.incarnation) in lives:
                raise TraceError(path, 0, f"a second file of member {reader.member} in the same incarnation")
            lives[reader.member, reader.incarnation] = (reader.header, reader.read(bad=bad))
        except TraceError as why:
            bad.append(why)
    aside += [Aside(why.path, why.offset, why.why) for why in bad]
    for _, lives in sorted(runs.items()):
        of = [lives[key] for key in sorted(lives)]
        if not of:
            continue
        yield joint_header([header for header, _ in of]), joined([from_life(life) for _, life in of])
