"""Space-time pictures: what happened first, who told whom, and that everybody delivered in one order.

`svg` draws a self-contained picture: one lane per member, time from left to right, views as bands, arrows from where a
frame was multicast to where it was received (or, without receive rows, delivered), deliveries numbered in their order.
`text` is the same for terminals.  Columns are slots, not seconds: later is never further left, and the axis has times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ordercast.trace.drawing import draw, table, view_name
from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace
from ordercast.types import ViewKind

EVENTS = 100
_SHOWN = frozenset(
    (Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER, Kind.VIEW, Kind.CRASH, Kind.START, Kind.LEAVE, Kind.PAUSE,
     Kind.RESUME, Kind.FAULT, Kind.STABLE)
)  # fmt: skip
FrameKey = tuple[int | None, int | None, int | None]


class Event(NamedTuple):
    """A row with its place in the picture; lane 0 is the world, lane k the k-th member."""

    row: Row
    kind: Kind
    lane: int
    slot: int
    number: int  # of a delivery: the how-manieth frame of this life
    marked: bool


class Arrow(NamedTuple):
    """A frame on its way."""

    source: Event
    target: Event


class Band(NamedTuple):
    """A life in one view."""

    view: Event
    lane: int
    first: int  # slot
    last: int
    regular: bool
    words: str


class Life(NamedTuple):
    lane: int
    first: int
    last: int
    ended: str  # crash, leave, or nothing


class Scene(NamedTuple):
    title: str
    subtitle: str
    members: list[int]
    events: list[Event]
    arrows: list[Arrow]
    bands: list[Band]
    lives: list[Life]
    slots: int
    left_out: int  # events after the last one shown
    begin_ns: int


def svg(
    trace: Trace, limit: int = EVENTS, marked: Iterable[Row | dict[str, Any]] = (), title: str | None = None
) -> str:
    """The first `limit` events as SVG; `marked` rows (a verdict's example) get a ring, and are shown in any case."""
    return draw(scene(trace, limit, marked, title))


def text(trace: Trace, limit: int = EVENTS, marked: Iterable[Row | dict[str, Any]] = ()) -> str:
    """The first `limit` events as lines of text, one column per member."""
    return table(scene(trace, limit, marked, None))


def scene(trace: Trace, limit: int, marked: Iterable[Row | dict[str, Any]], title: str | None) -> Scene:
    """What to draw where."""
    marks = {_place(row) for row in marked}
    rows = [row for row in trace.rows if row.kind in _SHOWN and not _first_start(row, trace)]
    rows.sort(key=lambda row: (row.time_ns, row.member, row.incarnation, row.index))
    shown, left_out = _choose(rows, limit, marks)
    members = sorted(set(trace.header.members) | {row.member for row in shown if row.member})
    events, slots = _arrange(shown, members, marks, _numbers(trace.rows))
    header = trace.header
    name = title or f"{header.protocol}, {header.service}, {len(members)} members"
    seed = f"seed {header.seed} · " if header.seed is not None else ""
    subtitle = f"run {header.run} · {seed}{sum(event.kind != Kind.RECEIVE for event in events)} events"
    return Scene(
        name, subtitle, members, events, _arrows(events), _bands(events, slots), _lives(events, len(members), slots),
        slots, left_out, rows[0].time_ns if rows else 0,
    )  # fmt: skip


def _place(row: Row | dict[str, Any]) -> tuple[int, int, int]:
    if isinstance(row, Row):
        return row.member, row.incarnation, row.index
    return row["member"], row["incarnation"], row["index"]


def _first_start(row: Row, trace: Trace) -> bool:
    """The start of a first life says nothing: everybody starts."""
    if row.kind != Kind.START:
        return False
    who, incarnation = (row.sender, row.sender_incarnation) if row.member == 0 else (row.member, row.incarnation)
    return not any(other.member == who and other.incarnation < (incarnation or 0) for other in trace.rows)


def _frame(row: Row) -> FrameKey:
    return row.sender, row.sender_incarnation, row.counter


def _choose(rows: list[Row], limit: int, marks: set[tuple[int, int, int]]) -> tuple[list[Row], int]:
    """The first events; receptions come free with their frames.  With marks: all about the marked frames, and views."""
    counted = [row for row in rows if row.kind != Kind.RECEIVE]
    if marks:
        last = max((row.time_ns for row in rows if _place(row) in marks), default=0)
        frames = {_frame(row) for row in rows if _place(row) in marks and row.counter is not None}
        about = {id(row) for row in counted if _place(row) in marks or _frame(row) in frames}
        near = [row for row in counted if row.time_ns <= last and id(row) not in about]
        context = [row for row in near if row.counter is None][-limit // 2 :]
        room = max(0, limit - len(about) - len(context))
        context += [row for row in near if row.counter is not None][-room:] if room else []
        keep = about | {id(row) for row in context}
    else:
        keep = {id(row) for row in counted[:limit]}
    sent = {_frame(row) for row in counted if id(row) in keep and row.counter is not None}
    until = max((row.time_ns for row in counted if id(row) in keep), default=0)
    shown = [
        row for row in rows
        if id(row) in keep or (row.kind == Kind.RECEIVE and row.member != row.sender and _frame(row) in sent
                               and row.time_ns <= until)
    ]  # fmt: skip
    return shown, sum(1 for row in counted if row.time_ns > until)


def _numbers(rows: Sequence[Row]) -> dict[int, int]:
    """The how-manieth frame of its life each delivery is."""
    delivered: dict[tuple[int, int], int] = {}
    out: dict[int, int] = {}
    for row in rows:
        if row.kind == Kind.DELIVER:
            life = (row.member, row.incarnation)
            out[id(row)] = delivered[life] = delivered.get(life, 0) + 1
    return out


def _arrange(
    rows: Sequence[Row], members: list[int], marks: set[tuple[int, int, int]], numbers: dict[int, int]
) -> tuple[list[Event], int]:
    """Give each event a slot: no earlier than any event before it, alone on its lane, after what caused it."""
    lane_of = {member: k for k, member in enumerate(members, 1)}
    taken: dict[int, int] = {}
    origin: dict[FrameKey, int] = {}
    front, time, events = 0, None, []
    for row in rows:
        kind = Kind(row.kind)
        who = row.sender if row.member == 0 and row.sender is not None and kind != Kind.FAULT else row.member
        lane = lane_of.get(who or 0, 0)
        if row.time_ns != time:
            front, time = max(taken.values(), default=0), row.time_ns
        slot = max(front, taken.get(lane, -1) + 1)
        if kind == Kind.ORIGINATE:
            origin.setdefault(_frame(row), slot)
        elif kind in (Kind.RECEIVE, Kind.DELIVER):
            slot = max(slot, origin.get(_frame(row), -1) + 1)
        taken[lane] = slot
        events.append(Event(row, kind, lane, slot, numbers.get(id(row), 0), _place(row) in marks))
    return events, max(taken.values(), default=0) + 2


def _arrows(events: list[Event]) -> list[Arrow]:
    """From each origination to the first reception (or delivery) at every other lane."""
    source: dict[FrameKey, Event] = {}
    arrived: set[tuple[FrameKey, int]] = set()
    out = []
    for event in events:
        key = _frame(event.row)
        if event.kind == Kind.ORIGINATE:
            source.setdefault(key, event)
        elif event.kind in (Kind.RECEIVE, Kind.DELIVER) and key in source and (key, event.lane) not in arrived:
            arrived.add((key, event.lane))
            if event.lane != source[key].lane:
                out.append(Arrow(source[key], event))
    return out


def _bands(events: list[Event], slots: int) -> list[Band]:
    open_: dict[int, Event] = {}
    out: list[Band] = []

    def close(lane: int, slot: int) -> None:
        view = open_.pop(lane, None)
        if view is not None:
            regular = view.row.view_kind != ViewKind.TRANSITIONAL
            out.append(Band(view, lane, view.slot, slot, regular, _view_words(view.row, regular)))

    for event in events:
        if event.kind == Kind.VIEW:
            close(event.lane, event.slot)
            open_[event.lane] = event
        elif event.kind in (Kind.CRASH, Kind.LEAVE):
            close(event.lane, event.slot)
    for lane in list(open_):
        close(lane, slots)
    return out


def _view_words(row: Row, regular: bool) -> str:
    members = ",".join(map(str, row.members or ()))
    if not regular:
        return f"transitional {{{members}}}"
    cause = (row.detail or {}).get("cause") or ""
    return f"view {view_name(row)} {{{members}}}" + (f" · {cause}" if cause else "")


def _lives(events: list[Event], lanes: int, slots: int) -> list[Life]:
    out: list[Life] = []
    for lane in range(1, lanes + 1):
        begin = 0
        gone = False
        for event in events:
            if event.lane != lane:
                continue
            if event.kind in (Kind.CRASH, Kind.LEAVE) and not gone:
                out.append(Life(lane, begin, event.slot, event.kind.word))
                gone = True
            elif gone and event.kind != Kind.PAUSE:
                begin, gone = event.slot, False
        if not gone:
            out.append(Life(lane, begin, slots, ""))
    return out
