"""The files of a replica: what stands in them, and what is made of damage.

A record is ``length 4 | checksum 8 | MessagePack``.  A log is good up to its first bad record; a snapshot is good as a
whole, from its beginning to its ending, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct

from ordercast.state.machine import Mark
from ordercast.types import MemberId, Peer, ViewId

LOG, SNAPSHOT, NEW = "calls-", "snapshot-", ".new"
_CHECKSUM_BYTES = 8
_HEAD_BYTES = 4 + _CHECKSUM_BYTES
_BODY = re.compile(rb"(?=[\x92-\x96][\x01-\x08])")  # how the body of a record begins: an array, and its tag
UNREADABLE = (
    bytes(4) + b"\xff" * _CHECKSUM_BYTES
)  # stands for a file that is there and cannot be read: all of it is bad


class Record(Struct, frozen=True, array_like=True, gc=False):
    """Base of what files are made of."""


class Stepped(Record, frozen=True, array_like=True, gc=False, tag=1):
    """Calls were applied, and led to this place."""

    n: int
    h: bytes
    caller: Peer
    raw: bytes
    irregular: bool


class Decided(Record, frozen=True, array_like=True, gc=False, tag=2):
    """The state belongs to this decision."""

    mark: Mark
    members: tuple[MemberId, ...]


class Offered(Record, frozen=True, array_like=True, gc=False, tag=3):
    """The state is offered in this view."""

    view: ViewId


class Heard(Record, frozen=True, array_like=True, gc=False, tag=4):
    """Of a decision; nothing is offered any more in the views before it."""

    mark: Mark
    decided: bool


class Beginning(Record, frozen=True, array_like=True, gc=False, tag=5):
    """Of a snapshot: what is known beside the history and the state."""

    epoch: ViewId
    irregular: int
    knows: Mark | None
    within: tuple[ViewId, ...]


class HistoryPiece(Record, frozen=True, array_like=True, gc=False, tag=6):
    data: bytes


class StatePiece(Record, frozen=True, array_like=True, gc=False, tag=7):
    data: bytes


class Ending(Record, frozen=True, array_like=True, gc=False, tag=8):
    """A snapshot is whole; so many records before."""

    records: int


AnyRecord = Stepped | Decided | Offered | Heard | Beginning | HistoryPiece | StatePiece | Ending
_decode = msgspec.msgpack.Decoder(AnyRecord).decode
_encode = msgspec.msgpack.Encoder().encode


def framed(record: Record) -> bytes:
    body = _encode(record)
    return len(body).to_bytes(4, "little") + _checksum(body) + body


def records(data: bytes, faults: list[int] | None = None) -> Iterator[AnyRecord]:
    """Up to the first that is bad.  `faults` gets its place, unless it may be what a crash left of the last write."""
    at, view = 0, memoryview(data)
    while at + _HEAD_BYTES <= len(view):
        end = at + _HEAD_BYTES + int.from_bytes(view[at : at + 4], "little")
        if end > len(view):
            if faults is not None and _not_torn(data, at):
                faults.append(at)
            return
        body = bytes(view[at + _HEAD_BYTES : end])
        try:
            record = _decode(body) if view[at + 4 : at + _HEAD_BYTES] == _checksum(body) else None
        except msgspec.MsgspecError:
            record = None
        if record is None:
            left = len(data) if faults is None else len(data.rstrip(b"\0"))
            if faults is not None and left >= end:  # else the file grew before all that it grew by was written
                faults.append(at)
            return
        yield record
        at = end


def _not_torn(data: bytes, at: int) -> bool:
    """Of a record that is longer than what is left: whether its length was altered, and the rest is no torn end.  Then
    the rest is its whole body, or other records follow."""
    view = memoryview(data)
    if view[at + 4 : at + _HEAD_BYTES] == _checksum(view[at + _HEAD_BYTES :]):
        return True
    for found in _BODY.finditer(data, at + 2 * _HEAD_BYTES):
        body = found.start()
        end = body + int.from_bytes(view[body - _HEAD_BYTES : body - _CHECKSUM_BYTES], "little")
        if end <= len(view) and view[body - _CHECKSUM_BYTES : body] == _checksum(view[body:end]):
            return True
    return False


def whole(data: bytes) -> list[AnyRecord] | None:
    """The records of a snapshot, if it is one to its end."""
    found = list(records(data))
    good = len(found) > 1 and isinstance(found[0], Beginning) and isinstance(found[-1], Ending)
    return found if good and found[-1].records == len(found) - 1 else None  # type: ignore[union-attr]


def numbers(names: Iterable[str], prefix: str) -> list[int]:
    """Of the files that begin so, ascending."""
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(tail) for tail in tails if tail.isdecimal())


def _checksum(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def snapshot(beginning: Beginning, history: Iterator[bytes], state: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes of one, a record at a time."""
    count = 1
    yield framed(beginning)
    for piece in history:
        count += 1
        yield framed(HistoryPiece(piece))
    for piece in state:
        count += 1
        yield framed(StatePiece(piece))
    yield framed(Ending(count))
