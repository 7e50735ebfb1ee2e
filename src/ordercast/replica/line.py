"""Who holds a thing that one at a time may hold, and who waits for it: the state of `Lock` and of `Leader`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ordercast.types import Peer


class Turn(Struct, frozen=True):
    """One wish to hold it: of a life, under a number of its own."""

    life: Peer
    ticket: int


class Line(Struct):
    """First come, first served; each holder gets a number larger than all before."""

    fence: int = 0
    holder: Turn | None = None
    waiting: list[Turn] = []

    def ask(self, turn: Turn, wait: bool, fence: int) -> int:
        """The number, if it is free, else 0; `fence`: the number for the next holder."""
        if self.holder is None:
            self.holder, self.fence = turn, fence
            return fence
        if self.holder == turn:
            return self.fence
        if wait and turn not in self.waiting:
            self.waiting.append(turn)
        return 0

    def give(self, turn: Turn, fence: int) -> bool:
        """It is held, or waited for, no longer; whether it was."""
        if self.holder == turn:
            self.holder = None
            self._next(fence)
            return True
        if turn in self.waiting:
            self.waiting.remove(turn)
            return True
        return False

    def left(self, peers: Sequence[Peer], fence: int) -> None:
        """These lives are gone."""
        self.waiting = [turn for turn in self.waiting if turn.life not in peers]
        if self.holder is not None and self.holder.life in peers:
            self.holder = None
            self._next(fence)

    def _next(self, fence: int) -> None:
        if self.waiting:
            self.holder, self.fence = self.waiting.pop(0), fence
