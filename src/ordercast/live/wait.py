"""What a task that reads waits for: it can be woken within the event loop's callback that has something for it.

A plain future wakes its task one cycle of the event loop later, with another look at all sockets in between; on the way
of a single message through a member that is a tenth of the time.  A task may be resumed at once only where no other
one is running, so in a callback of the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any


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
