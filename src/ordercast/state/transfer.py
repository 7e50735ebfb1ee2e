"""A state on its way: cut into chunks by who has it, put together by who lacks it.

Chunks are ordered messages like any other, so they share flow control with everything else.  At most
`CHUNKS_AHEAD_MAX` are on their way and not acknowledged by all they are for.  One chunk is made, or read, in a step:
nobody stands still for longer than a quarter of a megabyte takes.  The last chunk carries a digest of all pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from ordercast.limits import CHUNK_BYTES_MAX, CHUNKS_AHEAD_MAX
from ordercast.state.history import Reading
from ordercast.state.packets import Ack, Chunk
from ordercast.types import MemberId, ViewId

Stream = tuple[ViewId, int, int]  # view, serial, part: which state it is


class Serving:
    """A state that leaves here."""

    def __init__(self, stream: Stream, head: Iterator[bytes], pieces: Iterator[bytes], to: Iterable[MemberId]) -> None:
        self.stream = stream
        self._head, self._pieces = head, pieces
        self.acked = dict.fromkeys(to, -1)
        self.index = 0  # of the next chunk
        self.sent_bytes = 0
        self.done = False
        self._next: bytes | None = None  # a piece that did not fit the chunk before
        self._headed = False
        self._digest = blake2b(digest_size=16)

    def may(self) -> bool:
        """Whether another chunk may leave."""
        return not self.done and bool(self.acked) and self.index - min(self.acked.values()) <= CHUNKS_AHEAD_MAX

    def chunk(self) -> Chunk:
        """The next one; raises what the machine's snapshot raises."""
        head = self._fill(self._head) if not self._headed else []
        pieces: list[bytes] = []
        if not head:
            self._headed = True
            pieces = self._fill(self._pieces)
            self.done = not pieces
        chunk = Chunk(*self.stream, self.index, head, pieces, self._digest.digest() if self.done else b"")
        self.index += 1
        return chunk

    def _fill(self, source: Iterator[bytes]) -> list[bytes]:
        out: list[bytes] = []
        size = 0
        while True:
            piece = self._next if self._next is not None else next(source, None)
            self._next = None
            if piece is None:
                return out
            if out and size + len(piece) > CHUNK_BYTES_MAX:
                self._next = piece
                return out
            out.append(piece)
            size += len(piece)
            self.sent_bytes += len(piece)
            self._digest.update(piece)

    def ack(self, member: MemberId, ack: Ack) -> None:
        if member in self.acked and (ack.view, ack.serial, ack.part) == self.stream and ack.index < self.index:
            self.acked[member] = max(self.acked[member], ack.index)

    def without(self, member: MemberId) -> None:
        """It needs nothing any more."""
        self.acked.pop(member, None)

    @property
    def over(self) -> bool:
        return not self.acked or (self.done and min(self.acked.values()) == self.index - 1)


class Arriving:
    """A state that comes here.  `feed` is given the pieces of the snapshot, one by one, as they come; its history is
    read beside."""

    def __init__(self, stream: Stream, source: MemberId, feed: Callable[[bytes], None], initial: bytes) -> None:
        self.stream, self.source, self._feed = stream, source, feed
        self.history = Reading(initial)
        self.index = 0  # of the next chunk
        self.bytes = 0
        self.done = self.damaged = False
        self._digest = blake2b(digest_size=16)

    def take(self, sender: MemberId, chunk: Chunk) -> Ack | None:
        """The answer, if it is the next of this state; raises what the machine raises."""
        if sender != self.source or chunk.index != self.index or self.done:
            return None
        for piece in chunk.head:
            self._digest.update(piece)
            self.history.feed(piece)
        for piece in chunk.pieces:
            self._digest.update(piece)
            self._feed(piece)
        self.bytes += sum(map(len, chunk.head)) + sum(map(len, chunk.pieces))
        self.index += 1
        if chunk.digest:
            self.done, self.damaged = True, chunk.digest != self._digest.digest()
        return Ack(*self.stream, chunk.index)
