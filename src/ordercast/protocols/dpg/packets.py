"""What sites and the tagger say: a message, a report, a wish for numbers, numbers.

A report names each vertex once, by a small number into a table of lives, and mostly arcs from one vertex to the next
of the list, so that a graph of thirty costs some two hundred bytes.  Lists are bounded before anything is allocated.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated

from msgspec import Meta, Struct

from ordercast.contract import Packet
from ordercast.errors import WireError
from ordercast.protocols.dpg.graph import MARKED, Mark
from ordercast.protocols.dpg.site import Telling
from ordercast.types import U8, U16, U32, U63, Frame

VERTICES_MAX = 1_024
ARCS_MAX = 4_096
EXCUSES_MAX = 64
LIVES_MAX = 255
TAGS_MAX = 256  # in one packet from or to the tagger
PLACED_MAX = 128

Tag = tuple[U63, U32, U63]  # counter, sender, life: compared in this order, a new life never reuses one

UNDELIVERED, LOST, PLAIN, CONTIGUOUS = 1, 2, 4, 8  # of one vertex; the last two: the arc from the vertex before it


class Message(Packet, frozen=True, gc=False, tag=1):
    """A frame, message `counter` of its sender's life; `serial` numbers all its PDUs, where a tagger orders them."""

    counter: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    serial: U63
    frame: Frame
    sent: U63 = 0  # by the sender's clock

    def check(self) -> None:
        self.frame.check()


class Report(Packet, frozen=True, gc=False, tag=2):
    """What a site knows and lacks."""

    serial: U63
    cycle_ns: U63  # Message_Cycle: the pause between two of its own messages
    lives: Annotated[tuple[tuple[U32, U63], ...], Meta(max_length=LIVES_MAX)] = ()
    who: Annotated[bytes, Meta(max_length=VERTICES_MAX)] = b""  # per vertex: whose it is
    base: U63 = 0
    counters: Annotated[tuple[U63, ...], Meta(max_length=VERTICES_MAX)] = ()  # per vertex: above base
    states: Annotated[bytes, Meta(max_length=VERTICES_MAX)] = b""
    arcs: Annotated[tuple[tuple[U16, U16], ...], Meta(max_length=ARCS_MAX)] = ()  # further plain ones
    marks: Annotated[tuple[tuple[U16, U16], ...], Meta(max_length=ARCS_MAX)] = ()  # further marked ones
    excused: Annotated[
        tuple[tuple[U16, U16, Annotated[tuple[tuple[U8, U63], ...], Meta(min_length=1, max_length=EXCUSES_MAX)]], ...],
        Meta(max_length=EXCUSES_MAX),
    ] = ()  # each excuse: whose it is, and its counter above base
    l_deliv: Tag | None = None
    again: Annotated[tuple[tuple[Tag, Frame], ...], Meta(max_length=2)] = ()
    sent: U63 = 0

    def check(self) -> None:
        count, lives = len(self.counters), len(self.lives)
        if len(self.who) != count or len(self.states) != count or (self.who and max(self.who) >= lives):
            raise WireError("report", "vertices")
        excuses = [excuse for _, _, several in self.excused for excuse in several]
        if max((k for k, _ in excuses), default=-1) >= lives:
            raise WireError("report", "excuses")
        if max((*self.counters, *(c for _, c in excuses)), default=0) + self.base > 2**63 - 1:
            raise WireError("report", "counters")
        for pairs in (self.arcs, self.marks, self.excused):
            if any(x >= count or y >= count or x == y for x, y, *_ in pairs):
                raise WireError("report", "arcs")
        for tag, frame in self.again:
            if (frame.sender, frame.incarnation) != tag[1:]:
                raise WireError("report", "bodies")
            frame.check()

    @property
    def vertices(self) -> tuple[tuple[int, int, int], ...]:
        base, lives = self.base, self.lives
        return tuple((base + c, *lives[k]) for c, k in zip(self.counters, self.who, strict=True))


