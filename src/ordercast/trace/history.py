"""The views of a run, in the order in which they came: when, who, why, and for how long delivery stood still.

A trace may be of any size: row files are read a part at a time, of Parquet the few columns that matter, and only rows
of views are looked at one by one.  A standstill is what `measure` calls so, the longest of any member's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.clock import utc
from ordercast.trace.find import Unit, row_files
from ordercast.trace.reader import RowReader
from ordercast.trace.schema import Header, Kind, Row
from ordercast.types import MemberId, Nanoseconds, ViewKind

if TYPE_CHECKING:
    from ordercast.trace.columns import Columns

_DELIVER = bytes([Kind.DELIVER])
_MARKS = re.compile(b"[" + re.escape(bytes([Kind.START, Kind.VIEW])) + b"]", re.DOTALL)
_COLUMNS = ("time_ns", "sender", "view_seq", "view_rep", "view_kind", "members", "detail")


class Change(Struct):
    """A regular view as the members of a run tell of it."""

    run: str
    seq: int
    rep: int
    members: tuple[MemberId, ...]
    cause: str
    primary: bool | None
    at: dict[MemberId, Nanoseconds]  # who installed it, and when
    wall_ns: int | None  # the wall clock when the first of them did; none in a simulation
    standstill_ns: Nanoseconds | None = None

    @property
    def id(self) -> str:
        return f"{self.seq}.{self.rep}"

    @property
    def time_ns(self) -> Nanoseconds:
        return min(self.at.values())

    def when(self) -> str:
        """The time of day; in a simulation, or where no start row is left, the trace's own time."""
        return utc(self.wall_ns) if self.wall_ns is not None else f"{self.time_ns / 1e9:.6f} s"


Known = dict[tuple[str, int, int], Change]


def history(units: Iterable[Unit]) -> list[Change]:
    """Of all runs in these units, run after run; TraceError for what cannot be read."""
    known: Known = {}
    for unit in units:
        (_live if unit.kind == "rows" else _parquet)(unit, known)
    first = {change.run: k for k, change in reversed(list(enumerate(known.values())))}
    return sorted(known.values(), key=lambda c: (first[c.run], c.time_ns if c.wall_ns is None else c.wall_ns, c.id))


class _Life:
    """What one life tells, part after part."""

    def __init__(self, known: Known, header: Header, member: MemberId, incarnation: int) -> None:
        self.known, self.run, self.live, self.key = known, header.run, header.live, (member, incarnation)
        self.offset = header.walls_ns.get(f"{member}-{incarnation}")  # wall clock less time_ns
        self.before: Nanoseconds | None = None  # the last delivery so far
        self.waiting: list[tuple[Change, Nanoseconds]] = []  # views without a delivery after them, and `before` then

    def part(self, kinds: bytes, times: Any, row: Callable[[int], Row]) -> None:
        done = 0
        for mark in _MARKS.finditer(kinds):
            k = mark.start()
            self._deliveries(kinds, times, done, k)
            done = k + 1
            found = row(k)
            if found.kind == Kind.VIEW and found.view_kind == ViewKind.REGULAR:
                self._view(found)
            elif found.kind == Kind.START and found.sender is None and self.live:
                wall_ns = (found.detail or {}).get("wall_ns")
                self.offset = wall_ns - found.time_ns if isinstance(wall_ns, int) else None
        self._deliveries(kinds, times, done, len(kinds))

    def _deliveries(self, kinds: bytes, times: Any, start: int, end: int) -> None:
        first = kinds.find(_DELIVER, start, end)
        if first < 0:
            return
        for change, before in self.waiting:
            change.standstill_ns = max(change.standstill_ns or 0, int(times[first]) - before)
        self.waiting.clear()
        self.before = int(times[kinds.rfind(_DELIVER, first, end)])

    def _view(self, row: Row) -> None:
        detail, key = row.detail or {}, (self.run, row.view_seq or 0, row.view_rep or 0)
        wall_ns = None if self.offset is None else row.time_ns + self.offset
        change = self.known.get(key)
        if change is None:
            cause, primary = str(detail.get("cause", "")), detail.get("primary")
            members = row.members or ()
            change = self.known[key] = Change(*key, members, cause, primary, {}, wall_ns)
        elif wall_ns is not None and (change.wall_ns is None or wall_ns < change.wall_ns):
            change.wall_ns = wall_ns
        change.at[self.key[0]] = row.time_ns
        if self.before is not None:
            self.waiting.append((change, self.before))


def _live(unit: Unit, known: Known) -> None:
    life: _Life | None = None
    readers: list[RowReader] = []
    for path in row_files(unit):
        with _unless_gone(path):
            readers.append(RowReader(path))
    for reader in sorted(readers, key=lambda reader: reader.order):
        if life is None or life.key != reader.order[:2]:
            life = _Life(known, reader.header, *reader.order[:2])
        with _unless_gone(reader.path):
            for block in reader.blocks():
                life.part(block.column("kind").tobytes(), block.column("time_ns"), partial(reader.row, block))


@contextmanager
def _unless_gone(path: Path) -> Iterator[None]:
    """A file that cannot be read is an error, unless its member has just removed it, being its oldest."""
    try:
        yield
    except TraceError:
        if path.exists():
            raise


def _parquet(unit: Unit, known: Known) -> None:
    from ordercast.trace.parquet import ParquetFile

    for header, columns in ParquetFile(unit.path).runs(_COLUMNS):
        kinds = columns["kind"].astype("u1")
        for member, incarnation, start, end in _lives(columns):
            rows = columns.slice(start, end)
            life = _Life(known, header, member, incarnation)
            life.part(kinds[start:end].tobytes(), rows["time_ns"], rows.row)


def _lives(columns: Columns) -> Iterator[tuple[MemberId, int, int, int]]:
    """(member, incarnation, its first row, the row after its last) of each life."""
    import numpy as np

    member, incarnation = columns["member"], columns["incarnation"]
    change = np.flatnonzero((member[1:] != member[:-1]) | (incarnation[1:] != incarnation[:-1])) + 1
    bounds = [0, *change.tolist(), len(columns)]
    yield from ((int(member[a]), int(incarnation[a]), a, b) for a, b in pairwise(bounds) if a < b)
