"""Variants of view changes under the protocols: plans, exchange, install, the seam, drained orders, unicasts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs
from tests.conformance.sequencer import Sequencer
from tests.mutants.order import Believes
from tests.mutants.parts import causal, link_with, token_site
from tests.mutants.registry import mutant
from tests.transis.answering import Answering

from ordercast.contract import ALL, Action, Crash, Event, Flush, Multicast, Note, Received, Setup, Transmit, Up
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import Committed
from ordercast.protocols.hybrid import Process, Tickets
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis import flush as flushes
from ordercast.transis.exchange import Exchange
from ordercast.transis.flush import Early
from ordercast.transis.link import Link
from ordercast.transis.packets import FlushToken, Unicast
from ordercast.transis.plan import Component
from ordercast.transis.traffic import Traffic
from ordercast.transis.unicast import Unicasts
from ordercast.types import Cause, MemberId, Nanoseconds, Peer, View, ViewId, ViewKind

AREA = "layer"


# --------------------------------------------------------------------------------------------------------------- freeze


@mutant("layer_frozen_inserts", "causal", AREA, "a frozen member goes on inserting what comes of the old view")
def layer_frozen_inserts(setup: Setup) -> Stack:
    class Thaws(Link):
        def _packet(self, now: Nanoseconds, source: Peer, packet: Any, out: list[Action]) -> None:
            frozen, self.standing.frozen = self.standing.frozen, False
            try:
                super()._packet(now, source, packet, out)
            finally:
                self.standing.frozen = self.standing.frozen or (frozen and self.state is not None)

    return causal(setup, Thaws)


@mutant("layer_says_on", "tests.conformance.sequencer:sequencer", AREA,
        "what the protocol said in the old view goes out in the new one (F6)", scenario="said_on")  # fmt: skip
def layer_says_on(setup: Setup) -> Stack:
    class SaysOn(Link):
        def down(self, now: Nanoseconds, event: Event) -> list[Action]:
            if type(event) is Multicast:
                event = Multicast(event.body)
            return super().down(now, event)

    return chain(Groups(setup.identity.me), Framing(), Seam(), Sequencer(setup), SaysOn(setup))


@mutant("layer_window_stays_open", "causal", AREA, "new frames leave while the view is being left, and are lost")
def layer_window_stays_open(setup: Setup) -> Stack:
    class Open(Traffic):
        def stop(self) -> list[Action]:
            return []

    return causal(setup, link_with(traffic=Open))


# ---------------------------------------------------------------------------------------------------------------- plans


@mutant("layer_plan_given_up", "token_site", AREA, "who is done with a plan forgets it when the attempt fails")
def layer_plan_given_up(setup: Setup) -> Stack:
    class Forgets(Link):
        def _gather(self, now: Nanoseconds, cause: Cause) -> list[Action]:
            self.plan = None
            return super()._gather(now, cause)

    return token_site(setup, link=Forgets)


class _OtherComponents(Link):
    """With another rule for who goes on together."""

    @staticmethod
    def others(found: list[Component]) -> list[Component]:
        return found

    def _committed(self, now: Nanoseconds, committed: Committed) -> list[Action]:
        rule = flushes.components
        try:
            flushes.components = lambda ring_id, entries: self.others(rule(ring_id, entries))
            return super()._committed(now, committed)
        finally:
            flushes.components = rule


@mutant("layer_no_intermediate", "token_site", AREA, "components of one old view come to the new one directly",
        scenario="intermediate")  # fmt: skip
def layer_no_intermediate(setup: Setup) -> Stack:
    class Directly(_OtherComponents):
        @staticmethod
        def others(found: list[Component]) -> list[Component]:
            return [Component(c.view, c.members, c.plan, None) for c in found]

    return token_site(setup, link=Directly)


@mutant("layer_dead_plan_lives", "token_site", AREA, "a plan that one of its members left undone is installed")
def layer_dead_plan_lives(setup: Setup) -> Stack:
    class Undead(Link):
        def _committed(self, now: Nanoseconds, committed: Committed) -> list[Action]:
            rule = flushes.components
            kept = None if self.plan is None else self.plan.name

            def components(ring_id: ViewId, entries: Any) -> list[Component]:
                found = rule(ring_id, entries)
                mine = next(c for c in found if self.me in c.members)
                if kept is None or mine.plan is not None:
                    return found
                return [c if c is not mine else Component(c.view, c.members, kept, c.intermediate) for c in found]

            try:
                flushes.components = components
                return super()._committed(now, committed)
            finally:
                flushes.components = rule

    return token_site(setup, link=Undead)


@mutant("layer_T_is_transitional", "causal", AREA, "the transitional set is the plan's T, not who comes along (F1)")
def layer_t_is_transitional(setup: Setup) -> Stack:
    class Names(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            assert self.flush is not None
            mine = self.flush.mine
            self.flush.mine = Component(mine.view, mine.together, mine.plan, mine.intermediate)
            return super()._install(now)

    return causal(setup, Names)


# ------------------------------------------------------------------------------------------------------------- exchange


@mutant("layer_flush_skipped", "causal", AREA, "nothing is exchanged: everybody installs with what it has")
def layer_flush_skipped(setup: Setup) -> Stack:
    class Skips(Link):
        def _committed(self, now: Nanoseconds, committed: Committed) -> list[Action]:
            class Nothing(Exchange):
                def __init__(self, *given: Any) -> None:
                    super().__init__(*given)
                    self.lacking.clear()

            flushes.Exchange = Nothing  # type: ignore[misc]
            try:
                return super()._committed(now, committed)
            finally:
                flushes.Exchange = Exchange  # type: ignore[misc]

    return causal(setup, Skips)


@mutant("layer_done_early", "causal", AREA, "a member says that it is done while it lacks a message")
def layer_done_early(setup: Setup) -> Stack:
    class Early_(Link):
        def _visit(self, now: Nanoseconds, rested: bool = False) -> list[Action]:
            flush = self.flush
            if flush is not None and flush.exchange is not None and not flush.done:
                exchange = flush.exchange
                if len(exchange.states) == len(exchange.together):
                    exchange.lacking.clear()
                    flush._finish()
                    self.plan = flush.plan
            return super()._visit(now, rested)

    return causal(setup, Early_)


@mutant("layer_held_above_cut", "causal", AREA, "a held message is inserted because its predecessors came (V3)",
        scenario="held_above_cut")  # fmt: skip
def layer_held_above_cut(setup: Setup) -> Stack:
    class Inserts(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            plan, reception = self.plan, self.talk.traffic.reception
            assert plan is not None
            have = list(plan.cut)
            for (rank, seq), (vec, item) in sorted(reception.held.items()):
                follows = (v <= h or q == rank for q, (v, h) in enumerate(zip(vec, have, strict=True)))
                if seq == have[rank] + 1 and all(follows):
                    have[rank] = seq
                    plan.missing[rank, seq] = item
            return super()._install(now)

    return causal(setup, Inserts)


@mutant("layer_flush_blames_nobody", "causal", AREA, "a long flush is left without blame (F13)", scenario="flush_debt")
def layer_flush_blames_nobody(setup: Setup) -> Stack:
    class Kind(Link):
        def _gather(self, now: Nanoseconds, cause: Cause) -> list[Action]:
            if self.flush is not None and self.flush.exchange is not None:
                self.flush.exchange.turn = 0
            return super()._gather(now, cause)

    return causal(setup, Kind)


@mutant("layer_flush_for_ever", "causal", AREA, "a flush that cannot end is never left", scenario="flush_debt")
def layer_flush_for_ever(setup: Setup) -> Stack:
    class Waits(Link):
        def _too_long(self, now: Nanoseconds) -> list[Action]:
            return []

    return causal(setup, Waits)


@mutant("layer_flush_never_asks", "causal", AREA, "what an exchange lacks is never asked for")
def layer_flush_never_asks(setup: Setup) -> Stack:
    class Never(Link):
        def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
            return [] if name == "flush_nack" else super().timer(now, name, due)

    return causal(setup, Never)


# -------------------------------------------------------------------------------------------------------------- install


@mutant("layer_view_before_messages", "causal", AREA, "the new view is installed before the old one's last messages")
def layer_view_before_messages(setup: Setup) -> Stack:
    class First(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            out = super()._install(now)
            old = [a for a in out if isinstance(a, Up) and isinstance(a.event, Received | Crash | Flush)]
            rest = [a for a in out if a not in old]
            at = 1 + max(k for k, a in enumerate(rest) if isinstance(a, Up) and hasattr(a.event, "view"))
            return rest[:at] + old + rest[at:]

    return causal(setup, First)


@mutant("layer_crash_before_last", "tests.conformance.sequencer:sequencer", AREA,
        "a crash is told before the last messages of the departed", scenario="uncalled")  # fmt: skip
def layer_crash_before_last(setup: Setup) -> Stack:
    class Hasty(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            out = super()._install(now)
            crashes = [a for a in out if isinstance(a, Up) and isinstance(a.event, Crash)]
            return crashes + [a for a in out if a not in crashes]

    return chain(Groups(setup.identity.me), Framing(), Seam(), Sequencer(setup), Hasty(setup))


@mutant("layer_no_crash_told", "tests.conformance.sequencer:sequencer", AREA, "nobody is told who is gone")
def layer_no_crash_told(setup: Setup) -> Stack:
    class Silent(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            return [a for a in super()._install(now) if not (isinstance(a, Up) and isinstance(a.event, Crash))]

    return chain(Groups(setup.identity.me), Framing(), Seam(), Sequencer(setup), Silent(setup))


@mutant("layer_early_packets_dropped", "causal", AREA, "packets of the view being formed are dropped")
def layer_early_packets_dropped(setup: Setup) -> Stack:
    class Drops(Early):
        def keep(self, source: Peer, packet: Any) -> Note:
            return Note("drop", {"reason": "early"})

    class Dropping(Link):
        def __init__(self, setup: Setup) -> None:
            super().__init__(setup)
            self.early = Drops()

    return causal(setup, Dropping)


@mutant("layer_timers_not_cancelled", "causal", AREA, "timers of the old view go on in the new one")
def layer_timers_not_cancelled(setup: Setup) -> Stack:
    class Goes(Traffic):
        def end(self) -> list[Action]:
            return []

    return causal(setup, link_with(traffic=Goes))


@mutant("layer_numbers_go_on", "causal", AREA, "what was received in the old view still counts as received in the new")
def layer_numbers_go_on(setup: Setup) -> Stack:
    class GoesOn(Link):
        def _talk(self, now: Nanoseconds, id: ViewId, members: tuple[MemberId, ...]) -> Any:
            old = getattr(self, "talk", None)
            talk = super()._talk(now, id, members)
            if old is not None and old.members == members:
                talk.traffic.reception.have = list(old.traffic.have)
            return talk

    return causal(setup, GoesOn)


@mutant("layer_install_token_lost", "causal", AREA, "who sees that all are done installs and tells nobody")
def layer_install_token_lost(setup: Setup) -> Stack:
    class Selfish(Link):
        def _visit(self, now: Nanoseconds, rested: bool = False) -> list[Action]:
            out = super()._visit(now, rested)
            said = [a for a in out if isinstance(a, Transmit) and type(a.packet) is FlushToken and a.packet.install]
            if said:
                self.membership.handover.went_on()
            return [a for a in out if a not in said]

    return causal(setup, Selfish)


# ----------------------------------------------------------------------------------------------------------------- seam


@mutant("seam_all_transitional", "token_site", AREA, "all that a flush delivers goes up after the transitional view")
def seam_all_transitional(setup: Setup) -> Stack:
    class After(Seam):
        def _split(self, flush: Flush) -> list[Action]:
            return []

    return token_site(setup, seam=After)


@mutant("seam_by_own_count", "causal", AREA, "a flush is split where this member had got to")
def seam_by_own_count(setup: Setup) -> Stack:
    class Own(Seam):
        def _split(self, flush: Flush) -> list[Action]:
            return super()._split(Flush((self.flush_state(),), flush.cut))

    return causal(setup, Link, Own)


# ---------------------------------------------------------------------------------------------------------------- drain


@mutant("drain_keeps_the_departed", "token_site", AREA, "unticketed frames of the departed are delivered, too")
def drain_keeps_the_departed(setup: Setup) -> Stack:
    class Keeps(Process):
        def close(self, gone: Iterable[MemberId]) -> list[Action]:
            return super().close(())

    return token_site(setup, process=Keeps)


@mutant("drain_discards_all", "token_site", AREA, "what has no ticket is discarded, whoever sent it")
def drain_discards_all(setup: Setup) -> Stack:
    class Discards(Process):
        def close(self, gone: Iterable[MemberId]) -> list[Action]:
            return super().close(self.done)

    return token_site(setup, process=Discards)


class KeepsRoles(Tickets):
    """Roles are what they were here, wherever the others come from."""

    def __init__(self, *parts: Any, **named: Any) -> None:
        super().__init__(*parts, **named)
        self.fixed = None

    def _roles(self, view: View) -> tuple[dict[MemberId, int], Iterable[MemberId]]:
        self.process.rn = dict.fromkeys(view.members, 0)
        return super()._roles(View(view.id, ViewKind.REGULAR, view.members, components=((None, view.members),)))


@mutant("roles_kept_in_a_merge", "token_site", AREA, "who merges keeps its own sequencer if that is in the view (F7)")
def roles_kept_in_a_merge(setup: Setup) -> Stack:
    return token_site(setup, order=KeepsRoles)


@mutant("roles_kept_and_believed", "token_site", AREA,
        "who merges keeps its own sequencer, and nobody doubts tickets (F7)")  # fmt: skip
def roles_kept_and_believed(setup: Setup) -> Stack:
    class Keeps(KeepsRoles, Believes):
        pass

    return token_site(setup, order=Keeps)


@mutant("tickets_live_on", "token_site", AREA, "tickets and frames of the old view are kept in the new one")
def tickets_live_on(setup: Setup) -> Stack:
    class LiveOn(Process):
        def close(self, gone: Iterable[MemberId]) -> list[Action]:
            return []

        def enter(self, members: Iterable[MemberId], rn: dict[MemberId, int], actives: Iterable[MemberId]) -> None:
            kept = getattr(self, "UT", []), getattr(self, "Q", {})
            super().enter(members, rn, actives)
            self.UT, self.Q = kept

    return token_site(setup, process=LiveOn)


# ------------------------------------------------------------------------------------------------- links that are stuck


@mutant("layer_stuck_link_ignored", "causal", AREA, "the same gap may stand for ever", scenario="stuck_link")
def layer_stuck_link_ignored(setup: Setup) -> Stack:
    class Ignores(Link):
        def _stuck(self, now: Nanoseconds) -> list[Action]:
            return []

    return causal(setup, Ignores)


def answering(setup: Setup, link: type[Link]) -> Stack:
    return chain(Framing(), Seam(), Answering(setup), link(setup))


@mutant("unicast_never_by_multicast", "tests.transis.answering:answering", AREA,
        "unicasts are repeated by unicast only (F12)", scenario="no_unicasts")  # fmt: skip
def unicast_never_by_multicast(setup: Setup) -> Stack:
    class Only(Unicasts):
        def repeat(self, now: Nanoseconds) -> list[Action]:
            return [
                Transmit(a.net, a.packet.to, a.packet) if isinstance(a, Transmit) and a.to == ALL else a  # type: ignore[attr-defined]
                for a in super().repeat(now)
            ]

    return answering(setup, link_with(unicasts=Only))


@mutant("unicast_out_of_order", "tests.transis.answering:answering", AREA, "unicasts go up as they come")
def unicast_out_of_order(setup: Setup) -> Stack:
    class AsTheyCome(Unicasts):
        def receive(self, now: Nanoseconds, source: MemberId, packet: Any) -> list[Action]:
            pair = self._pair(source)
            pair.came = max(pair.came, packet.useq - 1)
            return super().receive(now, source, packet)

    return answering(setup, link_with(unicasts=AsTheyCome))


@mutant("unicast_of_an_old_view", "tests.transis.answering:answering", AREA,
        "unicasts of an earlier view are taken for the present one's")  # fmt: skip
def unicast_of_an_old_view(setup: Setup) -> Stack:
    class Takes(Link):
        def _packet(self, now: Nanoseconds, source: Peer, packet: Any, out: list[Action]) -> None:
            if type(packet) is Unicast and packet.view < self.talk.id:
                packet = structs.replace(packet, view=self.talk.id)
            super()._packet(now, source, packet, out)

    return answering(setup, Takes)


@mutant("unicast_never_again", "tests.transis.answering:answering", AREA, "a lost unicast is not repeated")
def unicast_never_again(setup: Setup) -> Stack:
    class Once(Unicasts):
        def repeat(self, now: Nanoseconds) -> list[Action]:
            return []

    return answering(setup, link_with(unicasts=Once))
