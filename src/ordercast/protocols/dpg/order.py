"""PDUs in the tagger's order, at one site: each waits for its number, and every number for its PDU, for a while.

A PDU whose turn is over is not lost: what it says stays true, only its place among the others is not known from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.protocols.dpg.channel import Numbers as Detector
from ordercast.protocols.dpg.packets import Message, Numbers, Report, Wish
from ordercast.types import Nanoseconds, Peer

WAITING_MAX = 4_096  # numbers, and PDUs without one
WISHES_MAX = 64  # in one packet

GAP = -1  # no number is next to it

Key = tuple[int, int, int]  # sender, life, serial


class Turn(NamedTuple):
    """A PDU whose turn it is; placed: false where its turn was missed."""

    source: Peer
    packet: Message | Report
    contiguous: bool
    placed: bool


class Order:
    """Of one site."""

    def __init__(self, group: bytes, me: Peer, hold_ns: Nanoseconds, repeat_ns: Nanoseconds) -> None:
        self.group, self.me, self.hold_ns, self.repeat_ns = group, me, hold_ns, repeat_ns
        self.life = self.last = 0  # the tagger's, and its last number heard
        self.detector = Detector()
        self.queue: deque[tuple[int, Key | None, Nanoseconds]] = deque()  # number, whose (None: another group's), since
        self.pdus: dict[Key, tuple[Message | Report, Nanoseconds]] = {}
        self.passed: dict[Key, None] = {}  # numbered before their PDU came; its turn is over
        self.wishes: dict[int, Nanoseconds] = {}  # own serials without a number -> when it was asked for
        self.serial = 0
        self.misses = 0
        self.heard_at: Nanoseconds | None = None  # the tagger, last
        self._hello = -repeat_ns

    # -------------------------------------------------------------------------------------------------- what is heard

    def put(self, now: Nanoseconds, source: Peer, packet: Message | Report) -> None:
        key = (source.id, source.incarnation, packet.serial)
        if key not in self.pdus:
            self.pdus[key] = (packet, now)
            if len(self.pdus) > WAITING_MAX:
                del self.pdus[next(iter(self.pdus))]

    def numbered(self, now: Nanoseconds, packet: Numbers) -> None:
        if packet.life < self.life:
            return
        self.heard_at = now
        if packet.life > self.life:
            self.life, self.last = packet.life, 0
            self.queue.append((GAP, None, now))
        for number, tag in enumerate(packet.tags, packet.first):
            own = tag.group == self.group
            key = (tag.sender, tag.life, tag.serial) if own else None
            if own and (tag.sender, tag.life) == self.me_key:
                self.wishes.pop(tag.serial, None)
            if number > self.last:
                self.queue.append((number, key, now))
                self.last = number
            elif key is not None and key in self.pdus and not self._queued(key):
                self._pass(key)
        while len(self.queue) > WAITING_MAX:
            self._miss(self.queue.popleft())

    @property
    def me_key(self) -> tuple[int, int]:
        return self.me.id, self.me.incarnation

    def _queued(self, key: Key) -> bool:
        return any(key == other for _, other, _ in self.queue)

    def _pass(self, key: Key) -> None:
        self.passed[key] = None
        if len(self.passed) > WAITING_MAX:
            del self.passed[next(iter(self.passed))]

    def _miss(self, entry: tuple[int, Key | None, Nanoseconds]) -> None:
        number, key, _ = entry
        self.detector.other(number)
        if key is not None:
            self.misses += 1
            self.detector.missed()
            self._pass(key)

    # ------------------------------------------------------------------------------------------------------- turns

    def turns(self, now: Nanoseconds) -> Iterator[Turn]:
        """All whose turn has come, or is over."""
        queue, pdus = self.queue, self.pdus
        while queue:
            number, key, since = queue[0]
            if key is None:
                self.detector.other(number)
            elif key in pdus:
                packet, _ = pdus.pop(key)
                if type(packet) is Message:
                    yield Turn(Peer(key[0], key[1]), packet, self.detector.own(number), True)
                else:
                    self.detector.other(number)
                    yield Turn(Peer(key[0], key[1]), packet, False, True)
            elif now - since >= self.hold_ns:
                self._miss(queue[0])
            else:
                break
            queue.popleft()
        if self.passed:
            for key in [key for key in self.passed if key in pdus]:
                del self.passed[key]
                yield Turn(Peer(key[0], key[1]), pdus.pop(key)[0], False, False)

    def stale(self, now: Nanoseconds) -> Iterator[Turn]:
        """PDUs of others whose number never came; own ones go on asking."""
        old = now - 4 * self.repeat_ns
        for key in [key for key, (_, since) in self.pdus.items() if since <= old and key[:2] != self.me_key]:
            if not self._queued(key):
                yield Turn(Peer(key[0], key[1]), self.pdus.pop(key)[0], False, False)

    # ------------------------------------------------------------------------------------------------------- wishes

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    def wish(self, now: Nanoseconds, fresh: list[int]) -> Wish:
        self.wishes |= dict.fromkeys(fresh, now)
        return Wish(self.group, tuple(fresh), self.life, self.last)

    def repeat(self, now: Nanoseconds) -> Wish | None:
        """What was asked for and not heard in time; at first, and now and then, nothing but that this site is here."""
        late = [serial for serial, at in self.wishes.items() if now - at >= self.repeat_ns][:WISHES_MAX]
        if not late and (self.heard_at is not None or now - self._hello < self.repeat_ns):
            return None
        self._hello = now
        return self.wish(now, late)
