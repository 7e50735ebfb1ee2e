"""What an object tells at this member, for one reader: `async for change in d.watch()`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ordercast.errors import Overloaded

UNREAD_MAX = 65_536  # then the watch ends: its reader is told, and nobody waits for it


class Told:
    """Begins when it is made, and ends with `close`, or when the group is left."""

    def __init__(self, name: str, listeners: list[Callable[[Any], None]], wanted: Callable[[Any], bool]) -> None:
        self._name, self._listeners, self._wanted = name, listeners, wanted
        self._unread: deque[Any] = deque()
        self._wait: asyncio.Future[None] | None = None
        self._over = self._late = False
        self._fault: Exception | None = None  # what `wanted` raised
        listeners.append(self._take)

    def __aiter__(self) -> Told:
        return self

    def _take(self, event: Any) -> None:
        """Whatever goes wrong here is the reader's: a method that tells something goes on as at every other member."""
        try:
            wanted = self._wanted(event)
        except Exception as why:
            self._fault = why
            self.close()
            return
        if wanted:
            self._unread.append(event)
            if len(self._unread) > UNREAD_MAX:
                self._unread.clear()
                self._late = True
                self.close()
            self._wake()

    def _wake(self) -> None:
        if self._wait is not None and not self._wait.done():
            self._wait.set_result(None)

    async def __anext__(self) -> Any:
        while not self._unread:
            if self._late:
                raise Overloaded(f"object {self._name!r}: {UNREAD_MAX} changes were not read: read it anew, then watch")
            if self._fault is not None:
                raise self._fault
            if self._over:
                raise StopAsyncIteration
            self._wait = asyncio.get_running_loop().create_future()
            await self._wait
        return self._unread.popleft()

    def close(self) -> None:
        if not self._over:
            self._over = True
            self._listeners.remove(self._take)
            self._wake()
