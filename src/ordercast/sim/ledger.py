"""The machine whose replicas the simulator drives: a ledger, which holds every call that was applied, in order.

So a state says by itself what it came from, and whoever compares two ledgers sees what one of them lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ordercast.state.machine import Call, Context, Mark, Part
from ordercast.types import Peer

Line = tuple[int, int, int]  # caller, its life, its number
LINES_PER_PIECE = 64

_decode = msgspec.msgpack.Decoder(list[Line]).decode


class Ledger:
    """One replica's.  Answers are the number of lines before the call."""

    digest = b"ledger 1"

    def __init__(self, merges: bool = True) -> None:
        self.merges = merges
        self.lines: list[Line] = []
        self.told: list[Line] = []  # lost, as it was told
        self.peers: tuple[Peer, ...] = ()

    def size(self) -> int:
        return 24 * len(self.lines)

    def fingerprint(self) -> str:
        """Of what it holds, in its order."""
        return blake2b(msgspec.msgpack.encode(self.lines), digest_size=8).hexdigest()

    def apply(self, calls: list[bytes], context: Context) -> list[Any]:
        caller, at = context.caller, len(self.lines)
        self.lines += [(caller.id, caller.incarnation, context.first + k) for k in range(len(calls))]
        return list(range(at, at + len(calls)))

    def present(self, peers: tuple[Peer, ...], context: Context) -> None:
        self.peers = peers

    def snapshot(self) -> Iterator[bytes]:
        return _pieces(list(self.lines))

    def restore(self) -> Restored:
        return Restored(self)

    def merge(self, common: Mark | None, parts: Sequence[Part], mine: int | None) -> None:
        """The lines of all, in the order of the parts, each once."""
        lines: dict[Line, None] = {}
        for part in parts:
            for piece in part.pieces:
                lines |= dict.fromkeys(_decode(piece))
        self.lines = list(lines)

    def lost(self, calls: Sequence[Call]) -> None:
        self.told += [(call.caller.id, call.caller.incarnation, call.number) for call in calls]


class Restored:
    """A ledger on its way."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lines: list[Line] = []

    def feed(self, piece: bytes) -> None:
        self.lines += _decode(piece)

    def finish(self) -> None:
        self.ledger.lines = self.lines


def _pieces(lines: list[Line]) -> Iterator[bytes]:
    for k in range(0, len(lines), LINES_PER_PIECE):
        yield msgspec.msgpack.encode(lines[k : k + LINES_PER_PIECE])
