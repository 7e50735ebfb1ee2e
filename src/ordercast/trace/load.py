"""Reads traces in any form: a live run's directory, a row file, a Parquet file, a directory of these.

What cannot be read is a TraceError with the path, the offset and the reason.  Give `bad` a list to have such files put
there instead and the rest read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from ordercast.errors import TraceError
from ordercast.trace.find import Unit, row_files, units_at
from ordercast.trace.reader import Life, RowReader
from ordercast.trace.rows import ROW_BYTES
from ordercast.trace.schema import Header, Row
from ordercast.trace.trace import Trace

if TYPE_CHECKING:
    from ordercast.trace.columns import Columns

Path_ = str | os.PathLike[str]
Bad = list[TraceError] | None


def load(path: Path_, bad: Bad = None) -> list[Trace]:
    """All runs at a path, rows in memory."""
    out: list[Trace] = []
    for unit in _units(path, bad):
        try:
            for trace in traces_of(unit, bad):
                if unit.kind == "parquet":
                    _in_order(Path(unit.path), trace.rows)
                out.append(trace)
        except TraceError as why:
            _put(why, bad)
    return out


def load_columns(path: Path_, names: Sequence[str] | None = None, bad: Bad = None) -> Iterator[tuple[Header, Columns]]:
    """All runs at a path as arrays, one after the other; `names`: the columns wanted (None: all)."""
    for unit in _units(path, bad):
        try:
            yield from runs_of(unit, bad, names)
        except TraceError as why:
            _put(why, bad)


def traces_of(unit: Unit, bad: Bad) -> Iterator[Trace]:
    """The runs of a unit, rows in memory; of live runs without numpy."""
    if unit.kind == "rows":
        yield live_trace(row_files(unit), bad)
    else:
        yield from (Trace(header, columns.rows()) for header, columns in runs_of(unit, bad))


def runs_of(unit: Unit, bad: Bad, names: Sequence[str] | None = None) -> Iterator[tuple[Header, Columns]]:
    """The runs of a unit as arrays."""
    if unit.kind == "rows":
        yield live_columns(row_files(unit), bad)
    else:
        from ordercast.trace.parquet import ParquetFile

        yield from ParquetFile(unit.path).runs(names)


def _units(path: Path_, bad: Bad) -> list[Unit]:
    try:
        return units_at(Path(path))
    except TraceError as why:
        _put(why, bad)
        return []


def _put(why: TraceError, bad: Bad) -> None:
    if bad is None:
        raise why
    bad.append(why)


# ---------------------------------------------------------------------------------------------------------- live runs


def _readers(files: list[Path], bad: Bad) -> list[RowReader]:
    readers: list[RowReader] = []
    known: dict[tuple[int, int, int], Path] = {}
    for file in files:
        try:
            reader = RowReader(file)
            if readers:
                _same_run(readers[0], reader)
            if reader.order in known:
                name = known[reader.order].name
                raise TraceError(file, 0, f"member {reader.member} wrote {name} in the same incarnation")
            known[reader.order] = file
            readers.append(reader)
        except TraceError as why:
            if file.exists():  # else it was no longer kept
                _put(why, bad)
    if not readers:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return sorted(readers, key=lambda reader: reader.order)


def _same_run(one: RowReader, two: RowReader) -> None:
    a, b = one.header, two.header
    if a.run != b.run:
        raise TraceError(two.path, 0, f"runs are mixed here: {b.run!r}, but {one.path.name} is of {a.run!r}")
    for name in ("protocol", "service", "members", "promises", "timeout_ns"):
        if getattr(a, name) != getattr(b, name):
            raise TraceError(
                two.path, 0, f"run {a.run!r} has two headers: {name} is {getattr(b, name)!r} here and "
                f"{getattr(a, name)!r} in {one.path.name}",
            )  # fmt: skip


def joint_header(headers: Sequence[Header]) -> Header:
    """Of one run, from those of its files, which are sorted: a member's rather than the launcher's, everybody's clocks,
    and what is gone as the newest file of each member tells it."""
    clocks, walls, gone = dict[str, int](), dict[str, int](), dict[str, str]()
    for header in headers:
        clocks |= header.clock_offsets_ns
        walls |= header.walls_ns
        gone |= header.gone
    return structs.replace(headers[-1], clock_offsets_ns=clocks, walls_ns=walls, gone=gone)


def live_trace(files: list[Path], bad: Bad) -> Trace:
    """One live run from its row files, rows in memory."""
    header, lives = _lives(files, bad)
    rows: list[Row] = []
    for reader, life in lives:
        try:
            more = life.rows()
            _in_order(reader.path, more, reader)
            rows += more
        except TraceError as why:
            _put(why, bad)
    return Trace(header, rows)


def live_columns(files: list[Path], bad: Bad) -> tuple[Header, Columns]:
    """One live run from its row files."""
    from ordercast.trace.columns import from_life, joined

    header, lives = _lives(files, bad)
    if not lives:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return header, joined([from_life(life) for _, life in lives])


def _lives(files: list[Path], bad: Bad) -> tuple[Header, list[tuple[RowReader, Life]]]:
    readers, out = _readers(files, bad), list[tuple[RowReader, Life]]()
    for reader in readers:
        try:
            life = reader.read()
            if out and out[-1][0].order[:2] == reader.order[:2]:
                _follows(reader, out[-1][0].before + len(out[-1][1]))
            out.append((reader, life))
        except TraceError as why:
            if reader.path.exists():
                _put(why, bad)
            else:  # no longer kept, and so are those before it
                out = [each for each in out if each[0].order[:2] != reader.order[:2]]
    return joint_header([reader.header for reader in readers]), out


def _follows(reader: RowReader, done: int) -> None:
    """A life's files follow each other without a gap: only its oldest may be gone."""
    if reader.before != done:
        why = f"rows {done + 1} to {reader.before} of member {reader.member} are missing before this file"
        raise TraceError(reader.path, 0, why if reader.before > done else "its rows are in the file before it as well")


def _in_order(path: Path, rows: list[Row], file: RowReader | None = None) -> None:
    """Refuse a doubled or missing local index and a clock that goes backwards."""
    last: Row | None = None
    first = 1 if file is None else file.before + 1
    for k, row in enumerate(rows):
        offset = file.first + k * ROW_BYTES if file is not None else k
        life = last is not None and (last.member, last.incarnation) == (row.member, row.incarnation)
        expected = last.index + 1 if life and last is not None else first
        if row.index != expected:
            raise TraceError(
                path, offset, f"local index {expected} of member {row.member} was expected, found {row.index}"
            )
        if life and last is not None and row.time_ns < last.time_ns:
            raise TraceError(path, offset, f"time goes backwards in row {row.index} of member {row.member}")
        last = row
