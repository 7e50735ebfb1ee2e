"""Quasi order: tags used twice, reports that forget, returns that leak, marks that lie, numbers passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.mutants.registry import mutant

from ordercast.contract import Action, Packet, Setup
from ordercast.framing import Framing
from ordercast.protocols.dpg.channel import Misses
from ordercast.protocols.dpg.graph import MARKED, Graph, Mark
from ordercast.protocols.dpg.layer import Dpg
from ordercast.protocols.dpg.order import Key, Order, Turn
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.packets import Numbers, Wish
from ordercast.protocols.dpg.site import Given, Site, Tag, Telling
from ordercast.protocols.dpg.ways import Lan, Tagged, Way
from ordercast.stack import Stack, chain
from ordercast.types import Nanoseconds, NetId, Peer


def _stack(layer: Dpg) -> Stack:
    return chain(Framing(views=False), layer)


class _Again(Dpg):
    def _return_if_absent(self, now: Nanoseconds) -> list[Action]:
        out = super()._return_if_absent(now)
        if out:
            self.counter = 0
        return out


@mutant("dpg_tags_again", "dpg", "quasi", "uses its tags again after an absence", scenario="dpg_returns")
def tags_again(setup: Setup) -> Stack:
    return _stack(_Again(setup))


class _Forgetful(Site):
    def make_report(self, clock: float, bodies: int = 2, most: int = 10**9) -> Telling:
        told = super().make_report(clock, bodies, most)
        left = {tag for tag in told.vertices if tag not in self.done}
        arcs = tuple(arc for arc in told.arcs if arc[0] in left and arc[1] in left)
        return Telling(told.undelivered, arcs, told.undelivered, told.l_deliv, told.lm, told.rm)


class _ForgetfulSite(Dpg):
    def _reset(self) -> None:
        super()._reset()
        self.site.__class__ = _Forgetful


@mutant("dpg_reports_forget", "dpg", "quasi", "what was delivered leaves its reports at once", scenario="dpg_deaf")
def reports_forget(setup: Setup) -> Stack:
    return _stack(_ForgetfulSite(setup))


class _Stale(Dpg):
    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        out = self._return_if_absent(now)
        self.stale = False
        return out + super().receive(now, net, source, packet, drops)


@mutant("dpg_hears_the_past", "dpg", "quasi", "after an absence takes what waited for news", scenario="dpg_toggles")
def hears_the_past(setup: Setup) -> Stack:
    return _stack(_Stale(setup))


class _Silent(Pace):
    __slots__ = ()

    def tick(self, now: Nanoseconds) -> None:
        clock = self.clock
        super().tick(now)
        self.clock = clock


class _NoSilence(Dpg):
    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.pace = _Silent(setup.timeout_ns)


@mutant("dpg_silence_is_no_time", "dpg", "quasi", "E11: without traffic no time passes", scenario="dpg_returns")
def silence_is_no_time(setup: Setup) -> Stack:
    return _stack(_NoSilence(setup))


class _Successors(Site):
    def _by_time(self, clock: float) -> bool:
        if self.l_deliv is None or self.l_deliv not in self.graph:
            return super()._by_time(clock)
        ready = [tag for tag in self.graph.out[self.l_deliv] if tag in self.pending]
        if not ready or any(self.pending[tag] > clock - self.cycles.deliv for tag in ready):
            return False
        for tag in sorted(ready, reverse=True):
            self._incorporate(clock, tag, "expired")
        return True


class _Literal(Site):
    def _mark(self, contiguous: bool) -> Mark:
        return MARKED if contiguous else None


class _Careless(Site):
    def _mark(self, contiguous: bool) -> Mark:
        return super()._mark(True)


class _Quiet(Site):
    def _ask(self, clock: float) -> Iterable[Tag]:
        return ()


class _Resurrecting(Site):
    def _collect(self, clock: float) -> None:
        tombs, self.tombs = self.tombs, set()
        super()._collect(clock)
        self.tombs = tombs


class _Hasty(Site):
    def begin(self, clock: float, after: Tag | None, first: Tag | None) -> None:
        super().begin(clock, None, None)


def _with_site(kind: type[Site]) -> type[Dpg]:
    class Other(Dpg):
        def _reset(self) -> None:
            super()._reset()
            self.site.__class__ = kind

    return Other


@mutant("dpg_successors_only", "dpg", "quasi", "E6: only what follows the last one may come", scenario="dpg_lossy")
def successors_only(setup: Setup) -> Stack:
    return _stack(_with_site(_Successors)(setup))


@mutant("dpg_suspends_literally", "dpg", "quasi", "E12: marks over own messages, without excuse", scenario="dpg_talk")
def suspends_literally(setup: Setup) -> Stack:
    return _stack(_with_site(_Literal)(setup))


@mutant("dpg_marks_gaps", "dpg", "quasi", "marks arcs over what was missed", scenario="dpg_lossy")
def marks_gaps(setup: Setup) -> Stack:
    return _stack(_with_site(_Careless)(setup))


@mutant("dpg_never_asks", "dpg", "quasi", "asks for nothing that is lost", scenario="dpg_lossy")
def never_asks(setup: Setup) -> Stack:
    return _stack(_with_site(_Quiet)(setup))


@mutant("dpg_no_tombs", "dpg", "quasi", "what is done with may come back", scenario="dpg_toggles")
def no_tombs(setup: Setup) -> Stack:
    return _stack(_with_site(_Resurrecting)(setup))


@mutant("dpg_begins_anywhere", "dpg", "quasi", "a return begins with whatever is known", scenario="dpg_toggles")
def begins_anywhere(setup: Setup) -> Stack:
    return _stack(_with_site(_Hasty)(setup))


class _Unpassed(Order):
    def numbered(self, now: Nanoseconds, packet: Numbers) -> None:
        super().numbered(now, packet)
        for number, key, _ in list(self.queue):
            if key is not None and key in self.pdus and self.queue and number == self.queue[-1][0]:
                self.queue.rotate(1)


class _ByArrival(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _Unpassed
        return way


@mutant("dpg_order_of_arrival", "dpg", "quasi", "E1: PDUs are taken out of order", scenario="dpg_returns")
def order_of_arrival(setup: Setup) -> Stack:
    return _stack(_ByArrival(setup))


class _Hoarding(Graph):
    __slots__ = ()

    def linearise(self) -> None:
        before = self.arcs()
        super().linearise()
        for x, y, _ in before:
            self.arc(x, y, None)


class _NoRemoval(Dpg):
    def _reset(self) -> None:
        super()._reset()
        self.site.graph.__class__ = _Hoarding


@mutant("dpg_no_removal", "dpg", "quasi", "linearises without removing what is implied", case="dpg_graph")
def no_removal(setup: Setup) -> Stack:
    return _stack(_NoRemoval(setup))


class _NoWitness(Order):
    def _placed(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        return ()


class _TwoPlaces(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _NoWitness
        return way


@mutant("dpg_two_places", "dpg", "quasi", "two taggers number one PDU", scenario="dpg_taggers")
def two_places(setup: Setup) -> Stack:
    return _stack(_TwoPlaces(setup))


class _Impatient(Site):
    def _by_time(self, clock: float) -> bool:
        return super()._by_time(clock + self.cycles.deliv)


class _Miser(Site):
    def make_report(self, clock: float, bodies: int = 2, most: int = 10**9) -> Telling:
        self.rm.clear()
        return super().make_report(clock, bodies, most)


@mutant("dpg_waits_for_nothing", "dpg", "quasi", "delivers whatever may come next, at once", scenario="dpg_lossy")
def waits_for_nothing(setup: Setup) -> Stack:
    return _stack(_with_site(_Impatient)(setup))


@mutant("dpg_sends_nothing_again", "dpg", "quasi", "never sends a body that another lost", scenario="dpg_lossy")
def sends_nothing_again(setup: Setup) -> Stack:
    return _stack(_with_site(_Miser)(setup))


class _AsksOnce(Order):
    def repeat(self, now: Nanoseconds) -> Wish | None:
        return None if self.wishes else super().repeat(now)


class _OneWish(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _AsksOnce
        return way


@mutant("dpg_wishes_once", "dpg", "quasi", "asks the tagger for a number once", scenario="dpg_lossy")
def wishes_once(setup: Setup) -> Stack:
    return _stack(_OneWish(setup))


class _Unaware(Dpg):
    def _return_if_absent(self, now: Nanoseconds) -> list[Action]:
        return [] if self.site.begun else super()._return_if_absent(now)


@mutant(
    "dpg_absence_unnoticed", "dpg", "quasi", "goes on after an absence as if there were none", scenario="dpg_toggles"
)
def absence_unnoticed(setup: Setup) -> Stack:
    return _stack(_Unaware(setup))


class _Stubborn(Site):
    def _deliver(self, clock: float) -> list[Given]:
        return super()._deliver(float("-inf"))


@mutant("dpg_no_dummies", "dpg", "quasi", "waits for a body for ever", scenario="dpg_taggers")
def no_dummies(setup: Setup) -> Stack:
    return _stack(_with_site(_Stubborn)(setup))


class _Trusting(Order):
    def _miss(self, number: tuple[int, int], key: Key | None) -> None:
        self._other(number)
        if key is not None:
            self._pass(key, number)


class _SeesNoMiss(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _Trusting
        return way


@mutant("dpg_miss_unseen", "dpg", "quasi", "a number whose PDU never came is no miss", scenario="dpg_lossy")
def miss_unseen(setup: Setup) -> Stack:
    return _stack(_SeesNoMiss(setup))


class _Early(Order):
    def turns(self, now: Nanoseconds) -> Iterator[Turn]:
        for key in [key for key in self.pdus if all(key != other for _, other, _ in self.queue)]:
            yield Turn(Peer(key[0], key[1]), self.pdus.pop(key)[0], True, True)
        yield from super().turns(now)


class _Unnumbered(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _Early
        return way


@mutant("dpg_needs_no_number", "dpg", "quasi", "E1: takes a PDU before it has a number", scenario="dpg_returns")
def needs_no_number(setup: Setup) -> Stack:
    return _stack(_Unnumbered(setup))


class _AnyPdu(Misses):
    __slots__ = ()

    def heard(self, drops: int, message: bool) -> bool:
        return super().heard(drops, True)


class _ReportHidesGap(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Lan):
            way._detector = _AnyPdu()
        return way


@mutant("dpg_report_hides_gap", "dpg", "quasi", "E2: a miss before a report is forgotten", scenario="dpg_full")
def report_hides_gap(setup: Setup) -> Stack:
    return _stack(_ReportHidesGap(setup))


class _NoEpoch(Order):
    def _other(self, number: tuple[int, int]) -> None:
        self._turn = number
        self.detector.other(number[1])


class _OneLife(Dpg):
    def _way(self, setup: Setup) -> Way:
        way = super()._way(setup)
        if isinstance(way, Tagged):
            way.order.__class__ = _NoEpoch
        return way


@mutant("dpg_one_tagger", "dpg", "quasi", "numbers of two taggers look contiguous", case="dpg_lives")
def one_tagger(setup: Setup) -> Stack:
    return _stack(_OneLife(setup))
