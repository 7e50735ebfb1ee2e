"""Which part of a split group may go on: the record of `primary-majority`, and the rule that makes a view primary.

A view is primary if it has all configured members, or if it *holds* the newest primary view known in it, and with that
every attempt at a later one which somebody may have installed: more than half of its members, or half of them with the
smallest.  Whether the old view was primary says nothing: of two members that finish an attempt one may install it.
So each member remembers, on storage and on its commit entries, the last primary view it knows of, the attempts that it
finished and did not install (*pending*: on storage before it says that it has finished), and those it left unfinished
(*left*: nobody installed them).  Who has no record (first start, storage lost, too many attempts) counts in no majority
until it is in a primary view; so a group begins, or begins anew, with all its configured members.

Literature: dynamic linear voting (Jajodia and Mutchler 1990), and the attempts that outlive their failure of
Yeger Lotem, Keidar and Dolev, "Dynamic voting for consistent primary components" (1997).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ordercast.contract import Action, Event, Note, Store, Up
from ordercast.errors import WireError
from ordercast.limits import ATTEMPTS_MAX, ENTRY_BYTES_MAX, MEMBERS_MAX, STORED_NUMBER_MAX
from ordercast.membership.bitmap import Bitmap, to_bitmap
from ordercast.types import PRIMARY_MAJORITY, U8, U32, U63, Identity, MemberId, ViewId

PRIMARY = "primary!"  # key on storage; the newest, or nothing (contract.Store)
PROBES = ("not primary", "pending held", "attempt left", "record lost")

Seq = Annotated[int, Meta(ge=0, le=STORED_NUMBER_MAX)]
Place = tuple[Seq, U8]  # a view id, its representative by rank among the configured: it compares as the id does


class Mark(Struct, frozen=True, array_like=True, gc=False):
    """A view, or an attempt at one, and its members."""

    seq: Seq
    rank: U8
    members: Bitmap

    @property
    def place(self) -> Place:
        return self.seq, self.rank

    @property
    def bits(self) -> int:
        return int.from_bytes(self.members, "little")


class Record(Struct, frozen=True, array_like=True, gc=False):
    """What a member knows; without `last` it counts nowhere."""

    last: Mark | None = None  # the newest primary view it installed or was told of
    pending: Annotated[tuple[Mark, ...], Meta(max_length=ATTEMPTS_MAX)] = ()
    left: Annotated[tuple[Place, ...], Meta(max_length=ATTEMPTS_MAX)] = ()  # ascending
    knows: tuple[Place, U63, Annotated[bytes, Meta(max_length=32)]] | None = None  # newest mark of a decided state


class RecordedEntry(Struct, frozen=True, array_like=True, gc=False):
    """A commit entry under the policy: the record, and what the owner of the membership writes."""

    record: Record
    state: Annotated[bytes, Meta(max_length=ENTRY_BYTES_MAX)]


class Stored(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """On storage; the record of a group with other members is none."""

    configured: Annotated[tuple[U32, ...], Meta(max_length=MEMBERS_MAX)]
    record: Record


_encode = msgspec.msgpack.Encoder().encode
_entry, _stored = msgspec.msgpack.Decoder(RecordedEntry), msgspec.msgpack.Decoder(Stored)


class Knows(Event, frozen=True, gc=False):
    """Between a replicated state, on top of the stack, and this record.  Down: the state that was decided in `view` had
    n calls and the digest h.  Up, ahead of a new view: the newest such decision that a member of it has heard of."""

    view: ViewId
    n: int
    h: bytes


class BadRecord(WireError):
    """What a member wrote on the commit token cannot be."""

    def __init__(self, member: MemberId, why: str) -> None:
        super().__init__("entry", f"of member {member}: {why}")
        self.member = member


# ------------------------------------------------------------------------------------------------------------- the rule


def holds(counting: int, members: int) -> bool:
    """Whether these (bits) are more than half of those members, or half of them with the smallest."""
    here = counting & members
    twice, all_ = 2 * here.bit_count(), members.bit_count()
    return twice > all_ or (twice == all_ and bool(here & members & -members))


def newest(records: Iterable[Record]) -> Mark | None:
    """The last primary view that any of them knows of."""
    return max((record.last for record in records if record.last is not None), key=lambda m: m.place, default=None)


def undecided(records: Iterable[Record], last: Mark) -> list[Mark]:
    """Attempts after `last` that one of them finished and none of them left: somebody may have installed them."""
    records = list(records)
    left = {place for record in records for place in record.left}
    found = {mark.place: mark for record in records for mark in record.pending}
    return [mark for place, mark in sorted(found.items()) if place > last.place and place not in left]


class Ruling(Struct, frozen=True):
    """What the entries of an attempt say of it."""

    primary: bool
    last: Mark | None
    held_against: bool  # it is more than half of `last`, but not of an attempt after it


def rule(records: Mapping[int, Record], configured: int) -> Ruling:
    """By the records of all members of the new view, whose ranks are the keys."""
    last = newest(records.values())
    if len(records) == configured:
        return Ruling(True, last, False)
    counting = sum(1 << rank for rank, record in records.items() if record.last is not None)
    if last is None or not holds(counting, last.bits):
        return Ruling(False, last, False)
    held = all(holds(counting, mark.bits) for mark in undecided(records.values(), last))
    return Ruling(held, last, not held)


# ----------------------------------------------------------------------------------------------------------- the record


class Primary:
    """Of one member: its record, on the way to storage and on its entries.  At most one write is under way."""

    def __init__(self, me: MemberId, configured: tuple[MemberId, ...]) -> None:
        self.me, self.configured = me, configured
        self.record = Record()
        self.error = ""  # why the last write failed
        self._number = self._stored = self._storing = 0  # of the record as it is, as stored, as being written
        self._needed = 0  # what must be on storage before this member has finished
        self._mine: Mark | None = None  # the attempt whose entries are in ...
        self._records: dict[int, Record] = {}  # ... by rank
        self._ruling: Ruling | None = None
        self._finished = False

    def start(self, stored: Mapping[str, tuple[int, bytes]]) -> None:
        number, data = stored.get(PRIMARY, (0, b""))
        self._number = self._stored = number
        try:
            found = _stored.decode(data) if data else None
        except msgspec.MsgspecError:
            return
        if found is not None and found.configured == self.configured and _possible(found.record, len(self.configured)):
            self.record = found.record

    # ---------------------------------------------------------------------------------------------------------- storage

    @property
    def ready(self) -> bool:
        """What this member must remember of the attempt, if it finishes it, is on storage."""
        return self._stored >= self._needed

    def _change(self, record: Record) -> list[Action]:
        if record == self.record:
            return []
        self.record = record
        self._number += 1
        return self.write()

    def write(self) -> list[Action]:
        """Whatever is not on storage yet, unless a write is under way."""
        if self._storing or self._number == self._stored:
            return []
        self._storing = self._number
        return [Store(PRIMARY, self._number, _encode(Stored(self.configured, self.record)))]

    def answered(self, number: int) -> list[Action]:
        self._stored, self._storing, self.error = number, 0, ""
        return self.write()

    def failed(self, why: str) -> None:
        self._storing, self.error = 0, why

    # -------------------------------------------------------------------------------------------------------- decisions

    def learn(self, knows: Knows) -> list[Action]:
        """Of a decision, unless a later one is remembered."""
        known = (knows.view.seq, self.configured.index(knows.view.rep)), knows.n, knows.h
        record = self.record
        return self._change(replace(record, knows=known)) if record.knows is None or known > record.knows else []

    def known(self) -> list[Action]:
        """The newest on the entries of the attempt, for the layers above."""
        found = max((r.knows for r in self._records.values() if r.knows is not None), default=None)
        if found is None:
            return []
        (seq, rank), n, h = found
        return [Up(Knows(ViewId(seq, self.configured[rank]), n, h))]

    # --------------------------------------------------------------------------------------------------------- attempts

    def entry(self, state: bytes) -> bytes:
        """What goes on the commit token."""
        self._mine, self._ruling, self._finished, self._needed = None, None, False, 0
        return _encode(RecordedEntry(self.record, state))

    def committed(
        self, ring_id: ViewId, members: tuple[MemberId, ...], entries: tuple[bytes, ...]
    ) -> tuple[tuple[bytes, ...], bool, list[Action]]:
        """All entries are in: what the owners wrote, and whether the view is primary.  Raises BadRecord."""
        read = [self._read(member, entry) for member, entry in zip(members, entries, strict=True)]
        rank = {member: k for k, member in enumerate(self.configured)}
        self._records = {rank[m]: entry.record for m, entry in zip(members, read, strict=True)}
        ruling = self._ruling = self._rule(self._records)
        self._mine = Mark(ring_id.seq, rank[ring_id.rep], to_bitmap(members, self.configured))
        out: list[Action] = []
        if ruling.held_against:
            out.append(Note("pending held", {"ring": str(ring_id)}))
        lost = [self.configured[k] for k, record in self._records.items() if record.last is None]
        if lost and ruling.last is not None:
            out.append(Note("record lost", {"members": lost}))
        if ruling.primary and self.record.last is not None:
            out += self._pend(self._mine)
        return tuple(entry.state for entry in read), ruling.primary, out

    def _rule(self, records: Mapping[int, Record]) -> Ruling:
        return rule(records, len(self.configured))

    def _read(self, member: MemberId, entry: bytes) -> RecordedEntry:
        try:
            read = _entry.decode(entry)
        except msgspec.MsgspecError as why:
            raise BadRecord(member, str(why)) from None
        if member not in self.configured or not _possible(read.record, len(self.configured)):
            raise BadRecord(member, "a record of strangers")
        return read

    def _pend(self, mine: Mark) -> list[Action]:
        """From here on this member may finish the attempt: on storage first."""
        pending = (*self.record.pending, mine)
        if len(pending) > ATTEMPTS_MAX:
            return self._change(Record(left=self.record.left, knows=self.record.knows))
        out = self._change(replace(self.record, pending=pending))
        self._needed = self._number
        return out

    def finish(self) -> None:
        """This member says that it has finished the attempt: from now on somebody may install it."""
        assert self.ready, "an attempt is finished only with the record of it on storage"
        self._finished = True

    def leave(self, ring_id: ViewId) -> list[Action]:
        """The attempt is given up: unfinished, nobody will ever have installed it."""
        ruling, self._ruling, self._needed = self._ruling, None, 0
        if self._finished or (ruling is not None and not ruling.primary):
            return []
        place = ring_id.seq, self.configured.index(ring_id.rep)
        record = self.record
        left = tuple(sorted({*record.left, place})[-ATTEMPTS_MAX:])
        pending = tuple(mark for mark in record.pending if mark.place != place)
        return [
            Note("attempt left", {"ring": str(ring_id)}),
            *self._change(replace(record, pending=pending, left=left)),
        ]

    def installed(self) -> list[Action]:
        """The attempt is the view now."""
        ruling, self._ruling, self._needed = self._ruling, None, 0
        assert ruling is not None and self._mine is not None
        record, records = self.record, list(self._records.values())
        knows = max((r.knows for r in records if r.knows is not None), default=None)
        if ruling.primary:
            return self._change(Record(self._mine, knows=knows))
        last, pending = record.last, record.pending
        if last is not None:
            assert ruling.last is not None
            last = ruling.last
            dead = {place for other in records for place in other.left}
            pending = tuple(mark for mark in pending if mark.place > last.place and mark.place not in dead)
        left = tuple(place for place in record.left if last is None or place > last.place)
        return [Note("not primary", {"last": last is not None}), *self._change(Record(last, pending, left, knows))]


def record_of(partition: str, identity: Identity) -> Primary | None:
    """The part, where the policy asks for it."""
    return Primary(identity.me, tuple(sorted(identity.members))) if partition == PRIMARY_MAJORITY else None


def learn(primary: Primary | None, knows: Knows) -> list[Action]:
    """The replicated state was decided; only this policy has a record of it."""
    return primary.learn(knows) if primary is not None else []


def known(primary: Primary | None) -> list[Action]:
    """What is known of decisions, ahead of the view that is installed now."""
    return primary.known() if primary is not None else []


def _possible(record: Record, configured: int) -> bool:
    """All of whom it speaks are members of this group, each view has some, and pending needs a view before it."""
    marks = [*record.pending, *((record.last,) if record.last is not None else ())]
    ranks = [*(mark.rank for mark in marks), *(rank for _, rank in record.left)]
    if record.knows is not None:
        ranks.append(record.knows[0][1])
    known = all(rank < configured for rank in ranks) and all(0 < mark.bits < 1 << configured for mark in marks)
    return known and (record.last is not None or not record.pending)
