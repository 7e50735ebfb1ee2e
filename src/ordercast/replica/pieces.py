"""The state of all objects as bytes: chunks of any size, cut into pieces that travel, and put together again.

A chunk is its kind (a byte) and a body; what an object gives as its snapshot stays whole, one chunk each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from msgspec import Meta, Struct

from ordercast.limits import GROUP_NAME_BYTES_MAX, PIECE_BYTES_MAX
from ordercast.state.machine import Context
from ordercast.types import Peer

GROUP, OBJECT, STATE, STEP = b"G", b"O", b"S", b"T"  # kinds of chunks
MORE, LAST = b"\x00", b"\x01"  # at the head of a piece: the chunk goes on, or ends with it
ROOM = PIECE_BYTES_MAX - 1
CHUNK_THINGS, CHUNK_BYTES = 256, 256 * 2**10  # entries of a dictionary, items of a queue: about so many in a chunk

Name = Annotated[str, Meta(min_length=1, max_length=GROUP_NAME_BYTES_MAX)]


class GroupHead(Struct, frozen=True, array_like=True):
    """The first chunk: who is in the group."""

    present: tuple[Peer, ...]


class ObjectHead(Struct, frozen=True, array_like=True):
    """An object follows: its name, and its class in words and by digest."""

    name: Name
    title: str
    digest: bytes
    merges: bool = False


class KeptStep(Struct, frozen=True, array_like=True):
    """Calls to an object, or (None) a change of who is present, that its holder has not applied itself."""

    context: Context
    calls: list[tuple[int, bytes]] | None = None  # with their places in the batch
    gone: tuple[Peer, ...] = ()


def chunked(count: int, encoded: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Many small things, `encoded` from one to another: a few hundred at a time, fewer where they are large, so that
    each chunk is little work."""
    at, size = 0, 1
    while at < count:
        chunk = encoded(at, at + size)
        at += size
        size = max(1, min(2 * size, CHUNK_THINGS, size * CHUNK_BYTES // max(1, len(chunk))))
        yield chunk


def cut(chunks: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Pieces of chunks (kind, body)."""
    for kind, body in chunks:
        if len(body) < ROOM:
            yield LAST + kind + body
            continue
        whole = memoryview(kind + body)
        for at in range(0, len(whole), ROOM):
            yield (LAST if at + ROOM >= len(whole) else MORE) + whole[at : at + ROOM]


class Joiner:
    """Puts chunks together again, piece by piece."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, piece: bytes) -> tuple[bytes, bytes] | None:
        """The chunk (kind, body) that this piece completes."""
        if not self._parts and piece[:1] == LAST:
            return piece[1:2], piece[2:]
        self._parts.append(piece)
        if piece[:1] != LAST:
            return None
        whole = b"".join(part[1:] for part in self._parts)
        self._parts.clear()
        return whole[:1], whole[1:]

    @property
    def open(self) -> bool:
        return bool(self._parts)
