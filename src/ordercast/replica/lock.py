"""A lock that one holds at a time, with a number that grows: what is done under it can be told from what came later."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType

from ordercast.replica.line import Line, Turn
from ordercast.replica.replica import Part, Replica, ordered
from ordercast.types import MemberId, Peer

_entered: ContextVar[tuple[tuple[int, int], ...]] = ContextVar("_entered", default=())  # of a task: lock, its number


class Lock(Replica):
    """`async with lock as fence`.  It is given up when its holder leaves the group; the next in line gets it then, with
    a larger number.  Give the number along with what you do under the lock, and refuse smaller ones there."""

    _line: Line

    def __init__(self) -> None:
        self._line = Line()

    # -------------------------------------------------------------------------------------------------------- reading

    @property
    def owner(self) -> MemberId | None:
        """The member that holds it, as far as is known here."""
        return None if self._line.holder is None else self._line.holder.life.id

    @property
    def fence(self) -> int:
        """The number of its last holder."""
        return self._line.fence

    def holds(self, fence: int) -> bool:
        """Whether this member still holds it under this number, as far as is known here."""
        holder = self._line.holder
        return holder is not None and self._line.fence == fence and holder.life == self._door("holds").me

    # ------------------------------------------------------------------------------------------------------- changing

    async def acquire(self, timeout: float | None = None) -> int:
        """Wait for the lock; its number."""
        ticket, left = self._door("acquire").ticket(), self._door("acquire").patience(timeout)
        try:
            while True:
                fence = await self._ask(ticket, True)
                fence = fence or await self.until(lambda: self._granted(ticket), left())
                if fence:
                    return fence
        except BaseException:
            self._surely(lambda: self._give(ticket))
            raise

    async def try_acquire(self) -> int:
        """Its number, if it is free; else 0."""
        ticket = self._door("acquire").ticket()
        try:
            return await self._ask(ticket, False)
        except BaseException:
            self._surely(lambda: self._give(ticket))
            raise

    async def release(self, fence: int) -> bool:
        """Give it up; false if it was not held any more under this number."""
        return await self._release(fence)

    async def __aenter__(self) -> int:
        fence = await self.acquire()
        _entered.set((*_entered.get(), (id(self), fence)))
        return fence

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        *before, (_, fence) = [each for each in _entered.get() if each[0] == id(self)]
        _entered.set((*(each for each in _entered.get() if each[0] != id(self)), *before))
        try:
            await self.release(fence)
        except BaseException:  # who leaves the block is told, and holds it no longer than need be
            self._surely(lambda: self._release(fence))
            raise

    def _granted(self, ticket: int) -> int | None:
        """Its number; 0: the wish is gone, as it is after this member was away; None: wait."""
        turn = Turn(self._door("acquire").me, ticket)
        if self._line.holder == turn:
            return self._line.fence
        return None if turn in self._line.waiting else 0

    @ordered
    def _ask(self, ticket: int, wait: bool) -> int:
        return self._line.ask(Turn(self.caller, ticket), wait, self._fence())

    @ordered
    def _give(self, ticket: int) -> bool:
        return self._line.give(Turn(self.caller, ticket), self._fence())

    @ordered
    def _release(self, fence: int) -> bool:
        holder = self._line.holder
        if holder is None or self._line.fence != fence or holder.life != self.caller:
            return False
        return self._line.give(holder, self._fence())

    def left(self, peers: Sequence[Peer]) -> None:
        self._line.left(peers, self._fence())

    def _fence(self) -> int:
        return self._step("fence").number_above(self._line.fence)

    def merge(self, parts: Sequence[Part]) -> None:
        """Several parts may have had holders: all of them gave it up; no number comes again."""
        self._line = Line(max(part.state._line.fence for part in parts))
