"""The ring a member has installed, the attempt at the next one, and what a failed attempt leaves behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from ordercast.contract import Action, Note
from ordercast.errors import WireError
from ordercast.membership import Committed, State
from ordercast.protocols.totem.attempt import Attempt
from ordercast.protocols.totem.flow import Limits
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.packets import RingEntry, Token
from ordercast.protocols.totem.ring import Ring
from ordercast.types import MemberId, ViewId

_entries = msgspec.msgpack.Decoder(RingEntry)
_encode = msgspec.msgpack.Encoder().encode


class Rings:
    """Old and new.  Nobody shares the ring before the first view: its id names its only member."""

    def __init__(
        self,
        me: MemberId,
        limits: Limits,
        options: TotemOptions,
        *,
        hold_safe: bool,
        stamps: bool,
        number: int,
        lamport: Lamport | None = None,
        urgent: Callable[[], int] | None = None,
        first: Callable[[], bool] | None = None,
    ) -> None:
        self.me, self.limits, self.options = me, limits, options
        self.hold_safe, self.stamps, self.number = hold_safe, stamps, number
        self.lamport, self.urgent, self.first = lamport or Lamport(), urgent, first  # carried from ring to ring
        self.room: int | None = None  # delivery space at the application
        self.repeated: Counter[MemberId] = Counter()  # frames that I had to ask for, by their senders
        self.ring = self._make(ViewId(0, me), (me,))  # installed
        self.attempt: Attempt | None = None  # from its commit to its install
        self.received = False  # received_flg: an exchange of the ring's frames was finished ...
        self.obligation: tuple[MemberId, ...] = ()  # ... with these

    def _make(self, id: ViewId, members: tuple[MemberId, ...]) -> Ring:
        options = self.options
        ring = Ring(
            id, self.me, members, self.limits, first_seq=options.first_seq, request_lag=options.lag,
            hold_safe=self.hold_safe, stamps=self.stamps, source=self.number,
            lamport=self.lamport,
        )  # fmt: skip
        ring.room, ring.repeated, ring.urgent, ring.first = self.room, self.repeated, self.urgent, self.first
        return ring

    def knows(self, id: ViewId) -> bool:
        return id == self.ring.id or (self.attempt is not None and id == self.attempt.new.id)

    def turning(self, state: State) -> Ring | None:
        """The ring whose tokens are handled now."""
        if state is State.OPERATIONAL:
            return self.ring
        return self.attempt.new if state is State.RECOVERY and self.attempt is not None else None

    def give_room(self, frames: int | None) -> None:
        self.room = self.ring.room = frames
        if self.attempt is not None:
            self.attempt.new.room = frames

    def entry(self) -> bytes:
        """My state of the old ring, for the commit token; from here on its store is frozen."""
        ring = self.ring
        entry = RingEntry(ring.id, ring.my_aru, ring.delivered, ring.safe_upto, self.received, self.obligation)
        return _encode(entry)

    def begin(self, committed: Committed) -> Note:
        """All entries are in.  Raises WireError for one that is none, or cannot be true."""
        entries = self._read(committed)
        new = self._make(committed.ring_id, committed.members)
        new.primary = committed.primary
        if not self.stamps:  # of frames from other rings their gateways know
            new.lives = dict(zip(committed.members, committed.incarnations, strict=True))
        self.attempt = Attempt(self.ring, new, committed, entries, self.number)
        plan = self.attempt.plan
        if plan.exchange:
            self.received = False  # until this one is finished; the obligations stay
        fields = {"from": len(plan.transitional), "to": len(new.members), "frames": len(plan.rebroadcast)}
        return Note("recovery" if plan.exchange else "recovery again", fields)

    def _read(self, committed: Committed) -> list[RingEntry]:
        entries = []
        for member, state in zip(committed.members, committed.entries, strict=True):
            try:
                entry = _entries.decode(state)
            except msgspec.MsgspecError as why:
                raise WireError("entry", f"of member {member}: {why}") from None
            if entry.ring == self.ring.id and not entry.possible(member, self.ring.members):
                raise WireError("entry", f"of member {member}: not of ring {entry.ring}")
            entries.append(entry)
        return entries

    def visited(self, attempt: Attempt, token: Token, last_aru: int) -> bool:
        """After a visit in recovery: whether the new ring can be installed."""
        done, install = attempt.exchange.visited(attempt.new, token, last_aru)
        if done:
            self.received, self.obligation = True, attempt.plan.obligation
        return install

    def install(self, attempt: Attempt) -> list[Action]:
        out = attempt.install()
        self.ring, self.attempt = attempt.new, None
        self.received, self.obligation = False, ()
        return out
