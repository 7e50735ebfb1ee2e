"""Members as bitmaps over the configured ids: on commit entries and on storage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from ordercast.limits import MEMBERS_MAX
from ordercast.types import MemberId

Bitmap = Annotated[bytes, Meta(max_length=MEMBERS_MAX // 8)]  # bit k, little endian: the k-th of the configured ids


def to_bitmap(members: Iterable[MemberId], configured: tuple[MemberId, ...]) -> bytes:
    bits = sum(1 << configured.index(member) for member in members)
    return bits.to_bytes(-(-bits.bit_length() // 8), "little")


def from_bitmap(bitmap: bytes, configured: tuple[MemberId, ...]) -> tuple[MemberId, ...] | None:
    """None if it names somebody who is not configured."""
    bits = int.from_bytes(bitmap, "little")
    if bits >> len(configured):
        return None
    return tuple(member for k, member in enumerate(configured) if bits >> k & 1)
