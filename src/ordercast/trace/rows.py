"""The trace of a live member: fixed-width rows in a shared memory mapping, variable detail in a side file.

A row is one `struct.pack_into` of a mapped file.  Its last field, written last, is the row's index: a row without it
was torn by a kill and is no row.  Nothing is buffered in the process, so what was written survives `kill -9`.

    head    "OCTRACE\\n", version u16, bytes per row u16, offset of the first row u32, member u32, incarnation u64,
            bytes of the header u32, CRC-32 of the header u32, then the header as JSON, then zeros up to the first row
    row     see ordercast.trace.schema.LAYOUT; `null` has one bit per column of NULLABLE that is null; `side` and what
            follows it say where in the side file the rest of the row is
    side    JSON objects with what of ordercast.trace.schema.ASIDE the row has
"""

from __future__ import annotations

import mmap
import os
from operator import attrgetter
from pathlib import Path
from struct import Struct as Layout
from typing import Annotated, Any, Protocol
from zlib import crc32

import msgspec

from ordercast.errors import RunError
from ordercast.trace.schema import ASIDE, CERTAINTIES, LAYOUT, NULLABLE, REST, SCHEMA_VERSION, TYPES, Header, Kind, Row

MAGIC = b"OCTRACE\n"
SUFFIX, SIDE_SUFFIX = ".rows", ".side"
HEAD = Layout("<8sHHIIQII")
CODES = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i8": "q"}
ROW = Layout("<" + "".join(CODES[cell.disk] for cell in LAYOUT.values()))
ROW_BYTES = ROW.size
PAGE = 4096
_pack = ROW.pack_into
_DELIVER, _START = int(Kind.DELIVER), int(Kind.START)

_places = list(LAYOUT)
_written = [name for name in LAYOUT if name not in REST]
_cells = attrgetter(*_written)  # a row's columns of fixed width, in the order of the file
_NULLS = [(_written.index(name), 1 << bit) for bit, name in enumerate(NULLABLE)]
_SIDE, _CERTAINTY = _places.index("side"), _places.index("certainty")

_asides: dict[str, Any] = {}  # of the side file: name -> type
for _name, _of in ASIDE.items():
    _asides[_of.pair or _name] = tuple[int, int] | None if _of.pair else TYPES[_name]
Side: Any = msgspec.defstruct("Side", [(name, kind, None) for name, kind in _asides.items()], omit_defaults=True)
_beside = attrgetter(*(name for name in ASIDE if name != "certainty"))
_NOTHING = (None,) * (len(ASIDE) - 1)
_encode = msgspec.json.Encoder().encode


def file_name(member: int, incarnation: int, number: int = 0) -> str:
    """Of a row file of one incarnation, in the directory of the run's traces; where there are several, which one."""
    return f"member-{member}-{incarnation}{f'.{number:06d}' if number else ''}{SUFFIX}"


class Place(msgspec.Struct, frozen=True):
    """What a row file's header says of the file itself, beside the run's Header."""

    first: Annotated[int, msgspec.Meta(ge=1, le=2**62)] = 1  # the index of its first row


class Keeping(Protocol):
    """Where the rows of a life go when not all are kept; see ordercast.trace.keep."""

    file_bytes: int

    def begin(self, offset_ns: int | None) -> tuple[Path, Header]: ...

    def begun(self) -> None: ...


