"""Whose a member is: the thread and the process in which it was joined."""

from __future__ import annotations

import os
import threading

from ordercast.errors import Closed, UsageError

_forks = [0]  # how many forks this process is away from the first
os.register_at_fork(after_in_child=lambda: _forks.__setitem__(0, _forks[0] + 1))


class Owner:
    """Made where a member is joined."""

    def __init__(self) -> None:
        self._thread, self._forks = threading.get_ident(), _forks[0]

    def check(self, what: str) -> None:
        """Refuse whoever calls from elsewhere."""
        if _forks[0] != self._forks:
            raise Closed(f"{what}: this process was forked from the member's; only the original one may use the group")
        if threading.get_ident() != self._thread:
            raise UsageError(f"{what}: called from another thread: use asyncio.run_coroutine_threadsafe with its loop")
