"""What a checker says of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ordercast.trace.schema import LEVEL_KINDS, Header, Kind, Level, Row
from ordercast.verify.catalogue import Promise
from ordercast.verify.lost import Lost

HOLDS, BROKEN, CANNOT_JUDGE, NOTHING = "holds", "broken", "cannot judge", "nothing to judge"
ORDER = ("S18", "S17", "S19", "S21")  # promises of one order, which one cause breaks together: the one that tells first


class Finding(Struct, frozen=True):
    """What one checker found; `example`: the smallest set of rows that shows a break."""

    state: str
    text: str = ""
    example: tuple[Row, ...] = ()
    judged: int = 0


def holds(judged: int, text: str = "") -> Finding:
    return Finding(HOLDS, text, (), judged)


def broken(text: str, rows: Iterable[Row | None], judged: int = 0) -> Finding:
    return Finding(BROKEN, text, tuple(row for row in rows if row is not None), judged)


def unless_lost(finding: Finding, lost: Lost) -> Finding:
    """What would hold, were everything there."""
    return cannot_judge(lost.words()) if lost and finding.state == HOLDS else finding


def cannot_judge(text: str) -> Finding:
    return Finding(CANNOT_JUDGE, text)


class Verdict(Struct, frozen=True):
    """A promise's state in one run: holds, broken, cannot judge, or nothing to judge."""

    promise: str
    state: str
    text: str  # the promise, and what was seen
    example: list[dict[str, Any]]  # rows a person can read; empty unless broken
    judged: int  # how many things (messages, views, ...) were held against it
    told_by: str = ""  # the promise whose finding is this one, too

    @property
    def ok(self) -> bool:
        return self.state == HOLDS


def verdicts(found: Iterable[tuple[Promise, Finding]], note: str = "") -> list[Verdict]:
    """What is said of a run: one line per promise; of promises that one cause broke, one tells it."""
    findings = list(found)
    told = _told_by({promise.id: finding for promise, finding in findings})
    return [_verdict(promise, finding, note, told.get(promise.id, "")) for promise, finding in findings]


def _verdict(promise: Promise, finding: Finding, note: str, told_by: str) -> Verdict:
    text = f"{promise.id} {promise.name}: {promise.statement}"
    state = NOTHING if finding.state == HOLDS and not finding.judged else finding.state
    more = {HOLDS: note, NOTHING: "none of its events happened", BROKEN: told_by and f"the same finding as {told_by}"}
    text = "; ".join(filter(None, (text, finding.text, more.get(state, ""))))
    return Verdict(promise.id, state, text, [readable(row) for row in finding.example], finding.judged, told_by)


def _told_by(findings: dict[str, Finding]) -> dict[str, str]:
    """Broken promises of order -> the strongest of them, where it is the same cause.

    What breaks S17 breaks S18, and what breaks any of them S21; a hole is the same cause if it is about a message of
    which the order differs.
    """
    broken = [id for id in ORDER if id in findings and findings[id].state == BROKEN]
    first = broken[0] if broken else ""
    return {id: first for id in broken[1:] if id != "S19" or _messages(findings[id]) & _messages(findings[first])}


def _messages(finding: Finding) -> set[tuple[int | None, ...]]:
    return {(row.sender, row.sender_incarnation, row.counter) for row in finding.example}


def without_end(members: Iterable[int]) -> str:
    """What to add to a verdict where lives neither end nor are known to have crashed."""
    named = ", ".join(map(str, members))
    return f"the rows of member {named} stop without an end: judged up to there" if named else ""


def missing(promise: Promise, header: Header) -> str:
    """Why a trace of this header cannot show the promise, or nothing."""
    if promise.elsewhere:
        return f"one trace cannot show it: judged by {promise.elsewhere}"
    if header.gone:
        files = ", ".join(f"{file} of member {member}" for member, file in sorted(header.gone.items()))
        return f"the trace is not whole: what was written before {files} is no longer kept"
    if header.level.upper() not in Level.__members__:
        return f"the header names a level of tracing, {header.level!r}, that is not known here"
    level = Level[header.level.upper()]
    lacking = [kind.word for kind in promise.kinds if kind not in LEVEL_KINDS[level]]
    if lacking:
        return f"it needs {' and '.join(lacking)} rows, which level {header.level!r} leaves out"
    return ""


def readable(row: Row) -> dict[str, Any]:
    """A row as a person reads it: what is set, ids of messages and views joined."""
    out: dict[str, Any] = {"member": row.member, "incarnation": row.incarnation, "index": row.index}
    out |= {"time_ns": row.time_ns, "kind": Kind(row.kind).word}
    if row.counter is not None:
        last = row.counter + (row.count or 1) - 1
        numbers = f"{row.counter}" if last == row.counter else f"{row.counter}-{last}"
        out["message"] = f"{row.sender}:{numbers}"
        out["sender_incarnation"] = row.sender_incarnation
    elif row.sender is not None:
        out["about"] = row.sender
    if row.view_seq is not None:
        kind = {1: "", 2: " transitional"}.get(row.view_kind or 0, "")
        out["view"] = f"{row.view_seq}.{row.view_rep}{kind}"
    if row.previous_seq is not None:
        out["previous"] = f"{row.previous_seq}.{row.previous_rep}"
    for name in ("position", "service", "groups", "members", "trans", "digest", "order_epoch", "order_seq", "detail"):
        value = getattr(row, name)
        if value is not None:
            out[name] = list(value) if isinstance(value, tuple) else value
    return out
