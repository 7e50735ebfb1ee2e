"""One of the members that stand for it is the leader, until it resigns or leaves the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ordercast.replica.line import Line, Turn
from ordercast.replica.replica import Part, Replica, ordered
from ordercast.types import MemberId, Peer


class Led(Struct, frozen=True):
    """Who leads from now on, and its term; None: nobody."""

    member: MemberId | None
    term: int


class Leader(Replica):
    """Who stood first leads; each term has a larger number."""

    _line: Line

    def __init__(self) -> None:
        self._line = Line()

    @property
    def member(self) -> MemberId | None:
        """Who leads, as far as is known here."""
        return None if self._line.holder is None else self._line.holder.life.id

    @property
    def term(self) -> int:
        """The number of the last term."""
        return self._line.fence

    def leads(self) -> bool:
        """Whether this life of this member leads, as far as is known here."""
        return self._line.holder is not None and self._line.holder.life == self._door("leads").me

    async def elected(self, timeout: float | None = None) -> int:
        """Stand, and wait until this member leads; its term."""
        left = self._door("elected").patience(timeout)
        while True:
            term = await self.stand() or await self.until(self._term, left())
            if term:
                return term

    def watch(self) -> Any:
        """`async for led in leader.watch()`: every change from now on."""
        return self.told()

    def _term(self) -> int | None:
        """Of this member; 0: it no longer stands; None: wait."""
        turn = Turn(self._door("elected").me, 0)
        if self._line.holder == turn:
            return self._line.fence
        return None if turn in self._line.waiting else 0

    @ordered
    def stand(self) -> int:
        """Be a candidate from now on; one's term if one leads at once, else 0."""
        before = self._line.holder
        term = self._line.ask(Turn(self.caller, 0), True, self._fence())
        self._changed(before)
        return term

    @ordered
    def resign(self) -> bool:
        """Lead, or stand, no longer; whether one did."""
        before = self._line.holder
        did = self._line.give(Turn(self.caller, 0), self._fence())
        self._changed(before)
        return did

    def left(self, peers: Sequence[Peer]) -> None:
        before = self._line.holder
        self._line.left(peers, self._fence())
        self._changed(before)

    def _fence(self) -> int:
        return self._step("term").number_above(self._line.fence)

    def _changed(self, before: Turn | None) -> None:
        if self._line.holder != before:
            self.tell(Led(self.member, self._line.fence))

    def _taken_over(self, old: Leader) -> None:
        self._changed(old._line.holder)

    def merge(self, parts: Sequence[Part]) -> None:
        """Several parts may have had leaders: none leads now, whoever stands next does; no term comes again."""
        self._line = Line(max(part.state._line.fence for part in parts))
