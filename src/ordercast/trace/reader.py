"""Reads row files: all whole rows of one life as they are at this moment, column by column, without numpy.

A column is a view of the file's bytes with a step of one row, so arrays (ordercast.trace.columns) take it as it is, and
plain rows are made of its numbers.  A file may be growing, or end where a kill tore it: the empty end is no damage.
Damage is either refused, at its first place, or told row by row while the rest is kept.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from ordercast import files
from ordercast.errors import TraceError
from ordercast.limits import FRAME_MESSAGES_MAX
from ordercast.trace.rows import CODES, HEAD, MAGIC, ROW_BYTES, SIDE_SUFFIX, Place, Side
from ordercast.trace.schema import (
    ASIDE,
    CERTAINTIES,
    COLUMNS,
    FRAME_KINDS,
    LAYOUT,
    NULLABLE,
    SCHEMA_VERSION,
    Header,
    Kind,
    Row,
)

_side = msgspec.json.Decoder(Side)
_header, _place = msgspec.json.Decoder(Header), msgspec.json.Decoder(Place)
BLOCK_ROWS = 1 << 16
_KINDS, _CERTAIN = bytes(map(int, Kind)), bytes(range(len(CERTAINTIES)))


class Life:
    """Rows of one incarnation: `aside` has what of row k (from 0) is in the side file."""

    def __init__(self, member: int, incarnation: int, data: bytes, count: int) -> None:
        self.member, self.incarnation, self.count = member, incarnation, count
        self._data: Any = memoryview(data or bytes(ROW_BYTES))
        self.aside: dict[int, Any] = {}

    def __len__(self) -> int:
        return self.count

    def column(self, name: str) -> memoryview:
        """A column of ordercast.trace.schema.LAYOUT, whatever `null` says."""
        cell = LAYOUT[name]
        size = int(cell.disk[1])
        out: memoryview = self._data.cast(CODES[cell.disk])[cell.at // size :: ROW_BYTES // size][: self.count]
        return out

    def beside(self, name: str) -> Iterator[tuple[int, Any]]:
        """(row, value) of a column of ordercast.trace.schema.ASIDE, where there is one."""
        if name == "certainty":
            words = ((k, CERTAINTIES[code]) for k, code in enumerate(self.column(name)) if code)
            yield from sorted([*words, *self._beside(name)])
        else:
            yield from self._beside(name)

    def _beside(self, name: str) -> Iterator[tuple[int, Any]]:
        pair = ASIDE[name].pair
        part = [other for other in ASIDE if ASIDE[other].pair == pair].index(name)
        for k, more in self.aside.items():
            value = getattr(more, pair or name)
            if value is not None:
                yield k, value[part] if pair else value

    def rows(self) -> list[Row]:
        nulls = [(k, bits) for k, bits in enumerate(self.column("null")) if bits]
        columns: list[list[Any]] = []
        for name in COLUMNS:
            if name in ASIDE:
                values: list[Any] = [None] * self.count
                for k, value in self.beside(name):
                    values[k] = value
            elif name in LAYOUT:
                values = list(self.column(name))
                bit = 1 << NULLABLE.index(name) if name in NULLABLE else 0
                for k, bits in nulls if bit else ():
                    if bits & bit:
                        values[k] = None
            else:
                values = [getattr(self, name)] * self.count
            columns.append(values)
        return list(map(Row, *columns))


class RowReader:
    """A row file, perhaps still growing, perhaps cut short by a kill; `order` sorts those of one run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with files.open_regular(self.path) as file:
                head = file.read(HEAD.size)
                fields = self._check(head)
                _magic, _version, _bytes, self.first, self.member, self.incarnation, length, crc = fields
                text = file.read(length)
        except OSError as why:
            raise TraceError(path, 0, f"cannot be read: {why.strerror or why}") from why
        if len(text) < length or crc32(text) != crc:
            raise TraceError(path, HEAD.size, "the header is damaged or cut short")
        try:
            self.header: Header = _header.decode(text)
            self.before = _place.decode(text).first - 1  # rows of this life that came before this file
        except msgspec.MsgspecError as why:
            raise TraceError(path, HEAD.size, f"the header cannot be understood: {why}") from None

    @property
    def order(self) -> tuple[int, int, int]:
        return self.member, self.incarnation, self.before

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
        if fields[1] < 1 or fields[2] != ROW_BYTES or fields[3] < HEAD.size:
            raise TraceError(self.path, 8, "the head is damaged: it names impossible sizes")
        return fields

    def rows(self, start: int = 0) -> list[Row]:
        """All whole rows from the one with index start + 1 on, as of now; damage is refused."""
        return self.read(start).rows()

    def read(self, start: int = 0, bad: list[TraceError] | None = None) -> Life:
        """The same as columns.  With `bad`, rows that cannot be used are told there and left out."""
        start = max(start, self.before)
        try:
            with files.open_regular(self.path) as file:
                file.seek(self.first + (start - self.before) * ROW_BYTES)
                data = file.read()
            path = self.path.with_suffix(SIDE_SUFFIX)
            side = files.read(path, files.DATA_BYTES_MAX) if path.exists() else b""
        except OSError as why:
            raise TraceError(self.path, 0, f"cannot be read: {why.strerror or why}") from why
        slots = len(data) // ROW_BYTES
        whole = Life(self.member, self.incarnation, data[: slots * ROW_BYTES], slots)
        wrong = self._damage(whole, start)
        self._take_aside(whole, side, wrong)
        if bad is None:
            for k in sorted(wrong)[:1]:
                raise self._error(start + k, wrong[k])
            return whole
        bad += [self._error(start + k, wrong[k]) for k in sorted(wrong)]
        if whole.count == slots and any(data[slots * ROW_BYTES :]):
            bad.append(self._error(start + slots, "the file ends inside it"))
        return _without(whole, wrong) if wrong else whole

    def blocks(self) -> Iterator[Life]:
        """All whole rows as of now, a part at a time, without what is in the side file; damage is refused."""
        done = self.before
        try:
            with files.open_regular(self.path) as file:
                file.seek(self.first)
                while data := file.read(BLOCK_ROWS * ROW_BYTES):
                    slots = len(data) // ROW_BYTES
                    life = Life(self.member, self.incarnation, data[: slots * ROW_BYTES], slots)
                    wrong = self._damage(life, done)
                    for k in sorted(wrong)[:1]:
                        raise self._error(done + k, wrong[k])
                    yield life
                    done += life.count
                    if life.count < BLOCK_ROWS:
                        return
        except OSError as why:
            raise TraceError(self.path, 0, f"cannot be read: {why.strerror or why}") from why

    def row(self, block: Life, k: int) -> Row:
        """One row of a block, with what is in the side file."""
        one = Life(self.member, self.incarnation, bytes(block._data[k * ROW_BYTES : (k + 1) * ROW_BYTES]), 1)
        (place,) = zip(*(one.column(name) for name in ("side", "side_bytes", "side_crc")), strict=True)
        if place[1]:
            try:
                with open(self.path.with_suffix(SIDE_SUFFIX), "rb") as file:
                    file.seek(min(place[0], 2**63 - 1))
                    found = _decode(file.read(place[1]), 0, *place[1:])
            except OSError as why:
                found = f"its detail cannot be read: {why.strerror or why}"
            if isinstance(found, str):
                raise self._error(one.column("index")[0] - 1, found)
            one.aside[0] = found
        return one.rows()[0]

    def _error(self, k: int, why: str) -> TraceError:
        return TraceError(
            self.path, self.first + (k - self.before) * ROW_BYTES, f"row {k + 1} of member {self.member}: {why}"
        )

    def _damage(self, life: Life, start: int) -> dict[int, str]:
        """Row -> why it cannot be used.  What was never written at the end is cut off."""
        wrong: dict[int, str] = {}
        index = life.column("index")
        if index.tobytes() != array("Q", range(start + 1, start + 1 + life.count)).tobytes():
            found = index.tolist()
            while found and not found[-1]:
                found.pop()
            life.count = len(found)
            wrong = {
                k: f"local index {start + k + 1} was expected, found {number}"
                for k, number in enumerate(found)
                if number != start + k + 1
            }
        kinds, certain, counts = life.column("kind"), life.column("certainty"), life.column("count")
        if kinds.tobytes().translate(None, _KINDS):
            wrong = {k: f"unknown event {kind}" for k, kind in enumerate(kinds) if kind not in _KINDS} | wrong
        if certain.tobytes().translate(None, _CERTAIN):
            wrong = {k: f"unknown certainty {c}" for k, c in enumerate(certain) if c not in _CERTAIN} | wrong
        if max(counts, default=0) > FRAME_MESSAGES_MAX:
            many = (k for k, count in enumerate(counts) if count > FRAME_MESSAGES_MAX and kinds[k] in FRAME_KINDS)
            wrong = {k: f"{counts[k]} messages in one frame" for k in many} | wrong
        return wrong

    def _take_aside(self, life: Life, side: bytes, wrong: dict[int, str]) -> None:
        offsets, sizes, crcs = (life.column(name) for name in ("side", "side_bytes", "side_crc"))
        known: dict[tuple[int, int, int], Any] = {}  # several rows may have the same groups
        for k, size in enumerate(sizes):
            if not size or k in wrong:
                continue
            place = (offsets[k], size, crcs[k])
            if place not in known:
                known[place] = _decode(side, *place)
            if isinstance(known[place], str):
                wrong[k] = known[place]
            else:
                life.aside[k] = known[place]


def _decode(side: bytes, offset: int, size: int, crc: int) -> Any:
    """What is there in the side file, or why it is not."""
    data = side[offset : offset + size]
    if len(data) < size:
        return f"its detail is missing from the side file at byte {offset}"
    if crc32(data) != crc:
        return f"its detail in the side file at byte {offset} is damaged"
    try:
        return _side.decode(data)
    except msgspec.MsgspecError as why:
        return f"its detail in the side file at byte {offset}: {why}"


def _without(life: Life, wrong: dict[int, str]) -> Life:
    good = [k for k in range(life.count) if k not in wrong]
    data = b"".join(life._data[k * ROW_BYTES : (k + 1) * ROW_BYTES] for k in good)
    out = Life(life.member, life.incarnation, data, len(good))
    out.aside = {new: life.aside[old] for new, old in enumerate(good) if old in life.aside}
    return out
