"""The install of a view, one step: what was agreed of the old view goes up, then who is gone, the flush, the views.

  1. The missing part of the agreed set is inserted, repeatedly the insertable message with the smallest (rank, seq).
  2. Crash(q) for each member of the old view outside T: nothing of q comes after it.
  3. Flush, with the contributions of T: afterwards the protocol above holds nothing undelivered.
  4. The transitional view of the component; if others of the old view come to the new one from elsewhere, a view of the
     component alone, and its own transitional view; then the new view.
Nothing is asked of the network in between, so a member dies before the step or after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ordercast.contract import Action, Crash, Flush, Received, Up, ViewChange
from ordercast.membership import Committed
from ordercast.transis.packets import Data
from ordercast.transis.plan import Component, Plan
from ordercast.transis.reception import Reception
from ordercast.transis.repair import Key
from ordercast.types import Cause, MemberId, View, ViewId, ViewKind

Origins = tuple[tuple[ViewId | None, tuple[MemberId, ...]], ...]


def insertion(have: Sequence[int], missing: dict[Key, Data[Any]], causal: bool) -> list[tuple[int, int, Data[Any]]]:
    """The missing part of an agreed set, in the canonical order."""
    reception: Reception[Data[Any]] = Reception(len(have), causal=causal)
    reception.have = list(have)
    lines: dict[int, deque[int]] = {}  # of each rank, what is to come
    for rank, seq in sorted(missing):
        lines.setdefault(rank, deque()).append(seq)
    out: list[tuple[int, int, Data[Any]]] = []
    while lines:
        heads = [(rank, line[0]) for rank, line in lines.items()]
        # none ready: a vector says what cannot be; that is a neighbour's fault, and looks the same to all of T
        rank, seq = next((key for key in heads if reception.ready(*key, missing[key].vec)), heads[0])
        lines[rank].popleft()
        if not lines[rank]:
            del lines[rank]
        reception.have[rank] = seq
        out.append((rank, seq, missing[rank, seq]))
    return out


def closing(
    old: ViewId, members: tuple[MemberId, ...], have: Sequence[int], plan: Plan, causal: bool
) -> tuple[list[Action], int]:
    """Steps 1 to 3, for a member of the view `old`; and how many messages were inserted."""
    inserted = insertion(have, plan.missing, causal)
    out: list[Action] = [Up(Received(members[q], k, data.body, data.vec, told=True)) for q, k, data in inserted]
    out += [Up(Crash(member)) for member in members if member not in plan.together]
    out.append(Up(Flush(plan.states, plan.cut)))
    return out, len(inserted)


def views(committed: Committed, mine: Component, everybody: Sequence[Component], was: bool | None) -> list[Action]:
    """Step 4; a member without an old view has the new one alone.  `was`: whether the old view was primary, where a
    policy says; so is the transitional view that closes it, and one in between never."""
    ring_id, members, cause, primary = committed.ring_id, committed.members, committed.cause, committed.primary
    first = not mine.view.seq
    together = mine.members
    out: list[Action] = []
    previous = None if first else mine.view
    if mine.intermediate is not None:
        between, origin, never = mine.intermediate, ((mine.view, together),), None if primary is None else False
        out.append(_transitional(between, together, mine.view, cause, was))
        out.append(Up(ViewChange(View(between, ViewKind.REGULAR, together, together, origin, mine.view, cause, never))))
        previous, was = between, never
    if previous is not None:
        out.append(_transitional(ring_id, together, previous, cause, was))
    trans = () if first else together
    view = View(ring_id, ViewKind.REGULAR, members, trans, origins(everybody), previous, cause, primary)
    return [*out, Up(ViewChange(view))]


def _transitional(
    id: ViewId, members: tuple[MemberId, ...], previous: ViewId, cause: Cause, primary: bool | None
) -> Action:
    return Up(ViewChange(View(id, ViewKind.TRANSITIONAL, members, members, (), previous, cause, primary)))


def origins(everybody: Sequence[Component]) -> Origins:
    """The views behind a new one: where each of its members comes from."""
    found = sorted((component.origin, component.members) for component in everybody)
    return tuple((view if view.seq else None, members) for view, members in found)
