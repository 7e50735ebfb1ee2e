"""The tagger: numbers PDUs, so that every site takes them in one order.  Several groups may share it.

A site repeats a wish until it hears the number, so a tag that has one gets the same again.  Numbers belong to a life of
the tagger: those of a new one are above all of an old one, whatever that had said, and never look contiguous with them.
Its death stops the order, nothing else.

A PDU must not have two places.  What the tagger before numbered, and its sender did not hear of, another site may have
heard: so a new tagger waits until all have said what they heard last, and gives that no number of its own.
"""

from __future__ import annotations

from typing import Any

from ordercast.contract import ALL, Action, Layer, Note, Packet, SetTimer, Setup, Transmit, dropped
from ordercast.protocols.dpg.packets import TAGS_MAX, Numbered, Numbers, Wish
from ordercast.types import Nanoseconds, NetId, Peer

REMEMBERED_MAX = 8_192  # tags whose number can be told again
WISHES_MAX = 4_096  # that wait
SPEAKERS_MAX = 4_096  # lives whose next serial is known
LIFE_MAX = 2**62


class Tagger(Layer):
    """Numbers count from 1 in each life."""

    name = "tagger"

    def __init__(self, setup: Setup) -> None:
        self.life, self.net = setup.identity.incarnation, setup.nets[0]
        self.number = 0  # the last one given
        self.fresh: list[Numbered] = []  # numbered, not yet told
        self.given: dict[Numbered, int] = {}
        self.again: dict[int, Numbered] = {}  # asked for again
        self.next: dict[tuple[bytes, Peer], int] = {}  # the serial of each speaker that follows those numbered
        self.early: dict[tuple[bytes, Peer], dict[int, Numbered]] = {}  # they overtook others of the same speaker
        self.silent = False  # a later tagger is at work
        self.earlier: list[Numbered] = []  # asked for, numbered by an earlier tagger
        self.grace_ns = max(1, setup.timeout_ns // 2)
        self.asking: list[tuple[Peer, Wish]] | None = []  # wishes that wait until all have said what they heard

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if type(packet) is not Wish:
            return []  # what sites say to each other
        if packet.life > self.life:
            if self.number or packet.life > LIFE_MAX:
                self.silent = self.silent or packet.life <= LIFE_MAX
                return [dropped("life", member=source.id)]
            self.life = packet.life + 1  # the clock was set back since the tagger before
        for sender, life, serials in packet.placed if packet.life < self.life else ():
            for serial in serials:
                self._give(Numbered(packet.group, sender, life, serial), 0)
        if not packet.serials:  # it wants to know whether somebody is here
            return [] if self.silent else [Transmit(net, source.id, Numbers(self.life, self.number + 1, ()))]
        if packet.life and packet.life < self.life and self.asking is not None:
            begins = not self.asking
            if len(self.asking) < WISHES_MAX:
                self.asking.append((source, packet))
            return [SetTimer("grace", now + self.grace_ns)] if begins else []
        self._wished(source, packet)
        return []

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        """Whoever heard the tagger before has said so, or is away."""
        asked, self.asking = self.asking or [], None
        for source, packet in asked:
            self._wished(source, packet)
        return self.drained(now, self.net)

    def _wished(self, source: Peer, packet: Wish) -> None:
        """Number what a site asks for, in the order in which it said it."""
        speaker = (packet.group, source)
        following = max(self.next.get(speaker, 0), packet.least)
        early = self.early.get(speaker, {})
        for serial in packet.serials:
            tag = Numbered(packet.group, source.id, source.incarnation, serial)
            if serial > following and packet.least and len(early) < TAGS_MAX:
                early[serial] = tag
                continue
            self._number(tag)
            following = max(following, serial + 1)
        self._follow(speaker, following, early)

    def _follow(self, speaker: tuple[bytes, Peer], following: int, early: dict[int, Numbered]) -> None:
        """Number what waited for those before it."""
        while following in early:
            self._number(early.pop(following))
            following += 1
        for serial in [serial for serial in early if serial < following]:
            self._number(early.pop(serial))
        self.next[speaker] = following
        if early:
            self.early[speaker] = early
        else:
            self.early.pop(speaker, None)
        if len(self.next) > SPEAKERS_MAX:
            gone = next(iter(self.next))
            del self.next[gone]
            self.early.pop(gone, None)

    def _number(self, tag: Numbered) -> None:
        known = self.given.get(tag)
        if known == 0:
            self.earlier.append(tag)
        elif known is not None:
            if known <= self.number - len(self.fresh):
                self.again[known] = tag
        else:
            self.number += 1
            self._give(tag, self.number)
            self.fresh.append(tag)

    def _give(self, tag: Numbered, number: int) -> None:
        self.given.setdefault(tag, number)
        if len(self.given) > REMEMBERED_MAX:
            del self.given[next(iter(self.given))]

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        """All wishes that had come are numbered: tell everybody."""
        if self.silent or not (self.fresh or self.again or self.earlier):
            return []
        out: list[Action] = []
        for number, tag in sorted(self.again.items())[:TAGS_MAX]:
            out.append(Transmit(net, ALL, Numbers(self.life, number, (tag,))))
        if out:
            out.append(Note("number again", {"tags": len(out)}))
        for at in range(0, len(self.earlier), TAGS_MAX):
            out.append(Transmit(net, ALL, Numbers(self.life, 0, tuple(self.earlier[at : at + TAGS_MAX]))))
        first = self.number - len(self.fresh) + 1
        for at in range(0, len(self.fresh), TAGS_MAX):
            tags = tuple(self.fresh[at : at + TAGS_MAX])
            out.append(Transmit(net, ALL, Numbers(self.life, first + at, tags)))
        self.fresh, self.again, self.earlier = [], {}, []
        return out

    def status(self) -> dict[str, Any]:
        waits = "nothing: a later tagger is at work" if self.silent else ""
        return {"number": self.number, "waits": waits, "queues": {"fresh": len(self.fresh)}}
