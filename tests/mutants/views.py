"""Variants of recovery: what is exchanged, what goes up in which view, who owes what to whom."""

from __future__ import annotations

from msgspec.structs import replace
from tests.mutants.parts import totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Note, Ordered, Setup, Up, ViewChange
from ordercast.framing import Inbox
from ordercast.membership import Committed
from ordercast.outbox import Outbox
from ordercast.protocols.totem.attempt import Attempt
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.packets import Data, Token
from ordercast.protocols.totem.recovery import Exchange, RecoveryPlan
from ordercast.protocols.totem.ring import Ring
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.turning import Turning
from ordercast.stack import Stack
from ordercast.types import Nanoseconds, Peer

AREA = "membership"


class Replanned(Rings):
    """The plan of a recovery, changed."""

    def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
        return plan

    def begin(self, committed: Committed) -> Note:
        note = super().begin(committed)
        attempt = self.attempt
        assert attempt is not None
        attempt.plan = self.plan(attempt.plan, committed)
        attempt.exchange = Exchange(attempt.old, attempt.plan)
        return note


@mutant("views_flush_skipped", "totem", AREA, "old frames are not exchanged before the new view")
def views_flush_skipped(setup: Setup) -> Stack:
    class Skips(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, rebroadcast=())

    return totem(setup, rings=Skips)


@mutant("views_all_are_transitional", "totem", AREA, "the transitional set is everybody in the new view")
def views_all_are_transitional(setup: Setup) -> Stack:
    class Everybody(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, transitional=committed.members)

    return totem(setup, rings=Everybody)


@mutant("views_all_known_safe", "totem", AREA, "what was not known to be safe goes up as if it were")
def views_all_known_safe(setup: Setup) -> Stack:
    class Careless(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, high_ring_safe=2**62)

    return totem(setup, rings=Careless)


@mutant(
    "views_obligations_forgotten",
    "totem",
    AREA,
    "what was promised in a failed recovery is forgotten",
    scenario="obliged",
)
def views_obligations_forgotten(setup: Setup) -> Stack:
    class Forgets(Rings):
        def entry(self) -> bytes:
            self.received, self.obligation = False, ()
            return super().entry()

    return totem(setup, rings=Forgets)


@mutant(
    "views_exchange_not_voided",
    "totem",
    AREA,
    "an exchange that was finished counts though another has begun",
    scenario="exchange_again",
)
def views_exchange_not_voided(setup: Setup) -> Stack:
    class Keeps(Rings):
        def begin(self, committed: Committed) -> Note:
            received = self.received
            note = super().begin(committed)
            self.received = received
            return note

    return totem(setup, rings=Keeps)


@mutant("views_first_missing_not_exchanged", "totem", AREA, "the first of the frames that somebody lacks is not sent")
def views_first_missing_not_exchanged(setup: Setup) -> Stack:
    class Short(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, rebroadcast=plan.rebroadcast[1:])

    return totem(setup, rings=Short)


@mutant("views_known_safe_forgotten", "totem", AREA, "what others had delivered as safe does not count in recovery")
def views_known_safe_forgotten(setup: Setup) -> Stack:
    class Forgets(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, high_ring_delivered=0, high_ring_safe=0)

    return totem(setup, rings=Forgets)


@mutant("views_nobody_is_transitional", "totem", AREA, "a transitional set names nobody but its owner")
def views_nobody_is_transitional(setup: Setup) -> Stack:
    class Lonely(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, transitional=(self.me,))

    return totem(setup, rings=Lonely)


@mutant(
    "views_everything_after_a_hole", "totem", AREA, "behind a frame that is lost everything goes up",
    scenario="hole",
)  # fmt: skip
def views_everything_after_a_hole(setup: Setup) -> Stack:
    class Everything(Exchange):
        def install(self) -> tuple[list[Data], list[Data], int]:
            regular, transitional, lost = super().install()
            if self.old is None or not lost:
                return regular, transitional, lost
            known = {data.seq for data in (*regular, *transitional)}
            more = [d for s, d in self.old.store.items() if s > self.old.delivered and s not in known]
            rest = sorted((d for d in (*transitional, *more) if type(d) is Data), key=lambda d: d.seq)
            return regular, rest, 0

    return totem(setup, exchange=Everything)


