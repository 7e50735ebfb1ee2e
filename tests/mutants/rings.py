"""Variants of several rings in one order: stamps, guarantee vectors, gateways, agreed topologies, filtered groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from tests.mutants.registry import mutant

from ordercast.contract import Action, Note, Ordered, Setup, Up
from ordercast.joining import Progress
from ordercast.protocols.totem import joined_rings
from ordercast.protocols.totem.agreement import Agreement
from ordercast.protocols.totem.bodies import Supply, Vector
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.gateway import Carrying, Filter
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.here import HOME
from ordercast.protocols.totem.multiring import MultiRing
from ordercast.protocols.totem.ordering import Ordering
from ordercast.protocols.totem.passage import Passage
from ordercast.protocols.totem.ring import Stamped
from ordercast.protocols.totem.topology import NextTopology, Old
from ordercast.stack import Stack
from ordercast.types import Frame, MemberId, Nanoseconds

AREA = "rings"


def rings(
    setup: Setup,
    *,
    joint: type[MultiRing] = MultiRing,
    ordering: type[Ordering] = Ordering,
    passage: type[Passage] = Passage,
    agreement: type[Agreement] = Agreement,
    feed: type[Feed] = Feed,
    filter: type[Filter] = Filter,
    merge: type[Merge] = Merge,
    carrying: type[Carrying] = Carrying,
    row: type[Row] = Row,
) -> Stack:
    """As the shipped factory, with other classes; what lasts for a topology is replaced when one is entered."""
    stack = joined_rings(setup)
    layer = next(node.layer for node in stack.nodes if isinstance(node.layer, MultiRing))

    class Patched(passage):  # type: ignore[misc, valid-type]
        def _enter(self, plan: NextTopology) -> None:
            super()._enter(plan)
            self.here.merge.__class__ = merge
            self.here.carrying.__class__ = carrying
            for place in self.here.places:
                place.row.__class__ = row

    layer.__class__ = joint
    layer.ordering.__class__ = ordering
    layer.passage.__class__ = Patched
    layer.passage.agreement.__class__ = agreement
    layer.filter.__class__ = filter
    for each in layer.here.feeds:
        each.__class__ = feed
    return stack


# ----------------------------------------------------------------------------------------------------------- the order


@mutant("rings_vector_one_too_far", "multiring", AREA, "a frame goes up when an earlier one may still come")
def rings_vector_one_too_far(setup: Setup) -> Stack:
    class Early(Merge):
        def deliver(self) -> Iterator[Ordered]:
            self.bound += 1
            yield from super().deliver()
            self.bound -= 1

    return rings(setup, merge=Early)


@mutant("rings_own_ring_decides", "multiring", AREA, "a frame goes up as soon as its own source has come so far")
def rings_own_ring_decides(setup: Setup) -> Stack:
    class Alone(Merge):
        def _raise(self, source: int, stamp: int) -> None:
            self.known[source] = stamp
            self.bound = max(self.known)

    return rings(setup, merge=Alone)


@mutant(
    "rings_ties_by_arrival", "multiring", AREA, "frames with equal stamps go up as they came, not by source",
    scenario="rings_at_once",
)  # fmt: skip
def rings_ties_by_arrival(setup: Setup) -> Stack:
    class Arrival(Merge):
        def deliver(self) -> Iterator[Ordered]:
            order = {id(event): k for kept in self.kept for k, event in enumerate(kept.values())}
            held = list(super().deliver())
            yield from sorted(held, key=lambda event: (event.stamp, -event.source, order.get(id(event), 0)))

    return rings(setup, merge=Arrival)


@mutant("rings_stamp_reset_at_gateway", "multiring", AREA, "a gateway stamps anew what it forwards")
def rings_stamp_reset_at_gateway(setup: Setup) -> Stack:
    class Anew(Ordering):
        def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
            super()._carry(carrying, child, source, replace(event, stamp=self.here.clock.send()))

    return rings(setup, ordering=Anew)


@mutant("rings_source_reset_at_gateway", "multiring", AREA, "what a gateway forwards counts as its other ring's own")
def rings_source_reset_at_gateway(setup: Setup) -> Stack:
    class Own(Ordering):
        def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
            for other in carrying.onward[child][source]:
                ring = carrying.mine[other]
                assert ring is not None
                self.here.feeds[other].forwards.append(Stamped(event.frame, event.stamp, ring + 1))

    return rings(setup, ordering=Own)


@mutant("rings_clock_from_nothing", "multiring", AREA, "the clock begins at nothing in each topology")
def rings_clock_from_nothing(setup: Setup) -> Stack:
    class Nothing(Passage):
        def _enter(self, plan: NextTopology) -> None:
            super()._enter(plan)
            self.here.clock.clock -= plan.base - 1

    return rings(setup, passage=Nothing)


@mutant("rings_token_tells_nothing", "multiring", AREA, "the token raises no entry: idle rings block the others")
def rings_token_tells_nothing(setup: Setup) -> Stack:
    class Deaf(Ordering):
        def progress(self, now: Nanoseconds, child: int, event: Progress) -> list[Action]:
            return super().progress(now, child, replace(event, timestamp=0))

    return rings(setup, ordering=Deaf)


@mutant("rings_safe_on_own_ring", "multiring", AREA, "a frame counts as safe when the reader's own ring holds it")
def rings_safe_on_own_ring(setup: Setup) -> Stack:
    class Near(Merge):
        def learn(self, ring: int, stamps: Any) -> bool:
            news = super().learn(ring, stamps)
            self.stable = [max(pair) for pair in zip(self.stable, stamps, strict=True)]
            return news or True

    return rings(setup, merge=Near)


@mutant("rings_safe_before_held", "multiring", AREA, "a ring counts as holding what only came to one of its members")
def rings_safe_before_held(setup: Setup) -> Stack:
    class Soon(Row):
        __slots__ = ()

        def settle(self, safe: int) -> bool:
            return super().settle(self.marks[-1][0] if self.marks else safe)

    return rings(setup, row=Soon)


@mutant(
    "rings_safe_before_all_are_in", "multiring", AREA, "what a ring holds counts before all are in the topology",
    scenario="rings_dies_before_it_is_in",
)  # fmt: skip
def rings_safe_before_all_are_in(setup: Setup) -> Stack:
    class Open(Ordering):
        def settle(self, now: Nanoseconds, child: int) -> list[Action]:
            self.here.places[child].reached = 1
            return super().settle(now, child)

    return rings(setup, ordering=Open)


# ------------------------------------------------------------------------------------------------------------ gateways


@mutant("rings_own_copy_again", "multiring", AREA, "a gateway delivers what it forwarded itself once more")
def rings_own_copy_again(setup: Setup) -> Stack:
    class Again(Ordering):
        def take(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
            carrying, out = self.here.carrying, super().take(now, child, event)
            if carrying is not None and (event.source - 1, child) in carrying.mine_into:
                out.append(Up(event))
            return out

    return rings(setup, ordering=Again)


@mutant("rings_cycle_copy_again", "multiring", AREA, "on a cycle a frame that comes from both sides goes up twice")
def rings_cycle_copy_again(setup: Setup) -> Stack:
    class Twice(Ordering):
        def take(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
            out = super().take(now, child, event)
            twice = any(type(action) is Note and action.name == "duplicate on a cycle" for action in out)
            return [*out, Up(event)] if twice else out

    return rings(setup, ordering=Twice)


@mutant("rings_entry_for_own_forwards", "multiring", AREA, "a gateway waits on both rings for what it carries itself")
def rings_entry_for_own_forwards(setup: Setup) -> Stack:
    class Both(Merge):
        def _raise(self, source: int, stamp: int) -> None:
            self.known[source] = stamp
            self.bound = min(min(entries) for entries in self.arrived)

    class Silent(Carrying):
        def hear(self, child: int, seq: int, vector: Vector) -> bool:
            own = tuple(entry for entry in vector.entries if (entry[0], child) not in self.mine_into)
            return super().hear(child, seq, replace(vector, entries=own))

    return rings(setup, merge=Both, carrying=Silent)


@mutant("rings_vector_ahead_of_forwards", "multiring", AREA, "a vector message promises what still waits behind it")
def rings_vector_ahead_of_forwards(setup: Setup) -> Stack:
    class Ahead(Feed):
        def take(self, n: int) -> list[Stamped]:
            if self.open and n and self.forwards and self.owner.vector_due(self.child):
                return [Stamped(self.owner.vector(self.child), 0, 0), *super().take(n - 1)]
            return super().take(n)

    class Promises(Carrying):
        def _carried(self, source: int, origin: int, queued: Any) -> int:
            return self.merge.arrived[origin][source]

    return rings(setup, feed=Ahead, carrying=Promises)


@mutant("rings_vector_of_the_own_ring", "multiring", AREA, "a vector message tells of all that came, on whatever ring")
def rings_vector_of_the_own_ring(setup: Setup) -> Stack:
    class All(Carrying):
        def _carried(self, source: int, origin: int, queued: Any) -> int:
            return max(max(entries) for entries in self.merge.arrived)

    return rings(setup, carrying=All)


@mutant("rings_no_vectors", "multiring", AREA, "no vector messages: whoever is a ring away waits for ever")
def rings_no_vectors(setup: Setup) -> Stack:
    class Mute(Carrying):
        def due(self, child: int) -> bool:
            return False

    return rings(setup, carrying=Mute)


@mutant("rings_forwards_its_forward", "multiring", AREA, "a gateway forwards its own forward back again")
def rings_forwards_its_forward(setup: Setup) -> Stack:
    class Back(Ordering):
        def take(self, now: Nanoseconds, child: int, event: Ordered) -> list[Action]:
            carrying = self.here.carrying
            if carrying is not None and (event.source - 1, child) in carrying.mine_into and self.here.feeds[HOME].open:
                origin = next(at for source, at in carrying.into[child] if source == event.source - 1)
                self.here.feeds[origin].forwards.append(Stamped(event.frame, event.stamp, event.source))
            return super().take(now, child, event)

    return rings(setup, ordering=Back)


@mutant("rings_forwards_out_of_order", "multiring", AREA, "a gateway forwards the newest first")
def rings_forwards_out_of_order(setup: Setup) -> Stack:
    class Newest(Feed):
        def take(self, n: int) -> list[Stamped]:
            if len(self.forwards) > 1:
                self.forwards.rotate(1)
            return super().take(n)

    return rings(setup, feed=Newest)


@mutant("rings_one_hop_only", "multiring", AREA, "a gateway forwards only what is its own ring's")
def rings_one_hop_only(setup: Setup) -> Stack:
    class Near(Ordering):
        def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
            if carrying.mine[child] == source:
                super()._carry(carrying, child, source, event)

    return rings(setup, ordering=Near)


# -------------------------------------------------------------------------------------------------------------- groups


@mutant("rings_filter_on_the_wrong_side", "multiring", AREA, "a gateway looks for a frame's readers where it came from")
def rings_filter_on_the_wrong_side(setup: Setup) -> Stack:
    class Wrong(Ordering):
        def decide(self, *told: int) -> list[Action]:
            carrying = self.here.carrying
            assert carrying is not None
            all_members, right = frozenset(carrying.topology.members), carrying.audience
            carrying.audience = {place: all_members - behind for place, behind in right.items()}
            out = super().decide(*told)
            carrying.audience = right
            return out

    return rings(setup, ordering=Wrong)


@mutant("rings_filter_next_ring_only", "multiring", AREA, "a gateway does not think of rings behind the next one")
def rings_filter_next_ring_only(setup: Setup) -> Stack:
    class Next(Ordering):
        def decide(self, *told: int) -> list[Action]:
            carrying = self.here.carrying
            assert carrying is not None
            for child, source in carrying.audience:
                ring = carrying.mine[child]
                assert ring is not None
                carrying.audience[child, source] = frozenset(carrying.topology.rings[ring].members)
            return super().decide(*told)

    return rings(setup, ordering=Next)


@mutant(
    "rings_filter_at_once", "multiring", AREA, "a gateway filters by the groups it knows when a frame comes",
    scenario="rings_far_joins",
)  # fmt: skip
def rings_filter_at_once(setup: Setup) -> Stack:
    class Now(Ordering):
        def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
            frame = event.frame
            self.filter.fading.clear()  # nothing is decided later
            for other in carrying.onward[child][source]:
                behind = carrying.audience[other, source]
                if not self.filter.concerns(frame, carrying) or self.filter.wanted(frame, behind):
                    self.here.feeds[other].forwards.append(Stamped(frame, event.stamp, event.source))

    return rings(setup, ordering=Now)


@mutant("rings_filter_before_groups_are_known", "multiring", AREA, "a gateway filters while groups are being merged")
def rings_filter_before_groups_are_known(setup: Setup) -> Stack:
    class Knows(Filter):
        def wanted(self, frame: Frame, behind: frozenset[MemberId]) -> bool:
            self.knows = True
            return super().wanted(frame, behind)

    return rings(setup, filter=Knows)


@mutant("rings_joins_are_filtered", "multiring", AREA, "joins of groups go only where members of them are")
def rings_joins_are_filtered(setup: Setup) -> Stack:
    class Near(Ordering):
        def _carry(self, carrying: Carrying, child: int, source: int, event: Ordered) -> None:
            if not event.frame.control:
                super()._carry(carrying, child, source, event)

    return rings(setup, ordering=Near)


# ---------------------------------------------------------------------------------------------------------- topologies


@mutant("rings_nothing_sent_again", "multiring", AREA, "what some lack of an old topology is not sent again")
def rings_nothing_sent_again(setup: Setup) -> Stack:
    class Keeps(Agreement):
        def supply(self, old: Old, merge: Merge, stamp: int) -> list[Supply]:
            assert self.plan is not None
            return [Supply(stamp, self.plan.key, 0)]

    return rings(setup, agreement=Keeps)


@mutant("rings_supplies_not_awaited", "multiring", AREA, "a member is done before it has what is sent again")
def rings_supplies_not_awaited(setup: Setup) -> Stack:
    class Hurries(Agreement):
        def supplied(self, old: Old) -> bool:
            return True

        def beyond(self, old: Old) -> set[tuple[int, int]]:
            self.supplies = {member: sent for member, sent in self.supplies.items() if member in old.supply}
            kept = {member: sources for member, sources in old.supply.items() if member in (*self.supplies, self.me)}
            return super().beyond(replace(old, supply=kept))

    return rings(setup, agreement=Hurries)


@mutant("rings_done_not_awaited", "multiring", AREA, "a topology is installed before all are ready for it")
def rings_done_not_awaited(setup: Setup) -> Stack:
    class Alone(Agreement):
        def ready(self) -> bool:
            return self.plan is not None

    return rings(setup, agreement=Alone)


@mutant(
    "rings_holes_cut_off",
    "multiring",
    AREA,
    "what is behind a hole is discarded, own frames too",
    scenario="rings_lost_frame",
)
def rings_holes_cut_off(setup: Setup) -> Stack:
    class Cuts(Agreement):
        def beyond(self, old: Old) -> set[tuple[int, int]]:
            return set()

    return rings(setup, agreement=Cuts)


@mutant("rings_nothing_cut_off", "multiring", AREA, "what only some hold goes up at the end of a topology")
def rings_nothing_cut_off(setup: Setup) -> Stack:
    class Keeps(Merge):
        def close(self, bound: Any, stable: Any, upto: Any, more: Any) -> tuple[list[Ordered], list[Ordered]]:
            return super().close(bound, stable, [2**62] * len(upto), more)

    return rings(setup, merge=Keeps)


@mutant("rings_all_is_safe_in_the_end", "multiring", AREA, "safe frames that some may lack end the regular view")
def rings_all_is_safe_in_the_end(setup: Setup) -> Stack:
    class Sure(Merge):
        def close(self, bound: Any, stable: Any, upto: Any, more: Any) -> tuple[list[Ordered], list[Ordered]]:
            return super().close(2**62, [2**62] * len(upto), upto, more)

    return rings(setup, merge=Sure)


@mutant(
    "rings_speaks_too_soon", "multiring", AREA, "a member says where it stands while own frames are on their way",
    scenario="rings_told_late",
)  # fmt: skip
def rings_speaks_too_soon(setup: Setup) -> Stack:
    class Soon(Passage):
        def speak_if_ready(self, now: Nanoseconds) -> list[Action]:
            self.here.flying = 0
            return super().speak_if_ready(now)

    return rings(setup, passage=Soon)


@mutant("rings_old_words_count", "multiring", AREA, "words from which a topology was made count for the next one too")
def rings_old_words_count(setup: Setup) -> Stack:
    class Stale(Agreement):
        def clear(self) -> None:
            super().clear()
            self.spent.clear()

    return rings(setup, agreement=Stale)


@mutant("rings_goes_on_while_others_stop", "multiring", AREA, "frames of the old topology leave after a member stopped")
def rings_goes_on_while_others_stop(setup: Setup) -> Stack:
    class On(Passage):
        def _stop(self, now: Nanoseconds) -> list[Action]:
            out = super()._stop(now)
            for feed in self.here.feeds:
                feed.open = True
            return out

    return rings(setup, passage=On)


@mutant("rings_early_frames_dropped", "multiring", AREA, "frames of a topology not yet installed here are dropped")
def rings_early_frames_dropped(setup: Setup) -> Stack:
    class Drops(Passage):
        def _enter(self, plan: NextTopology) -> None:
            super()._enter(plan)
            self.here.early.clear()

    return rings(setup, passage=Drops)


@mutant("rings_window_without_end", "multiring", AREA, "own frames leave however many are on their way (3.1)")
def rings_window_without_end(setup: Setup) -> Stack:
    class Endless(MultiRing):
        def own_waiting(self, child: int) -> int:
            return self.sender.waiting() if child == HOME else 0

    return rings(setup, joint=Endless)
