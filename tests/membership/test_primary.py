"""The record of primary views: the rule, what is remembered of attempts, and that no two parts go on apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from ordercast.contract import Note, Store, Up
from ordercast.limits import ATTEMPTS_MAX, COMMIT_TOKEN_BYTES_MAX, entry_bytes_max
from ordercast.membership.bitmap import to_bitmap
from ordercast.membership.packets import CommitToken, Entry
from ordercast.membership.primary import (
    PRIMARY,
    BadRecord,
    Knows,
    Mark,
    Primary,
    Record,
    RecordedEntry,
    holds,
    known,
    learn,
    record_of,
    rule,
)
from ordercast.protocols.totem.packets import RingEntry
from ordercast.transis.plan import LayerEntry
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY, Identity, ViewId


class Member:
    """The part, with a disk that can be slow, or lost at a restart."""

    def __init__(self, me: int, configured: tuple[int, ...]) -> None:
        self.me, self.configured = me, configured
        self.disk: dict[str, tuple[int, bytes]] = {}
        self.writing: list[Store] = []
        self.notes: list[str] = []
        self.part = Primary(me, configured)

    def restart(self, lost: bool = False) -> None:
        if lost:
            self.disk = {}
        self.writing.clear()
        self.part = Primary(self.me, self.configured)
        self.part.start(self.disk)

    def does(self, actions: list[Any]) -> None:
        self.writing += [action for action in actions if isinstance(action, Store)]
        self.notes += [action.name for action in actions if isinstance(action, Note)]

    def flush(self) -> None:
        while self.writing:
            assert len(self.writing) == 1, "one write at a time"
            store = self.writing.pop()
            assert store.key == PRIMARY and store.number > self.disk.get(PRIMARY, (0, b""))[0]
            self.disk[PRIMARY] = store.number, store.data
            self.does(self.part.answered(store.number))


class Group:
    def __init__(self, n: int) -> None:
        self.configured = tuple(range(1, n + 1))
        self.of = {id: Member(id, self.configured) for id in self.configured}
        self.seq = 0
        self.primaries: dict[ViewId, tuple[int, ...]] = {}

    def commit(self, *members: int) -> tuple[ViewId, bool]:
        """All entries are in at these."""
        self.seq += 4
        ring = ViewId(self.seq, min(members))
        entries = tuple(self.of[id].part.entry(b"state") for id in members)
        primary = set()
        for id in members:
            states, ruled, actions = self.of[id].part.committed(ring, members, entries)
            assert states == (b"state",) * len(members)
            self.of[id].does(actions)
            primary.add(ruled)
        assert len(primary) == 1, "all see the same"
        return ring, primary.pop()

    def finish(self, *members: int) -> None:
        for id in members:
            self.of[id].flush()
            self.of[id].part.finish()

    def install(self, ring: ViewId, members: tuple[int, ...], primary: bool, *at: int) -> None:
        for id in at:
            self.of[id].does(self.of[id].part.installed())
            if primary:
                self.primaries[ring] = members

    def leave(self, ring: ViewId, *at: int) -> None:
        for id in at:
            self.of[id].does(self.of[id].part.leave(ring))

    def view(self, *members: int) -> bool:
        """An attempt that all finish and install."""
        ring, primary = self.commit(*members)
        self.finish(*members)
        self.install(ring, members, primary, *members)
        for id in members:
            self.of[id].flush()
        return primary

    def check(self) -> None:
        for (one, a), (two, b) in pairwise(sorted(self.primaries.items())):
            assert set(a) & set(b), f"{one} of {a} and {two} of {b}"


# ------------------------------------------------------------------------------------------------------------- the rule


def test_holding_is_more_than_half_or_half_with_the_smallest() -> None:
    assert holds(0b011, 0b111) and not holds(0b100, 0b111)
    assert holds(0b0101, 0b1111) and not holds(0b1010, 0b1111) and holds(0b110, 0b110)
    assert holds(0b01, 0b11) and not holds(0b10, 0b11) and not holds(0b1, 0)


def test_a_group_begins_with_all_its_members_and_goes_on_with_more_than_half_of_the_last() -> None:
    group = Group(5)
    assert not group.view(1, 2, 3, 4), "nobody has a record"
    assert group.view(1, 2, 3, 4, 5)
    assert group.view(3, 4, 5)
    assert group.view(4, 5), "two of three"
    assert not group.view(1, 2, 3), "three of five, but one of them knows the newer view"
    assert group.view(3, 4), "half of it with its smallest; and 3 is told of it again"
    assert not group.view(4, 5) and group.view(3)


def test_f8_one_member_installed_what_the_other_left_finished() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    ring, primary = group.commit(1, 2)
    assert primary
    group.finish(1, 2)
    group.install(ring, (1, 2), True, 1)
    group.leave(ring, 2)
    assert not group.view(2, 3), "1 may have installed {1, 2}, and has"
    assert "pending held" in group.of[2].notes
    assert group.view(1)
    group.check()


def test_an_attempt_that_somebody_left_was_installed_by_nobody() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    ring, _ = group.commit(1, 2)
    group.finish(2)
    group.leave(ring, 1, 2)
    assert "attempt left" in group.of[1].notes and "attempt left" not in group.of[2].notes
    assert group.of[2].part.record.pending and not group.of[1].part.record.pending
    assert group.view(1, 3), "1 knows that it was not installed"
    assert not group.view(2), "2 does not"


def test_a_member_in_commit_leaves_too() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    group.seq += 4
    ring = ViewId(group.seq, 1)
    group.of[1].part.entry(b"")
    group.leave(ring, 1)
    assert group.of[1].part.record.left == ((ring.seq, 0),)


def test_who_lost_its_record_counts_in_no_majority_until_it_is_in_a_primary_view() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    group.of[1].restart(lost=True)
    assert not group.view(1, 2), "two of three are here, one of them with a record"
    assert "record lost" in group.of[2].notes
    assert group.of[1].part.record.last is None, "it is not primary: 1 still has no record"
    assert group.view(1, 2, 3) and group.view(1, 3)


def test_an_attempt_known_not_to_be_primary_is_not_remembered() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    ring, primary = group.commit(3)
    assert not primary and group.of[3].part.ready
    group.leave(ring, 3)
    assert not group.of[3].part.record.left and not group.of[3].writing


# ------------------------------------------------------------------------------------------------------ limits, storage


def test_more_than_eight_pending_are_no_record() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    for _ in range(ATTEMPTS_MAX):
        ring, primary = group.commit(1, 2)
        assert primary
        group.finish(1, 2)
        group.leave(ring, 1, 2)
    assert len(group.of[1].part.record.pending) == ATTEMPTS_MAX
    ring, primary = group.commit(1, 2)
    assert primary and group.of[1].part.record.last is None and group.of[1].part.ready
    group.leave(ring, 1, 2)
    assert not group.view(1, 2)
    assert group.view(1, 2, 3) and group.of[1].part.record.pending == ()


def test_of_attempts_left_the_newest_eight_are_remembered() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    rings = []
    for _ in range(ATTEMPTS_MAX + 2):
        ring, _ = group.commit(1, 2)
        group.leave(ring, 1, 2)
        rings.append(ring)
    assert group.of[1].part.record.left == tuple((ring.seq, 0) for ring in rings[-ATTEMPTS_MAX:])


def test_nothing_is_finished_before_it_is_stored() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    group.commit(1, 2)
    one = group.of[1]
    assert not one.part.ready
    with pytest.raises(AssertionError):
        one.part.finish()
    one.part.failed("no space left on device")
    assert not one.part.ready and one.part.error
    one.writing.clear()
    one.does(one.part.write())
    one.flush()
    assert one.part.ready and not one.part.error
    one.part.finish()
    one.restart()
    assert [mark.members for mark in one.part.record.pending] == [to_bitmap((1, 2), group.configured)]


def test_the_record_is_read_back_and_that_of_another_group_is_none() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    one = group.of[1]
    before = one.part.record
    one.restart()
    assert one.part.record == before and before.last is not None
    for configured in ((1, 2), (1, 2, 3, 4)):
        other = Primary(1, configured)
        other.start(one.disk)
        assert other.record == Record()
    broken = Primary(1, group.configured)
    broken.start({PRIMARY: (7, b"\x93")})
    assert broken.record == Record()


@pytest.mark.parametrize(
    "record",
    [
        Record(Mark(4, 0, b"\x08")),
        Record(Mark(4, 3, b"\x01")),
        Record(Mark(4, 0, b"")),
        Record(left=((4, 9),)),
        Record(pending=(Mark(4, 0, b"\x01"),)),
        Record(Mark(4, 0, b"\x01"), knows=((4, 9), 1, b"")),
    ],
)
def test_a_record_that_names_strangers_is_refused(record: Record) -> None:
    part = Primary(1, (1, 2, 3))
    entries = (part.entry(b""), msgspec.msgpack.encode(RecordedEntry(record, b"")))
    with pytest.raises(BadRecord) as caught:
        part.committed(ViewId(4, 1), (1, 2), entries)
    assert caught.value.member == 2
    with pytest.raises(BadRecord):
        part.committed(ViewId(4, 1), (1, 2), (entries[0], b"\xc1"))


def test_the_largest_commit_token_fits_a_packet_with_records() -> None:
    ids = tuple(2**32 - 1 - k for k in range(63, -1, -1))
    ring = ViewId(2**62 - 4, ids[0])
    mark = Mark(2**62, 63, to_bitmap(ids, ids))
    record = Record(mark, (mark,) * ATTEMPTS_MAX, ((2**62, 63),) * ATTEMPTS_MAX, ((2**62, 63), 2**63 - 1, bytes(32)))
    layer = LayerEntry(ViewId(2**62 - 1, ids[-1]), (2**63 - 1,) * 64, (ring, to_bitmap(ids, ids)))
    for state in (layer, RingEntry(ring, 2**62, 2**62, 2**62, True, ids)):
        entry = msgspec.msgpack.encode(RecordedEntry(record, msgspec.msgpack.encode(state)))
        assert len(entry) <= entry_bytes_max(64)
        token = CommitToken(ring, ids, 128, ids[0], tuple(Entry(2**63 - 1, entry) for _ in ids))
        assert len(msgspec.msgpack.encode(token)) <= COMMIT_TOKEN_BYTES_MAX


def test_the_newest_mark_of_a_decided_state_travels_with_every_view() -> None:
    group = Group(3)
    assert group.view(1, 2, 3)
    known = ((4, 0), 7, b"h")
    group.of[2].part.record = msgspec.structs.replace(group.of[2].part.record, knows=known)
    assert group.view(2, 3) and group.of[3].part.record.knows == known
    assert not group.view(1) and group.of[1].part.record.knows is None
    group.of[1].restart(lost=True)
    assert not group.view(1) and group.view(1, 2, 3) and group.of[1].part.record.knows == known


def test_without_the_policy_there_is_no_record() -> None:
    identity = Identity(1, 1, (1, 2))
    assert record_of(ALL_CONTINUE, identity) is None and record_of(PRIMARY_MAJORITY, identity) is not None
    assert rule({0: Record()}, 2).last is None


# ----------------------------------------------------------------------------------------------------------- at random


def churn(seed: int, lose: float) -> Group:
    """Attempts of any members; each is finished by some, and if by all installed by some.  Members restart."""
    draw = random.Random(seed)
    group = Group(draw.randint(2, 6))
    group.view(*group.configured)
    for _ in range(30):
        members = tuple(sorted(draw.sample(group.configured, draw.randint(1, len(group.configured)))))
        ring, primary = group.commit(*members)
        finished = members if draw.random() < 0.7 else tuple(id for id in members if draw.random() < 0.6)
        group.finish(*finished)
        installed = tuple(id for id in members if draw.random() < 0.7) if finished == members else ()
        for id in members:
            if id in installed:
                group.install(ring, members, primary, id)
            elif draw.random() < 0.7:
                group.leave(ring, id)
            else:
                group.of[id].restart(lost=draw.random() < lose)
            if draw.random() < 0.5:
                group.of[id].flush()
        for id in group.configured:
            if draw.random() < 0.1:
                group.of[id].restart(lost=draw.random() < lose)
    return group


@pytest.mark.parametrize("lose", [0.0, 0.3, 1.0])
def test_no_two_primary_views_in_a_row_are_disjoint(lose: float) -> None:
    views = 0
    for seed in range(600):
        group = churn(seed, lose)
        group.check()
        views += len(group.primaries)
    assert views > 1_000


def test_what_is_known_of_decisions_goes_with_the_record() -> None:
    """Told by the state above, it is stored at once, stands on the entry, and whoever installs a view takes the newest
    on its entries, primary or not."""
    older, newer = Knows(ViewId(8, 2), 3, b"old"), Knows(ViewId(12, 1), 1, b"new")
    one, two = Primary(1, (1, 2, 3)), Primary(2, (1, 2, 3))
    assert [type(action) for action in one.learn(newer)] == [Store]
    assert one.learn(older) == [], "an older one is no news"
    two.learn(older)
    entries = (one.entry(b""), two.entry(b""))
    two.committed(ViewId(16, 1), (1, 2), entries)
    assert two.known() == [Up(newer)]
    two.leave(ViewId(16, 1))
    two.entry(b"")
    two.committed(ViewId(20, 1), (1, 2), entries)
    two.installed()
    assert two.record.knows == ((12, 0), 1, b"new")
    assert learn(None, newer) == known(None) == []


def _knows_off_the_entry(patch: pytest.MonkeyPatch) -> None:
    entry = Primary.entry

    def without(self: Primary, state: bytes) -> bytes:
        mine, self.record = self.record, msgspec.structs.replace(self.record, knows=None)
        try:
            return entry(self, state)
        finally:
            self.record = mine

    patch.setattr(Primary, "entry", without)


def _knows_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Primary, "learn", lambda self, knows: [])


def _knows_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Primary, "known", lambda self: [])


@pytest.mark.parametrize("mutant", [_knows_off_the_entry, _knows_not_stored, _knows_not_told])
def test_a_record_that_forgets_decisions_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        test_what_is_known_of_decisions_goes_with_the_record()
