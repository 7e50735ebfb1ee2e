"""What a task waits for: to be woken when there is something to read, and to let the event loop run.

A reader can be woken within the event loop's callback that has something for it.

A plain future wakes its task one cycle of the event loop later, with another look at all sockets in between; on the way
of a single message through a member that is a tenth of the time.  A task may be resumed at once only where no other
one is running, so in a callback of the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

TURN_NS = 5_000_000  # a task that never waits lets the event loop run at least so often: far below any timeout
_clock = time.monotonic_ns


class Wait(asyncio.Future[None]):
    """A future for exactly one task, made in the event loop that runs."""

    _resume: Callable[..., Any] | None = None
    _context: Context | None = None

    def add_done_callback(self, fn: Callable[..., Any], /, *, context: Context | None = None) -> None:
        """The task calls this when it begins to wait."""
        self._resume, self._context = fn, context

    def wake(self, now: bool) -> None:
        """Resume the task: `now`, which only a callback of the event loop may ask for, or in the next cycle."""
        self.set_result(None)
        resume, self._resume = self._resume, None
        if resume is None:
            return  # not awaited yet: it will not wait at all
        if now and self._context is not None:
            self._context.run(resume, self)
        else:
            self.get_loop().call_soon(resume, self, context=self._context)

    def cancel(self, msg: Any | None = None) -> bool:
        if not super().cancel(msg):
            return False
        resume, self._resume = self._resume, None
        if resume is not None:
            self.get_loop().call_soon(resume, self, context=self._context)
        return True


class Turn:
    """How long the event loop has not run, for a task that might never let it."""

    __slots__ = ("_lasts", "_since")

    def __init__(self) -> None:
        self._lasts, self._since = False, 0

    def over(self) -> bool:
        """Whether it is time to let the event loop run; the first call since it last ran begins a turn."""
        if self._lasts:
            return _clock() - self._since >= TURN_NS
        self._lasts, self._since = True, _clock()
        asyncio.get_running_loop().call_soon(self._ended)
        return False

    def _ended(self) -> None:
        self._lasts = False
