"""PDUs in the tagger's order, at one site: each waits for its number, and every number for its PDU, for a while.

A PDU whose turn is over is not lost: what it says stays true, only its place among the others is not known from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ordercast.protocols.dpg.channel import Numbers as Detector
from ordercast.protocols.dpg.packets import PLACED_MAX, Message, Numbers, Report, Wish
from ordercast.types import Nanoseconds, Peer

WAITING_MAX = 4_096  # numbers, and PDUs without one
WISHES_MAX = 64  # in one packet

Key = tuple[int, int, int]  # sender, life, serial
Number = tuple[int, int]  # the tagger's life, its number


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
        self.recent: deque[Key] = deque(maxlen=PLACED_MAX)  # PDUs of the own group that have numbers of this life
        self.queue: deque[tuple[Number, Key | None, Nanoseconds]] = deque()  # whose (None: another group's), since
        self.pdus: dict[Key, tuple[Message | Report, Nanoseconds]] = {}
        self.passed: dict[Key, Number] = {}  # their turn is, or will be, over before they are taken
        self.wishes: dict[int, Nanoseconds] = {}  # own serials without a number -> when it was asked for
        self.serial = 0
        self.misses = 0
        self.heard_at: Nanoseconds | None = None  # the tagger, last
        self._back = 0  # it was heard again, after a silence
        self._hello = -repeat_ns
        self._turn: Number = (0, 0)  # the last that was taken

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
        if self.heard_at is None or now - self.heard_at > self.repeat_ns:
            self._back = now
        self.heard_at = now
        if packet.life > self.life:
            self.life, self.last = packet.life, 0
            self.recent.clear()
        mine = (self.me.id, self.me.incarnation)
        for number, tag in enumerate(packet.tags, packet.first):
            key = (tag.sender, tag.life, tag.serial) if tag.group == self.group else None
            if key is not None and key[:2] == mine:
                self.wishes.pop(tag.serial, None)
            if not packet.first:
                if key is not None and key in self.pdus:
                    self._pass(key, (self.life, 0))
                continue
            if key is not None:
                self.recent.append(key)
            if number > self.last:
                self.queue.append(((self.life, number), key, now))
                self.last = number
            elif (self.life, number) > self._turn:
                self._fill((self.life, number), key, now)
            elif key is not None and key in self.pdus:
                self._pass(key, (self.life, number))
        while len(self.queue) > WAITING_MAX:
            self._miss(*self.queue.popleft()[:2])

    def _fill(self, number: Number, key: Key | None, now: Nanoseconds) -> None:
        """A number that later ones overtook, and whose turn is not over."""
        queue, at = self.queue, len(self.queue)
        while at and queue[at - 1][0] > number:
            at -= 1
        if not at or queue[at - 1][0] != number:
            queue.insert(at, (number, key, now))

    def _pass(self, key: Key, number: Number) -> None:
        if all(key != other for _, other, _ in self.queue):
            self.passed[key] = number
            if len(self.passed) > WAITING_MAX:
                del self.passed[next(iter(self.passed))]

    def _miss(self, number: Number, key: Key | None) -> None:
        self._other(number)
        if key is not None:
            self.misses += 1
            self.detector.missed()
            self._pass(key, number)

    def _other(self, number: Number) -> None:
        if number[0] != self._turn[0]:
            self.detector.missed()
            self.detector.last = None
        self._turn = number
        self.detector.other(number[1])

    # ------------------------------------------------------------------------------------------------------- turns

    def turns(self, now: Nanoseconds) -> Iterator[Turn]:
        """All whose turn has come, or is over.

        What is late is taken only after everything that was numbered before it: it speaks of what is before it, and
        whoever heard that too early would put it before what comes.
        """
        queue, pdus = self.queue, self.pdus
        while queue:
            number, key, since = queue[0]
            if now - since < self.hold_ns and (self._skips(number) or (key is not None and key not in pdus)):
                break
            queue.popleft()
            if key is None or key not in pdus:
                self._miss(number, key)
                continue
            packet, _ = pdus.pop(key)
            self._other(number)
            contiguous = type(packet) is Message and self.detector.message()
            yield Turn(Peer(key[0], key[1]), packet, contiguous, True)
        if self.passed:
            for key in [key for key, number in self.passed.items() if number <= self._turn and key in pdus]:
                del self.passed[key]
                yield Turn(Peer(key[0], key[1]), pdus.pop(key)[0], False, False)

    def _skips(self, number: Number) -> bool:
        """Numbers before it have not been heard: others may have overtaken them."""
        life, last = self._turn
        return number[0] == life and number[1] > last + 1

    def forget(self, now: Nanoseconds) -> None:
        """PDUs of others whose number never came, though the tagger was heard since: they are missed.

        A tagger that is back, or another one, first numbers what waited for it.
        """
        if self.heard_at is None:
            return
        old = min(now, self.heard_at) - 8 * self.repeat_ns
        if self._back > old:
            return
        waiting = {key for _, key, _ in self.queue}
        for key in [key for key, (_, since) in self.pdus.items() if since < old]:
            if key not in waiting and key[0] != self.me.id:
                del self.pdus[key]

    # ------------------------------------------------------------------------------------------------------- wishes

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    def wish(self, now: Nanoseconds, fresh: list[int]) -> Wish:
        self.wishes |= dict.fromkeys(fresh, now)
        silent = self.heard_at is not None and now - self.heard_at >= self.repeat_ns
        placed = self._placed() if silent and self.recent else ()
        return Wish(self.group, tuple(fresh), self.life, self.last, next(iter(self.wishes), 0), placed)

    def _placed(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        lives: dict[tuple[int, int], list[int]] = {}
        for sender, life, serial in self.recent:
            lives.setdefault((sender, life), []).append(serial)
        return tuple((*life, tuple(serials)) for life, serials in lives.items())

    def repeat(self, now: Nanoseconds) -> Wish | None:
        """What was asked for and not heard in time; at first, and now and then, nothing but that this site is here."""
        late = [serial for serial, at in self.wishes.items() if now - at >= self.repeat_ns][:WISHES_MAX]
        if not late and (self.heard_at is not None or now - self._hello < self.repeat_ns):
            return None
        self._hello = now
        return self.wish(now, late)
