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
from typing import Any
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
_DELIVER = int(Kind.DELIVER)

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


def file_name(member: int, incarnation: int) -> str:
    """Of the row file of one incarnation, in the directory of the run's traces."""
    return f"member-{member}-{incarnation}{SUFFIX}"


class RowFile:
    """A sink (see ordercast.trace.recorder) that writes one incarnation's rows into DIR/member-I-INCARNATION.rows."""

    def __init__(
        self, directory: str | os.PathLike[str], header: Header, member: int, incarnation: int, chunk_rows: int = 16_384
    ) -> None:
        self.path = Path(directory) / file_name(member, incarnation)
        self._chunk = chunk_rows * ROW.size
        self._refs: dict[tuple[str, ...], tuple[int, int, int]] = {}  # groups alone -> place in the side file
        head = _encode(header)
        self._first = -(-(HEAD.size + len(head)) // PAGE) * PAGE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            side = self.path.with_suffix(SIDE_SUFFIX)
            self._side = os.open(side, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            self._side_end = 0
            self._end = self._first + self._chunk
            os.posix_fallocate(self._fd, 0, self._end)
            self._map = mmap.mmap(self._fd, self._end)
        except OSError as why:
            raise RunError(f"cannot write the trace file {self.path}: {why.strerror or why}") from why
        self._map[HEAD.size : HEAD.size + len(head)] = head
        first = self._first
        HEAD.pack_into(
            self._map, 0, MAGIC, SCHEMA_VERSION, ROW.size, first, member, incarnation, len(head), crc32(head)
        )
        self._at = self._first

    def append(self, row: Row) -> None:
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
        if at + ROW_BYTES > self._end:
            self._grow()
        _pack(self._map, at, *values)
        self._at = at + ROW_BYTES

    def deliver(
        self, index: int, time_ns: int, now_ns: int, sender: int, incarnation: int, counter: int, count: int,
        digest: int, position: int, epoch: int, seq: int, ring: int, service: int, view_seq: int, view_rep: int,
        view_kind: int,
    ) -> None:  # fmt: skip
        """The commonest row with every column set and nothing aside, without a Row in between; as LAYOUT has it."""
        at = self._at
        if at + ROW_BYTES > self._end:
            self._grow()
        _pack(
            self._map, at, time_ns, now_ns, incarnation, counter, digest, position, epoch, seq, view_seq, 0, 0, 0,
            sender, count, view_rep, ring, service, _DELIVER, view_kind, 0, 0, 0, index,
        )  # fmt: skip
        self._at = at + ROW_BYTES

    def _grow(self) -> None:
        try:
            os.posix_fallocate(self._fd, self._end, self._chunk)  # a full disk is an error here, not a signal later
            self._end += self._chunk
            self._map.resize(self._end)
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
