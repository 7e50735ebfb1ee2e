"""Who finishes an old view together: entries on the commit token become components, each with its plan.

Members that write the same old view on their entries form a group.  A *plan* is made in one attempt at a new view, by
those of one old view, its T: which messages they agree on, and what each contributes to the flush.  Who holds all of it
is *done* and keeps it, unchanged, until it installs it or finds it dead: somebody may have installed it already.

Literature: extended virtual synchrony (Moser, Amir, Melliar-Smith, Agarwal 1994) has no plans that outlive an attempt;
an order that depends on who came along (drain, stamps) needs them.

T and component are not the same: T says what was agreed, by those who may have installed it; the component is who goes
on from the old view together now, and is the transitional set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ordercast.membership.bitmap import Bitmap
from ordercast.transis.packets import Acks, Data
from ordercast.types import MemberId, ViewId

PlanName = tuple[ViewId, tuple[MemberId, ...]]  # the attempt it was made in, and its T


class LayerEntry(Struct, frozen=True, array_like=True, gc=False):
    """What a member writes on the commit token: its state of the old view, at the freeze."""

    view: ViewId
    have: Acks
    plan: tuple[ViewId, Bitmap] | None = None  # the one it is done with


class Plan(Struct, frozen=True):
    """All that is needed to install: the same at all of T, but for `missing`, which is what this member lacked."""

    ring_id: ViewId
    together: tuple[MemberId, ...]  # T
    cut: tuple[int, ...]  # the agreed set: so much of each rank of the old view
    missing: dict[tuple[int, int], Data[Any]]
    states: tuple[bytes, ...]  # contributions of T, in the order of ids

    @property
    def name(self) -> PlanName:
        return self.ring_id, self.together


class Component(Struct, frozen=True):
    """Those who go on from one old view together."""

    view: ViewId
    members: tuple[MemberId, ...]
    plan: PlanName | None  # an earlier one that they keep; None: they make a new one
    intermediate: ViewId | None  # the view they install first, because others of the old view come from elsewhere

    @property
    def together(self) -> tuple[MemberId, ...]:
        """T: who agreed, or agrees now."""
        return self.members if self.plan is None else self.plan[1]

    @property
    def origin(self) -> ViewId:
        """The view they come to the new one from."""
        return self.intermediate or self.view


def components(ring_id: ViewId, entries: Mapping[MemberId, tuple[ViewId, PlanName | None]]) -> list[Component]:
    """By (old view, smallest member), from what each wrote: its old view, and the plan it is done with.

    A plan is alive if everybody of its T that is here, from that view, carries it: else one of them left that attempt
    undone, so nobody ever installed it.  Who carries an alive plan keeps it; all others of a view make a new one.
    """
    groups: dict[ViewId, dict[MemberId, PlanName | None]] = {}
    for member, (view, plan) in sorted(entries.items()):
        groups.setdefault(view, {})[member] = plan
    out: list[Component] = []
    for view, group in sorted(groups.items()):
        cells: dict[PlanName | None, list[MemberId]] = {}
        for member, plan in group.items():
            cells.setdefault(plan if plan is not None and _alive(plan, group) else None, []).append(member)
        found = sorted((tuple(members), plan) for plan, members in cells.items())
        for members, plan in found:
            between = ViewId(ring_id.seq - 1, members[0]) if len(found) > 1 else None
            out.append(Component(view, members, plan, between))
    return out


def _alive(plan: PlanName, group: Mapping[MemberId, PlanName | None]) -> bool:
    return all(group[member] == plan for member in plan[1] if member in group)