@mutant(
    "views_nothing_after_a_hole", "totem", AREA, "behind a frame that is lost nothing goes up, not even own ones",
    scenario="hole_before_own",
)  # fmt: skip
def views_nothing_after_a_hole(setup: Setup) -> Stack:
    class Nothing(Exchange):
        def install(self) -> tuple[list[Data], list[Data], int]:
            regular, transitional, lost = super().install()
            last = regular[-1].seq if regular else (self.old.delivered if self.old is not None else 0)
            kept = []
            for data in transitional:
                if data.seq != last + 1:
                    break
                last = data.seq
                kept.append(data)
            return regular, kept, lost + len(transitional) - len(kept)

    return totem(setup, exchange=Nothing)


@mutant(
    "views_discarded_delivered", "totem", AREA, "frames of members that did not come along go up too",
    scenario="hole",
)  # fmt: skip
def views_discarded_delivered(setup: Setup) -> Stack:
    class Obliged(Replanned):
        def plan(self, plan: RecoveryPlan, committed: Committed) -> RecoveryPlan:
            return replace(plan, obligation=tuple(range(1, 65)))

    return totem(setup, rings=Obliged)


@mutant(
    "views_installed_early", "totem", AREA, "a view is installed one rotation too early", scenario="early_install",
)  # fmt: skip
def views_installed_early(setup: Setup) -> Stack:
    class Early(Exchange):
        def visited(self, ring: Ring, token: Token, last_aru: int) -> tuple[bool, bool]:
            done, install = super().visited(ring, token, last_aru)
            return done, install or done

    return totem(setup, exchange=Early)


@mutant("views_installed_at_once", "totem", AREA, "a view is installed without waiting for the exchange")
def views_installed_at_once(setup: Setup) -> Stack:
    class AtOnce(Exchange):
        def visited(self, ring: Ring, token: Token, last_aru: int) -> tuple[bool, bool]:
            super().visited(ring, token, last_aru)
            return True, True

    return totem(setup, exchange=AtOnce)


@mutant("views_before_old_messages", "totem", AREA, "the new view goes up before the last messages of the old one")
def views_before_old_messages(setup: Setup) -> Stack:
    class First(Rings):
        def install(self, attempt: Attempt) -> list[Action]:
            out = super().install(attempt)
            ordered = [a for a in out if isinstance(a, Up) and isinstance(a.event, Ordered)]
            return [a for a in out if a not in ordered] + ordered

    return totem(setup, rings=First)


@mutant("views_no_transitional", "totem", AREA, "no transitional view goes up between two regular ones")
def views_no_transitional(setup: Setup) -> Stack:
    class Blunt(Rings):
        def install(self, attempt: Attempt) -> list[Action]:
            out = super().install(attempt)
            return [
                a for a in out
                if not (isinstance(a, Up) and isinstance(a.event, ViewChange) and a.event.view.kind == 2)
            ]  # fmt: skip

    return totem(setup, rings=Blunt)


@mutant(
    "views_frozen_inserts", "totem", AREA, "a member adds frames of the old ring after it has said what it holds",
    scenario="late_frames",
)  # fmt: skip
def views_frozen_inserts(setup: Setup) -> Stack:
    class Thaws(Turning):
        def data(self, now: Nanoseconds, source: Peer, data: Data, out: list[Action]) -> None:
            standing = self.membership.standing
            frozen, standing.frozen = standing.frozen, False
            super().data(now, source, data, out)
            standing.frozen = frozen

    return totem(setup, turn=Thaws)


@mutant("views_unwind_forgotten", "totem", AREA, "a message half originated is not taken back at a view change")
def views_unwind_forgotten(setup: Setup) -> Stack:
    class Forgets(Outbox):
        def unwind(self) -> None:
            return

    return totem(setup, outbox=Forgets)


@mutant("views_inbox_not_reset", "totem", AREA, "fragments of an earlier view are kept and completed in the next")
def views_inbox_not_reset(setup: Setup) -> Stack:
    class Keeps(Inbox):
        def reset(self) -> None:
            return

    return totem(setup, inbox=Keeps)


@mutant("views_old_tokens_served", "totem", AREA, "deliveries go on while a new ring is being formed")
def views_old_tokens_served(setup: Setup) -> Stack:
    class GoesOn(RingLayer):
        def _recover(self, now: Nanoseconds, committed: Committed) -> list[Action]:
            out = super()._recover(now, committed)
            self.rings.ring.hold_safe = False
            return out + self.turn.deliver()

    return totem(setup, layer=GoesOn)
