"""Unicasts of one view: reliable, in order, without duplicates, per ordered pair of members.

Numbers count from 1 in each direction.  Acknowledgements are cumulative and ride on every Unicast the other way and on
every Status, or go alone after T_status.  What is not acknowledged is repeated after 4 x the smoothed round trip, at
the earliest T/50 after its acknowledgement may have gone alone, doubling to T/4; from the second repetition on by
multicast with the addressee named, so that a broken unicast path alone costs no view; and so goes the acknowledgement
of what came again.  What goes again at once is bounded: half as many at each repetition, twice as many, and those that
were put off first, with each acknowledgement (as TCP does); else repetitions alone may fill the buffers of a group that
was too busy to acknowledge.  One that stands for 2 T although its addressee is heard shows a stuck link.
All of it is forgotten at a view change.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ordercast.contract import ALL, Action, Body, CancelTimer, Note, SetTimer, Transmit, UnicastReceived, Up, dropped
from ordercast.limits import UNICASTS_MAX
from ordercast.transis.packets import UAck, Unicast
from ordercast.types import MemberId, Nanoseconds, ViewId

UNICAST, UACK = "unicast", "uack"  # timers
STUCK_TRIES = 6  # so that a pause of this member accuses nobody
REPEATED_AT_FIRST = 16  # of one pair at once


class _Sent:
    __slots__ = ("at", "body", "due", "since", "tries")

    def __init__(self, body: Body, now: Nanoseconds, due: Nanoseconds) -> None:
        self.body, self.since, self.at, self.due, self.tries = body, now, now, due, 0


class _Pair:
    """With one other member."""

    __slots__ = ("acked", "again", "came", "early", "out", "owes", "repeats", "rto", "sent", "trip", "waiting")

    def __init__(self, rto: Nanoseconds) -> None:
        self.sent = self.acked = 0  # own numbers
        self.out: dict[int, _Sent] = {}  # not yet acknowledged
        self.waiting: deque[Body] = deque()  # beyond the window
        self.came = 0  # theirs, in order (u_in)
        self.early: dict[int, Body] = {}
        self.owes = False  # something came that was not yet acknowledged
        self.again = False  # it came again: an acknowledgement was lost
        self.trip: Nanoseconds = 0  # smoothed round trip
        self.rto = rto
        self.repeats = REPEATED_AT_FIRST  # at most so many at once


class Unicasts:
    """Of one member."""

    def __init__(self, me: MemberId, view: ViewId, members: tuple[MemberId, ...], timeout_ns: Nanoseconds) -> None:
        self.me, self.view, self.members = me, view, members
        self.ack_ns, self.stuck_ns = timeout_ns // 20, 2 * timeout_ns  # T_status
        self.least_ns, self.most_ns = max(1, self.ack_ns + timeout_ns // 50), max(1, timeout_ns // 4)
        self.pairs: dict[MemberId, _Pair] = {}
        self.due: Nanoseconds | None = None  # of the repetitions
        self.acks_set = False

    def _pair(self, member: MemberId) -> _Pair:
        pair = self.pairs.get(member)
        if pair is None:
            pair = self.pairs[member] = _Pair(self.least_ns)
        return pair

    def end(self) -> list[Action]:
        return [CancelTimer(UNICAST), CancelTimer(UACK)] if self.pairs else []

    def waiting(self) -> int:
        return sum(len(pair.out) + len(pair.waiting) for pair in self.pairs.values())

    # --------------------------------------------------------------------------------------------------------- sending

    def send(self, now: Nanoseconds, to: MemberId, body: Body) -> list[Action]:
        if to == self.me:
            return [Up(UnicastReceived(self.me, body))]
        if to not in self.members:
            return [dropped("unicast to nobody", member=to)]
        pair = self._pair(to)
        pair.waiting.append(body)
        return self._push(now, to, pair)

    def _push(self, now: Nanoseconds, to: MemberId, pair: _Pair) -> list[Action]:
        out: list[Action] = []
        while pair.waiting and len(pair.out) < UNICASTS_MAX:
            pair.sent += 1
            pair.out[pair.sent] = _Sent(pair.waiting.popleft(), now, now + pair.rto)
            out.append(Transmit(0, to, self._packet(to, pair, pair.sent)))
        return out + self._set(now + pair.rto) if out else out

    def _packet(self, to: MemberId, pair: _Pair, number: int) -> Unicast[Any]:
        pair.owes = False
        return Unicast(self.view, to, number, pair.came, pair.out[number].body)

    def _set(self, due: Nanoseconds) -> list[Action]:
        if self.due is not None and self.due <= due:
            return []
        self.due = due
        return [SetTimer(UNICAST, due)]

    def repeat(self, now: Nanoseconds) -> list[Action]:
        """The timer: what is due goes again."""
        self.due = None
        out: list[Action] = []
        for to, pair in self.pairs.items():
            again = [number for number, sent in pair.out.items() if sent.due <= now]
            for number in again[: pair.repeats]:
                sent = pair.out[number]
                sent.tries += 1
                sent.at, sent.due = now, now + min(self.most_ns, pair.rto << min(sent.tries, 20))
                many = sent.tries > 1
                out.append(Note("unicast again", {"to": to, "all": many}))
                out.append(Transmit(0, ALL if many else to, self._packet(to, pair, number)))
            for number in again[pair.repeats :]:
                pair.out[number].due = now + self.most_ns
            if again:
                pair.repeats = max(1, pair.repeats // 2)
        due = min((sent.due for pair in self.pairs.values() for sent in pair.out.values()), default=None)
        return out if due is None else out + self._set(due)

    def stuck(self, now: Nanoseconds) -> MemberId | None:
        """An addressee that has not acknowledged for too long."""
        for to, pair in self.pairs.items():
            oldest = next(iter(pair.out.values()), None)
            if oldest is not None and now - oldest.since >= self.stuck_ns and oldest.tries >= STUCK_TRIES:
                return to
        return None

    # ------------------------------------------------------------------------------------------------------- receiving

    def receive(self, now: Nanoseconds, source: MemberId, packet: Unicast[Any]) -> list[Action]:
        if packet.to != self.me:  # a copy for another: its acknowledgement is not for me either
            return []
        pair = self._pair(source)
        out = self.acked(now, source, packet.uack)
        number = packet.useq
        if number > pair.came + UNICASTS_MAX:
            return [*out, dropped("unicast beyond the window")]
        pair.owes = True
        pair.again |= number <= pair.came
        if number > pair.came:
            pair.early.setdefault(number, packet.body)
        while pair.came + 1 in pair.early:
            pair.came += 1
            out.append(Up(UnicastReceived(source, pair.early.pop(pair.came))))
        if not self.acks_set:
            self.acks_set = True
            out.append(SetTimer(UACK, now + self.ack_ns))
        return out

    def acked(self, now: Nanoseconds, source: MemberId, upto: int) -> list[Action]:
        """`source` has all of mine up to here; more than was sent says nothing."""
        pair = self.pairs.get(source)
        if pair is None or not pair.acked < upto <= pair.sent:
            return []
        for number in range(pair.acked + 1, upto + 1):
            sent = pair.out.pop(number)
            if not sent.tries:
                trip = now - sent.at
                pair.trip = trip if not pair.trip else (7 * pair.trip + trip) // 8
        pair.acked = upto
        pair.rto = min(self.most_ns, max(self.least_ns, 4 * pair.trip))
        return [*self._go_on(now, pair), *self._push(now, source, pair)]

    def _go_on(self, now: Nanoseconds, pair: _Pair) -> list[Action]:
        """Something arrives again: more may be repeated at once, and what was put off is due."""
        pair.repeats = min(UNICASTS_MAX, 2 * pair.repeats)
        oldest = next(iter(pair.out.values()), None)
        if oldest is None or oldest.due <= now + pair.rto:
            return []
        for sent in list(pair.out.values())[: pair.repeats]:
            sent.due = min(sent.due, now + pair.rto)
        return self._set(now + pair.rto)

    def acks(self, now: Nanoseconds) -> list[Action]:
        """The timer: acknowledge alone what nothing else acknowledged."""
        self.acks_set = False
        out: list[Action] = []
        for source, pair in self.pairs.items():
            if pair.owes:
                out.append(Transmit(0, ALL if pair.again else source, UAck(self.view, source, pair.came)))
                pair.owes = pair.again = False
        return out

    def vector(self) -> tuple[int, ...]:
        """What came of each rank, for a Status; empty if nothing ever did."""
        if not self.pairs:
            return ()
        return tuple(self.pairs[m].came if m in self.pairs else 0 for m in self.members)