class Wish(Packet, frozen=True, gc=False, tag=3):
    """A site to the tagger: these PDUs of mine want numbers; `heard` is the last number here, of that tagger's life.

    None below `least` wants one: so the tagger numbers what a site says in the order in which it was said.  `placed`
    are the last PDUs known to have numbers of that life, told when it is silent: another tagger gives them none.
    """

    group: Annotated[bytes, Meta(min_length=8, max_length=8)]
    serials: Annotated[tuple[U63, ...], Meta(max_length=TAGS_MAX)]
    life: U63
    heard: U63
    least: U63 = 0
    placed: Annotated[
        tuple[tuple[U32, U63, Annotated[tuple[U63, ...], Meta(max_length=PLACED_MAX)]], ...],
        Meta(max_length=PLACED_MAX),
    ] = ()  # sender, its life, serials


class Numbered(Struct, frozen=True, array_like=True, gc=False):
    """One PDU that has a number: group, sender, its life, serial."""

    group: Annotated[bytes, Meta(min_length=8, max_length=8)]
    sender: U32
    life: U63
    serial: U63


class Numbers(Packet, frozen=True, gc=False, tag=4):
    """The tagger to all: the numbers first, first + 1, .. of its life, and whose they are.

    first = 0: these have their place by the numbers of an earlier tagger, which not all have heard.
    """

    life: U63
    first: U63
    tags: Annotated[tuple[Numbered, ...], Meta(max_length=TAGS_MAX)]


PACKETS = (Message, Report, Wish, Numbers)


def group_key(name: str) -> bytes:
    """Keeps the groups of one tagger apart."""
    return blake2b(name.encode(), digest_size=8).digest()


def report(telling: Telling, again: tuple[tuple[Tag, Frame], ...], serial: int, cycle_ns: int, sent: int = 0) -> Report:
    """A site's telling, packed; its vertices are in an order in which most arcs lead to the next."""
    vertices = telling.vertices
    place = {tag: k for k, tag in enumerate(vertices)}
    named = [*vertices, *sorted({z for _, _, mark in telling.arcs if mark for z in mark})]
    lives = {life: k for k, life in enumerate(list(dict.fromkeys(tag[1:] for tag in named))[:LIVES_MAX])}
    base = min((tag[0] for tag in named), default=0)
    undelivered, lost = set(telling.undelivered), set(telling.lm)
    states = bytearray((UNDELIVERED * (tag in undelivered)) | (LOST * (tag in lost)) for tag in vertices)
    arcs: list[tuple[int, int]] = []
    marks: list[tuple[int, int]] = []
    excused: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for x, y, mark in telling.arcs:
        a, b = place[x], place[y]
        if mark and len(excused) < EXCUSES_MAX >= len(mark) and all(z[1:] in lives for z in mark):
            excused.append((a, b, tuple((lives[z[1:]], z[0] - base) for z in sorted(mark))))
        elif b == a + 1:
            states[b] |= PLAIN if mark is None or mark else CONTIGUOUS
        elif mark is not None and not mark:
            marks.append((a, b))
        else:
            arcs.append((a, b))
    return Report(
        serial, cycle_ns, tuple(lives), bytes(lives[tag[1:]] for tag in vertices), base,
        tuple(tag[0] - base for tag in vertices), bytes(states), tuple(arcs[:ARCS_MAX]), tuple(marks[:ARCS_MAX]),
        tuple(excused), telling.l_deliv, again, sent,
    )  # fmt: skip


def telling(packet: Report) -> Telling:
    """What a report says."""
    tags, states = packet.vertices, packet.states
    arcs: list[tuple[Tag, Tag, Mark]] = []
    for k, state in enumerate(states):
        if k and state & (PLAIN | CONTIGUOUS):
            arcs.append((tags[k - 1], tags[k], MARKED if state & CONTIGUOUS else None))
    arcs += [(tags[a], tags[b], None) for a, b in packet.arcs]
    arcs += [(tags[a], tags[b], MARKED) for a, b in packet.marks]
    base, lives = packet.base, packet.lives
    for a, b, excuses in packet.excused:
        arcs.append((tags[a], tags[b], frozenset((base + c, *lives[k]) for k, c in excuses)))
    return Telling(
        vertices=tags,
        arcs=tuple(arcs),
        undelivered=tuple(tag for tag, state in zip(tags, states, strict=True) if state & UNDELIVERED),
        l_deliv=packet.l_deliv,
        lm=tuple(tag for tag, state in zip(tags, states, strict=True) if state & LOST),
        rm=packet.again,
    )
