"""The letter of the Totem paper, each reading in a few lines beside what is built, and the smallest cases of each.

A case gives what comes out with the part it is given; `test_errata.py` says what that is by the letter and here, and
the page of errata draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ordercast.contract import Ordered
from ordercast.lab.latency import Differences, Echoes
from ordercast.outbox import Outbox
from ordercast.protocols.totem.flow import Limits, allowance
from ordercast.protocols.totem.guarantee import Merge, Row, deliverable
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.packets import Data, Token
from ordercast.protocols.totem.ring import Exchanging, Held, Ring, Source, Stamped, Visit
from ordercast.types import Frame, Service, ViewId

RING, NEXT = ViewId(8, 1), ViewId(12, 1)
WIDE = Limits(1000, 10**6, buffer_frames=10**6)
ONE, TWO = 0, 1  # sources


class Step(NamedTuple):
    """Something that happened at one place of a small run."""

    who: str
    word: str


def frame(name: str, service: Service = Service.AGREED) -> Frame:
    return Frame(ord(name), 1, 1, 1, int(service), b"\0\0\0\0", b"")


def ordered(name: str, stamp: int, source: int, service: Service = Service.AGREED) -> Ordered:
    return Ordered(frame(name, service), stamp=stamp, source=source + 1)


def told(events: Iterator[Ordered]) -> list[str]:
    return [chr(event.frame.sender) for event in events]


def outbox(me: int, n: int, service: Service = Service.AGREED) -> Outbox:
    box = Outbox(me, 1, 8)
    for _ in range(n):
        box.put([bytes(4)], service)
    return box


# ------------------------------------------------------------------------------------------------------ several rings


class Less(Merge):
    """T1: its timestamp is less than all timestamps of the vector."""

    def deliver(self) -> Iterator[Ordered]:
        self.bound -= 1
        yield from super().deliver()
        self.bound += 1


def t1(kind: type[Merge]) -> list[list[str]]:
    """What goes up: a (5) comes of ring 1; ring 2 has nothing up to 9; b (12) comes of ring 1; ring 2 up to 15."""
    merge, out = kind(2, 1, 1), []
    for name, stamp, source in (("a", 5, ONE), ("", 9, TWO), ("b", 12, ONE), ("", 15, TWO)):
        if name:
            assert not merge.take(0, ordered(name, stamp, source), source)
        else:
            merge.promise(0, source, stamp)
        out.append(told(merge.deliver()))
    return out


class MessagesOnly(Merge):
    """T2: an entry holds the highest timestamp of the messages received from a ring."""

    def promise(self, child: int, source: int, stamp: int) -> None:
        return


def t2(kind: type[Merge]) -> list[list[str]]:
    """What goes up: a (5) and b (8) come of ring 1, whose token is stamped 10; ring 2 is idle, its token stamped 12."""
    merge, out = kind(2, 2, 1), []
    for name, stamp, source in (("a", 5, ONE), ("b", 8, ONE), ("", 10, ONE), ("", 12, TWO)):
        if name:
            assert not merge.take(source, ordered(name, stamp, source), source)
        else:
            merge.promise(source, source, stamp)
        out.append(told(merge.deliver()))
    return out


class Arrival(Merge):
    """T3: in the order of timestamps; equal ones as they came."""

    def take(self, child: int, event: Ordered, source: int) -> str:
        self.came = [*getattr(self, "came", []), id(event)]
        return super().take(child, event, source)

    def deliver(self) -> Iterator[Ordered]:
        yield from sorted(super().deliver(), key=lambda event: (event.stamp, self.came.index(id(event))))


def t3(kind: type[Merge], first: str) -> list[str]:
    """a of ring 1 and b of ring 2 are both stamped 5; they come in either order."""
    merge = kind(2, 1, 1)
    for name in sorted("ab", key=lambda name: name != first):
        source = "ab".index(name)
        assert not merge.take(0, ordered(name, 5, source), source)
    for source in (ONE, TWO):
        merge.promise(0, source, 9)
    return told(merge.deliver())


class Exceeding(Lamport):
    """T4: the clock moves when a timestamp exceeds it."""

    __slots__ = ()

    def receive(self, stamp: int) -> None:
        if stamp > self.clock:
            self.clock = stamp + 1


def t4(kind: type[Lamport]) -> tuple[int, str]:
    """A member whose clock is 5 takes a token stamped 5 and sends: its frame's stamp, and why another drops it."""
    sender = Ring(RING, 1, (1, 2), WIDE, stamps=True, source=1, lamport=kind(5))
    new = sender.visit(Token(RING, 1, 0, 0, 0, timestamp=5), outbox(1, 1)).new[0]
    assert type(new) is Data
    merge = Merge(1, 1, 1)
    merge.promise(0, ONE, 5)  # it had the token before, and everything up to it
    return new.stamp, merge.take(0, ordered("a", new.stamp, ONE), ONE)


