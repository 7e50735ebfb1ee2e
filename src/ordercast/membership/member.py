"""One member's part in the membership: the object an owner holds.  See the package's docstring for its use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordercast.contract import Action, Note, Packet
from ordercast.membership import cause as causes
from ordercast.membership import report
from ordercast.membership.automaton import Happening, State, allowed
from ordercast.membership.events import Parted
from ordercast.membership.gather import Moves
from ordercast.membership.packets import CommitToken, Got, Hello, Join
from ordercast.membership.table import NOBODY
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, PART
from ordercast.types import Cause, MemberId, Nanoseconds, Peer, ViewId

PROBES = (
    "blame", "clone", "commit_late", "contradiction", "crash_hint", "departed", "gather_again", "other_timeout",
    "own_pause", "probation", "refused_agreement", "storage_failed", "strike", "t_loss", "token_by_multicast", "waited",
    "withdrawn",
)  # fmt: skip


class Membership(Moves):
    """Evidence, rows, choice, Gather and Commit of one member.

    direct: the owner cannot do without direct links (the view-synchronous layer): suspicion by silence of any member of
    the view instead of token loss, and a common working view is no evidence of a link.
    entry: called when the commit entry is written; from then on the owner is frozen until the next install.
    packet_bytes: rows beyond it are spread over several packets.
    """

    @property
    def ring_seq(self) -> int:
        """Highest ring number on a token this member wrote; always on storage first."""
        return self.number.used

    def status(self) -> dict[str, Any]:
        """State, view, T_loss, who hears whom, strikes and probations, refused members, and what it waits for."""
        return report.status(self)

    # -------------------------------------------------------------------------------------------- inputs of the driver

    def start(self, now: Nanoseconds, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """Begin in Gather; a view of one follows when nobody answers."""
        self.sight.start(now)
        self.patience.start(now)
        self.number.start(self.first_ring_seq, stored)
        self._out += self.number.need(self.number.next())  # a disk that fails is found before anybody counts on us
        self._enter_gather(now)
        return self._end(now)

    def heard(self, now: Nanoseconds, peer: Peer) -> list[Action] | None:
        """A packet came straight from `peer`.  None: drop it (stranger, earlier incarnation, other T, or I left)."""
        link = self.sight.evidence.links.get(peer.id)
        if link is not None and link.hears and link.incarnation == peer.incarnation and now <= self._alarm:
            assert link.heard is not None
            if now - link.heard <= self.times.grace:
                link.heard, link.spares = now, 0
                return []
        if self.state is State.PARTED or not self.sight.admit(peer):
            return None  # what there is to note is said in the next step
        self._begin(now, self._alarm)
        silent = self.sight.hear(now, peer)
        if self.direct and peer.id in self.members and not self.paused:
            self.sight.measure(now, silent)
        if not self.sight.hears(peer.id) and self._recompute(now):
            self._decide(now)
        if self.state is State.OPERATIONAL and self.incarnations.get(peer.id, peer.incarnation) != peer.incarnation:
            self._depart(now, peer.id, "came back in another life")
        return self._end(now)

    def receive(self, now: Nanoseconds, peer: Peer, packet: Packet) -> list[Action]:
        """A packet of PACKETS that `heard` has let pass."""
        self.paused = False
        if self.state is not State.PARTED:
            match packet:
                case Hello():
                    self._on_hello(now, peer, packet)
                case Join():
                    self._on_join(now, peer, packet)
                case CommitToken():
                    self._on_commit_token(now, packet)
        return self._end(now)

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        """A timer whose name starts with "m."."""
        over, again = self.deadlines.fired(now, name)
        self._out += again
        if self.state is State.PARTED:
            if over and name == PART:
                self._out += [*self.voice.hello(now, self.view), Parted()]
            return self._end(now)
        self._begin(now, due + self.times.late)
        spared = None
        if over and self.paused and name in (LOSS, COMMIT, CONSENSUS):
            spared = self.deadlines.spare(now, self.times.grace, name)
        if spared is not None:
            self._out += spared
        elif over:
            self._on_deadline(now, name)
        return self._end(now)

    def stood_still(self, now: Nanoseconds, due: Nanoseconds) -> list[Action]:
        """Called first at the owner's own timers; sets `paused`."""
        self._begin(now, due + self.times.late)
        return self._end(now)

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        self.paused = False
        ill = self.number.ill
        self.number.answered(number)
        if self.state is State.GATHER:
            if ill and self._recompute(now):
                self._decide(now)
            self._write_entry(now)
        return self._end(now)

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        self.paused = False
        self.number.failed(number, why)
        self._say(Note("storage_failed", {"number": number, "why": why}))
        if self.state is State.GATHER:
            self.pending = None
            self._recompute(now)
            self._propose(now)
        return self._end(now)

    def unreachable(self, now: Nanoseconds, member: MemberId) -> list[Action]:
        """The port of `member` answered that nobody is there: say so to all, who need not wait then."""
        self.paused = False
        if self.state is State.PARTED or member == self.me or not self.sight.table.gone(now, member):
            return []
        self.sight.evidence.forget(member)
        self._say(Note("crash_hint", {"member": member}))
        self.voice.announce = True
        concerned = self.members if self.state is State.OPERATIONAL else self.new_members
        if self.state is not State.GATHER and member in concerned:
            self._gather(now, Happening.HINT, causes.hint(member))
        else:
            self._recompute(now)
            self._decide(now)
        return self._end(now)

    def leave(self, now: Nanoseconds) -> list[Action]:
        """The owner has drained: say Leave twice, then Parted."""
        if self.state is State.PARTED:
            return []
        assert allowed(self.state, Happening.LEAVE, State.PARTED)
        self.state = State.PARTED
        self.handover.went_on()
        self.deadlines.clear(*self.deadlines.due)
        self.sight.table.write(now, self.view, False, NOBODY)
        self._out += self.voice.hello(now, self.view)
        self._set(PART, now + self.times.gap)
        return self._end(now)

    # ---------------------------------------------------------------------------------------- what the owner tells it

    def token(self, now: Nanoseconds, ring_id: ViewId, number: int) -> list[Action]:
        """A regular token of my ring (installed or in recovery) was accepted; restarts T_loss, measures rotation."""
        assert ring_id == (self.new_ring or self.view), "a token of another ring was accepted"
        self._got = Got(ring_id, 1, number)
        self.handover.went_on()
        if self._visited is not None:
            self.sight.measure(now, now - self._visited)
        self._visited = now
        self._expect_token(now)
        if self._young and self.state is State.OPERATIONAL:
            self._young = False
            self._decide(now)
        return self._end(now) if self._out else []

    def pass_token(self, now: Nanoseconds, to: MemberId, packet: Packet, ring_id: ViewId, number: int) -> list[Action]:
        """Transmit a regular token (already naming `to`) and repeat it until it is known to have gone on."""
        return self.handover.send(now, to, packet, Got(ring_id, 1, number))

    def went_on(self, now: Nanoseconds) -> list[Action]:
        """A sign that the token passed on is alive: a message of its ring with seq above the copy's, a later token."""
        self.handover.went_on()
        return []

    def foreign(self, now: Nanoseconds, peer: Peer, ring_id: ViewId) -> list[Action]:
        """A packet of another ring came straight from `peer`: if newer, and a member of mine, it has left my view."""
        self.paused = False
        self.number.see(ring_id.seq)
        self._named(now, peer.id, ring_id)
        return self._end(now)

    def suspect(self, now: Nanoseconds, cause: Cause, strike: Sequence[MemberId] = ()) -> list[Action]:
        """The owner gives the view (or attempt) up: stuck receiver or link, Flush too long; strikes whom it blames."""
        self.paused = False
        if self.state in (State.OPERATIONAL, State.COMMIT, State.RECOVERY):
            for q in strike:
                if q in self.sight.evidence.links:
                    self.sight.strike(now, q, cause.reason)
            self._gather(now, Happening.BLAMED, cause)
        return self._end(now)

    def installed(self, now: Nanoseconds) -> list[Action]:
        """Recovery is over: new_ring and new_members are the view now, and it works."""
        assert self.new_ring is not None and allowed(self.state, Happening.INSTALLED, State.OPERATIONAL)
        self.paused = self.frozen = False
        self.state = State.OPERATIONAL
        self.view, self.members, self.incarnations = self.new_ring, self.new_members, self.new_incarnations
        self.new_ring, self.new_members, self.new_incarnations = None, (), {}
        self._young = not self.direct and len(self.members) > 1
        self._recompute(now)
        beyond, self._beyond = self._beyond, {}
        self._decide(now)
        for q, view in beyond.items():
            self._named(now, q, view)
        return self._end(now)
