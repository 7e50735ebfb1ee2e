"""The trace of a live member: fixed-width rows in a shared memory mapping, variable detail in a side file.

A row is one `struct.pack_into` of a mapped file.  Its last field, written last, is the row's index: a row without it
was torn by a kill and is no row.  Nothing is buffered in the process, so what was written survives `kill -9`.

    head    "OCTRACE\\n", version u16, bytes per row u16, offset of the first row u32, member u32, incarnation u64,
            bytes of the header u32, CRC-32 of the header u32, then the header as JSON, then zeros up to the first row
    row     see _ROW; `null` has one bit per column of _NULLABLE that is null; `side` and what follows it say where in
            the side file the rest of the row is
    side    JSON objects with groups, members, trans, previous, certainty, detail, whichever the row has
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from struct import Struct as Layout
from typing import Any
from zlib import crc32

import msgspec

from ordercast.errors import RunError, TraceError
from ordercast.limits import FRAME_MESSAGES_MAX
from ordercast.trace.schema import FRAME_KINDS, SCHEMA_VERSION, SUBMIT_COUNT_MAX, Header, Kind, Row

MAGIC = b"OCTRACE\n"
SUFFIX, SIDE_SUFFIX = ".rows", ".side"
HEAD = Layout("<8sHHIIQII")
# time, now, sender_incarnation, counter, digest, position, order_epoch, order_seq, view_seq, side offset, side bytes,
# side CRC, sender, count, view_rep, ring, service, kind, view_kind, certainty, null, (unused), index
ROW = Layout("<qqQQQqqqQQIIIIIHBBBBHIQ")
CERTAINTIES = (None, "marked", "expired", "late", "dummy")
NULLABLE = (
    "sender", "sender_incarnation", "counter", "count", "digest", "position", "order_epoch", "order_seq", "ring",
    "service", "view_seq", "view_rep", "view_kind",
)  # fmt: skip
PAGE = 4096
ROW_BYTES = ROW.size
_pack = ROW.pack_into
_COMMIT = Layout("<Q").unpack_from
_DELIVER, _KINDS = int(Kind.DELIVER), frozenset(map(int, Kind))


class Side(msgspec.Struct, omit_defaults=True):
    """What of a row has no fixed width."""

    groups: tuple[str, ...] | None = None
    members: tuple[int, ...] | None = None
    trans: tuple[int, ...] | None = None
    previous: tuple[int, int] | None = None
    certainty: str | None = None
    detail: dict[str, Any] | None = None


_encode = msgspec.json.Encoder().encode
_side = msgspec.json.Decoder(Side)
_header = msgspec.json.Decoder(Header)


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
        side = (0, 0, 0)
        if (
            row.detail is not None
            or row.groups is not None
            or row.members is not None
            or row.trans is not None
            or row.previous_seq is not None
        ):
            side = self._aside(row)
        certainty = 0
        if row.certainty is not None:
            if row.certainty in CERTAINTIES:
                certainty = CERTAINTIES.index(row.certainty)
            else:
                side = self._aside(row, row.certainty)
        null, values = 0, []
        for bit, name in enumerate(NULLABLE):
            value = getattr(row, name)
            if value is None:
                null |= 1 << bit
                value = 0
            values.append(value)
        sender, sinc, counter, count, digest, position, epoch, seq, ring, service, vseq, vrep, vkind = values
        at = self._at
        if at + ROW_BYTES > self._end:
            self._grow()
        _pack(
            self._map, at, row.time_ns, row.now_ns, sinc, counter, digest, position, epoch, seq, vseq, *side, sender,
            count, vrep, ring, service, row.kind, vkind, certainty, null, 0, row.index,
        )  # fmt: skip
        self._at = at + ROW_BYTES

    def deliver(
        self, index: int, time_ns: int, now_ns: int, sender: int, incarnation: int, counter: int, count: int,
        digest: int, position: int, epoch: int, seq: int, ring: int, service: int, view_seq: int, view_rep: int,
        view_kind: int,
    ) -> None:  # fmt: skip
        """The commonest row with every column set and nothing aside, without a Row in between."""
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

    def _aside(self, row: Row, certainty: str | None = None) -> tuple[int, int, int]:
        groups = row.groups
        alone = row.detail is None and row.members is None and row.trans is None and certainty is None
        if groups is not None and alone and groups in self._refs:
            return self._refs[groups]
        previous = None
        if row.previous_seq is not None:
            previous = (row.previous_seq, row.previous_rep or 0)
        data = _encode(Side(groups, row.members, row.trans, previous, certainty, row.detail))
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


class RowReader:
    """A row file, perhaps still growing, perhaps cut short by a kill."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with open(self.path, "rb") as file:
                head = file.read(HEAD.size)
                fields = self._check(head)
                _magic, _version, self.row_bytes, self.first, self.member, self.incarnation, length, crc = fields
                text = file.read(length)
        except OSError as why:
            raise TraceError(path, 0, f"cannot be read: {why.strerror or why}") from why
        if len(text) < length or crc32(text) != crc:
            raise TraceError(path, HEAD.size, "the header is damaged or cut short")
        try:
            self.header: Header = _header.decode(text)
        except msgspec.MsgspecError as why:
            raise TraceError(path, HEAD.size, f"the header cannot be understood: {why}") from None

    def _check(self, head: bytes) -> tuple[Any, ...]:
        if not head:
            raise TraceError(self.path, 0, "the file is empty, a trace was expected")
        if head[:8] != MAGIC[: len(head)]:
            raise TraceError(self.path, 0, "this is not a trace: it does not begin with the trace's magic")
        if len(head) < HEAD.size:
            raise TraceError(self.path, len(head), "the file ends inside its head")
        fields = HEAD.unpack(head)
        if fields[1] > SCHEMA_VERSION:
            raise TraceError(self.path, 8, f"schema {fields[1]} is newer than {SCHEMA_VERSION}, the newest known here")
        if fields[1] < 1 or fields[2] != ROW.size or fields[3] < HEAD.size:
            raise TraceError(self.path, 8, "the head is damaged: it names impossible sizes")
        return fields

    def valid(self, data: bytes, start: int = 0) -> int:
        """How many rows from row `start` on are whole in `data`, the file's bytes from there; refuse damage."""
        size = ROW.size
        slots = len(data) // size
        for k in range(slots):
            (index,) = _COMMIT(data, k * size + size - 8)
            if index != start + k + 1:
                if index == 0 and not any(
                    _COMMIT(data, j * size + size - 8)[0] for j in range(k + 1, min(slots, k + 64))
                ):
                    return k
                raise TraceError(
                    self.path, self.first + (start + k) * size,
                    f"local index {start + k + 1} of member {self.member} was expected, found {index}",
                )  # fmt: skip
        return slots

    def rows(self, start: int = 0) -> list[Row]:
        """All whole rows from the one with index start + 1 on, as of now."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.first + start * self.row_bytes)
                data = file.read()
            count = self.valid(data, start)
            side_path = self.path.with_suffix(SIDE_SUFFIX)
            side = side_path.read_bytes() if side_path.exists() else b""
        except OSError as why:
            raise TraceError(self.path, 0, f"cannot be read: {why.strerror or why}") from why
        return [self._row(start + k, ROW.unpack_from(data, k * ROW.size), side) for k in range(count)]

    def _row(self, k: int, fields: tuple[int, ...], side: bytes) -> Row:
        (time_ns, now_ns, sinc, counter, digest, position, epoch, seq, vseq, offset, length, crc, sender, count, vrep,
         ring, service, kind, vkind, certain, null, _unused, index) = fields  # fmt: skip
        at = self.first + k * self.row_bytes
        if kind not in _KINDS:
            raise TraceError(self.path, at, f"unknown event {kind} in row {index} of member {self.member}")
        if count > (FRAME_MESSAGES_MAX if kind in FRAME_KINDS else SUBMIT_COUNT_MAX):
            raise TraceError(self.path, at, f"{count} messages in row {index} of member {self.member}")
        if certain >= len(CERTAINTIES):
            raise TraceError(self.path, at, f"unknown certainty {certain} in row {index} of member {self.member}")
        more = self._aside(at, offset, length, crc, side) if length else _NOTHING
        values: list[int | None] = [
            sender, sinc, counter, count, digest, position, epoch, seq, ring, service, vseq, vrep, vkind,
        ]  # fmt: skip
        if null:
            for bit in range(len(NULLABLE)):
                if null >> bit & 1:
                    values[bit] = None
        a = values
        previous = more.previous or (None, None)
        return Row(
            self.member, self.incarnation, index, time_ns, now_ns, kind, a[0], a[1], a[2], a[3], a[4], a[5], a[6],
            a[7], a[8], a[9], more.groups, a[10], a[11], a[12], more.members, more.trans, previous[0], previous[1],
            more.certainty or CERTAINTIES[certain], more.detail,
        )  # fmt: skip

    def _aside(self, at: int, offset: int, length: int, crc: int, side: bytes) -> Side:
        data = side[offset : offset + length]
        if len(data) < length:
            raise TraceError(self.path, at, f"its detail is missing from the side file at byte {offset}")
        if crc32(data) != crc:
            raise TraceError(self.path, at, f"its detail in the side file at byte {offset} is damaged")
        try:
            return _side.decode(data)
        except msgspec.MsgspecError as why:
            raise TraceError(self.path, at, f"its detail in the side file at byte {offset}: {why}") from None


_NOTHING = Side()
