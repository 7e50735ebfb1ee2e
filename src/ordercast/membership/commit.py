"""The commit token: twice round the sorted members, collecting entries, then showing them to all.

`hop` counts the visits made.  Member i of n sees it at hop i (writes its entry), at hop n + i (all entries: recovery
begins), and the representative once more at hop 2 n.  Copies of it are recognised by the hop.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.contract import Note, dropped
from ordercast.limits import entry_bytes_max
from ordercast.membership.automaton import Happening
from ordercast.membership.ballot import Ballot
from ordercast.membership.events import Committed, Returned
from ordercast.membership.handover import Handover
from ordercast.membership.packets import CommitToken, Entry, Got
from ordercast.membership.primary import BadRecord, Primary
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.stay import Stay
from ordercast.membership.step import Step
from ordercast.membership.timers import COMMIT, CONSENSUS, POLL
from ordercast.membership.voice import Voice
from ordercast.types import Cause, MemberId, Nanoseconds, ViewId


def blank(ring_id: ViewId, members: tuple[MemberId, ...]) -> CommitToken:
    """As the representative makes it, before its own entry."""
    assert ring_id.rep == members[0]
    return CommitToken(ring_id, members, 0, members[0], ())


def write(token: CommitToken, entry: Entry) -> CommitToken:
    """First rotation: add my entry, address the next member."""
    assert len(token.entries) == token.hop < len(token.members)
    assert len(entry.state) <= entry_bytes_max(len(token.members)), "an entry above its share of the token"
    return _address(token, (*token.entries, entry))


def forward(token: CommitToken) -> CommitToken:
    """Second rotation: pass it on as it is."""
    return _address(token, token.entries)


def _address(token: CommitToken, entries: tuple[Entry, ...]) -> CommitToken:
    hop = token.hop + 1
    return CommitToken(token.ring_id, token.members, hop, token.members[hop % len(token.members)], entries)


def rotation(token: CommitToken) -> int:
    """0: collecting entries; 1: showing them; 2: back at the representative."""
    return token.hop // len(token.members)


class Commit:
    """A member's part in its way.  `entry`: the owner's, asked when it is written."""

    def __init__(
        self, step: Step, standing: Standing, sight: Sight, voice: Voice, number: RingNumber, ballot: Ballot,
        handover: Handover, stay: Stay, primary: Primary | None, entry: Callable[[], bytes],
    ) -> None:  # fmt: skip
        self._step, self._standing, self._sight, self._voice, self._number = step, standing, sight, voice, number
        self._ballot, self._handover, self._stay, self._primary, self.entry = ballot, handover, stay, primary, entry

    def came(self, now: Nanoseconds, token: CommitToken) -> None:
        """A commit token was seen; it may be for another member."""
        self._handover.overtaken(Got(token.ring_id, 0, token.hop))
        if token.to != self._sight.me:
            return
        times, forming = rotation(token), self._standing.forming
        if times == 0:
            self._standing.happens(now, Happening.TOKEN_FIRST, token)
        elif forming is not None and forming.id == token.ring_id:
            if token.members != forming.members or token.entries[token.members.index(token.to)] != forming.entry:
                self._step.say(dropped("commit token", ring=str(token.ring_id)))
                return
            self._standing.happens(now, Happening.TOKEN_SECOND if times == 1 else Happening.TOKEN_THIRD, token)

    # -------------------------------------------------------------------------------------- until the number is stored

    def begin(self, now: Nanoseconds) -> None:
        """All agreed, and I am the representative."""
        members = self._ballot.proposal
        self._accept(now, blank(ViewId(self._number.next(members), self._sight.me), members))

    def take(self, now: Nanoseconds, token: CommitToken) -> None:
        """First rotation: it counts if it is for what I propose now, and newer than what I have used or hold."""
        self._standing.happens(now, Happening.NEWS)
        held = self._ballot.pending
        newer = held is None or token.ring_id > held.ring_id
        if newer and token.members == self._ballot.proposal and token.ring_id.seq > self._number.used:
            self._accept(now, token)

    def _accept(self, now: Nanoseconds, token: CommitToken) -> None:
        """The ring number goes to storage, then my entry is written."""
        self._ballot.pending = token
        if token.hop:
            self._standing.got = Got(token.ring_id, 0, token.hop)
        self._step.out += self._number.want(token.ring_id.seq)
        self._try(now)

    def stored(self, now: Nanoseconds, ill: bool) -> None:
        """Something was written; `ill`: after writes had failed for so long that I said I was gone."""
        if ill and self._voice.recompute(now):
            self._standing.happens(now, Happening.NEWS)
        self._try(now)

    def failed(self, now: Nanoseconds) -> None:
        self._ballot.pending = None
        self._voice.recompute(now)
        self._standing.happens(now, Happening.NEWS)

    def _try(self, now: Nanoseconds) -> None:
        token = self._ballot.pending
        if token is not None and token.ring_id.seq <= self._number.stored:
            self._standing.happens(now, Happening.READY, token)

    # ---------------------------------------------------------------------------------------------------- from there on

    def enter(self, now: Nanoseconds, token: CommitToken) -> None:
        """My entry goes on the token: from here on this member is committed, if all others are."""
        step = self._step
        step.out += self._number.use(token.ring_id.seq)
        self._ballot.pending = None
        self._standing.form(token.ring_id, token.members)
        self._handover.new_ring()
        step.deadlines.clear(CONSENSUS, POLL)
        step.say(Note("commit", {"ring": str(token.ring_id), "members": list(token.members)}))
        self._voice.recompute(now)
        step.tick_at(now + step.times.hello)
        state = self.entry() if self._primary is None else self._primary.entry(self.entry())
        forming, mine = self._standing.present, Entry(self._sight.incarnation, state)
        forming.entry = mine
        token = write(token, mine)
        if len(token.members) == 1:
            self._standing.happens(now, Happening.TOKEN_SECOND, token)
        else:
            step.set(COMMIT, now + step.times.commit)
            self._forward(now, token)

    def recover(self, now: Nanoseconds, token: CommitToken) -> None:
        """Second rotation: all entries are in."""
        forming = self._standing.forming
        assert forming is not None
        self._standing.got = Got(token.ring_id, 0, token.hop)
        self._step.deadlines.clear(COMMIT)
        self._stay.expect(now)
        incarnations = tuple(entry.incarnation for entry in token.entries)
        forming.incarnations = dict(zip(token.members, incarnations, strict=True))
        for q, incarnation in forming.incarnations.items():
            if q != self._sight.me:
                self._sight.agreed(now, q, incarnation)
        self._sight.plausible.agreed(now, token.ring_id.seq, incarnations)
        alone, primary = len(token.members) == 1, None
        entries = tuple(entry.state for entry in token.entries)
        if self._primary is not None:
            try:
                entries, primary, stores = self._primary.committed(token.ring_id, token.members, entries)
            except BadRecord as why:
                self._step.say(dropped(why.reason, what=str(why)))
                cause = Cause("bad entry", why.member, "", str(why))
                self._standing.happens(now, Happening.BLAMED, cause, None, [why.member])
                return
            self._step.out += stores
        if not alone:
            self._forward(now, forward(token))
        self._step.say(Committed(token.ring_id, token.members, entries, incarnations, self._standing.cause, primary))
        if alone:
            self._step.say(Returned(token.ring_id))

    def returned(self, now: Nanoseconds, token: CommitToken) -> None:
        """Third time, at the representative; once."""
        if self._standing.got == Got(token.ring_id, 0, len(token.members)):
            self._standing.got = Got(token.ring_id, 0, token.hop)
            self._step.say(Returned(token.ring_id))

    def late(self, now: Nanoseconds) -> None:
        """T_commit is over."""
        ring = self._standing.present.id
        cause = Cause("commit timeout", None, "T_commit", f"ring {ring}")
        self._standing.happens(now, Happening.COMMIT_LATE, cause, Note("commit_late", {"ring": str(ring)}))

    def _forward(self, now: Nanoseconds, token: CommitToken) -> None:
        self._step.out += self._handover.send(now, token.to, token, Got(token.ring_id, 0, token.hop))
