"""A tiny language for traces: who did what, in order, one word per event.

    run("1 view 1,2 | 1 sub 3 | 1 org 1-3 | 1 del 1:1-3 | 2 view 1,2 | 2 del 1:1-3")

Events: start, view MEMBERS [=SEQ.REP] [trans] [<SEQ.REP] [t=MEMBERS] [minor] [from=MEMBERS/MEMBERS], sub N, org A-B,
rcv S:A-B, del S:A-B, dummy S:TAG, absent, present,
end QUEUE=N, crash, leave [unsent=A-B], stable MEMBERS DELAY, gview GROUP MEMBERS, refuse,
note NAME, mode ROLE, fault.
Of replicated states, at a place such as 2b: state WHAT PLACE [epoch=SEQ.REP] [members=MEMBERS] [taken] [parts=PLACES]
[bytes=N] [merges=false],
applied CALLER:NUMBER PLACE [odd], answered NUMBER [durable], lost CALLER:NUMBER.
Who: MEMBER or MEMBER/INCARNATION; 0 speaks about others.  Options: @MICROSECONDS, #DIGEST, safe, g=a,b, !ALTERED.
Every event takes one microsecond unless it says its time.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace
from ordercast.types import Service

ALL = (
    *(f"S{k}" for k in range(1, 27)),
    "Q1",
    *(f"A{k}" for k in range(1, 7)),
    *(f"L{k}" for k in range(1, 14)),
)


class Builder:
    """Keeps indexes, positions and views, as a recorder does."""

    def __init__(self, **header: Any) -> None:
        self.header = {"run": "t", "protocol": "made", "service": "agreed", "promises": ALL, "level": "full"} | header
        self.rows: list[Row] = []
        self.time = 0
        self.index: dict[tuple[int, int], int] = {}
        self.position: dict[tuple[int, int], int] = {}
        self.view: dict[tuple[int, int], tuple[int | None, int | None, int | None]] = {}
        self.counter: dict[tuple[int, int], int] = {}

    def add(self, member: int, kind: Kind, incarnation: int = 1, time_ns: int | None = None, **fields: Any) -> Row:
        key = (member, incarnation)
        self.time = self.time + 1000 if time_ns is None else time_ns
        self.index[key] = self.index.get(key, 0) + 1
        if kind == Kind.VIEW:
            self.view[key] = (fields["view_seq"], fields["view_rep"], fields["view_kind"])
        elif member and kind not in (Kind.START, Kind.CRASH):
            names = ("view_seq", "view_rep", "view_kind")
            fields = dict(zip(names, self.view.get(key, (None, None, None)), strict=True)) | fields
        position = self.position.get(key, 0) if member else None
        if kind == Kind.DELIVER:
            self.position[key] = self.position.get(key, 0) + fields["count"]
        fields.setdefault("position", position)
        row = Row(member, incarnation, self.index[key], self.time, self.time, int(kind), **fields)
        self.rows.append(row)
        return row

    def trace(self) -> Trace:
        members = {r.member for r in self.rows if r.member} | {m for r in self.rows for m in r.members or ()}
        return Trace(Header(**{"members": tuple(sorted(members))} | self.header), self.rows)


def run(text: str, **header: Any) -> Trace:
    """The trace of a text; see the module's head."""
    builder = Builder(**header)
    for event in filter(None, (part.strip() for part in re.split(r"[|\n]", text))):
        _event(builder, event.split())
    return builder.trace()


def _event(builder: Builder, words: list[str]) -> None:
    who, what, *rest = words
    member, _, incarnation = who.partition("/")
    me, inc = int(member), int(incarnation or 1)
    fields: dict[str, Any] = {}
    plain = [word for word in rest if not _option(word, fields)]
    time_ns = fields.pop("time_ns", None)
    _EVENTS[what](builder, me, inc, time_ns, plain, fields)


def _option(word: str, fields: dict[str, Any]) -> bool:
    if word[0] == "@":
        fields["time_ns"] = int(float(word[1:]) * 1000)
    elif word[0] == "#":
        fields["digest"] = int(word[1:])
    elif word in ("safe", "causal", "fifo"):
        fields["service"] = int(Service[word.upper()])
    elif word.startswith(("ring=", "order_seq=", "order_epoch=", "view_")):
        name, _, value = word.partition("=")
        fields[name] = int(value)
    elif word.startswith("stamp="):
        fields["detail"] = {"stamp": int(word[6:])}
    elif word.startswith("unsent="):
        first, count = _numbers(word[7:])
        fields["detail"] = {"unsent": [first, first + count - 1]}
    elif word.startswith("g="):
        fields["groups"] = tuple(word[2:].split(","))
    elif word[0] == "!":
        fields["detail"] = {"altered": int(word[1:])}
    else:
        return False
    return True


def _numbers(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first) - int(first) + 1


def _members(text: str) -> tuple[int, ...]:
    return tuple(int(m) for m in text.split(",") if m)