class RowFile:
    """A sink (see ordercast.trace.recorder) that writes one incarnation's rows into DIR/member-I-INCARNATION.rows.

    With `keep` into several files, one after the other, of which the oldest go.
    """

    _offset_ns: int | None = None  # wall clock less time_ns, as the start row tells it

    def __init__(
        self,
        directory: str | os.PathLike[str],
        header: Header,
        member: int,
        incarnation: int,
        chunk_rows: int = 16_384,
        keep: Keeping | None = None,
    ) -> None:
        self.member, self.incarnation, self._keep = member, incarnation, keep
        self._chunk = chunk_rows * ROW.size
        self._only = Path(directory) / file_name(member, incarnation), header
        self._begin(1)

    def _begin(self, index: int) -> None:
        """A file whose first row has this index."""
        self.path, header = self._only if self._keep is None else self._keep.begin(self._offset_ns)
        self._refs: dict[tuple[str, ...], tuple[int, int, int]] = {}  # groups alone -> place in the side file
        head = _encode(header if index == 1 else msgspec.to_builtins(header) | msgspec.to_builtins(Place(index)))
        first = self._first = -(-(HEAD.size + len(head)) // PAGE) * PAGE
        self._full = first + self._chunk  # where there is no room for a row
        if self._keep is not None:
            self._full = min(self._full, first + max(1, (self._keep.file_bytes - first) // ROW_BYTES) * ROW_BYTES)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            side = self.path.with_suffix(SIDE_SUFFIX)
            self._side = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            self._side_end = 0
            self._end = self._full
            os.posix_fallocate(self._fd, 0, self._end)
            self._map = mmap.mmap(self._fd, self._end)
        except OSError as why:
            raise RunError(f"cannot write the trace file {self.path}: {why.strerror or why}") from why
        self._map[HEAD.size : HEAD.size + len(head)] = head
        HEAD.pack_into(
            self._map, 0, MAGIC, SCHEMA_VERSION, ROW.size, first, self.member, self.incarnation, len(head), crc32(head)
        )
        self._at = first
        if self._keep is not None:
            self._keep.begun()
            if index == 1:
                self._full = first  # the first row is looked at: it tells the wall clock

    def append(self, row: Row) -> None:
        if self._at + ROW_BYTES > self._full:
            self._more(row.index, row)
        side, certainty, null = (0, 0, 0), 0, 0
        if row.certainty in CERTAINTIES:
            certainty = CERTAINTIES.index(row.certainty)
            if _beside(row) != _NOTHING:
                side = self._aside(row, None)
        else:
            side = self._aside(row, row.certainty)
        values = list(_cells(row))
        if None in values:
            for place, bit in _NULLS:
                if values[place] is None:
                    null |= bit
                    values[place] = 0
        values[_SIDE:_SIDE] = side
        values[_CERTAINTY:_CERTAINTY] = (certainty, null, 0)
        at = self._at
        _pack(self._map, at, *values)
        self._at = at + ROW_BYTES

    def deliver(
        self, index: int, time_ns: int, now_ns: int, sender: int, incarnation: int, counter: int, count: int,
        digest: int, position: int, epoch: int, seq: int, ring: int, service: int, view_seq: int, view_rep: int,
        view_kind: int,
    ) -> None:  # fmt: skip
        """The commonest row with every column set and nothing aside, without a Row in between; as LAYOUT has it."""
        if self._at + ROW_BYTES > self._full:
            self._more(index, None)
        at = self._at
        _pack(
            self._map, at, time_ns, now_ns, incarnation, counter, digest, position, epoch, seq, view_seq, 0, 0, 0,
            sender, count, view_rep, ring, service, _DELIVER, view_kind, 0, 0, 0, index,
        )  # fmt: skip
        self._at = at + ROW_BYTES

    def _more(self, index: int, row: Row | None) -> None:
        """The file is full: it grows, or the next one begins."""
        if self._keep is None:
            self._grow()
        elif index > 1:
            self.close()
            self._begin(index)
        else:
            if row is not None and row.kind == _START and row.detail and isinstance(row.detail.get("wall_ns"), int):
                self._offset_ns = row.detail["wall_ns"] - row.time_ns
            self._full = self._end

    def _grow(self) -> None:
        try:
            os.posix_fallocate(self._fd, self._end, self._chunk)  # a full disk is an error here, not a signal later
            self._end += self._chunk
            self._map.resize(self._end)
            self._full = self._end
        except OSError as why:
            raise RunError(f"cannot extend the trace file {self.path}: {why.strerror or why}") from why

    def _aside(self, row: Row, certainty: str | None) -> tuple[int, int, int]:
        groups = row.groups
        alone = row.detail is None and row.members is None and row.trans is None and certainty is None
        if groups is not None and alone and groups in self._refs:
            return self._refs[groups]
        previous = None
        if row.previous_seq is not None:
            previous = (row.previous_seq, row.previous_rep or 0)
        data = _encode(
            Side(
                groups=groups, members=row.members, trans=row.trans, previous=previous, certainty=certainty,
                detail=row.detail,
            )
        )  # fmt: skip
        try:
            done = os.write(self._side, data)
        except OSError as why:
            raise RunError(f"cannot extend the trace's side file of {self.path}: {why.strerror or why}") from why
        if done != len(data):
            raise RunError(f"cannot extend the trace's side file of {self.path}: only {done} bytes written")
        ref = (self._side_end, len(data), crc32(data))
        self._side_end += len(data)
        if self._keep is not None and self._at + self._side_end >= self._keep.file_bytes:
            self._full = 0
        if groups is not None and alone and previous is None and len(self._refs) < 1024:
            self._refs[groups] = ref
        return ref

    def close(self) -> None:
        """Cut off the unused end.  A file without this is whole, too, only larger."""
        if not self._map.closed:
            self._map.close()
            os.ftruncate(self._fd, self._at)
            os.close(self._fd)
            os.close(self._side)
