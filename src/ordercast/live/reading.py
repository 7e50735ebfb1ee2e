"""What waits to be read by the application: events in order, for one reader, and what that reader has taken."""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Awaitable, Callable

from ordercast.contract import GroupView, Missing
from ordercast.errors import UsageError
from ordercast.live.wait import TURN_NS, Wait
from ordercast.types import Batch, Message, View

PAUSE_MESSAGES = 256  # an iterator lets the event loop run at least once per so many messages

BatchEvent = Batch | View | GroupView | Missing
_clock = time.monotonic_ns


class Reading:
    """`queue` is filled by the group; `rest` by who reads a frame message by message."""

    def __init__(self) -> None:
        self.queue: deque[BatchEvent] = deque()
        self.rest: deque[Message] = deque()
        self._wait: Wait | None = None  # the reader waits for the queue
        self._size = 0  # bytes of the frame last given out
        self._since = 0  # messages given out since the event loop last ran ...
        self._until = 0  # ... which it has to do again by then; 0: nothing was given out since

    def next(self, consumed: Callable[[int, int], None]) -> BatchEvent | None:
        """The next event, if there is one; the frame before it was `consumed` (frames, bytes)."""
        if self.rest:
            return self._batch_of_rest()
        if self._size:
            consumed(1, self._size)
            self._size = 0
        if not self.queue or self._since >= PAUSE_MESSAGES or self.tired():
            return None
        event = self.queue.popleft()
        if type(event) is Batch:
            self._size = len(event.data) or 1
            self._since += event.count
        return event

    def tired(self) -> bool:
        """Whether the reader, who may never wait for anything but us, has kept the event loop for long enough."""
        now = _clock()
        if not self._until:
            self._until = now + TURN_NS
        return now >= self._until

    def more(self) -> Awaitable[None]:
        """To be awaited: there is something to read, or the event loop has had its turn."""
        self._since = self._until = 0
        if self.queue or self.rest:
            return asyncio.sleep(0)
        if self._wait is not None and not self._wait.done():
            raise UsageError("two tasks read one group: expected one, since each message is given out once")
        self._wait = Wait()
        return self._wait

    def wake(self, now: bool) -> None:
        """Something came, or nothing will any more; `now`: see Wait."""
        if self._wait is not None and not self._wait.done():
            self._wait.wake(now)

    def _batch_of_rest(self) -> Batch:
        """Somebody stopped in the middle of a frame's messages and goes on with batches."""
        rest = list(self.rest)
        self.rest.clear()
        first, payloads = rest[0], [message.data for message in rest]
        lengths = array("I", map(len, payloads)).tobytes()
        data = b"".join(payloads)
        return Batch(
            first.sender, first.incarnation, first.counter, len(rest), first.service, lengths, data, first.groups
        )
