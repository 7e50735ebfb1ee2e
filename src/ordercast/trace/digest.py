"""Fingerprints: of a frame's bytes, and of a whole run.

A frame's is two CRC-32 side by side (its messages, and where they are cut): the fastest check the standard library has,
with no key and no hash seed in it.  It tells accidents apart, not adversaries.  A run's is BLAKE2b.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct as Layout
from zlib import crc32

from ordercast.trace.schema import Kind, Row

_LENGTH = Layout("<I").pack
_DELIVER = Layout("<qIQQBIQQIQ").pack
_VIEW = Layout("<qIQQBQIB").pack
_CRASH = Layout("<qIQQB").pack


def frame_digest(lengths: bytes, data: bytes) -> int:
    """u64 of 1..k messages: `data` one after the other, `lengths` the table (u32, little endian)."""
    return crc32(data) << 32 | crc32(lengths)


class MessageDigest:
    """The digest of one message that comes in pieces; equal to frame_digest of the whole."""

    __slots__ = ("bytes", "crc")

    def __init__(self) -> None:
        self.crc = self.bytes = 0

    def update(self, piece: bytes) -> None:
        self.crc = crc32(piece, self.crc)
        self.bytes += len(piece)

    def value(self) -> int:
        return self.crc << 32 | crc32(_LENGTH(self.bytes))


def run_digest(rows: Iterable[Row]) -> str:
    """BLAKE2b over deliver, view and crash rows by (time_ns, member, index): the same at every level of tracing.

    Indexes count what a level writes, so they order rows here but do not enter the digest.
    """
    judged = [row for row in rows if row.kind in _DIGESTED]
    judged.sort(key=lambda row: (row.time_ns, row.member, row.incarnation, row.index))
    out = blake2b(digest_size=16)
    write = out.update
    for row in judged:
        write(_bytes(row))
    return out.hexdigest()


_DIGESTED = frozenset((Kind.DELIVER, Kind.VIEW, Kind.CRASH))


def _bytes(row: Row) -> bytes:
    kind = row.kind
    if kind == Kind.DELIVER:
        return _DELIVER(
            row.time_ns, row.member, row.incarnation, row.position or 0, kind, row.sender or 0,
            row.sender_incarnation or 0, row.counter or 0, row.count or 0, row.digest or 0,
        )  # fmt: skip
    if kind == Kind.VIEW:
        head = _VIEW(
            row.time_ns, row.member, row.incarnation, row.position or 0, kind, row.view_seq or 0, row.view_rep or 0,
            row.view_kind or 0,
        )  # fmt: skip
        return head + repr((row.members, row.trans, row.previous_seq, row.previous_rep)).encode()
    return _CRASH(row.time_ns, row.member, row.incarnation, row.position or 0, kind)
