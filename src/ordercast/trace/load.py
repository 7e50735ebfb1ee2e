"""Reads traces in any form: a live run's directory, a row file, a Parquet file, a directory of these.

What cannot be read is a TraceError with the path, the offset and the reason.  Give `bad` a list to have such files put
there instead and the rest read.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import structs

from ordercast.errors import TraceError
from ordercast.trace.find import Unit, row_files, units_at
from ordercast.trace.reader import Life, RowReader
from ordercast.trace.rows import ROW_BYTES
from ordercast.trace.schema import Header, Row
from ordercast.trace.sound import faults, first_fault, header_fault
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
                    _without_gaps(Path(unit.path), trace)
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


def sound(path: Path_, headers: Sequence[Header], cuts: Sequence[int], columns: Columns) -> None:
    """Refuse runs that cannot be meant, at the first such row; run k is rows cuts[k] .. cuts[k + 1] - 1."""
    for header in headers:
        if odd := header_fault(header):
            raise TraceError(path, 0, f"run {header.run!r}: {odd}")
    found = first_fault(columns)
    if found is not None:
        k, why = found
        run = bisect_right(cuts, k) - 1
        row = f"row {int(columns['index'][k])} of member {int(columns['member'][k])}"
        raise TraceError(path, k - cuts[run], f"{row} in run {headers[run].run!r}: {why}")


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

        for header, columns in ParquetFile(unit.path).runs(names):
            sound(unit.path, [header], [0, len(columns)], columns)
            yield header, columns


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


def life_named(file: Path) -> tuple[int, int]:
    """The life whose file this is, by its name; 0 where it does not tell."""
    found = re.fullmatch(r"member-(\d+)-(\d+)\b.*", file.name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _readers(files: list[Path], bad: Bad, lost: set[tuple[int, int]]) -> list[RowReader]:
    """Those that can be read; whose files cannot goes to `lost`."""
    readers: list[RowReader] = []
    known: dict[tuple[int, int, int], Path] = {}
    for file in files:
        try:
            reader = RowReader(file)
        except TraceError as why:
            if file.exists():  # else it was no longer kept
                _put(why, bad)
                lost.add(life_named(file))
            continue
        try:
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
    header, kept = _kept(files, bad, lambda life: life.rows(), lambda rows: next(faults(rows), None))
    return Trace(header, [row for rows in kept for row in rows])


def live_columns(files: list[Path], bad: Bad) -> tuple[Header, Columns]:
    """One live run from its row files."""
    from ordercast.trace.columns import from_life, joined

    header, kept = _kept(files, bad, from_life, first_fault)
    return header, joined(kept)


Form = TypeVar("Form")  # of a life's rows


def _kept(
    files: list[Path], bad: Bad, form: Callable[[Life], Form], fault: Callable[[Form], tuple[int, str] | None]
) -> tuple[Header, list[Form]]:
    """Life by life; one with a row that cannot be meant is refused, or left out and remembered."""
    header, lives = _lives(files, bad)
    out: list[Form] = []
    for reader, life in lives:
        rows = form(life)
        found = fault(rows)
        if found is None:
            out.append(rows)
            continue
        k, why = found
        place = reader.first + k * ROW_BYTES
        _put(TraceError(reader.path, place, f"row {k + 1} of member {reader.member}: {why}"), bad)
        header.lost = (*header.lost, (reader.member, reader.incarnation))
    if not out:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return header, out


def _lives(files: list[Path], bad: Bad) -> tuple[Header, list[tuple[RowReader, Life]]]:
    lost: set[tuple[int, int]] = set()
    readers, out = _readers(files, bad, lost), list[tuple[RowReader, Life]]()
    for reader in readers:
        try:
            life = reader.read()
            if out and out[-1][0].order[:2] == reader.order[:2]:
                _follows(reader, out[-1][0].before + len(out[-1][1]))
            out.append((reader, life))
        except TraceError as why:
            if reader.path.exists():
                _put(why, bad)
                lost.add((reader.member, reader.incarnation))
            else:  # no longer kept, and so are those before it
                out = [each for each in out if each[0].order[:2] != reader.order[:2]]
    header = joint_header([reader.header for reader in readers])
    header.lost = tuple(sorted(lost))
    if odd := header_fault(header):
        raise TraceError(files[0].parent, 0, odd)
    return header, out


def _follows(reader: RowReader, done: int) -> None:
    """A life's files follow each other without a gap: only its oldest may be gone."""
    if reader.before != done:
        why = f"rows {done + 1} to {reader.before} of member {reader.member} are missing before this file"
        raise TraceError(reader.path, 0, why if reader.before > done else "its rows are in the file before it as well")


def _without_gaps(path: Path, trace: Trace) -> None:
    """Refuse a doubled or missing local index; the oldest rows may be gone where the header says so."""
    last: Row | None = None
    for k, row in enumerate(trace.rows):
        life = last is not None and (last.member, last.incarnation) == (row.member, row.incarnation)
        first = row.index if str(row.member) in trace.header.gone else 1
        expected = last.index + 1 if life and last is not None else first
        if row.index != expected:
            raise TraceError(path, k, f"local index {expected} of member {row.member} was expected, found {row.index}")
        last = row