def t5(carried: bool) -> tuple[list[str], list[str], list[int]]:
    """x is sent on a ring, y on the ring that follows it.  One member has delivered x by then; another has both
    before it hears of ring 2.  What they deliver, and the stamps."""
    old = Ring(RING, 1, (1, 2, 3), WIDE, stamps=True, source=1, lamport=Lamport(40))
    x = old.visit(Token(RING, 1, 0, 0, 0), outbox(1, 1)).new[0]
    new = Ring(NEXT, 1, (1, 2), WIDE, stamps=True, source=1, lamport=old.lamport if carried else Lamport())
    y = new.visit(Token(NEXT, 1, 0, 0, 0), outbox(1, 1)).new[0]
    assert type(x) is Data and type(y) is Data
    one = [(x.stamp, ONE, "x")], [(y.stamp, ONE, "y")]
    gv = {ONE: 99, TWO: 99}
    return (
        [name for part in one for name in deliverable(part, gv)],
        deliverable(one[0] + one[1], gv),
        [x.stamp, y.stamp],
    )


class OnReceipt(Row):
    """T6: a Guarantee Vector message reports receipt."""

    __slots__ = ()

    def mark(self, seq: int, source: int, stamp: int) -> None:
        super().mark(seq, source, stamp)
        super().settle(seq)


class Forwards:
    """What waits at a gateway: m."""

    def __init__(self) -> None:
        self.left = [Stamped(frame("m", Service.SAFE), 5, 1)]

    def waiting(self) -> int:
        return len(self.left)

    def take(self, n: int) -> list[Stamped]:
        taken, self.left = self.left[:n], self.left[n:]
        return taken


def t6(kind: type[Row]) -> list[Step]:
    """m, safe, of ring 1; the gateway 3 sends it on ring 2, where it does not reach 4 at first; 1 waits for ring 2."""
    rings = {me: Ring(RING, me, (3, 4), WIDE, hold_safe=False, stamps=True, source=2) for me in (3, 4)}
    row, merge, out, token = kind(2), Merge(2, 1, 1), [Step("1", "sends m")], Token(RING, 3, 0, 0, 0)
    assert not merge.take(0, ordered("m", 5, ONE, Service.SAFE), ONE)
    merge.promise(0, TWO, 9)
    merge.learn(ONE, [9, 9])

    forwards = Forwards()
    for turn in range(8):
        me = 3 + turn % 2
        visit = rings[me].visit(token, forwards if me == 3 else outbox(4, 0))
        token = visit.token
        if me == 4:
            out.append(Step("4", "asks" if token.rtr else "has all"))
            continue
        for data in visit.new:  # lost on the way to 4
            assert type(data) is Data
            row.mark(data.seq, ONE, data.stamp)
        for again in visit.resent:
            rings[4].receive(again)
        out.append(Step("3", "forwards" if visit.new else "again" if visit.resent else "token"))
        if visit.resent:
            out.append(Step("4", "has m"))
        row.settle(rings[3].safe_upto)
        merge.learn(TWO, row.stamps)
        if told(merge.deliver()):
            out.append(Step("1", "delivers m"))
    return out


