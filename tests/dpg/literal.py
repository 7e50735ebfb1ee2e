"""The letter of the DPG paper, each reading in a few lines beside what is built, and the smallest cases of each.

A case gives what comes out by the letter and what comes out here; `test_errata.py` says what that is, and the page of
errata draws it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from tests.mutants import dpg as mutants
from tests.mutants.hunt import directed
from tests.mutants.registry import make

from ordercast.contract import SetTimer
from ordercast.protocols.dpg.channel import Buffers, Timing
from ordercast.protocols.dpg.flow import MessageCycle, Reports
from ordercast.protocols.dpg.graph import MARKED, Graph, Mark
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.site import Cycles, Site, Telling
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

Arcs = list[tuple[Any, Any, Mark]]
DELIV = 20
MS = 1_000_000


def site(kind: type[Site] = Site, **options: Any) -> Site:
    return kind(Cycles(DELIV, 4, 30, 12), 400, set(), **options)


def names(given: Iterable[Any]) -> list[Any]:
    return [one.tag for one in given]


# ----------------------------------------------------------------------------------------------------- what is heard


def e1(one_order: bool) -> tuple[Arcs, list[Any]]:
    """Sent: 1, 2, 3, and a report of who missed 2.  Heard here: 1, 2 and the report, which brings 3."""
    report, here = Telling((1, 3), ((1, 3, None),), (3,), rm=((3, "3"),)), site()
    here.message(0, 1, "1", True)
    if not one_order:  # 1C for messages alone: a report may come at any time
        here.report(1, report)
    here.message(2, 2, "2", True)
    if one_order:
        here.report(3, report)
    arcs = here.graph.arcs()
    return arcs, names(here.advance(DELIV + 5) + here.advance(2 * DELIV + 5) + here.advance(3 * DELIV + 5))


class OneBit(Buffers[Any]):
    """E2: set by an overwrite, reset after the reception of any message; the bit is the site's."""

    __slots__ = ()

    def arrive(self, pdu: Any) -> None:
        if len(self.slots) < self.size:
            self.slots.append((pdu, False))
        else:
            self.slots[-1] = (pdu, False)
            self._missed = True

    def fetch(self) -> tuple[Any, bool] | None:
        if not self.slots:
            return None
        pdu, _ = self.slots.popleft()
        contiguous = not self._missed and not self._first
        self._missed = self._first = False
        return pdu, contiguous


def e2(kind: type[Buffers[Any]]) -> Arcs:
    """Two buffers: 1 is fetched; 2, 3 and 4 come at once, and 4 overwrites 3."""
    buffers, graph, last = kind(2, overwrite=True), Graph(), None
    for batch in ((1,), (2, 3, 4)):
        for pdu in batch:
            buffers.arrive(pdu)
        while (found := buffers.fetch()) is not None:
            pdu, contiguous = found
            graph.receive(pdu, last, MARKED if contiguous else None)
            last = pdu
    return graph.arcs()


class Apart(Timing):
    """E3: two receptions less apart than what is needed to transmit a message."""

    __slots__ = ("_begin",)

    def __init__(self, shortest_ns: int) -> None:
        super().__init__(shortest_ns)
        self._begin: int | None = None

    def heard(self, begin: int, end: int) -> bool:
        contiguous = self._begin is not None and begin - self._begin < self.shortest_ns
        self._begin = begin
        return contiguous


SPANS = {1: (0, 80), 2: (80, 160), 3: (160, 240), 4: (330, 410)}  # us; frames of one length, the last after a gap


def e3(kind: type[Timing]) -> list[bool]:
    """Four frames, each 80 us on the wire."""
    timing = kind(80)
    return [timing.heard(*span) for span in SPANS.values()]


# -------------------------------------------------------------------------------------------------------- the graph

G4: Arcs = [(1, 2, MARKED), (2, 3, MARKED), (2, 4, None), (3, 5, None), (4, 5, MARKED)]


def printed_formula(vertices: Iterable[Any], arcs: Arcs) -> set[tuple[Any, Any]]:
    """E4, with Observation 3: (X0, Y0) where nothing lies between, and marks lead from X0 back to the beginning and
    from Y0 on to the end of an arc of G."""
    graph = Graph(vertices, arcs)
    after = {x: {y for y in graph.out if x in graph.ancestors((y,))} for x in graph.out}
    chain = {x: [x] for x in graph.out}  # x and all that marks lead to
    for found in chain.values():
        while more := [y for y, mark in graph.out[found[-1]].items() if mark is not None]:
            found.append(more[0])
    return {
        (x, y)
        for x in graph.out
        for y in graph.out
        if not any(z in after[x] and y in after[z] for z in graph.out)
        and any(b in graph.out[a] for a in graph.out if x in chain[a] for b in chain[y])
    }


def e4() -> tuple[set[tuple[Any, Any]], Arcs]:
    graph = Graph(range(1, 6), G4)
    graph.linearise()
    return printed_formula(range(1, 6), G4), graph.arcs()


G5: Arcs = [(1, 2, None), (1, 3, None)]


def e5() -> Arcs:
    """4 is heard right after 3."""
    graph = Graph((1, 2, 3), G5)
    graph.receive(4, 3, MARKED)
    return graph.arcs()


# --------------------------------------------------------------------------------------------------------- delivery

