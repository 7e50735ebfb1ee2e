"""Packing never reorders, loses or mixes; fragments come back whole; a view change puts a cut message back."""

from __future__ import annotations

import random

from ordercast.contract import Up, ViewChange
from ordercast.framing import Framing, Inbox
from ordercast.outbox import LENGTH_BYTES, Outbox
from ordercast.types import Cause, Service, View, ViewId, ViewKind

LIMIT = 100


def outbox() -> Outbox:
    return Outbox(7, 70, LIMIT)


def unpack(frames: list) -> list[tuple[int, bytes]]:
    inbox, out = Inbox(), []
    for frame in frames:
        batch = inbox.take(frame)
        if batch is not None:
            out += [(m.counter, m.data) for m in batch.messages()]
    assert inbox.open() == 0
    return out


def test_first_fit_in_order_within_the_limit() -> None:
    box = outbox()
    sizes = [40, 40, 40, 96, 97, 500, 0, 1, 92]
    assert box.put([bytes([k]) * size for k, size in enumerate(sizes)], Service.AGREED) == 1
    frames = box.take(1000)
    assert [(f.count, f.part, f.parts) for f in frames][:4] == [(2, 0, 1), (1, 0, 1), (1, 0, 1), (1, 0, 2)]
    assert all(len(f.data) + len(f.lengths) <= LIMIT for f in frames)
    assert unpack(frames) == [(k + 1, bytes([k]) * size) for k, size in enumerate(sizes)]
    assert not box and box.bytes == 0


def test_services_and_groups_never_share_a_frame() -> None:
    box = outbox()
    box.put([b"a"], Service.AGREED)
    box.put([b"b"], Service.SAFE)
    box.put([b"c"], Service.SAFE, ("g",))
    box.put([b"d"], Service.SAFE, ("g",))
    frames = box.take(10)
    assert [(f.service, f.groups, f.count) for f in frames] == [(3, (), 1), (4, (), 1), (4, ("g",), 2)]


def test_random_traffic_comes_out_as_it_went_in() -> None:
    rng = random.Random(4)
    for _ in range(300):
        box, sent, frames = outbox(), [], []
        for _ in range(rng.randrange(30)):
            if rng.random() < 0.7:
                payloads = [rng.randbytes(rng.choice([0, 1, 30, 96, 97, 300])) for _ in range(rng.randrange(1, 5))]
                first = box.put(payloads, Service.AGREED)
                assert first == len(sent) + 1
                sent += payloads
            else:
                frames += box.take(rng.randrange(1, 4))
        waiting = box.waiting()
        rest = box.take(10_000)
        assert waiting == len(rest) and box.waiting() == 0
        frames += rest
        assert unpack(frames) == list(enumerate(sent, 1))
        assert box.bytes == 0 and not box


def test_a_cut_message_goes_back_whole_at_a_view_change() -> None:
    box = outbox()
    box.put([b"x" * 10, b"y" * 250, b"z"], Service.AGREED)
    first = box.take(2)
    assert [f.parts for f in first] == [1, 3]
    box.unwind()
    assert box.waiting() == 4
    again = box.take(100)
    assert again[0].part == 0 and again[0].counter == 2
    inbox = Inbox()
    assert [inbox.take(f) is None for f in first] == [False, True]
    inbox.reset()
    assert unpack(again) == [(2, b"y" * 250), (3, b"z")]


def test_a_fragment_without_its_beginning_is_never_delivered() -> None:
    box = outbox()
    box.put([b"y" * 250, b"z"], Service.AGREED)
    assert unpack(box.take(100)[1:]) == [(2, b"z")]


def test_control_goes_first_and_has_no_counter() -> None:
    box = outbox()
    box.put([b"a"], Service.AGREED)
    box.put_first(b"state" * 50, Service.AGREED)
    frames = box.take(100)
    assert [f.control for f in frames] == [True] * (len(frames) - 1) + [False]
    assert frames[0].counter == 0 and frames[-1].counter == 1


def test_a_regular_view_resets_reassembly_a_transitional_one_does_not() -> None:
    layer = Framing()
    cut = outbox()
    cut.put([b"y" * 250], Service.AGREED)
    layer.inbox.take(cut.take(1)[0])
    for kind, left in ((ViewKind.TRANSITIONAL, 1), (ViewKind.REGULAR, 0)):
        view = View(ViewId(4, 1), kind, (1,), cause=Cause("start"))
        assert layer.up(0, ViewChange(view), 0) == [Up(ViewChange(view))]
        assert layer.inbox.open() == left


def test_the_length_table_costs_what_the_limit_counts() -> None:
    box = outbox()
    box.put([b"x" * (LIMIT - LENGTH_BYTES)], Service.AGREED)
    (frame,) = box.take(5)
    assert frame.whole and len(frame.data) + len(frame.lengths) == LIMIT


def dumb_frames(calls: list[list[int]], limit: int, each: int) -> list[list[int]]:
    """Message by message into the last open frame; what does not fit opens the next one; too large ones stand alone."""
    frames: list[list[int]] = []
    is_open = False
    for sizes in calls:
        for size in sizes:
            if size + each > limit:
                frames.append([size])
                is_open = False
            elif is_open and sum(frames[-1]) + each * (len(frames[-1]) + 1) + size <= limit:
                frames[-1].append(size)
            else:
                frames.append([size])
                is_open = True
    return frames


def test_packing_agrees_with_a_dumb_twin() -> None:
    rng = random.Random(9)
    for _ in range(500):
        box = outbox()
        calls = [[rng.choice([0, 1, 5, 30, 96, 97, 300]) for _ in range(rng.randrange(1, 40))] for _ in range(3)]
        for sizes in calls:
            box.put([bytes(size) for size in sizes], Service.AGREED)
        packed = [list(memoryview(f.lengths).cast("I")) for f in box.take(10_000) if f.parts == 1]
        expected = dumb_frames(calls, LIMIT, LENGTH_BYTES)
        assert packed == [frame for frame in expected if frame[0] + LENGTH_BYTES <= LIMIT]
