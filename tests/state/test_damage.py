"""Files of a replica that were altered on disk: what is told of them, what they do not cost; and how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from abstract_order import Group
from test_corrections import call, one_state, word

from ordercast.contract import Action
from ordercast.filing import Append, Remove, Rename
from ordercast.limits import CHUNK_BYTES_MAX
from ordercast.live.filing import Found
from ordercast.state import log
from ordercast.state.history import NO_VIEW
from ordercast.state.log import Log
from ordercast.state.machine import COMPLETE, UNDECIDED, Mark
from ordercast.state.records import LOG, Beginning, Heard, Record, Stepped, framed, numbers, records
from ordercast.types import PRIMARY_MAJORITY, Peer, ViewId


def written(count: int = 4) -> list[bytes]:
    """Records as they stand in a log."""
    made: list[Record] = [Heard(Mark(ViewId(4, 1), 0, b"h" * 16), decided=True)]
    made += [Stepped(n, bytes((n,)) * 16, Peer(1, 2), b"x" * 40 * n, False) for n in range(1, count)]
    return [framed(record) for record in made]


def faults(data: bytes) -> tuple[int, list[int]]:
    """How many records are read, and where one is bad."""
    found: list[int] = []
    return sum(1 for _ in records(data, found)), found


def test_a_log_that_was_torn_is_not_damaged() -> None:
    parts = written()
    whole = b"".join(parts)
    ends = [sum(map(len, parts[:k])) for k in range(len(parts) + 1)]
    for cut in range(len(whole) + 1):
        good = sum(end <= cut for end in ends[1:])
        assert faults(whole[:cut]) == (good, [])
        grown = whole[:cut] + bytes(len(whole) - cut)  # the file was longer already
        assert faults(grown) == (good, [])
        assert faults(grown + bytes(50)) == (good, [])


@pytest.mark.parametrize("at", range(4))
def test_a_byte_that_was_altered_is_told(at: int) -> None:
    parts = written()
    start = sum(map(len, parts[:at]))
    for place in range(start + 4, start + len(parts[at])):
        data = bytearray(b"".join(parts))
        data[place] ^= 0x10
        assert faults(bytes(data)) == (at, [start])


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("bit", range(32))
def test_a_length_that_was_altered_is_told(at: int, bit: int) -> None:
    """Of whichever record: longer than what follows, it looks like the end of a log that was torn."""
    parts = written()
    data = bytearray(b"".join(parts))
    start = sum(map(len, parts[:at]))
    data[start + bit // 8] ^= 1 << bit % 8
    assert faults(bytes(data)) == (at, [start])


def altered(group: Group, id: int) -> None:
    """The last call in its log cannot be read any more; the rest of the log can."""
    files = group.disks[id]._files
    name = max((f"{LOG}{k}" for k in numbers(files, LOG)), key=lambda name: int(name.removeprefix(LOG)))
    data, at, last = files[name], 0, -1
    for record in records(bytes(data)):
        last = at if isinstance(record, Stepped) else last
        at += len(framed(record))
    assert last >= 0
    data[last + 2] ^= 0x40  # its length


def lacking() -> tuple[Group, tuple[int, int, int]]:
    """2 and 3 have a durable call on disk, which was answered; both stop, and the log of 2 is altered at it."""
    group = Group(3, PRIMARY_MAJORITY, disks=True)
    group.view(1, 2, 3)
    group.run()
    group.view(2, 3)
    line = call(group, 2, durable=True)
    group.run(2, 3)
    assert line[2] in group.of[2].answered
    group.crash(2), group.crash(3)
    altered(group, 2)
    group.start(2)
    assert line not in group.of[2].lines
    return group, line


def test_who_lost_a_part_of_its_log_waits_for_who_has_it() -> None:
    """It was in the newest decision, and may lack what it vouched for after it: that is on another's disk."""
    group, line = lacking()
    told = [note.fields["files"] for note in group.of[2].notes if note.name == "state damaged"]
    assert told and told[0][0].startswith(LOG)
    group.view(1, 2)
    group.run(1, 2)
    assert word(group.of[1]) == word(group.of[2]) == UNDECIDED
    group.start(3)
    group.view(2, 3)
    group.run(2, 3)
    assert word(group.of[2]) == COMPLETE and line in group.of[2].lines
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert line in group.of[1].lines


def test_what_was_decided_since_counts_again() -> None:
    """Once its state is the group's, a member that lost a part of its log is like any other, also in its next life."""
    group, _ = lacking()
    group.crash(2)
    group.disks[3].wipe()
    group.start(2), group.start(3)
    group.view(1, 2, 3)
    group.run()
    one_state(group)
    assert any(note.name == "state lost" for note in group.of[1].notes), "no disk has it any more"
    line = call(group, 2, durable=True)
    group.run()
    for id in group.ids:
        group.crash(id)
    group.start(1), group.start(2)
    group.view(1, 2)
    group.run(1, 2)
    assert word(group.of[1]) == word(group.of[2]) == COMPLETE
    assert line in group.of[1].lines
    assert not any(note.name == "state damaged" for note in group.of[2].notes), "a snapshot took its place"


def test_a_log_that_cannot_be_read_is_damaged(tmp_path: Path) -> None:
    """As one that is behind a bad sector: not an empty one."""
    (tmp_path / "calls-1").write_bytes(b"".join(written()))
    found = Found(tmp_path)
    assert faults(found["calls-1"]) == (4, [])

    class Unreadable(type(tmp_path)):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            raise OSError("Input/output error")

    assert faults(Found(Unreadable(tmp_path))["calls-1"]) == (0, [0])


def test_snapshots_that_fail_do_not_fill_the_disk() -> None:
    """Each is tried again under another name, for as long as the disk is full: what there was of it goes."""
    of, names = Log(()), set[str]()

    def do(actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Append):
                names.add(action.file)
            elif isinstance(action, Rename):
                names.remove(action.file)
                names.add(action.to)
            elif isinstance(action, Remove):
                names.discard(action.file)

    def attempt(steps: int) -> None:
        pieces = iter([bytes(CHUNK_BYTES_MAX)] * 3)
        do(of.snapshot(0, Beginning(NO_VIEW, 0, None, ()), iter((b"history",)), pieces))
        for _ in range(steps):
            do(of.more(0, 0))

    for steps in (1, 2, 4, 1, 4, 2):
        attempt(steps)
        do(of.sync(0))
        of.failed("No space left on device")
    attempt(4)
    while of._syncing is not None:
        do(of.stored(of._sync, 0))
    attempt(4)
    while of._syncing is not None:
        do(of.stored(of._sync, 0))
    assert names == {f"snapshot-{of.number - 1}", f"snapshot-{of.number}"}


def test_many_short_lives_do_not_fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them writes enough for a snapshot; together they do."""
    monkeypatch.setattr(log, "LOG_BYTES", 2_000)
    group = Group(1, disks=True)
    for _ in range(60):
        group.view(1)
        group.of[1].call(durable=True)
        group.run()
        lines = list(group.of[1].lines)
        group.crash(1)
        assert group.start(1).lines == lines
    assert len(lines) == 60
    assert sum(map(len, group.disks[1].found().values())) < 40_000
    assert len(group.disks[1].found()) < 30