G6: Arcs = [("L", "a", None), ("L", "b", None), ("b", "c", None)]


def e6(kind: type[Site]) -> list[Any]:
    """What a site delivers of L -> a, L -> b, b -> c however long it waits; larger tags first, so a is last."""
    here = site(kind)
    here.message(0, "L", "L", True)
    out = here.advance(DELIV)
    told = Telling(("L", "a", "b", "c"), tuple(G6), ("a", "b", "c"), rm=tuple((tag, tag) for tag in "abc"))
    out += here.report(DELIV + 1, told)[0]
    for clock in range(DELIV + 2, 10 * DELIV):
        out += here.advance(clock)
    return names(out)


def e7(mutant: str = "") -> list[tuple[float, int]]:
    """(ms, messages delivered so far) at the only sender of four, which does not hear itself."""
    scenario = replace(directed("dpg_deaf"), messages=120)
    outcome = run(scenario, level="full", maker=make(mutant) if mutant else None)
    found, count = [], 0
    for row in outcome.trace.rows:
        if row.kind == Kind.DELIVER and row.member == scenario.senders[0]:
            count += row.count
            found.append((row.time_ns / MS, count))
    return found


# -------------------------------------------------------------------------------------------------- times and pauses


class Together(Reports):
    """E8: every report, heard or sent, sets the timer to Report_Cycle."""

    __slots__ = ()

    def restart(self, clock: float) -> None:
        self.due = clock + self._cycle


def e8(kind: type[Reports], sites: int = 4, counts: int = 20) -> list[tuple[int, int]]:
    """(count, site) of the reports; who reports in the same count has not heard the other."""
    timers = [kind(5, random.Random(seed)) for seed in range(sites)]
    gone = []
    for clock in range(counts):
        first = min(timer.due for timer in timers)  # within a count the first to speak spares the others
        ready = [k for k, timer in enumerate(timers) if timer.due == first < clock + 1]
        for k in ready:
            gone.append((clock, k))
            timers[k].goes(clock)
        for k in ready:
            for other, timer in enumerate(timers):
                if other not in ready:
                    timer.heard(clock, clock, 1, k, waive=False)
    return gone


class Unlimited(Reports):
    """E9: whenever a report lacks something that is known here, the delay is waived."""

    __slots__ = ()

    def goes(self, clock: float) -> bool:
        waived = super().goes(clock)
        self._waived = float("-inf")
        return waived


def e9(kind: type[Reports], counts: int = 20) -> list[int]:
    """When a site reports that hears one at every count which does not know its last own message."""
    times, gone = kind(5, random.Random(3)), []
    for clock in range(counts):
        times.due = 1e9
        planned = times.heard(clock, clock, 1, 2, waive=True)
        if any(isinstance(action, SetTimer) for action in planned) and times.goes(clock):
            gone.append(clock)
            times.settled()
    return gone


class Largest(MessageCycle):
    """E10: the maximum of one's own pause and of what any report says; decremented now and then."""

    __slots__ = ()

    def heard(self, ns: int, fair_ns: int) -> None:
        self.ns = max(self.ns, ns)


def e10(kind: type[MessageCycle], rounds: int = 200) -> list[float]:
    """The pause in ms of a site after one miss at another; both lower it in turn, and report after that."""
    one, two, fair = kind(), kind(), 8 * MS
    two.missed(fair)
    one.heard(two.ns, fair)
    found = []
    for _ in range(rounds):
        one.decay()
        one.heard(two.ns, fair)
        two.decay()
        two.heard(one.ns, fair)
        found.append(one.ns / MS)
    return found


def e11(kind: type[Pace]) -> int | None:
    """After how many ms of silence a message is delivered that came after a gap; None: not within a second."""
    pace, here = kind(160 * MS), site()
    here.message(0, 1, "1", True)
    assert names(here.advance(DELIV)) == [1]
    pace.clock = DELIV + 1
    here.message(pace.clock, 3, "3", False)
    pace.heard()
    now = pace.next(0, True, 5)
    while now < 1_000 * MS:
        pace.tick(now)
        if names(here.advance(pace.clock)):
            return now // MS
        now = pace.next(now, True, 5)
    return None


def e12(kind: type[Site]) -> tuple[Arcs, list[Any], list[Any]]:
    """Sent: x, z, y.  The sender of z does not hear itself, a third misses z; who heard all three reports last.

    What the sender reports; what the third delivers before it hears that z exists, and afterwards.
    """
    sender, third = site(kind, hears_self=False), site()
    sender.message(0, "x", "x", True)
    sender.sent(1, "z", "z")
    sender.message(2, "y", "y", True)
    third.message(0, "x", "x", True)
    out = names(third.advance(DELIV))
    third.message(DELIV + 1, "y", "y", False)
    said = sender.make_report(DELIV + 2)
    out += names(third.report(DELIV + 2, said)[0])
    whole = Telling(("x", "z", "y"), (("x", "z", MARKED), ("z", "y", MARKED)), ("z", "y"), rm=(("z", "z"),))
    later = names(third.report(DELIV + 3, whole)[0])
    for clock in range(DELIV + 4, 4 * DELIV):
        later += names(third.advance(clock))
    return list(said.arcs), out, later


SUCCESSORS, FORGETFUL, SILENT, SUSPENDED = mutants._Successors, mutants._Forgetful, mutants._Silent, mutants._Literal
