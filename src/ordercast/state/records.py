"""The files of a replica: what stands in them, and what is made of damage.

A record is ``length 4 | checksum 8 | MessagePack``.  A log is good up to its first bad record; a snapshot is good as a
whole, from its beginning to its ending, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import msgspec
from msgspec import Struct

from ordercast.state.machine import Mark
from ordercast.types import MemberId, Peer, ViewId

LOG, SNAPSHOT, NEW = "calls-", "snapshot-", ".new"
_CHECKSUM_BYTES = 8
_HEAD_BYTES = 4 + _CHECKSUM_BYTES


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
            return
        body = bytes(view[at + _HEAD_BYTES : end])
        try:
            record = _decode(body) if view[at + 4 : at + _HEAD_BYTES] == _checksum(body) else None
        except msgspec.MsgspecError:
            record = None
        if record is None:
            if faults is not None and any(view[at:]):  # a file may have grown before what it grew by was written
                faults.append(at)
            return
        yield record
        at = end


def whole(data: bytes) -> list[AnyRecord] | None:
    """The records of a snapshot, if it is one to its end."""
    found = list(records(data))
    good = len(found) > 1 and isinstance(found[0], Beginning) and isinstance(found[-1], Ending)
    return found if good and found[-1].records == len(found) - 1 else None  # type: ignore[union-attr]


def numbers(names: Iterable[str], prefix: str) -> list[int]:
    """Of the files that begin so, ascending."""
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(tail) for tail in tails if tail.isdecimal())


def _checksum(body: bytes) -> bytes:
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
