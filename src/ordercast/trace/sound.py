"""What a row must say before anybody may judge or measure it: traces come from other hands, too.

The form of a file is its reader's business; this is about sense: who may write what, in which order of time, with which
columns and of which types inside `detail`.  Arrays only find the row; what is wrong with it is said by one function, so
that both forms of a trace are refused alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ordercast.trace.schema import NULL_U32, NULL_U64, DatagramCounts, Header, Kind, Row
from ordercast.types import ViewKind

if TYPE_CHECKING:
    from ordercast.trace.columns import Columns, Sparse

COUNTER_MAX = 2**62  # so that a counter and a count can be added in 64 bits
_TRAFFIC = (Kind.SUBMIT, Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER)
_OWN = frozenset((*_TRAFFIC, Kind.DECIDE, Kind.VIEW, Kind.GROUP_VIEW, Kind.REFUSE))  # what only a member does
_MESSAGE = ("sender", "sender_incarnation", "counter", "count")
_VIEW = ("view_seq", "view_rep", "view_kind", "members")
_WIDE = ("incarnation", "sender_incarnation", "view_seq")  # of 64 bits; with `counter`


# ------------------------------------------------------------------------------- details, as far as somebody reads them


class _View(Struct):
    components: list[tuple[list[int] | None, list[int]]] | None = None
    primary: bool = True


class _Frame(Struct):
    altered: int | None = None


class _Stable(Struct):
    delay_ns: int = 0


class _Fields(Struct, frozen=True):
    pairs: list[str] = []


class _Fault(Struct):
    delay_ns: int = 0
    fields: _Fields = _Fields()


class _End(Struct):
    queues: dict[str, int | float] | None = None
    traffic: DatagramCounts | None = None


class _Note(Struct):
    name: str = ""
    ns: Any = 0
    member: Any = 0
    until: Any = 0
    frames: Any = 0


_DETAILS: dict[int, type[Struct]] = {
    Kind.VIEW: _View, Kind.ORIGINATE: _Frame, Kind.DELIVER: _Frame, Kind.STABLE: _Stable, Kind.FAULT: _Fault,
    Kind.END: _End, Kind.NOTE: _Note,
}  # fmt: skip
_READ = {"t_loss": ("ns",), "probation": ("member", "until"), "retransmit": ("frames",)}  # of notes: whole numbers
_ERRORS = (msgspec.MsgspecError, RecursionError)


def _odd_note(note: _Note) -> str:
    for field in _READ.get(note.name, ()):
        if type(getattr(note, field)) is not int:
            return f"its detail: expected a whole number for {field} of a note {note.name}"
    return ""


def _odd_detail(kind: int, detail: Any) -> str:
    """What is wrong with a detail, decoded or not."""
    try:
        if isinstance(detail, str | bytes):
            detail = msgspec.json.decode(detail)
        if not isinstance(detail, dict):
            return f"its detail is {type(detail).__name__}: expected an object"
        found = msgspec.convert(detail, _DETAILS.get(kind, Struct))
    except _ERRORS as why:
        return f"its detail: {str(why)[:160]}"
    return _odd_note(found) if isinstance(found, _Note) else ""


# -------------------------------------------------------------------------------------------------------------- rows


def fault_of(row: Row, before: Row | None) -> str:
    """What is wrong with a row, in words, or nothing; `before`: the row before it in its life."""
    kind = Kind(row.kind)
    if not row.member and kind in _OWN:
        return f"{kind.word} is a member's event: expected a member above 0"
    if before is not None and row.time_ns < before.time_ns:
        return "time goes backwards"
    for name in _MESSAGE[:3] if kind in _TRAFFIC else _VIEW if kind == Kind.VIEW else ():
        if getattr(row, name) is None:
            return f"{kind.word} has no {name}"
    if kind in _TRAFFIC and not row.count and not (kind == Kind.DELIVER and row.counter == 0):  # that is a dummy
        return f"{kind.word} has no count"
    if kind == Kind.VIEW and row.view_kind not in tuple(ViewKind):
        return f"the view is of kind {row.view_kind}: expected regular 1 or transitional 2"
    if kind == Kind.GROUP_VIEW and (not row.groups or row.members is None):
        return "group_view has no groups or no members"
    if (row.view_seq is None) != (row.view_rep is None) or (row.previous_seq is None) != (row.previous_rep is None):
        return "a view's number is only half there"
    if row.groups is not None and not row.groups:
        return "groups is empty: expected at least one, or null"
    if any((getattr(row, name) or 0) < 0 or (getattr(row, name) or 0) >= 2**63 for name in _WIDE):
        return "a number is outside 0 to 2^63 - 1"
    if row.counter is not None and not 0 <= row.counter <= COUNTER_MAX:
        return f"counter is {row.counter}: expected 0 to 2^62"
    return "" if row.detail is None else _odd_detail(kind, row.detail)


def header_fault(header: Header) -> str:
    """What is wrong with a header beyond its form."""
    gateways = header.options.get("gateways")
    if gateways is not None and not (isinstance(gateways, list | tuple) and all(type(g) is int for g in gateways)):
        return "the header's option gateways is not a list of members"
    return ""


def faults(rows: Sequence[Row]) -> Iterator[tuple[int, str]]:
    """(row, what is wrong with it) of one life."""
    before: Row | None = None
    for k, row in enumerate(rows):
        why = fault_of(row, before)
        if why:
            yield k, why
        before = row


# ------------------------------------------------------------------------------------------------------------ arrays


def first_fault(columns: Columns) -> tuple[int, str] | None:
    """The first row of a run, or of several, that cannot be used, and why; columns not read are not looked at."""
    unread: dict[str, Any] = {name: 1 for name in (*_MESSAGE, *_VIEW[:3]) if name not in columns}
    if not len(columns.sparse["members"]):
        unread["members"] = ()
    for k in sorted(_suspects(columns)):
        row = columns.row(k)
        before = columns.row(k - 1) if k else None
        if before is not None and (before.member, before.incarnation) != (row.member, row.incarnation):
            before = None
        untold = {name: value for name, value in unread.items() if getattr(row, name) is None}
        why = fault_of(msgspec.structs.replace(row, **untold), before)
        if why:
            return k, why
    return None


def _suspects(columns: Columns) -> set[int]:
    """Rows worth a look: the first of those that break a rule."""
    import numpy as np

    c, kind, member = columns, columns["kind"], columns["member"]
    world = np.flatnonzero(member == 0)
    odd: list[Any] = [world[np.isin(kind[world], list(map(int, _OWN)))]]
    if "time_ns" in c:
        back = np.flatnonzero(c["time_ns"][1:] < c["time_ns"][:-1]) + 1  # few: where a life begins
        back = back[(member[back] == member[back - 1]) & (c["incarnation"][back] == c["incarnation"][back - 1])]
        odd.append(back[c["index"][back] > c["index"][back - 1]])
    traffic = (kind <= int(Kind.RECEIVE)) | (kind == int(Kind.DELIVER))
    if "count" in c and "counter" in c:
        odd.append(traffic & (c["count"] == 0) & ((kind != int(Kind.DELIVER)) | (c["counter"] != 0)))
    for name, null in (("sender", NULL_U32), ("sender_incarnation", NULL_U64), ("counter", NULL_U64)):
        if name in c:
            odd.append(traffic & (c[name] < 0 if null == NULL_U64 else c[name] == null))
    for name in (*_WIDE, "counter"):
        least = 0 if name == "incarnation" else NULL_U64
        if name in c and len(kind) and (c[name].min() < least or (name == "counter" and c[name].max() > COUNTER_MAX)):
            odd.append((c[name] < least) | ((c[name] > COUNTER_MAX) & (name == "counter")))
    if all(name in c for name in _VIEW[:3]):
        half = (c["view_seq"] < 0) != (c["view_rep"] == NULL_U32)
        views = np.flatnonzero(kind == int(Kind.VIEW))
        wrong = (c["view_seq"][views] < 0) | ~np.isin(c["view_kind"][views], list(map(int, ViewKind)))
        odd += [half, views[wrong]]
        named = c.sparse["members"].rows
        odd += [views[~np.isin(views, named)]] if len(named) else []
    groups = c.tables["groups"]
    odd += [c["groups"] == groups.index(())] if () in groups else []
    told = np.flatnonzero(kind == int(Kind.GROUP_VIEW))
    odd += [told[c["groups"][told] < 0]] if groups else []
    halves = c.sparse["previous_seq"].rows, c.sparse["previous_rep"].rows
    odd += [np.setxor1d(*halves)] if all(map(len, halves)) else []
    places = (np.flatnonzero(found) if found.dtype == bool else found for found in odd)
    return {int(k) for rows in places for k in rows[:1]} | _odd_details(c.sparse["detail"], kind)


def _odd_details(column: Sparse, kind: Any) -> set[int]:
    """Kind by kind all at once; one by one where some are odd."""
    out: set[int] = set()
    of = kind[column.rows] if len(column) else kind[:0]
    for number, type_ in _DETAILS.items():
        places = (of == number).nonzero()[0].tolist()
        values = column.raw(places)
        try:
            if values and isinstance(values[0], str):
                found = msgspec.json.decode(f"[{','.join(values)}]", type=list[type_])  # type: ignore[valid-type]
            else:
                found = msgspec.convert(values, list[type_])  # type: ignore[valid-type]
            if len(found) == len(values) and not any(_odd_note(note) for note in found if type_ is _Note):
                continue
        except (*_ERRORS, TypeError):
            pass
        odd = (k for k, value in zip(places, values, strict=True) if _odd_detail(number, value))
        out |= {int(column.rows[k]) for k in list(odd)[:1]}
    return out
