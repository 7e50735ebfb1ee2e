"""Recordings: inputs and answers come back as they were; a flipped byte is reported at its record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast.contract import Accepted, Delivered, Note, Originate, SetTimer, Setup, Up, ViewChange
from ordercast.errors import TraceError
from ordercast.registry import NoOptions
from ordercast.trace import record
from ordercast.trace.schema import Header
from ordercast.types import Batch, Frame, Identity, Service, View, ViewId, ViewKind

HEADER = Header("r1", "token_site", "agreed", (1, 2), ("S1",))
IDENTITY = Identity(1, 9, (1, 2))
INPUTS = [
    record.Started(1, IDENTITY, {"ring/seq": (3, b"\x00\xff")}),
    record.Submitted(2, [b"", b"a"], 3, ("g",)),
    record.Received(3, 0, 2, 7, 5, b"\x01\x02"),
    record.Drained(4, 0),
    record.Fired(5, "link/ack", 4),
    record.Stored(6, "ring/seq", 3),
    record.StoreFailed(7, "ring/seq", 3, "full"),
    record.Unreachable(8, 0, 2),
    record.RoomGiven(9, 100),
    record.LeaveAsked(10),
]
ACTIONS = [
    Up(ViewChange(View(ViewId(1, 1), ViewKind.REGULAR, (1, 2)))),
    Accepted(1, 2, 3, ()),
    Up(Delivered(Batch(1, 9, 1, 1, Service.AGREED, b"\0\0\0\0", b""))),
    Originate(Frame(1, 9, 1, 1, 3, b"\0\0\0\0", b""), ViewId(1, 1)),
    SetTimer("link/ack", 77),
    Note("x", {"b": 1, "a": [2, 3]}),
]


def write(directory: Path) -> Path:
    setup = Setup(IDENTITY, 40, NoOptions(), 1000, random.Random(5))
    writer = record.RecordWriter(directory, record.recorded(HEADER, setup))
    for k, input in enumerate(INPUTS):
        writer.append(input, ACTIONS[:k] if k < 9 else None)
    writer.close()
    return writer.path


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    reader = record.RecordReader(write(tmp_path))
    entries = list(reader)
    assert [e.input for e in entries] == INPUTS and reader.torn_at is None
    assert [e.actions for e in entries] == [*(record.encode_actions(ACTIONS[:k]) for k in range(9)), None]
    fresh = random.Random()
    fresh.setstate(record.random_state(reader.recorded))
    assert fresh.random() == random.Random(5).random()


def test_the_encoding_is_canonical_and_tells_actions_apart() -> None:
    one, two = Note("x", {"b": 1, "a": 2}), Note("x", {"a": 2, "b": 1})
    assert record.encode_actions([one]) == record.encode_actions([two])
    codes = {record.encode_actions([a]) for a in ACTIONS}
    assert len(codes) == len(ACTIONS)
    assert record.decode_actions(record.encode_actions([one])) == [["Note", "x", {"a": 2, "b": 1}]]


def test_every_flipped_byte_is_reported_at_its_record(tmp_path: Path) -> None:
    path = write(tmp_path)
    good = path.read_bytes()
    offsets = [e.offset for e in record.RecordReader(path)]
    for at in range(offsets[0], len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises(TraceError) as caught:
            list(record.RecordReader(path))
        assert caught.value.offset == max(o for o in offsets if o <= at)


def test_a_recording_cut_anywhere_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    path = write(tmp_path)
    good = path.read_bytes()
    offsets = [e.offset for e in record.RecordReader(path)]
    for end in range(offsets[0] + 1, len(good)):
        path.write_bytes(good[:end])
        reader = record.RecordReader(path)
        assert len(list(reader)) == sum(o <= end for o in offsets[1:])
        assert reader.torn_at == (None if end in offsets else max(o for o in offsets if o < end))


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "empty"), (b"OCIN", "inside its head"), (b"PAR1....", "not a recording"), (b"OCINPUT\n\x02\0\0\0", "newer")],
)
def test_foreign_files(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "x.inputs"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=why):
        record.RecordReader(path)