# ---------------------------------------------------------------------------------------------------------- one ring


class Once(Ring):
    """T7: a rotation has passed when the token comes with a mark that nobody lowered on its way."""

    def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
        self.last_aru = max(self.last_aru, min(token.aru, self.my_aru))
        return super().visit(token, source, exchange)


def t7(kind: type[Ring]) -> list[Step]:
    """f, safe, of 1, does not reach 3: each visit with the mark on the token, until 2 delivers f."""
    rings = {me: kind(RING, me, (1, 2, 3), WIDE) for me in (1, 2, 3)}
    token, out = Token(RING, 1, 0, 0, 0), []
    for turn in range(12):
        me = turn % 3 + 1
        visit = rings[me].visit(token, outbox(me, 1 if turn == 0 else 0, Service.SAFE))
        token = visit.token
        for data in visit.new + visit.resent:
            for other in {1, 2, 3} - {me} - ({3} if turn == 0 else set()):
                rings[other].receive(data)
        gone = rings[me].deliver()
        out.append(Step(str(me), f"aru {token.aru}" + (": f" if gone else "")))
    return out


def t8(own_counts: bool, visits: int = 10) -> list[int]:
    """Frames that a lone sender with a long queue sends at each visit; max_messages and window_size are 10."""
    sent, my_trc, fcc = [], 0, 0
    for _ in range(visits):
        n = allowance(Limits(10, 10), 10, fcc, 0 if own_counts else my_trc, 100, 100, 100)
        fcc, my_trc = fcc + n - my_trc, n
        sent.append(n)
    return sent


class Obliging(Ring):
    """T9: a processor first rebroadcasts any messages requested in the token."""

    def _in_vain(self, rtr: tuple[int, ...]) -> bool:
        self.again.clear()
        return False


def t9(kind: type[Ring], turns: int = 15) -> list[Step]:
    """2's multicasts do not reach 1, which asks for 2's frame; 3 has it, too."""
    rings = {me: kind(RING, me, (1, 2, 3), WIDE) for me in (1, 2, 3)}
    token, out = Token(RING, 1, 0, 0, 0), []
    for turn in range(turns):
        me = turn % 3 + 1
        visit = rings[me].visit(token, outbox(me, 1 if turn == 1 else 0))
        sent: list[Held] = visit.new + visit.resent
        for data in sent:
            for other in {1, 2, 3} - {me, 1 if me == 2 else me}:
                rings[other].receive(data)
        token = visit.token
        word = "sends f" if visit.new else "f again" if visit.resent else "asks" if me == 1 and token.rtr else ""
        out.append(Step(str(me), word))
    return out


# ----------------------------------------------------------------------------------------------------------- latency

LATENCY_US, SKEW_US = 100, 5000


def t10(back: int, there: int = 100) -> tuple[float, float]:
    """The sum of all differences by their number, and the mean here, of messages one way and `back` the other way."""
    one = Differences()
    one.add(1, 2, there * (LATENCY_US + SKEW_US), there)
    one.add(2, 1, back * (LATENCY_US - SKEW_US), back)
    mean = one.mean()
    assert mean is not None
    return sum(one.total.values()) / sum(one.count.values()), mean


HOLD_MAX_NS, DRIFT_PPM = 10**9, 50


def t11(hold_ns: int, hold_max: float) -> float | None:
    """Method 2, us: one message there and one back after `hold_ns`, by a clock that is fast; None: not taken."""
    echoes, way = Echoes(int(hold_max)), 1000 * LATENCY_US

    def fast(at: int) -> int:
        return at + at * DRIFT_PPM // 10**6

    echoes.received(1, 2, fast(way + hold_ns), {1: (0, fast(way))}, 2 * way + hold_ns)
    found = echoes.mean()
    return None if found is None else found / 1000
