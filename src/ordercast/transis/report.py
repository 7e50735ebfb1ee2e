"""Status of the view-synchronous layer in plain words: what it holds, what it waits for, what did not arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ordercast.membership import NOTHING, State
from ordercast.transis.talk import Talk
from ordercast.types import Nanoseconds

if TYPE_CHECKING:
    from ordercast.transis.link import Link

Waits = tuple[str, Nanoseconds | None]  # for what, and since when, where that is remembered


def status(link: Link) -> dict[str, Any]:
    waits, since = _waits(link)
    return _held(link.talk) | {
        "plan": str(link.plan.ring_id) if link.plan is not None else None, "membership": link.membership.status(),
        "in_view": link.standing.works, "waits": waits, "waits_since_ns": since, "apart": link.membership.apart(),
    }  # fmt: skip


def unsent(talk: Talk) -> tuple[int, int] | None:
    """Own messages that somebody is not known to have: the first and the last."""
    rank, buffer = talk.traffic.rank, talk.traffic.stability.buffer
    mine = (getattr(data.body, "frame", None) for (q, _), data in buffer.items() if q == rank)
    counters = [frame.counter for frame in mine if frame is not None and not frame.control]
    return (min(counters), max(counters)) if counters else None


def _held(talk: Talk) -> dict[str, Any]:
    traffic, members = talk.traffic, talk.members
    held, gaps, buffer = len(traffic.reception.held), len(traffic.repair.gaps), len(traffic.stability.buffer)
    repeated = sorted(traffic.repair.repeated.items())
    return {
        "view": str(talk.id), "members": list(members), "have": list(traffic.have), "unstable": buffer,
        "held": held, "gaps": gaps, "windows": list(traffic.windows),
        "queues": {"unstable": buffer, "held": held, "gaps": gaps, "unicasts": talk.unicasts.waiting()},
        "repeated": {members[rank]: n for rank, n in repeated},
    }  # fmt: skip


def _waits(link: Link) -> Waits:
    if link.standing.works:
        return _within(link.talk)
    state, words = link.standing.state, link.membership.words()
    if state is State.RECOVERY and link.flush is not None:
        words = link.flush.waits()
    else:
        words = f"a view, which waits {words}" if words != NOTHING else f"a view: {state.value}"
    return words, link.standing.left


def _within(talk: Talk) -> Waits:
    """In a view that works."""
    traffic, members = talk.traffic, talk.members
    if traffic.full:
        rank, since = min(traffic.full.items(), key=lambda item: item[1])
        return f"the application of member {members[rank]}, which does not read what it was delivered", since
    if traffic.repair.gaps:
        (q, k), *_ = traffic.repair.gaps
        return f"message {k} of member {members[q]}, which is missing", None
    if traffic.stability.buffer:
        late = [m for r, m in enumerate(members) if traffic.stability.acked(r) < traffic.have]
        return f"acknowledgements of members {late}", None
    return "acknowledgements of unicasts" if talk.unicasts.waiting() else "", None
