"""DPG on the network: one site's algorithm (site.py) between the channel that orders PDUs and the application.

The clock of the algorithm counts messages heard; 5 ms of silence count as one (E11).  A site that was away for longer
than Deliv_Cycle, or starts, forgets all but what it has still to send, hears two reports, and goes on from where the
others are: that is all there is of membership.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ordercast.contract import (
    ALL,
    Action,
    Event,
    Layer,
    Left,
    Missing,
    Note,
    Ordered,
    Packet,
    Presence,
    Receive,
    SetTimer,
    Setup,
    Transmit,
    Up,
    dropped,
)
from ordercast.protocols.dpg.flow import REPORT, MessageCycle, Reports
from ordercast.protocols.dpg.options import DpgOptions
from ordercast.protocols.dpg.order import Order, Turn
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.packets import Message, Report, group_key, report, telling
from ordercast.protocols.dpg.site import Given, Site, Tag
from ordercast.protocols.dpg.tombs import Tombs
from ordercast.protocols.dpg.ways import Lan, Tagged, Wan, Way
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, Identity, Nanoseconds, NetId, Peer, Service

REPORTS_FIRST = 2  # heard before a site that returns goes on
LIFETIMES = 2  # of a PDU on a WAN in T
COLD_SHARE = 4  # of Deliv_Cycle without anybody who delivers: the group begins here
PATIENCE = 2  # Deliv_Cycles that a body is waited for while others come that were lost
ROOM_BYTES = 160  # of a report, beside vertices and bodies
VERTEX_BYTES = 8


class Dpg(Layer):
    """One site."""

    name = "dpg"

    def __init__(self, setup: Setup) -> None:
        identity, options = setup.identity, setup.options
        assert isinstance(options, DpgOptions)
        self.me, self.options, self.random = Peer(identity.me, identity.incarnation), options, setup.random
        self.net, self.frame_bytes = setup.nets[0], setup.frame_bytes
        self.cycles = options.cycles(len(identity.members))
        self.sender = Sender(
            setup, (Service.QUASI,), self._unsettled, wake=self._speak, go=self._gone, views=False
        )  # fmt: skip
        self.tombs = Tombs()
        self.pace = Pace(setup.timeout_ns)
        self.way = self._way(setup)
        self.cycle, self.reports = MessageCycle(), Reports(options.report_cycle, setup.random)
        self.counter = 0  # own messages sent
        self.misses = 0  # that the detector saw
        self.sent_at: dict[Tag, int] = {}  # own, of late, on a channel that may lose them
        self.unsettled: dict[Tag, Frame] = {}  # own, sent and not delivered here
        self.earlier: dict[Tag, Frame] = {}  # own, sent before this spell: delivered here only if others still have to
        self.members = len(identity.members)
        self.next_at = 0  # when the next own message may leave
        self.pausing = False
        self.stale = False  # it was away: what waits to be read is of the past
        self.conflicts = self.alone_since = 0
        self._reset()

    def _way(self, setup: Setup) -> Way:
        timeout, channel = setup.timeout_ns, self.options.channel
        if channel == "tagger":
            hold, repeat = max(1, timeout // 20), max(1, timeout // 4)
            return Tagged(Order(group_key(setup.identity.group), self.me, hold, repeat), self.net)
        return Lan() if channel == "lan" else Wan(max(1, timeout // LIFETIMES))

    def _reset(self) -> None:
        """Forget all but what is still to be sent."""
        options = self.options
        self.site = Site(
            self.cycles, options.buffers, self.tombs, hears_self=options.hears_self,
            marks=options.marks,
        )  # fmt: skip
        self.site.begun = False
        self.site.skips_late, self.site.patience = options.late == "skip", PATIENCE
        self.earlier, self.unsettled = self.unsettled, {}
        for tag, frame in self.earlier.items():
            self.site.bodies.keep(tag, frame)
        self.first: Tag | None = None  # heard in person since then, and nothing missed after it
        self.first_of: dict[tuple[int, int], int] = {}  # a sender and its life -> its first message of this spell
        self.heard_reports = 0
        self.spoke_before = self.counter
        self.alone_since = self.pace.clock

    # ------------------------------------------------------------------------------------------------ start and time

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return [Presence(False, now), *self._next_tick(now)]

    def _next_tick(self, now: Nanoseconds) -> list[Action]:
        site = self.site
        busy = bool(site.pending or site.queue or self.unsettled) or not site.begun
        return [SetTimer("tick", self.pace.next(now, busy, int(self.cycles.keep + self.cycles.deliv)))]

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self.sender.timer(now)
        out = self._return_if_absent(now)
        self.stale = False
        if name == "pause":
            self.pausing = False
            return out + self._speak(now)
        if name == REPORT:
            return out + self._report(now)
        assert name == "tick"
        return out + self._tick(now)

    def _tick(self, now: Nanoseconds) -> list[Action]:
        """Silence counts; then whatever time brings: turns that are over, deliveries, a report."""
        self.pace.tick(now)
        out = self.way.tick(now) + self._turns(now)
        out += self._offer_unheard(now) if self.site.begun else self._perhaps_first(now)
        out += self._give(now, self.site.advance(self.pace.clock))
        out += self._perhaps_report(now)
        self.cycle.decay()
        return [*out, *self._speak(now), *self._next_tick(now)]

    def _offer_unheard(self, now: Nanoseconds) -> list[Action]:
        """Own messages that neither came back nor are in any report: perhaps nobody has them."""
        out: list[Action] = []
        old = self.pace.clock - self.cycles.deliv
        for tag in [tag for tag, at in self.sent_at.items() if at <= old]:
            del self.sent_at[tag]
            if tag in self.unsettled and tag not in self.site.since:
                frame = self.unsettled[tag]
                self.site.offer(tag)
                out += self._give(now, self.site.stray(self.pace.clock, tag, frame))
        return out

    # --------------------------------------------------------------------------------------------- absence and return

    def _return_if_absent(self, now: Nanoseconds) -> list[Action]:
        """What waits to be read by a site that was away is of the past: it hears nothing before its first timer."""
        since = self.pace.away(now, int(self.cycles.deliv))
        if since is None:
            return []
        for tag in self.site.since:
            if tag in self.site.incorporated:
                self.tombs.add(tag)
        self._reset()
        self.way.returned()
        self.stale = True
        return [Presence(False, since), Note("return"), *self.reports.settled()]

    def _perhaps_first(self, now: Nanoseconds) -> list[Action]:
        """Nobody who delivers was heard of for a good while: the group begins here."""
        patience = self.cycles.deliv // COLD_SHARE if self.heard_reports >= REPORTS_FIRST else self.cycles.deliv
        return self._begin(now, None) if self.pace.clock - self.alone_since >= patience else []

    def _begin(self, now: Nanoseconds, after: Tag | None, delivered: Iterable[Tag] = ()) -> list[Action]:
        self.site.begin(self.pace.clock, after, self.first, delivered)
        if self.options.channel != "tagger":  # there each is offered when its number is known
            for tag in self.earlier:
                self.site.offer(tag)  # perhaps nobody has it
        self.earlier = {}
        return [Presence(True), *self._settle_skipped(now), *self._speak(now)]

    # ---------------------------------------------------------------------------------------------------- receiving

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        out = self._return_if_absent(now)
        if self.stale:
            return out
        if source == self.me and not self.site.hears_self:
            return out
        return [*out, *self.way.receive(now, source, packet, drops), *self._turns(now)]

    def _turns(self, now: Nanoseconds) -> list[Action]:
        out: list[Action] = []
        for turn in self.way.turns(now):
            take = self._take if turn.placed else self._take_stray
            out += take(now, turn)
        if self.way.misses > self.misses:
            if self.site.begun:
                self.pace.lost(self.way.misses - self.misses)
            self.misses = self.way.misses
            self.cycle.missed(self._fair_ns())
        return out

    def _take(self, now: Nanoseconds, turn: Turn) -> list[Action]:
        """A PDU in its place of the network's order."""
        source, packet, contiguous, _ = turn
        if type(packet) is Message:
            frame, tag = packet.frame, (packet.counter, source.id, source.incarnation)
            if (frame.sender, frame.incarnation) != tag[1:]:
                return [dropped("frame", member=source.id)]
            self.pace.heard()
            self.first_of.setdefault(tag[1:], packet.counter)
            if self.first is None or not (contiguous or self.site.begun):
                self.first = tag
            known = tag in self.site.bodies and source != self.me
            given = self.site.message(self.pace.clock, tag, frame, contiguous and self.options.marks != "none")
            out: list[Action] = [] if known else [Receive(frame)]
            return out + self._give(now, given) + self._perhaps_report(now)
        assert type(packet) is Report
        return self._take_report(now, source, packet)

    def _take_stray(self, now: Nanoseconds, turn: Turn) -> list[Action]:
        """A PDU whose turn is over: what it says is true, but not its place."""
        source, packet, _, _ = turn
        if type(packet) is Report:
            return self._take_report(now, source, packet)
        assert type(packet) is Message
        frame, tag = packet.frame, (packet.counter, source.id, source.incarnation)
        if (frame.sender, frame.incarnation) != tag[1:]:
            return [dropped("frame", member=source.id)]
        if source == self.me:
            self.site.offer(tag)
            if packet.counter <= self.spoke_before:
                return []  # it has its place before this spell
        return [Note("stray"), *self._give(now, self.site.stray(self.pace.clock, tag, frame))]

    def _take_report(self, now: Nanoseconds, source: Peer, packet: Report) -> list[Action]:
        if source == self.me:
            return []
        told = telling(packet)
        if any(self._before(tag) for tag, _ in told.rm):
            told = replace(told, rm=tuple(again for again in told.rm if not self._before(again[0])))
        given, waive = self.site.report(self.pace.clock, told)
        out: list[Action] = [Note("work", {"units": len(self.site.graph) ** 2})] if self.site.linearised else []
        out += self._give(now, given)
        self.cycle.heard(packet.cycle_ns, self._fair_ns())
        self.heard_reports += 1
        known = self.first is not None or told.l_deliv in self.site.graph
        if not self.site.begun and self.heard_reports >= REPORTS_FIRST and told.l_deliv is not None and known:
            out += self._begin(now, told.l_deliv, set(told.vertices).difference(told.undelivered))
            out += self._give(now, self.site.advance(self.pace.clock))
        waive = waive or bool(self.site.rm) or self.site.lacks(self.pace.clock)
        whole = not self.site.owes(self.pace.clock)
        out += self.reports.heard(now, self.pace.clock, self.pace.count_ns, source.id, waive, whole)
        return out + self._perhaps_report(now)

    def _before(self, tag: Tag) -> bool:
        """A message from before this spell that nobody names: its sender, who was away too, offers it to be sure."""
        return tag[0] < self.first_of.get(tag[1:], 0) and tag not in self.site.since

    # ------------------------------------------------------------------------------------------------------ delivery

    def _give(self, now: Nanoseconds, given: Iterable[Given]) -> list[Action]:
        """What goes to the application, in this order."""
        out: list[Action] = []
        site, mine = self.site, self.me.id
        for tag, frame, certainty in ((g.tag, g.body, g.certainty) for g in given):
            counter, sender, life = tag
            if frame is None:
                out += [Note("dummy"), Up(Missing(sender, life, counter))]
            else:
                if certainty == "late":
                    out.append(Note("late"))
                out.append(Up(Ordered(frame, 0, counter, certainty)))
            if sender == mine:
                self.unsettled.pop(tag, None)
        if site.graph.conflicts:
            self.conflicts += site.graph.conflicts
            out.append(Note("conflict", {"count": site.graph.conflicts}))
            site.graph.conflicts = 0
        if site.excused:
            out.append(Note("excused"))
            site.excused = False
        if site.graph.splits:
            out.append(Note("split"))
            site.graph.splits = 0
        if site.bodies.seized:
            site.bodies.seized = 0
            out.append(Note("seizure"))
        out += self._settle_skipped(now)
        if out and (self.sender or self.sender.leaving):
            out += self._speak(now)
            out += self.sender.settle(now)
        return out

    def _settle_skipped(self, now: Nanoseconds) -> list[Action]:
        skipped, self.site.skipped = self.site.skipped, []
        for tag in skipped:
            self.unsettled.pop(tag, None)
        return [Note("skipped", {"count": len(skipped)})] if skipped else []

    # ------------------------------------------------------------------------------------------------------- speaking

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return self.sender.down(now, event)

    def _speak(self, now: Nanoseconds) -> list[Action]:
        """Own messages leave: as many as the window allows, with the pause of Message_Cycle between them."""
        if not self.site.begun or not self.sender:
            return []
        out: list[Action] = []
        window = self.options.own_window(self.members, len(self.reports.reporters) + 1)
        while self.sender and len(self.unsettled) < window:
            if now < self.next_at:
                if not self.pausing:
                    self.pausing = True
                    out.append(SetTimer("pause", self.next_at))
                break
            (frame,) = self.sender.take(1)
            out += self.sender.originated((frame,))
            self.counter += 1
            tag = (self.counter, self.me.id, self.me.incarnation)
            self.unsettled[tag] = frame
            if self.options.channel != "tagger":  # there a wish is repeated until the number comes
                self.sent_at[tag] = self.pace.clock
            if self.cycle.ns:
                self.next_at = now + self.cycle.ns
            self.site.sent(self.pace.clock, tag, frame)
            out += self._transmit(now, Message(self.counter, self.way.serial(), frame, self._stamp(now)))
        return out

    def _fair_ns(self) -> Nanoseconds:
        return self.pace.count_ns * (len(self.reports.reporters) + 1)

    def _stamp(self, now: Nanoseconds) -> Nanoseconds:
        return now if self.options.channel == "wan" else 0

    def _transmit(self, now: Nanoseconds, packet: Message | Report) -> list[Action]:
        return [Transmit(self.net, ALL, packet), *self.way.transmitted(now, packet)]

    def _perhaps_report(self, now: Nanoseconds) -> list[Action]:
        if self.reports.overdue(now, self.pace.clock, self.site.lacks(self.pace.clock)):
            return self._report(now)
        return self.reports.passed(now, self.pace.clock, self.pace.count_ns)

    def _report(self, now: Nanoseconds) -> list[Action]:
        """Say what is known; bodies that do not fit beside it go alone."""
        out: list[Action] = [Note("waiver")] if self.reports.goes(self.pace.clock) else []
        most = max(8, (self.frame_bytes - ROOM_BYTES) // VERTEX_BYTES)
        told = self.site.make_report(self.pace.clock, most=most)
        room = self.frame_bytes - ROOM_BYTES - VERTEX_BYTES * len(told.vertices)
        beside: list[tuple[Tag, Frame]] = []
        alone: list[tuple[Tag, Frame]] = []
        for tag, frame in told.rm:
            size = len(frame.data) + len(frame.lengths) + 64
            fits = size <= room
            room -= size if fits else 0
            (beside if fits else alone).append((tag, frame))
        serial, cycle, stamp = self.way.serial, self.cycle.ns, self._stamp(now)
        out += self.reports.settled() + self._transmit(now, report(told, tuple(beside), serial(), cycle, stamp))
        for again in alone:
            out += self._transmit(now, Report(serial(), cycle, again=(again,), sent=stamp))
        return out

    # ---------------------------------------------------------------------------------------------- leaving and status

    def _unsettled(self) -> Iterable[Frame]:
        return self.unsettled.values()

    def _gone(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        return [Up(Left(self.sender.unsent()))]

    def status(self) -> dict[str, Any]:
        site = self.site
        waits = ""
        if not site.begun:
            waits = "reports of others, to begin where they are"
        elif self.way.waits():
            waits = self.way.waits()
        elif site.queue or site.pending:
            waits = "what comes before the messages that are here"
        elif self.sender:
            waits = "own messages to come back"
        return {
            "present": site.begun,
            "vertices": len(site.graph),
            "undelivered": len(site.pending) + len(site.queue),
            "lost": len(site.lm),
            "message_cycle_us": self.cycle.ns // 1_000,
            "conflicts": self.conflicts,
            "sender": self.sender.status(),
            "queues": {
                "outbox": self.sender.waiting(), "undelivered": len(site.pending) + len(site.queue),
                "unsettled": len(self.unsettled),
            },
            "waits": waits,
        }  # fmt: skip
