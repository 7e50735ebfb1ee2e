"""Variants of several rings in one order: stamps, guarantee vectors, gateways, agreed topologies, filtered groups."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.mutants.registry import mutant

from ordercast.contract import Action, Note, Ordered, Setup, Up
from ordercast.protocols.totem import joined_rings
from ordercast.protocols.totem.agreement import Agreement
from ordercast.protocols.totem.bodies import Vector
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.gateway import Carrying, Filter
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.multiring import MultiRing
from ordercast.protocols.totem.ordering import Ordering
from ordercast.protocols.totem.passage import Passage
from ordercast.protocols.totem.ring import Stamped
from ordercast.protocols.totem.topology import NextTopology
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


@mutant("rings_clock_from_nothing", "multiring", AREA, "the clock begins at nothing in each topology")
def rings_clock_from_nothing(setup: Setup) -> Stack:
    class Nothing(Passage):
        def _enter(self, plan: NextTopology) -> None:
            super()._enter(plan)
            self.here.clock.clock -= plan.base - 1

    return rings(setup, passage=Nothing)


# ------------------------------------------------------------------------------------------------------------ gateways


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


@mutant("rings_forwards_out_of_order", "multiring", AREA, "a gateway forwards the newest first")
def rings_forwards_out_of_order(setup: Setup) -> Stack:
    class Newest(Feed):
        def take(self, n: int) -> list[Stamped]:
            if len(self.forwards) > 1:
                self.forwards.rotate(1)
            return super().take(n)

    return rings(setup, feed=Newest)


# -------------------------------------------------------------------------------------------------------------- groups


@mutant("rings_filter_on_the_wrong_side", "multiring", AREA, "a gateway looks for a frame's readers where it came from")
def rings_filter_on_the_wrong_side(setup: Setup) -> Stack:
    class Wrong(Ordering):
        def decide(self) -> list[Action]:
            carrying = self.here.carrying
            assert carrying is not None
            all_members, right = frozenset(carrying.topology.members), carrying.audience
            carrying.audience = {place: all_members - behind for place, behind in right.items()}
            out = super().decide()
            carrying.audience = right
            return out

    return rings(setup, ordering=Wrong)


@mutant("rings_filter_next_ring_only", "multiring", AREA, "a gateway does not think of rings behind the next one")
def rings_filter_next_ring_only(setup: Setup) -> Stack:
    class Next(Ordering):
        def decide(self) -> list[Action]:
            carrying = self.here.carrying
            assert carrying is not None
            for child, source in carrying.audience:
                ring = carrying.mine[child]
                assert ring is not None
                carrying.audience[child, source] = frozenset(carrying.topology.rings[ring].members)
            return super().decide()

    return rings(setup, ordering=Next)


@mutant("rings_filter_before_groups_are_known", "multiring", AREA, "a gateway filters while groups are being merged")
def rings_filter_before_groups_are_known(setup: Setup) -> Stack:
    class Knows(Filter):
        def wanted(self, frame: Frame, behind: frozenset[MemberId]) -> bool:
            self.knows = True
            return super().wanted(frame, behind)

    return rings(setup, filter=Knows)


# ---------------------------------------------------------------------------------------------------------- topologies


@mutant("rings_done_not_awaited", "multiring", AREA, "a topology is installed before all are ready for it")
def rings_done_not_awaited(setup: Setup) -> Stack:
    class Alone(Agreement):
        def ready(self) -> bool:
            return self.plan is not None

    return rings(setup, agreement=Alone)


@mutant("rings_all_is_safe_in_the_end", "multiring", AREA, "safe frames that some may lack end the regular view")
def rings_all_is_safe_in_the_end(setup: Setup) -> Stack:
    class Sure(Merge):
        def close(self, bound: Any, stable: Any, upto: Any, more: Any) -> tuple[list[Ordered], list[Ordered]]:
            return super().close(2**62, [2**62] * len(upto), upto, more)

    return rings(setup, merge=Sure)


@mutant("rings_goes_on_while_others_stop", "multiring", AREA, "frames of the old topology leave after a member stopped")
def rings_goes_on_while_others_stop(setup: Setup) -> Stack:
    class On(Passage):
        def _stop(self, now: Nanoseconds) -> list[Action]:
            out = super()._stop(now)
            for feed in self.here.feeds:
                feed.open = True
            return out

    return rings(setup, passage=On)
