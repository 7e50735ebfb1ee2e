"""The seam between two views: what a flush delivers is split around the transitional view, alike at all who go on.

A layer above any ordering protocol that stands on the view-synchronous layer.  It counts what goes up in a view: of
frames in a total order how many, of frames that are not ordered (services fifo and causal) how many of each sender.
These counts are its part of a flush.  From the freeze on it keeps back what would go up; when the flush has come, first
goes what anybody of T had delivered already, which still holds for the whole old view, then the transitional view, then
the rest.  Both parts keep the order in which they came.

Paper: extended virtual synchrony, after Moser, Amir, Melliar-Smith, Agarwal (1994).
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.contract import Action, Event, Flush, Frozen, Layer, Ordered, Up, ViewChange, dropped
from ordercast.limits import MEMBERS_MAX
from ordercast.types import U32, U63, MemberId, Nanoseconds, Service, ViewKind

UNORDERED = (int(Service.FIFO), int(Service.CAUSAL))


class Delivered(Struct, frozen=True, array_like=True, gc=False):
    """What one member had delivered when its view was frozen."""

    ordered: U63
    unordered: Annotated[tuple[tuple[U32, U63], ...], Meta(max_length=MEMBERS_MAX)]


_decoder = msgspec.msgpack.Decoder(Delivered)
_encode = msgspec.msgpack.Encoder().encode


class Seam(Layer):
    name = "seam"

    def __init__(self) -> None:
        self.ordered = 0
        self.unordered: Counter[MemberId] = Counter()
        self.frozen = False
        self.kept: list[Ordered] = []

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Ordered:
            if self.frozen:
                self.kept.append(event)  # type: ignore[arg-type]
                return []
            self._count(event)  # type: ignore[arg-type]
            return [Up(event)]
        if kind is Frozen:
            self.frozen = True
            return []
        if kind is Flush:
            return self._split(event)  # type: ignore[arg-type]
        if kind is ViewChange:
            rest = [Up(ordered) for ordered in self.kept]
            self.kept = []
            if event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
                self.ordered, self.frozen = 0, False
                self.unordered.clear()
            return [Up(event), *rest]
        return [Up(event)]

    def _count(self, event: Ordered) -> tuple[MemberId, int]:
        """Its place: among the ordered, or among those of its sender."""
        frame = event.frame
        if frame.service in UNORDERED:
            self.unordered[frame.sender] += 1
            return frame.sender, self.unordered[frame.sender]
        self.ordered += 1
        return -1, self.ordered

    def flush_state(self) -> bytes:
        return _encode(Delivered(self.ordered, tuple(sorted(self.unordered.items()))))

    def _split(self, flush: Flush) -> list[Action]:
        """What anybody had delivered before the freeze goes up in the old view."""
        out: list[Action] = []
        most: Counter[MemberId] = Counter()
        for state in flush.contributions:
            try:
                told = _decoder.decode(state)
            except msgspec.MsgspecError as why:  # the same bytes at all of T: it counts for nobody
                out.append(dropped("flush state", text=str(why)))
                continue
            most[-1] = max(most[-1], told.ordered)
            for sender, count in told.unordered:
                most[sender] = max(most[sender], count)
        rest: list[Ordered] = []
        for event in self.kept:
            line, place = self._count(event)
            if place <= most[line]:
                out.append(Up(event))
            else:
                rest.append(event)
        self.kept = rest
        return out

    def status(self) -> dict[str, Any]:
        return {"kept": len(self.kept), "queues": {"kept": len(self.kept)}}
