"""A stack's actions become rows, each with the next index and the right position."""

from __future__ import annotations

from array import array

from ordercast.contract import (
    Accepted,
    Delivered,
    GroupView,
    Left,
    Note,
    Originate,
    Receive,
    Refuse,
    SetTimer,
    Up,
    ViewChange,
)
from ordercast.framing import Inbox
from ordercast.outbox import Outbox
from ordercast.trace.digest import frame_digest, run_digest
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Kind, Level
from ordercast.trace.trace import MemorySink, Trace
from ordercast.types import Batch, Service, View, ViewId, ViewKind

VIEW = View(ViewId(1, 1), ViewKind.REGULAR, (1, 2))


def frame_of(payloads: list[bytes], frame_bytes: int = 1000) -> list:
    outbox = Outbox(1, 7, frame_bytes)
    outbox.put(payloads, Service.AGREED)
    return outbox.take(100)


def test_rows_of_a_message_from_submit_to_delivery() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, 1, 7, Level.FULL)
    [frame] = frame_of([b"a", b"", b"ccc"])
    batch = Inbox().take(frame)
    recorder.event(0, 0, Kind.START)
    recorder.actions(1, 2, [SetTimer("x", 5), Up(ViewChange(VIEW)), Accepted(1, 3, 3, ("g",))])
    recorder.actions(2, 3, [Originate(frame, VIEW.id), Receive(frame), Up(Delivered(batch, 4, 5))])
    recorder.actions(3, 4, [Refuse("closed"), Note("t1", {"us": 3}), Up(GroupView("g", (1,))), Up(Left())])
    recorder.event(4, 5, Kind.END, queues={"outbox": 0})
    rows = sink.rows
    assert [Kind(r.kind).word for r in rows] == [
        "start", "view", "submit", "originate", "receive", "deliver", "refuse", "note", "group_view", "leave", "end",
    ]  # fmt: skip
    assert [r.index for r in rows] == list(range(1, 12))
    assert {r.position for r in rows[:6]} == {0} and {r.position for r in rows[6:]} == {3}
    deliver, originate = rows[5], rows[3]
    assert (deliver.sender, deliver.sender_incarnation, deliver.counter, deliver.count) == (1, 7, 1, 3)
    assert deliver.digest == originate.digest == frame_digest(array("I", [1, 0, 3]).tobytes(), b"accc")
    assert (deliver.view_seq, deliver.view_rep, deliver.view_kind) == (1, 1, 1)
    assert (deliver.order_epoch, deliver.order_seq, deliver.time_ns, deliver.now_ns) == (4, 5, 2, 3)
    assert rows[7].detail == {"name": "t1", "us": 3} and rows[10].detail == {"queues": {"outbox": 0}}
    assert rows[6].detail == {"why": "closed"} and rows[1].members == (1, 2)


def test_a_fragmented_message_has_one_row_with_the_digest_of_the_whole() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, 1, 7, Level.FULL, expected=lambda s, i, c, payload: payload == b"0123456789")
    frames, inbox = frame_of([b"0123456789"], 8), Inbox()
    assert len(frames) == 3
    recorder.actions(1, 1, [Originate(frames[0], VIEW.id)])
    recorder.actions(1, 1, [Originate(f, VIEW.id) for f in frames])  # begun anew after a view change
    recorder.actions(1, 1, [Receive(f) for f in (frames[2], frames[0], frames[1])])
    batches = [b for b in map(inbox.take, frames) if b]
    recorder.actions(1, 1, [Up(Delivered(b)) for b in batches])
    assert [r.kind for r in sink.rows] == [Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER]
    assert len({r.digest for r in sink.rows}) == 1 and all(r.detail is None for r in sink.rows)


def test_an_altered_payload_is_named() -> None:
    sink = MemorySink()
    recorder = Recorder(sink, 2, 1, Level.DELIVER, expected=lambda s, i, c, payload: payload == bytes([c]))
    good = Batch(1, 7, 1, 2, Service.AGREED, array("I", [1, 1]).tobytes(), b"\x01\x02")
    bad = Batch(1, 7, 3, 2, Service.AGREED, array("I", [1, 1]).tobytes(), b"\x03\x02")
    torn = Batch(1, 7, 5, 2, Service.AGREED, array("I", [1]).tobytes(), b"\x05")
    recorder.actions(1, 1, [Up(Delivered(good)), Up(Delivered(bad)), Up(Delivered(torn))])
    assert [r.detail for r in sink.rows] == [None, {"altered": 4}, {"altered": 5}]


def test_the_level_decides_what_is_written_and_not_the_digest() -> None:
    digests = set()
    for level in (Level.DELIVER, Level.FULL):
        sink = MemorySink()
        recorder = Recorder(sink, 1, 7, level)
        frames = frame_of([b"a", b"b"])
        recorder.actions(1, 1, [Up(ViewChange(VIEW)), Note("n"), Receive(frames[0])])
        recorder.event(1, 1, Kind.DROP, reason="magic")
        recorder.actions(2, 2, [Up(Delivered(Inbox().take(f))) for f in frames])
        digests.add(run_digest(sink.rows))
        assert (len(sink.rows) == 2) == (level == Level.DELIVER)
    assert len(digests) == 1


def test_rows_come_sorted() -> None:
    sink = MemorySink()
    two, one = Recorder(sink, 2, 1, Level.DELIVER), Recorder(sink, 1, 1, Level.DELIVER)
    for recorder in (two, one, two):
        recorder.event(0, 0, Kind.START)
    from ordercast.trace.schema import Header

    trace = Trace(Header("r", "p", "agreed", (1, 2), ()), sink.rows)
    assert [(r.member, r.index) for r in trace.rows] == [(1, 1), (2, 1), (2, 2)]
