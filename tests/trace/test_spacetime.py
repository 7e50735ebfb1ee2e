"""Pictures: every event has its place, arrows follow causes, marked rows are shown wherever they are."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from itertools import pairwise

from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.spacetime import scene, svg, text
from ordercast.trace.trace import Trace

HEADER = Header("r1", "token_site", "agreed", (1, 2), ("S1",), seed=7)


def trace(frames: int = 5, receive: bool = False) -> Trace:
    rows: list[Row] = []
    index = {0: 0, 1: 0, 2: 0}

    def add(member: int, time: int, kind: Kind, **fields: object) -> None:
        index[member] += 1
        rows.append(Row(member, 1, index[member], time, time, int(kind), **fields))  # type: ignore[arg-type]

    view = {"view_seq": 1, "view_rep": 1, "view_kind": 1, "members": (1, 2), "detail": {"cause": "start <&>"}}
    for member in (1, 2):
        add(member, 0, Kind.START)
        add(member, 0, Kind.VIEW, **view)
    for k in range(1, frames + 1):
        frame = {"sender": 1 + k % 2, "sender_incarnation": 1, "counter": k, "count": 1 + k % 3, "digest": k}
        add(1 + k % 2, 1000 * k, Kind.ORIGINATE, **frame)
        for member in (1, 2):
            if receive:
                add(member, 1000 * k + 300 * member, Kind.RECEIVE, **frame)
            add(member, 1000 * k + 400 * member, Kind.DELIVER, **frame)
    add(0, 1000 * frames + 950, Kind.FAULT, detail={"class": "cut", "state": "on"})
    add(0, 1000 * frames + 960, Kind.CRASH, sender=2, sender_incarnation=1)
    return Trace(HEADER, rows)


def test_it_is_one_well_formed_picture_with_everything_in_it() -> None:
    picture = svg(trace())
    root = xml.fromstring(picture)
    words = "".join(root.itertext())
    assert root.tag.endswith("svg") and "href" not in picture and "script" not in picture
    for expected in ("member 1", "view 1.1 {1,2} · start <&>", "crash", "cut on", "delivers 2:3 as number 3", "seed 7"):
        assert expected in words, expected


def test_later_is_never_further_left_and_effects_follow_causes() -> None:
    for receive in (False, True):
        drawn = scene(trace(20, receive), 1000, (), None)
        events = sorted(drawn.events, key=lambda event: event.row.time_ns)
        assert all(a.slot <= b.slot for a, b in pairwise(events) if a.row.time_ns < b.row.time_ns)
        assert len({(event.lane, event.slot) for event in events if event.lane}) == sum(1 for e in events if e.lane)
        assert len(drawn.arrows) == 20 and all(arrow.source.slot < arrow.target.slot for arrow in drawn.arrows)
        kinds = {arrow.target.kind for arrow in drawn.arrows}
        assert kinds == ({Kind.RECEIVE} if receive else {Kind.DELIVER})


def test_what_happens_at_one_instant_keeps_its_order() -> None:
    rows = [
        Row(1, 1, 1, 5, 5, int(Kind.VIEW), view_seq=1, view_rep=1, view_kind=1, members=(1,)),
        Row(1, 1, 2, 5, 5, int(Kind.DELIVER), 1, 1, 1, 1, 1),
        Row(1, 1, 3, 5, 5, int(Kind.VIEW), view_seq=2, view_rep=1, view_kind=1, members=(1,)),
        Row(1, 1, 4, 5, 5, int(Kind.DELIVER), 1, 1, 2, 1, 1),
    ]
    slots = [event.slot for event in scene(Trace(HEADER, rows), 100, (), None).events]
    assert slots == sorted(slots) and len(set(slots)) == 4


def test_the_first_events_or_those_around_a_counterexample() -> None:
    long = trace(200)
    assert sum(e.kind != Kind.RECEIVE for e in scene(long, 100, (), None).events) == 100
    assert scene(long, 100, (), None).left_out > 400
    late = [row for row in long.rows if row.kind == Kind.DELIVER and row.counter == 180]
    drawn = scene(long, 30, late, None)
    marked = [event.row for event in drawn.events if event.marked]
    assert sorted(row.member for row in marked) == [1, 2] and len(drawn.events) <= 34
    assert any(e.kind == Kind.ORIGINATE and e.row.counter == 180 for e in drawn.events)
    assert svg(long, marked=late).count('class="mark"') == 2


def test_a_member_that_comes_back_has_two_lives() -> None:
    rows = [
        *trace().rows,
        Row(0, 1, 3, 9000, 9000, int(Kind.START), sender=2, sender_incarnation=2),
        Row(2, 2, 1, 9500, 9500, int(Kind.VIEW), view_seq=2, view_rep=2, view_kind=1, members=(2,)),
    ]
    drawn = scene(Trace(HEADER, rows), 100, (), None)
    assert [(life.lane, life.ended) for life in drawn.lives] == [(1, ""), (2, "crash"), (2, "")]
    assert [band.words for band in drawn.bands if band.lane == 2][-1] == "view 2.2 {2}"


def test_text_for_terminals() -> None:
    lines = text(trace(2)).splitlines()
    assert lines[2].split() == ["member", "1", "member", "2"]
    assert any("> 2:1" in line for line in lines) and any("#2 1:2" in line for line in lines)
    assert any("X crash" in line for line in lines)


def test_an_empty_trace() -> None:
    assert "member 1" in svg(Trace(HEADER, [])) and "member 2" in text(Trace(HEADER, []))
