"""What a member remembers of itself for whoever asks: its last views, and the counts that rates are made of.

A view's standstill is what `measure` calls so: from the last delivery before it to the first one after it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable

from msgspec import Struct

from ordercast.contract import Accepted
from ordercast.live.delays import Delays
from ordercast.types import Batch, MemberId, Nanoseconds, Peer, View, ViewKind

VIEWS_KEPT = 10
SAMPLE_SECONDS = 1.0
SAMPLES = 10  # rates are of so many seconds

Counts = dict[str, int]


class Seen(Struct):
    """A view that was installed here."""

    view: View
    at: Nanoseconds
    before: Nanoseconds | None  # when something was last delivered before it
    after: Nanoseconds | None = None  # and first after it

    @property
    def standstill_ms(self) -> float | None:
        return None if self.before is None or self.after is None else round((self.after - self.before) / 1e6, 3)


class Past:
    """Of one life.  `counts` gives what has been counted so far, by name."""

    def __init__(
        self,
        members: Iterable[MemberId],
        counts: Callable[[], Counts],
        clock: Callable[[], Nanoseconds],
        me: Peer | None = None,
    ) -> None:
        self._me = me
        self.submitted = 0  # messages
        self.delays: Delays | None = None  # of own messages, if somebody wants to know
        self.causes: Counter[str] = Counter()  # of all views
        self.views: deque[Seen] = deque(maxlen=VIEWS_KEPT)
        self.open: list[Seen] = []  # nothing was delivered after them yet
        self.delivered_ns: Nanoseconds | None = None  # when the last frame went up
        self.heard = dict.fromkeys(members, 0)  # packets, by sender
        self._counts, self._clock = counts, clock
        self._samples: deque[tuple[Nanoseconds, Counts]] = deque(maxlen=SAMPLES + 1)
        self._tick: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count once a second from now on."""
        self._samples.append((self._clock(), self._counts()))
        self._tick = loop.call_later(SAMPLE_SECONDS, self.start, loop)

    def stop(self) -> None:
        if self._tick is not None:
            self._tick.cancel()

    def accepted(self, now: Nanoseconds, taken: Accepted) -> None:
        """Messages of our own were taken."""
        self.submitted += taken.count
        if self.delays is not None:
            self.delays.accepted(now, taken.counter + taken.count - 1)

    def delivered(self, now: Nanoseconds, batch: Batch) -> None:
        """A frame went up."""
        self.delivered_ns = now
        if self.open:
            self.resumed(now)
        if self.delays is not None and Peer(batch.sender, batch.incarnation) == self._me:
            self.delays.delivered(now, batch.counter + batch.count - 1)

    def viewed(self, now: Nanoseconds, view: View) -> None:
        if view.kind is ViewKind.REGULAR:
            self.causes[view.cause.reason if view.cause is not None else ""] += 1
            seen = Seen(view, now, self.delivered_ns)
            self.views.append(seen)
            self.open = [*self.open, seen][-VIEWS_KEPT:]

    def resumed(self, now: Nanoseconds) -> None:
        """The first delivery after a view, or after several in a row."""
        for seen in self.open:
            seen.after = now
        self.open = []

    def rates(self) -> dict[str, float]:
        """What was counted in the last seconds, per second."""
        now, latest = self._clock(), self._counts()
        since, first = self._samples[0] if self._samples else (now, latest)
        seconds = (now - since) / 1e9
        return {name: round((n - first.get(name, 0)) / seconds, 1) if seconds else 0.0 for name, n in latest.items()}
