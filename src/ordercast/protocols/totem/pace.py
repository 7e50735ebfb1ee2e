"""How many own frames may be on their way to the other rings: as many as are held everywhere soon.

Where several rings have one order a frame that left its own ring has not arrived: gateways carry it on, and the slowest
ring of all decides when.  Who sent as fast as its own ring turns would fill the queues in between, and whatever left
would come long after.  Nobody can see those queues; but every member sees how long its own frames take until every
ring holds them.  One frame at a time is watched.  If it took less than a quarter of T, and what might be on its way
was, twice as many may be; if more than half of T, half as many.
"""

from __future__ import annotations

from ordercast.types import Nanoseconds


class Pace:
    """Of one member in one topology; counts frames."""

    def __init__(self, least: int, most: int, timeout_ns: Nanoseconds) -> None:
        assert 0 < least <= most
        self.least, self.most = least, most
        self.quick_ns, self.slow_ns = timeout_ns // 4, timeout_ns // 2
        self.restart()

    def restart(self) -> None:
        """Other rings: nothing is known of them, nothing is on its way."""
        self.window = self.least
        self.sent = 0
        self._watched = 0  # the number of the frame that is watched; 0: none is
        self._since: Nanoseconds | None = None  # when it left; None: before the next tick
        self._filled = False  # all that might be on its way was

    def left(self, n: int, on_way: int) -> None:
        """So many left; `on_way` with them."""
        self.sent += n
        self._filled = self._filled or on_way >= self.window
        if not self._watched:
            self._watched, self._since = self.sent, None

    def tick(self, now: Nanoseconds) -> None:
        if self._watched and self._since is None:
            self._since = now

    def held(self, now: Nanoseconds, on_way: int) -> None:
        """Every ring holds all that was sent but the last `on_way`."""
        if not self._watched or self.sent - on_way < self._watched:
            return
        took = 0 if self._since is None else now - self._since
        if took > self.slow_ns:
            self.window = max(self.least, self.window // 2)
        elif took < self.quick_ns and self._filled:
            self.window = min(self.most, self.window * 2)
        self._watched, self._filled = 0, False
