"""One site's part of the algorithm: incorporation, delivery, reports; no time of its own, no network.

Paper: "Membership-insensitive totally ordered multicast" (Konorski), sections 3 and 4.  A message is *incorporated*
when its place is settled here (right behind the last one by a mark, or because nothing older turned up for
Deliv_Cycle), and delivered when its body is here, or as a dummy when that never comes.

`clock` is anything that grows: nanoseconds, or PDUs heard.

Differs from the paper:
  E6  Candidates are all vertices whose predecessors are incorporated, not the successors of L_DELIV alone; an order
      among them that only time decided is never reported.
  E7  Delivered vertices stay in reports for Rep_Keep, else senders starve.
  E12 Suspended Delivery is done with excused marks (graph.py): literally it marks falsely.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ordercast.protocols.dpg.bodies import Bodies
from ordercast.protocols.dpg.graph import MARKED, Graph, Mark
from ordercast.protocols.dpg.holes import between, unsaid
from ordercast.protocols.dpg.tombs import Gone, Tombs

Tag = Any  # hashable, ordered
Clock = float
NEVER = float("-inf")


class Cycles(Struct, frozen=True):
    """Spans, all on one clock."""

    deliv: Clock
    retr: Clock
    gc: Clock
    keep: Clock  # Rep_Keep


class Given(Struct, frozen=True):
    """What goes to the application next; no body: a dummy."""

    tag: Tag
    body: Any
    certainty: str


class Telling(Struct, frozen=True):
    """A report: what a site knows and what it lacks."""

    vertices: tuple[Tag, ...] = ()
    arcs: tuple[tuple[Tag, Tag, Mark], ...] = ()
    undelivered: tuple[Tag, ...] = ()
    l_deliv: Tag | None = None
    lm: tuple[Tag, ...] = ()  # lost: please send
    rm: tuple[tuple[Tag, Any], ...] = ()  # sent again, with their bodies


class Site:
    """Names follow the paper: l_rec, l_deliv, lm, rm."""

    def __init__(
        self, cycles: Cycles, bodies: int, tombs: Gone | None = None, *, hears_self: bool = True, marks: str = "excuse"
    ) -> None:
        self.cycles, self.hears_self, self.marks = cycles, hears_self, marks
        self.graph = Graph()
        self.since: dict[Tag, Clock] = {}  # vertex -> when it came into the graph
        self.bodies = Bodies(bodies)
        self.tombs: Gone = Tombs() if tombs is None else tombs
        self.l_rec: Tag | None = None
        self.l_deliv: Tag | None = None  # the last that was incorporated
        self.incorporated: set[Tag] = set()
        self.pending: dict[Tag, Clock] = {}  # not yet incorporated -> when it came into the graph
        self.queue: deque[tuple[Tag, Clock, str]] = deque()  # incorporated, not yet delivered
        self.done: dict[Tag, Clock] = {}  # delivered or skipped, still in the graph
        self.lm: dict[Tag, Clock] = {}  # lost -> when it was asked for
        self.rm: list[Tag] = []
        self.own: dict[Tag, Clock] = {}  # own messages not known to precede l_rec
        self.unechoed: dict[Tag, Clock] = {}
        self.mention: dict[Tag, Clock] = {}  # named undelivered or lost by another
        self.named: set[Tag] = set()  # by any report, ours too
        self.patience = 1  # Deliv_Cycles that a message waits for its body while others that were asked for come
        self.came = NEVER  # one that was asked for, last
        self.late: set[Tag] = set()
        self.skips_late = False
        self.skipped: list[Tag] = []  # since the owner last asked
        self.blind = False  # an own message is gone that excused the next mark
        self.linearised = self.excused = False  # at the last report; a mark was, since the owner last asked
        self.begun = True  # false: what is heard is kept, nothing is delivered
        self.floor: Tag | None = None  # after a return: where this spell begins
        self.before: set[Tag] = set()  # it, and what was skipped because it is before it

    # -------------------------------------------------------------------------------------------------- what is heard

    def sent(self, clock: Clock, tag: Tag, body: Any) -> None:
        self.bodies.keep(tag, body)
        if not self.hears_self:
            self.own[tag] = self.unechoed[tag] = clock

    def message(self, clock: Clock, tag: Tag, body: Any, contiguous: bool) -> list[Given]:
        """A message heard in its place of the network's order."""
        if tag not in self.tombs and tag not in self.done:
            mark = self._mark(contiguous)
            self._since(clock, tag)
            self.graph.receive(tag, self.l_rec, mark)
            self.l_rec = tag
            self._place_own()
            self._store(tag, body)
            self._find_late(clock)
        self.l_rec = tag
        return self.advance(clock)

    def _mark(self, contiguous: bool) -> Mark:
        blind, self.blind = self.blind, False
        if not contiguous or blind or (self.own and self.marks == "off"):
            return None
        self.excused = bool(self.own)
        return frozenset(self.own) if self.own else MARKED

    def _since(self, clock: Clock, tag: Tag) -> bool:
        if tag in self.since:
            return False
        self.since[tag] = self.pending[tag] = clock
        return True

    def _add(self, clock: Clock, tag: Tag) -> bool:
        """A vertex without a place, heard of by others or out of its place."""
        if not self._since(clock, tag):
            return False
        self.graph.add(tag)
        return True

    def _store(self, tag: Tag, body: Any) -> None:
        kept, victim = self.bodies.store(tag, body, self.done, lambda: self._behind(tag))
        if not kept:
            self.lm.setdefault(tag, NEVER)
            return
        self.lm.pop(tag, None)
        if victim is not None:
            self.lm[victim] = NEVER

    def _behind(self, tag: Tag) -> list[Tag]:
        """What follows it and is not incorporated, breadth first."""
        found, todo, out = {tag}, deque([tag]), self.graph.out
        order: list[Tag] = []
        while todo:
            for y in out[todo.popleft()]:
                if y not in found:
                    found.add(y)
                    todo.append(y)
                    if y in self.pending:
                        order.append(y)
        return order

    def report(self, clock: Clock, told: Telling) -> tuple[list[Given], bool]:
        """Another's report; what can be delivered now, and whether its sender should soon hear of ours."""
        for tag in (*told.undelivered, *told.lm):
            if tag in self.since:
                self.mention[tag] = clock
        waive = self._merge(clock, told)
        for tag, body in told.rm:
            if tag not in self.tombs and tag not in self.done:
                self._add(clock, tag)
                if tag in self.lm:
                    self.came = clock
                self._store(tag, body)
            if tag in self.rm:
                self.rm.remove(tag)
        for tag in told.lm:
            if tag in self.bodies and tag not in self.rm:
                self.rm.append(tag)
                waive = True
        return self.advance(clock), waive

    def stray(self, clock: Clock, tag: Tag, body: Any) -> list[Given]:
        """A message heard out of its place: its body is kept, others know where it belongs."""
        if tag not in self.tombs and tag not in self.done:
            self._add(clock, tag)
            self._store(tag, body)
        return self.advance(clock)

    def offer(self, tag: Tag) -> None:
        """An own message that nobody may have heard goes into the next report, whole."""
        if tag in self.bodies and tag not in self.rm:
            self.rm.append(tag)

    def _merge(self, clock: Clock, told: Telling) -> bool:
        """Their graph into ours; whether theirs lacks something or we lost something."""
        graph, tombs = self.graph, self.tombs
        fresh = waive = False
        for tag in told.vertices:
            self.unechoed.pop(tag, None)
            if tag not in self.since and tag not in tombs:
                fresh |= self._add(clock, tag)
                if tag not in self.bodies:
                    self.lm[tag] = NEVER
                    waive = True
        self.named.update(self.since.keys() & told.vertices)
        since, before, old = self.since, self.before, []
        for x, y, mark in told.arcs:
            if x in since and y in since:
                if mark:
                    mark = frozenset(z for z in mark if z not in tombs)
                fresh |= graph.tell(x, y, mark)
            elif y in before and x in self.pending:
                old.append(x)
        if old:
            self._skip(clock, graph.ancestors(old).union(old))
        self.linearised = fresh
        if fresh:
            graph.settle()
            self._place_own()
            self._find_late(clock)
        short = [(x, y) for x, y, _ in told.arcs if x in since and y in since and y not in graph.out[x]]
        for tag in between(graph, short).difference(told.vertices):
            self.mention[tag] = clock
        return waive or bool(short)

    def _place_own(self) -> None:
        """Own messages that are known to precede what was heard last excuse nothing any more."""
        if self.own and self.l_rec in self.graph:
            for tag in self.graph.ancestors((self.l_rec,)).intersection(self.own):
                del self.own[tag]

    def _find_late(self, clock: Clock) -> None:
        """What turns out to precede something incorporated is late."""
        if self.pending and self.incorporated:
            behind = self.graph.ancestors(tag for tag in self.graph.out if tag in self.incorporated)
            late = behind & self.pending.keys()
            if late and self.floor in self.graph:
                self._skip(clock, late & self.graph.ancestors((self.floor,)))
            if self.skips_late:
                self._skip(clock, late)
            self.late |= late & self.pending.keys()

    def begin(self, clock: Clock, after: Tag | None, first: Tag | None, delivered: Iterable[Tag] = ()) -> None:
        """Deliver from here on: right after what another delivered last, or from the first message heard, if later.

        What precedes it is skipped, now and whenever it turns up; so is all that the other delivered, whose place
        beside its last one only time may have decided.
        """
        graph, self.begun = self.graph, True
        old: set[Tag] = set()
        if after is not None and after in graph:
            past = {after, *(tag for tag in delivered if tag in graph)}
            old = graph.ancestors(past) | past
            self.l_deliv = self.floor = after
        if first is not None and first in graph and first not in old and after is not None:
            old |= graph.ancestors((first,))
            self.floor = first
        self._skip(clock, old)
        if self.floor is not None:
            self.before.add(self.floor)
        if self.floor == first and first in self.pending:
            self._incorporate(clock, first, "expired")

    def _skip(self, clock: Clock, tags: set[Tag]) -> None:
        """They have their place before what this site delivers: never delivered here."""
        for tag in tags & self.pending.keys():
            del self.pending[tag]
            self.incorporated.add(tag)
            self.done[tag] = clock
            self.lm.pop(tag, None)
            self.late.discard(tag)
            self.before.add(tag)
            self.skipped.append(tag)

    # ------------------------------------------------------------------------------------------------------ delivery

    def advance(self, clock: Clock) -> list[Given]:
        """Time has passed, or something was heard: what goes to the application now."""
        if self.unechoed:
            self._give_up_echoes(clock)
        while self.begun and self.pending and (self._by_mark(clock) or self._by_time(clock)):
            pass
        given = self._deliver(clock) if self.queue else []
        if self.done:
            self._collect(clock)
        return given

    def _give_up_echoes(self, clock: Clock) -> None:
        """Own messages that no report names: others do not know of them."""
        for tag in [tag for tag, at in self.unechoed.items() if clock - at >= self.cycles.deliv]:
            del self.unechoed[tag]
            if tag not in self.tombs:
                self._add(clock, tag)
                self.rm.append(tag)

    def _by_mark(self, clock: Clock) -> bool:
        if self.l_deliv is None or self.l_deliv not in self.graph:
            return False
        for y, mark in self.graph.out[self.l_deliv].items():
            if mark is not None and y in self.pending and all(self._settled(z) for z in mark):
                self._incorporate(clock, y, "marked")
                return True
        return False

    def _settled(self, tag: Tag) -> bool:
        return tag in self.incorporated or tag in self.tombs

    def _by_time(self, clock: Clock) -> bool:
        """E6: all that could come next, once all of them are old enough; larger tags first."""
        pending, old = self.pending, clock - self.cycles.deliv
        if next(iter(pending.values())) > old:
            return False
        into = self.graph.into
        ready = [tag for tag in pending if not any(x in pending for x in into[tag])]
        if not ready or any(pending[tag] > old for tag in ready):
            return False
        for tag in sorted(ready, reverse=True):
            self._incorporate(clock, tag, "expired")
        return True

    def _incorporate(self, clock: Clock, tag: Tag, certainty: str) -> None:
        del self.pending[tag]
        self.incorporated.add(tag)
        self.l_deliv = tag
        if tag in self.late:
            self.late.discard(tag)
            certainty = "late"
        self.queue.append((tag, clock, certainty))

    def _deliver(self, clock: Clock) -> list[Given]:
        given: list[Given] = []
        queue, held = self.queue, self.bodies.held
        while queue:
            tag, since, certainty = queue[0]
            if tag in held:
                given.append(Given(tag, held[tag], certainty))
            elif self._hopeless(clock, clock - since):
                given.append(Given(tag, None, "dummy"))
                self.lm.pop(tag, None)
            else:
                break
            queue.popleft()
            self.done[tag] = clock
        return given

    def _hopeless(self, clock: Clock, waited: Clock) -> bool:
        """No body after Deliv_Cycle: a dummy, unless bodies are still being sent again."""
        cycles = self.cycles
        return waited >= cycles.deliv and (
            waited >= self.patience * cycles.deliv or clock - self.came > 2 * cycles.retr
        )

    def _collect(self, clock: Clock) -> None:
        """Delivered vertices leave the graph when nobody has asked for them for long, the oldest first."""
        old = clock - self.cycles.gc
        for tag, at in list(self.done.items()):
            if at > old or self.mention.get(tag, at) > old or tag == self.l_deliv or tag == self.l_rec:
                return
            self.graph.remove(tag)
            self.blind |= tag in self.own
            for known in (self.done, self.since, self.mention, self.own, self.lm):
                known.pop(tag, None)
            self.bodies.held.pop(tag, None)
            self.incorporated.discard(tag)
            self.named.discard(tag)
            self.tombs.add(tag)

    # ------------------------------------------------------------------------------------------------------- reports

    def make_report(self, clock: Clock, bodies: int = 2, most: int = 10**9) -> Telling:
        """What this site knows and lacks now; requests and repeated bodies count as sent."""
        recent, done, mention = clock - self.cycles.keep, self.done, self.mention
        kept = [
            tag for tag in self.since if tag not in done or done[tag] > recent or mention.get(tag, recent) > recent
        ][:most]  # fmt: skip
        inside, out = set(kept), self.graph.out
        self.named |= inside
        again, held = self.rm[:bodies], self.bodies.held
        del self.rm[:bodies]
        return Telling(
            vertices=tuple(kept),
            arcs=tuple((x, y, mark) for x in kept for y, mark in out[x].items() if y in inside),
            undelivered=tuple(tag for tag in kept if tag not in done),
            l_deliv=self.l_deliv,
            lm=tuple(tag for tag in self._ask(clock) if tag in inside),
            rm=tuple((tag, held[tag]) for tag in again if tag in held),
        )

    def owes(self, clock: Clock) -> bool:
        """Whether ours must not wait behind another's report: it names what no report had, and will not for long."""
        return unsaid(self.named, self.done, clock - self.cycles.keep, clock - self.cycles.keep / 2)

    def lacks(self, clock: Clock) -> bool:
        """Something is lost here that was never asked for, or not answered within Retr_Cycle."""
        old = clock - self.cycles.retr
        return any(asked <= old for asked in self.lm.values())

    def _ask(self, clock: Clock) -> Iterable[Tag]:
        """What is lost and was not asked for within Retr_Cycle."""
        for tag, asked in list(self.lm.items()):
            if tag in self.bodies or tag in self.done:
                del self.lm[tag]
            elif clock - asked >= self.cycles.retr:
                self.lm[tag] = clock
                yield tag
