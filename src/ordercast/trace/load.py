"""Reads traces in any form: a live run's directory, a row file, a Parquet file, a directory of these.

What cannot be read is a TraceError with the path, the offset and the reason.  Give `bad` a list to have such files put
there instead and the rest read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    lives: dict[tuple[int, int], Path] = {}
    for file in files:
        try:
            reader = RowReader(file)
            if readers:
                _same_run(readers[0], reader)
            life = (reader.member, reader.incarnation)
            if life in lives:
                raise TraceError(file, 0, f"member {life[0]} wrote {lives[life].name} in the same incarnation")
            lives[life] = file
            readers.append(reader)
        except TraceError as why:
            _put(why, bad)
    if not readers:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return sorted(readers, key=lambda reader: (reader.member, reader.incarnation))


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
    """Of one run, from those of its lives: a member's rather than the launcher's, with everybody's clock."""
    header = headers[-1]
    for other in headers:
        header.clock_offsets_ns |= other.clock_offsets_ns
    return header


def live_trace(files: list[Path], bad: Bad) -> Trace:
    """One live run from its row files, rows in memory."""
    header, lives = _lives(files, bad)
    rows: list[Row] = []
    for reader, life in lives:
        try:
            more = life.rows()
            _in_order(reader.path, more, reader.first)
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
    readers, out = _readers(files, bad), []
    for reader in readers:
        try:
            out.append((reader, reader.read()))
        except TraceError as why:
            _put(why, bad)
    return joint_header([reader.header for reader in readers]), out


def _in_order(path: Path, rows: list[Row], first: int = 0) -> None:
    """Refuse a doubled or missing local index and a clock that goes backwards."""
    last: Row | None = None
    for k, row in enumerate(rows):
        offset = first + k * ROW_BYTES if first else k
        life = last is not None and (last.member, last.incarnation) == (row.member, row.incarnation)
        expected = last.index + 1 if life and last is not None else 1
        if row.index != expected:
            raise TraceError(
                path, offset, f"local index {expected} of member {row.member} was expected, found {row.index}"
            )
        if life and last is not None and row.time_ns < last.time_ns:
            raise TraceError(path, offset, f"time goes backwards in row {row.index} of member {row.member}")
        last = row
