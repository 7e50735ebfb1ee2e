"""The Outbox: own messages, packed into frames while they wait to be originated.

Submitted messages go at once into the last open frame (first fit, never reordered); frames are taken when they may
leave, so packing goes on while they may not.  A message that does not fit a frame is cut; its fragments are consecutive
among its sender's frames.
Paper: "Performance engineering of the Totem group communication system" (1998), on packing.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import accumulate

from ordercast.limits import FRAME_MESSAGES_MAX
from ordercast.types import Frame, Incarnation, MemberId

LENGTH_BYTES = 4  # one entry of the length table


def names_bytes(groups: tuple[str, ...]) -> int:
    """What the names of its groups take of a frame."""
    return sum(len(name.encode()) + 2 for name in groups)


class _Open:
    """The frame that is being filled."""

    __slots__ = ("control", "counter", "groups", "lengths", "parts", "payloads", "service", "size")

    def __init__(self, counter: int, service: int, groups: tuple[str, ...], control: bool) -> None:
        self.counter, self.service, self.groups, self.control = counter, service, groups, control
        self.payloads: list[bytes] = []
        self.lengths: list[int] = []
        self.size = 0  # what it takes of a frame
        self.parts = 1

    def add(self, payloads: list[bytes], lengths: list[int], cost: int) -> None:
        self.payloads += payloads
        self.lengths += lengths
        self.size += cost

    def takes(self, service: int, groups: tuple[str, ...], control: bool) -> bool:
        return self.service == service and self.groups == groups and self.control == control and self.parts == 1


class Outbox:
    """Own messages, packed, waiting to be originated.  A Sender owns it."""

    def __init__(
        self,
        me: MemberId,
        incarnation: Incarnation,
        frame_bytes: int,
        length_bytes: int = LENGTH_BYTES,
        most: int = FRAME_MESSAGES_MAX,
    ) -> None:
        assert frame_bytes > length_bytes
        self.most = most  # messages in a frame
        self.me, self.incarnation, self.frame_bytes = me, incarnation, frame_bytes
        self.length_bytes = length_bytes  # what a message costs beside its own bytes
        self.counter = 0  # last message accepted
        self.bytes = 0  # waiting
        self._frames: deque[_Open] = deque()
        self._fragments: deque[Frame] = deque()  # the rest of the message being originated
        self._cut: _Open | None = None  # that message
        self._count = 0  # frames that _frames will make

    def waiting(self) -> int:
        """Frames that could be taken now."""
        return len(self._fragments) + self._count

    def __bool__(self) -> bool:
        return bool(self._frames or self._fragments)

    def first(self) -> int:
        """The first message that waits, in whole or in part; 0: none does."""
        if self._fragments and self._fragments[0].counter:
            return self._fragments[0].counter
        return next((frame.counter for frame in self._frames if frame.counter), 0)

    def put(self, payloads: list[bytes], service: int, groups: tuple[str, ...] = (), control: bool = False) -> int:
        """Accept messages; returns the counter of the first (control messages have none: 0)."""
        first = 0 if control else self.counter + 1
        lengths = [len(payloads[0])] if len(payloads) == 1 else list(map(len, payloads))
        count, size = len(lengths), sum(lengths)
        last = self._frames[-1] if self._frames else None
        if last is not None and not last.takes(service, groups, control):
            last = None
        cost = size + count * self.length_bytes
        if last is not None and last.size + cost <= self._limit(groups) and len(last.lengths) + count <= self.most:
            last.add(payloads, lengths, cost)
        elif count:
            fresh = _Open(first, service, groups, control)
            if last is None and cost <= self._limit(groups) and count <= self.most:
                fresh.add(payloads, lengths, cost)
                self._frames.append(fresh)
                self._count += 1
            else:
                self._spread(last, fresh, payloads, lengths)
        self.bytes += size
        if not control:
            self.counter += count
        return first

    def _limit(self, groups: tuple[str, ...]) -> int:
        return self.frame_bytes - names_bytes(groups) if groups else self.frame_bytes

    def _spread(self, last: _Open | None, fresh: _Open, payloads: list[bytes], lengths: list[int]) -> None:
        """Over as many frames as it takes, beginning with what fits the last one; `fresh` is a new one's pattern."""
        limit, each, count = self._limit(fresh.groups), self.length_bytes, len(lengths)
        fitting = _fitting(lengths, each)
        at = 0
        while at < count:
            fits = 0
            if last is None:
                last = _Open(fresh.counter and fresh.counter + at, fresh.service, fresh.groups, fresh.control)
                if lengths[at] + each > limit:
                    last.parts, fits = -(-lengths[at] // (limit - each)), 1
                self._frames.append(last)
                self._count += last.parts
            if not fits:
                fits = min(fitting(at, limit - last.size), self.most - len(last.lengths))
            end = at + fits
            if fits:
                last.add(payloads[at:end], lengths[at:end], sum(lengths[at:end]) + each * fits)
            at = end
            if at < count:
                last = None

    def put_first(self, payload: bytes, service: int) -> None:
        """A control message ahead of everything packed (a group's state after a merge)."""
        head = _Open(0, service, (), True)
        head.payloads.append(payload)
        head.lengths.append(len(payload))
        head.size = len(payload) + self.length_bytes
        if head.size > self.frame_bytes:
            head.parts = -(-len(payload) // (self.frame_bytes - self.length_bytes))
        self._frames.appendleft(head)
        self._count += head.parts
        self.bytes += len(payload)

    def take(self, n: int) -> list[Frame]:
        """At most n frames, in order, closed."""
        out: list[Frame] = []
        while len(out) < n:
            if self._fragments:
                out.append(self._fragments.popleft())
            elif self._frames:
                self._close(self._frames.popleft(), out)  # may leave fragments behind
            else:
                break
        return out

    def unwind(self) -> None:
        """A view change: a message not yet wholly originated goes back to the head, whole."""
        if self._fragments:
            back = self._cut
            assert back is not None and back.counter == self._fragments[0].counter
            self._fragments.clear()
            self._frames.appendleft(back)
            self._count += back.parts
            self.bytes += len(back.payloads[0])

    def _close(self, o: _Open, out: list[Frame]) -> None:
        me, inc = self.me, self.incarnation
        self._count -= o.parts
        if o.parts == 1:
            data = b"".join(o.payloads) if len(o.payloads) > 1 else o.payloads[0]
            lengths = array("I", o.lengths).tobytes()
            self.bytes -= len(data)
            out.append(
                Frame(me, inc, o.counter, len(o.payloads), o.service, lengths, data, o.groups, control=o.control)
            )
            return
        payload, step = o.payloads[0], self._limit(o.groups) - self.length_bytes
        self.bytes -= len(payload)
        self._cut = o
        for k in range(o.parts):
            piece = payload[k * step : (k + 1) * step]
            self._fragments.append(Frame(me, inc, o.counter, 1, o.service, b"", piece, o.groups, k, o.parts, o.control))
        out.append(self._fragments.popleft())


def _fitting(lengths: list[int], each: int) -> Callable[[int, int], int]:
    """How many messages from the k-th on fit into so many bytes; `each` is what one costs beside its own."""
    count, first = len(lengths), lengths[0]
    if lengths.count(first) == count:
        return lambda k, room: min(room // (first + each), count - k)
    ends = list(accumulate(lengths, initial=0))
    places = range(count + 1)
    return lambda k, room: bisect_right(places, ends[k] + each * k + room, k, key=lambda j: ends[j] + each * j) - 1 - k
