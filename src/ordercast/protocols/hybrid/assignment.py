"""Who should be active: the paper's rule for all at once (figure 2), and for one that looks at itself (6.2).

A process that sends every t and has an active one at distance D: as a passive one its message travels there and back to
all, 2 D; as an active one it is ordered as soon as all have spoken since, D + t.  So it should be active where t < D.
That is selfish: everybody else's messages wait for the promises of an active one.  `shared` weighs that: it gives the
interval at which the gain of its own messages is the loss of the others'.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

P = TypeVar("P", bound=Hashable)


class Assignment(NamedTuple):
    active: list[Hashable]  # sorted
    sequencer: dict[Hashable, Hashable]  # of each that is passive
    rounds: int  # passes over all processes, the last one, which changes nothing, included


def assign(
    rates: Mapping[P, float],
    distance: Mapping[P, Mapping[P, float]],
    order: Sequence[P],
    tie: Literal["passive", "active"] = "passive",
) -> Assignment:
    """Figure 2.  `rates` in messages a second, `distance` in ms, `order`: in which processes are visited, on which the
    outcome depends (H17); `tie`: what t = D gives (H16)."""
    place = {p: k for k, p in enumerate(order)}
    active = {max(order, key=lambda p: (rates[p], -place[p]))}
    sequencer: dict[Hashable, Hashable] = {}
    rounds, changed = 0, True
    while changed:
        rounds, changed = rounds + 1, False
        for j in order:
            if j in active:
                continue
            closest = min(active, key=lambda a: (distance[j][a], place[a]))
            t, d = 1000 / rates[j], distance[j][closest]
            if t < d or (t == d and tie == "active"):
                active.add(j)
                sequencer.pop(j, None)
                changed = True
            else:
                sequencer[j] = closest
    return Assignment(sorted(active, key=repr), sequencer, rounds)


def switch(active: bool, t: float, distance: float, threshold: float) -> str | None:
    """What a process becomes that sends every `t` and has another active one at `distance`; None: it stays."""
    if active:
        return "passive" if t > (1 + threshold) * distance else None
    return "active" if t < (1 - threshold) * distance else None


def shared(t: float, others: float, null: float) -> float:
    """The interval to compare with the distance when all messages count: `others` come per unit of time, and wait for a
    promise of this process half of the time between two, which is `t`, or `null` when it is silent for longer."""
    return t * others * min(t, null) / 2
