"""Status of the membership in plain words: what it holds, whom it hears, what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ordercast.membership.automaton import State
from ordercast.membership.cause import milliseconds, names
from ordercast.membership.choose import NO_VIEW
from ordercast.membership.packets import Rival
from ordercast.types import Incarnation, MemberId

if TYPE_CHECKING:
    from ordercast.membership.member import Membership


NOTHING = "for nothing"


def status(m: Membership) -> dict[str, Any]:
    """State, view, T_loss, who hears whom, strikes and probations, refused members, and what it waits for."""
    standing, evidence, table = m.standing, m.sight.evidence, m.sight.table
    return {
        "state": m.state.value,
        "view": str(m.view) if m.view != NO_VIEW else None,
        "members": list(m.members),
        "forming": list(standing.forming.members) if standing.forming else [],
        "cause": str(standing.cause),
        "t_loss_ns": m.sight.tuning.loss_ns,
        "hears": sorted(table.own.hears),
        "rows": {q: sorted(row.hears) for q, row in sorted(table.rows.items())},
        "strikes": {q: link.strikes for q, link in sorted(evidence.links.items()) if link.strikes},
        "probation": {
            q: {"why": evidence.links[q].why, "left_ns": left}
            for q in sorted(evidence.links)
            if (left := evidence.left_ns(q))
        },
        "other_timeout_ns": {q: refused.timeout_ns for q, refused in sorted(m.sight.other_timeout.items())},
        "rival": m.sight.rivals.life,
        "wrong_clocks": {
            q: f"{what}, more than a day above what is known here ({count} dropped): a wrong clock, there or here"
            for q, (count, what) in sorted(m.sight.implausible.items())
        },
        "storage_error": error(m) or None,
        "waits": words(m),
    }


def words(m: Membership) -> str:
    """What this member waits for."""
    if m.number.ill:
        return f"for its storage, which says: {error(m)}"
    match m.state:
        case State.PARTED:
            return "for nothing: it left"
        case State.GATHER if m.ballot.pending is not None:
            return f"for ring number {m.ballot.pending.ring_id.seq} to be stored"
        case State.GATHER if m.ballot.proposal:
            missing = m.ballot.dissenters()
            if missing:
                return "for members " + ", ".join(map(str, missing)) + " to agree"
            return f"for the commit token of member {m.ballot.proposal[0]}"
        case State.COMMIT:
            return f"for the commit token of ring {m.standing.present.id}"
        case State.RECOVERY if not m.recorded:
            return f"for the record of ring {m.standing.present.id} to be stored"
        case State.RECOVERY:
            return f"for recovery in ring {m.standing.present.id}"
    return m.patience.words or NOTHING


def error(m: Membership) -> str:
    """What its storage says, if writes fail."""
    return m.number.error or (m.primary.error if m.primary is not None else "")


def apart(m: Membership) -> str:
    """Who is kept out of my view by a probation, or keeps me out of its own."""
    sight = m.sight
    evidence, rows = sight.evidence, sight.table.rows
    kept = [(q, left) for q in sorted(evidence.links) if (left := evidence.left_ns(q))]
    words = [
        f"the probation of member {q}, another {milliseconds(left)} (its link failed: {evidence.links[q].why})"
        for q, left in kept
    ]
    deaf = [q for q, row in sorted(rows.items()) if sight.hears(q) and row.hears and sight.me not in row.hears]
    if deaf:
        words.append(f"{names(deaf)}, heard here, to hear this one, or to end its probation")
    if sight.rivals.name(evidence.at) is not None:
        words.append(f"another process that says it is member {sight.me} (life {sight.rivals.life}) to end")
    return "; ".join(words)


def outdone(me: MemberId, life: Incarnation, rival: Rival) -> str:
    """The sentence that a member ends with when another life of its id stays."""
    why = "is in a view with others" if rival.together else "has lived longer"
    return f"another process is member {me} and {why} (life {life}): expected one process for each member"