def _submit(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    if words and words[0].startswith("="):
        first, count = _numbers(words[0][1:])
    else:
        first, count = b.counter.get((me, inc), 0) + 1, int(words[0]) if words else 1
    b.counter[me, inc] = first + count - 1
    fields.setdefault("service", 3)
    b.add(me, Kind.SUBMIT, inc, at, sender=me, sender_incarnation=inc, counter=first, count=count, **fields)


def _frame(kind: Kind) -> Any:
    def add(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
        sender, _, numbers = words[0].rpartition(":")
        who, _, life = sender.partition("/")
        first, count = _numbers(numbers)
        fields.setdefault("service", 3)
        fields.setdefault("digest", first * 7919 + count)
        sinc = int(life or (1 if who else inc))
        b.add(me, kind, inc, at, sender=int(who or me), sender_incarnation=sinc, counter=first, count=count, **fields)

    return add


def _dummy(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    sender, _, tag = words[0].partition(":")
    fields |= {"sender": int(sender), "sender_incarnation": 1, "counter": 0, "count": 0, "order_seq": int(tag)}
    b.add(me, Kind.DELIVER, inc, at, certainty="dummy", **fields)


def _presence(kind: Kind) -> Any:
    def add(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
        b.add(me, kind, inc, at, **fields)

    return add


def _id(text: str) -> tuple[int, int]:
    seq, _, rep = text.partition(".")
    return int(seq), int(rep or 1)


def _view(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    members, kind, detail = _members(words[0]), 1, {}
    id: tuple[int, int] = (1, 1)
    previous: tuple[int | None, int | None] = (None, None)
    trans = None
    for word in words[1:]:
        if word == "trans":
            kind = 2
        elif word[0] == "=":
            id = _id(word[1:])
        elif word[0] == "<":
            previous = _id(word[1:])
        elif word.startswith("t="):
            trans = _members(word[2:])
        elif word == "minor":
            detail["primary"] = False
        elif word.startswith("from="):
            detail["components"] = [[None, list(_members(part))] for part in word[5:].split("/")]
    b.add(
        me, Kind.VIEW, inc, at, view_seq=id[0], view_rep=id[1], view_kind=kind, members=members, trans=trans,
        previous_seq=previous[0], previous_rep=previous[1], detail=detail or None, **fields,
    )  # fmt: skip


def _about(kind: Kind) -> Any:
    def add(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
        if me == 0 and words:
            who, _, life = words[0].partition("/")
            fields |= {"sender": int(who), "sender_incarnation": int(life or 1)}
        b.add(me, kind, inc, at, **fields)

    return add


def _stable(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    detail = {"delay_ns": int(words[1])} if len(words) > 1 else None
    b.add(0, Kind.STABLE, inc, at, members=_members(words[0]), detail=detail, **fields)


def _group_view(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    b.add(me, Kind.GROUP_VIEW, inc, at, groups=(words[0],), members=_members(words[1] if len(words) > 1 else ""))


def _note(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    detail: dict[str, Any] = {"name": words[0]}
    detail |= {key: int(value) for key, _, value in (word.partition("=") for word in words[1:])}
    b.add(me, Kind.NOTE, inc, at, detail=detail)


def _place(word: str) -> dict[str, Any]:
    return {"n": int(word[:-1]), "h": word[-1]}


def _state(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    place = _place(words[1])
    detail: dict[str, Any] = {"name": "state", "what": words[0], **place, "regular": place["n"], "epoch": "0.0"}
    makes = {"members": lambda text: [int(member) for member in text.split(",")], "bytes": int, "merges": json.loads,
             "parts": lambda text: [list(_place(word).values()) for word in text.split(",")]}  # fmt: skip
    for key, _, value in (word.partition("=") for word in words[2:]):
        detail[key] = makes[key](value) if key in makes else value or True
    b.add(me, Kind.NOTE, inc, at, detail=detail)


def _applied(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    caller, _, number = words[0].partition(":")
    detail = {"name": "applied", "caller": int(caller), "life": 1, "first": int(number), "count": 1}
    b.add(me, Kind.NOTE, inc, at, detail={**detail, **_place(words[1]), "regular": "odd" not in words})


def _answered(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    detail = {"name": "answered", "first": int(words[0]), "count": 1, "durable": "durable" in words}
    b.add(me, Kind.NOTE, inc, at, detail=detail)


def _lost(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    calls = [[int(caller), 1, int(number)] for caller, _, number in (word.partition(":") for word in words)]
    b.add(me, Kind.NOTE, inc, at, detail={"name": "lost", "calls": calls})


def _mode(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    b.add(me, Kind.MODE, inc, at, detail={"role": words[0], "number": 1})


def _refuse(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    b.add(me, Kind.REFUSE, inc, at, detail={"why": words[0].replace("_", " ") if words else "overloaded"})


def _end(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    detail: dict[str, Any] = {"queues": {}}
    for word in words:
        name, _, value = word.partition("=")
        if name == "none":
            del detail["queues"]
        elif name == "waits":
            detail["waits"] = {"ring": f"waits for member {value}"}
        else:
            detail["queues"][name] = int(value)
    b.add(me, Kind.END, inc, at, detail=detail)


def _fault(b: Builder, me: int, inc: int, at: int | None, words: list[str], fields: dict[str, Any]) -> None:
    more = {name: int(value or 1) for name, _, value in (word.partition("=") for word in words[1:])}
    b.add(0, Kind.FAULT, inc, at, detail={"class": words[0], "state": "on", "fields": more})


_EVENTS: dict[str, Any] = {
    "sub": _submit,
    "org": _frame(Kind.ORIGINATE),
    "rcv": _frame(Kind.RECEIVE),
    "del": _frame(Kind.DELIVER),
    "view": _view,
    "stable": _stable,
    "gview": _group_view,
    "note": _note,
    "state": _state,
    "applied": _applied,
    "answered": _answered,
    "lost": _lost,
    "mode": _mode,
    "refuse": _refuse,
    "end": _end,
    "fault": _fault,
    "dummy": _dummy,
    "absent": _presence(Kind.ABSENT),
    "present": _presence(Kind.PRESENT),
    **{kind.word: _about(kind) for kind in (Kind.START, Kind.CRASH, Kind.LEAVE, Kind.PAUSE, Kind.RESUME)},
}
