"""DPG on the network: one site's algorithm (site.py) between the channel that orders PDUs and the application.

The clock of the algorithm counts messages heard; 5 ms of silence count as one (E11).  A site that was away for longer
than Deliv_Cycle, or starts, forgets all but what it has still to send, hears two reports, and goes on from where the
others are: that is all there is of membership.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ordercast.contract import (
    ALL,
    TAGGER,
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
from ordercast.protocols.dpg.channel import Misses
from ordercast.protocols.dpg.flow import MessageCycle, ReportTimes
from ordercast.protocols.dpg.options import DpgOptions
from ordercast.protocols.dpg.order import Order
from ordercast.protocols.dpg.packets import Message, Numbers, Report, group_key, report, telling
from ordercast.protocols.dpg.site import Given, Site, Tag
from ordercast.protocols.dpg.tombs import Tombs
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, Identity, Nanoseconds, NetId, Peer, Service

TICK_NS = 5_000_000  # silence that counts as one message; less where T is short
TICKS = 16  # of them in T
QUIET_TICKS = 10  # how many of them one timer may be worth while there is nothing to do
WAIVER_NS = 2_000_000
REPORTS_FIRST = 2  # heard before a site that returns goes on
COLD_SHARE = 4  # of Deliv_Cycle without anybody who delivers: the group begins here
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
        self.clock = 0
        self.misses = Misses()
        self.tick_ns = min(TICK_NS, max(1, setup.timeout_ns // TICKS))
        hold = max(1, setup.timeout_ns // 20)
        self.order = Order(group_key(identity.group), self.me, hold, max(1, setup.timeout_ns // 4))
        self.cycle, self.reports = MessageCycle(), ReportTimes(options.report_cycle, setup.random)
        self.counter = self.placed = 0  # own messages sent, and heard in their place
        self.sent_at: dict[Tag, int] = {}  # own, of late, on a channel that may lose them
        self.unsettled: dict[Tag, Frame] = {}  # own, sent and not delivered here
        self.next_at = 0  # when the next own message may leave
        self.waiving = self.pausing = False
        self.tick_due = self.seen_at = 0
        self.heard = self.last_heard = 0  # messages since the last tick; the clock when there was one
        self.pace_ns = self.tick_ns  # what one count of the clock takes, smoothed
        self.conflicts = self.alone_since = 0
        self._reset()

    def _reset(self) -> None:
        """Forget all but what is still to be sent."""
        options = self.options
        self.site = Site(
            self.cycles, options.buffers, self.tombs, hears_self=options.own or options.channel == "tagger",
            marks=options.marks,
        )  # fmt: skip
        self.site.begun = False
        self.site.skips_late = options.late == "skip"
        for tag, frame in self.unsettled.items():
            self.site.sent(self.clock, tag, frame)
        self.first: Tag | None = None  # heard in person since then
        self.heard_reports = 0
        self.alone_since = self.clock

    # ------------------------------------------------------------------------------------------------ start and time

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return self._next_tick(now)

    def _next_tick(self, now: Nanoseconds) -> list[Action]:
        if self.heard:
            self.last_heard = self.clock
        recent = self.clock - self.last_heard <= self.cycles.keep + self.cycles.deliv  # all clocks at one pace
        busy = recent or self.site.pending or self.site.queue or self.unsettled or not self.site.begun
        self.tick_due = now + (self.tick_ns if busy else QUIET_TICKS * self.tick_ns)
        self.tick_at, self.heard = now, 0
        return [SetTimer("tick", self.tick_due)]

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == LEAVE:
            return self.sender.timer(now)
        out = self._return_if_absent(now)
        if name == "pause":
            self.pausing = False
            return out + self._speak(now)
        if name == "waive":
            self.waiving = False
            return out + self._report(now)
        assert name == "tick"
        return out + self._tick(now)

    def _tick(self, now: Nanoseconds) -> list[Action]:
        """Silence counts; then whatever time brings: turns that are over, deliveries, a report."""
        silent = max(1, round((now - self.tick_at) / self.tick_ns)) if not self.heard else 0
        self.pace_ns += (max(1, (now - self.tick_at) // max(1, self.heard + silent)) - self.pace_ns) // 8
        self.clock += min(silent, QUIET_TICKS)
        out: list[Action] = []
        if self.options.channel == "tagger":
            again = self.order.repeat(now)
            if again is not None:
                out.append(Transmit(self.net, TAGGER, again))
            out += self._turns(now)
            self.order.forget(now)
        elif self.site.begun:
            self._offer_unheard()
        if not self.site.begun:
            out += self._perhaps_first(now)
        out += self._give(now, self.site.advance(self.clock))
        out += self._perhaps_report(now)
        self.cycle.decay()
        return [*out, *self._speak(now), *self._next_tick(now)]

    def _offer_unheard(self) -> None:
        """Own messages that neither came back nor are in any report: perhaps nobody has them."""
        old = self.clock - self.cycles.deliv
        for tag in [tag for tag, at in self.sent_at.items() if at <= old]:
            del self.sent_at[tag]
            if tag in self.unsettled and tag not in self.site.since:
                self.site.stray(self.clock, tag, self.unsettled[tag])
                self.site.offer(tag)

    # --------------------------------------------------------------------------------------------- absence and return

    def _return_if_absent(self, now: Nanoseconds) -> list[Action]:
        """Its own timer comes later than Deliv_Cycle: it was away."""
        since = max(self.tick_due, self.seen_at)  # who is kept busy by what it hears is here, however late its timers
        self.seen_at = now
        if now - since <= max(2 * self.tick_ns, self.cycles.deliv * self.pace_ns) or not self.tick_due:
            return []
        self.tick_due = now
        self.tick_at = now
        was = self.site
        for tag in was.since:
            if tag in was.incorporated:
                self.tombs.add(tag)
        self._reset()
        self.misses = Misses()
        return [Presence(False, since), Note("return")]

    def _perhaps_first(self, now: Nanoseconds) -> list[Action]:
        """Nobody who delivers was heard of for a good while: the group begins here."""
        patience = self.cycles.deliv // COLD_SHARE if self.heard_reports >= REPORTS_FIRST else self.cycles.deliv
        return self._begin(now, None) if self.clock - self.alone_since >= patience else []

    def _begin(self, now: Nanoseconds, after: Tag | None) -> list[Action]:
        self.site.begin(self.clock, after, self.first)
        for tag in [tag for tag in self.unsettled if tag not in self.site.since and tag[0] <= self.placed]:
            del self.unsettled[tag]  # it had its place before this spell
        return [Presence(True), *self._settle_skipped(now), *self._speak(now)]

    # ---------------------------------------------------------------------------------------------------- receiving

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        out = self._return_if_absent(now)
        kind = type(packet)
        if self.options.channel == "tagger":
            if kind is Numbers:
                if source.id != TAGGER:
                    return [*out, dropped("numbers", member=source.id)]
                self.order.numbered(now, packet)  # type: ignore[arg-type]
            elif (kind is Message or kind is Report) and source != self.me:
                self.order.put(now, source, packet)  # type: ignore[arg-type]
            return out + self._turns(now)
        if kind is not Message and kind is not Report:
            return [*out, dropped("channel", member=source.id)]
        own = source == self.me
        if own and not self.options.own:
            return out
        contiguous = self.misses.heard(drops, kind is Message)
        if drops:
            self.cycle.missed()
        return out + self._take(now, source, packet, contiguous)

    def _turns(self, now: Nanoseconds) -> list[Action]:
        out: list[Action] = []
        missed = self.order.misses
        for turn in self.order.turns(now):
            if turn.placed:
                out += self._take(now, turn.source, turn.packet, turn.contiguous)
            else:
                out += self._take_stray(now, turn.source, turn.packet)
        if self.order.misses > missed:
            self.cycle.missed()
        return out

    def _take(self, now: Nanoseconds, source: Peer, packet: Packet, contiguous: bool) -> list[Action]:
        """A PDU in its place of the network's order."""
        if type(packet) is Message:
            frame, tag = packet.frame, (packet.counter, source.id, source.incarnation)
            if (frame.sender, frame.incarnation) != tag[1:]:
                return [dropped("frame", member=source.id)]
            self.clock += 1
            self.heard += 1
            if self.first is None:
                self.first = tag
            if source == self.me:
                self.placed = packet.counter
            known = tag in self.site.bodies and source != self.me
            given = self.site.message(self.clock, tag, frame, contiguous and self.options.marks != "none")
            out: list[Action] = [] if known else [Receive(frame)]
            return out + self._give(now, given) + self._perhaps_report(now)
        assert type(packet) is Report
        return self._take_report(now, source, packet)

    def _take_stray(self, now: Nanoseconds, source: Peer, packet: Packet) -> list[Action]:
        """A PDU whose turn is over: what it says is true, but not its place."""
        if type(packet) is Report:
            return self._take_report(now, source, packet)
        assert type(packet) is Message
        frame, tag = packet.frame, (packet.counter, source.id, source.incarnation)
        if (frame.sender, frame.incarnation) != tag[1:]:
            return [dropped("frame", member=source.id)]
        out: list[Action] = [Note("stray"), *self._give(now, self.site.stray(self.clock, tag, frame))]
        if source == self.me:
            self.placed = max(self.placed, packet.counter)
            self.site.offer(tag)
        return out

    def _take_report(self, now: Nanoseconds, source: Peer, packet: Report) -> list[Action]:
        if source == self.me:
            return []
        told = telling(packet)
        given, waive = self.site.report(self.clock, told)
        out: list[Action] = [Note("work", {"units": len(self.site.graph) ** 2}), *self._give(now, given)]
        self.reports.heard(self.clock, source.id)
        self.cycle.heard(packet.cycle_ns)
        self.heard_reports += 1
        if not self.site.begun and self.heard_reports >= REPORTS_FIRST and told.l_deliv is not None:
            out += self._begin(now, told.l_deliv)
            out += self._give(now, self.site.advance(self.clock))
        if waive and not self.waiving and self.reports.waive(self.clock):
            self.waiving = True
            out += [Note("waiver"), SetTimer("waive", now + 1 + int(self.random.random() * WAIVER_NS))]
        return out

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
        while self.sender and len(self.unsettled) < self.options.window:
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
                self.sent_at[tag] = self.clock
            self.site.sent(self.clock, tag, frame)
            if self.cycle.ns:
                self.next_at = now + self.cycle.ns
            out += self._transmit(now, Message(self.counter, self._serial(), frame))
        return out

    def _serial(self) -> int:
        return self.order.next_serial() if self.options.channel == "tagger" else 0

    def _transmit(self, now: Nanoseconds, packet: Message | Report) -> list[Action]:
        out: list[Action] = [Transmit(self.net, ALL, packet)]
        if self.options.channel == "tagger":
            self.order.put(now, self.me, packet)
            out.append(Transmit(self.net, TAGGER, self.order.wish(now, [packet.serial])))
        return out

    def _perhaps_report(self, now: Nanoseconds) -> list[Action]:
        return self._report(now) if self.clock >= self.reports.due else []

    def _report(self, now: Nanoseconds) -> list[Action]:
        """Say what is known; bodies that do not fit beside it go alone."""
        self.reports.restart(self.clock)
        most = max(8, (self.frame_bytes - ROOM_BYTES) // VERTEX_BYTES)
        told = self.site.make_report(self.clock, most=most)
        room = self.frame_bytes - ROOM_BYTES - VERTEX_BYTES * len(told.vertices)
        beside: list[tuple[Tag, Frame]] = []
        alone: list[tuple[Tag, Frame]] = []
        for tag, frame in told.rm:
            size = len(frame.data) + len(frame.lengths) + 64
            fits = size <= room
            room -= size if fits else 0
            (beside if fits else alone).append((tag, frame))
        out = self._transmit(now, report(told, tuple(beside), self._serial(), self.cycle.ns))
        for again in alone:
            out += self._transmit(now, Report(self._serial(), self.cycle.ns, again=(again,)))
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
        elif self.options.channel == "tagger" and self.order.wishes:
            waits = "numbers of the tagger: nothing is ordered without it"
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
