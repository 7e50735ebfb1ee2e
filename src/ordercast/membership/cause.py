"""Every view says why it came: what happened, to whom, which timer said so, on which evidence.

The first cause of a member's Gather counts, and Joins carry it, so that those who only follow name the origin as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from ordercast.membership.choose import Row
from ordercast.types import U32, Cause, MemberId, Nanoseconds

WORDS_MAX = 32
EVIDENCE_MAX = 160

START = Cause("start")
MILLISECOND = 1_000_000


class ToldCause(Struct, frozen=True, array_like=True, gc=False):
    """A cause as a Join carries it."""

    reason: Annotated[str, Meta(max_length=WORDS_MAX)]
    member: U32 | None
    timer: Annotated[str, Meta(max_length=WORDS_MAX)]
    evidence: Annotated[str, Meta(max_length=EVIDENCE_MAX)]


def tell(cause: Cause) -> ToldCause:
    return ToldCause(cause.reason[:WORDS_MAX], cause.member, cause.timer[:WORDS_MAX], cause.evidence[:EVIDENCE_MAX])


def told(cause: ToldCause, by: MemberId) -> Cause:
    """As another member told it; the first teller is named once."""
    evidence = cause.evidence
    if not evidence.endswith(")") or "(told by " not in evidence:
        evidence = f"{evidence} (told by {by})".strip()
    return Cause(cause.reason, cause.member, cause.timer, evidence)


def milliseconds(ns: Nanoseconds) -> str:
    ms = ns / MILLISECOND
    return f"{ms:.4g} ms" if ms < 9_999 else f"{ms / 1_000:.4g} s"


def token_loss(silent_ns: Nanoseconds, loss_ns: Nanoseconds) -> Cause:
    return Cause("token loss", None, "T_loss", f"no token for {milliseconds(silent_ns)}, bound {milliseconds(loss_ns)}")


def silence(q: MemberId, silent_ns: Nanoseconds, loss_ns: Nanoseconds) -> Cause:
    evidence = f"nothing heard for {milliseconds(silent_ns)}, bound {milliseconds(loss_ns)}"
    return Cause("silence", q, "T_loss", evidence)


def moved_on(q: MemberId, what: str) -> Cause:
    return Cause("departure", q, "", what)


def hint(q: MemberId) -> Cause:
    return Cause("crash hint", q, "", "its port answered that nobody is there")


def choice(members: tuple[MemberId, ...], chosen: tuple[MemberId, ...], rows: Mapping[MemberId, Row]) -> Cause:
    """The table gives another view: a merge if it brings members, a broken link or a leave if it takes some."""
    lost = [q for q in members if q not in chosen]
    new = [q for q in chosen if q not in members]
    gone = [q for q in lost if q not in rows or not rows[q].hears]
    if gone:
        return Cause("leave", gone[0], "", f"{names(gone)} said to be gone")
    if lost:
        return Cause("broken link", lost[0], "", f"{names(lost)} not linked with all of {names(chosen)}")
    return Cause("merge", new[0] if new else None, "", f"linked with {names(new)}")


def names(members: tuple[MemberId, ...] | list[MemberId]) -> str:
    return "member " + ", ".join(map(str, members)) if len(members) == 1 else "members " + ", ".join(map(str, members))
