"""One member's part in the membership: the object an owner holds.  See the package's docstring for its use.

It puts the parts together and is their border: every input is one step, in which it is said what happened; who acts
upon that stands in the automaton's table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.contract import Action, Note, Packet
from ordercast.membership import cause as causes
from ordercast.membership import report
from ordercast.membership.automaton import Happening, State
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import Chooser
from ordercast.membership.commit import Commit
from ordercast.membership.events import Parted
from ordercast.membership.evidence import PROBATION_MAX_NS
from ordercast.membership.gather import Gather
from ordercast.membership.handover import Handover
from ordercast.membership.packets import CommitToken, Got, Hello, Join
from ordercast.membership.primary import PRIMARY, record_of
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.stay import Stay
from ordercast.membership.step import Step
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, PART, POLL, REPEAT, TICK, Times
from ordercast.membership.voice import Voice
from ordercast.membership.waits import Patience
from ordercast.types import ALL_CONTINUE, Cause, Identity, MemberId, Nanoseconds, NetId, Peer, ViewId

PROBES = (
    "blame", "commit_late", "contradiction", "crash_hint", "departed", "forgotten", "gather_again",
    "own_pause", "probation", "refused_agreement", "rival", "storage_failed", "strike", "t_loss",
    "token_by_multicast", "waited", "withdrawn",
)  # fmt: skip


class Membership:
    """Evidence, rows, choice, Gather and Commit of one member.

    direct: the owner cannot do without direct links (the view-synchronous layer): suspicion by silence of any member of
    the view instead of token loss, and a common working view is no evidence of a link.
    entry: called when the commit entry is written; from then on the owner is frozen until the next install.  At most
    `limits.entry_bytes_max` of the new ring's members.
    packet_bytes: rows beyond it are spread over several packets.
    partition: the policy; under `primary-majority` a record goes with every entry, and `Committed` says what follows.
    """

    def __init__(
        self,
        identity: Identity,
        timeout_ns: Nanoseconds,
        rng: random.Random,
        *,
        entry: Callable[[], bytes],
        direct: bool = False,
        net: NetId = 0,
        packet_bytes: int = 1400,
        probation_max_ns: Nanoseconds = PROBATION_MAX_NS,
        partition: str = ALL_CONTINUE,
    ) -> None:
        self.me, self.first_ring_seq, self.rng, self.direct = identity.me, identity.ring_seq, rng, direct
        self.times = Times.of(timeout_ns)
        self.standing = standing = Standing(self)
        self.step = step = Step(self.times)
        self.ballot = ballot = Ballot(self.me)
        self.sight = sight = Sight(identity, standing, timeout_ns, probation_max_ns, step.say, ballot.forget)
        self.number = number = RingNumber()
        self.chooser = chooser = Chooser(self.me, direct, self.times.gap)
        self.patience = patience = Patience(step, sight, direct)
        self.handover = handover = Handover(step.deadlines, net, self.times.repeat)
        self.voice = voice = Voice(step, standing, sight, number, ballot, net, packet_bytes)
        self.stay = stay = Stay(step, standing, sight, voice, chooser, patience, direct)
        self.primary = primary = record_of(partition, identity)
        self.gather = Gather(step, standing, sight, voice, number, ballot, chooser, patience, handover, primary)
        self.commit = Commit(step, standing, sight, voice, number, ballot, handover, stay, primary, entry)
        self._links, self._grace = sight.evidence.links, self.times.grace

    # ------------------------------------------------------------------------------------------- what an owner may read

    @property
    def state(self) -> State:
        return self.standing.state

    @property
    def view(self) -> ViewId:
        """The installed one; NO_VIEW before the first."""
        return self.standing.installed.id

    @property
    def members(self) -> tuple[MemberId, ...]:
        """Of the installed view."""
        return self.standing.installed.members

    @property
    def frozen(self) -> bool:
        """The entry was written since the last install."""
        return self.standing.frozen

    @property
    def paused(self) -> bool:
        """It came out in this step that this member itself had stood still."""
        return self.step.paused

    @property
    def ring_seq(self) -> int:
        """Highest ring number on a token this member wrote; always on storage first."""
        return self.number.used

    def status(self) -> dict[str, Any]:
        """State, view, T_loss, who hears whom, strikes and probations, refused members, and what it waits for."""
        return report.status(self)

    def words(self) -> str:
        """What it waits for alone."""
        return report.words(self)

    def apart(self) -> str:
        """In words: who is kept out by a probation here, or keeps this member out."""
        return report.apart(self)

    # -------------------------------------------------------------------------------------------- inputs of the driver

    def _end(self, now: Nanoseconds) -> list[Action]:
        self.voice.speak(now)
        return self.step.end()

    def start(self, now: Nanoseconds, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """Begin in Gather; a view of one follows when nobody answers."""
        self.standing.left = now
        self.number.start(self.first_ring_seq, stored)
        if self.primary is not None:
            self.primary.start(stored)
        self.sight.start(now, self.number.used)
        self.patience.start(now)
        self.step.out += self.number.need(self.number.next())  # a disk that fails is found before anybody counts on us
        self.gather.enter(now)
        return self._end(now)

    def heard(self, now: Nanoseconds, peer: Peer) -> list[Action] | None:
        """A packet came straight from `peer`.  None: drop it (stranger, earlier incarnation, other T, or I left)."""
        link = self._links.get(peer.id)
        if link is not None and link.hears and link.incarnation == peer.incarnation and now <= self.step.alarm:
            assert link.heard is not None
            if now - link.heard <= self._grace:
                link.heard, link.spares = now, 0
                return []
        if self.state is State.PARTED or not self.sight.admit(now, peer):
            return None  # what there is to note is said in the next step
        self.step.begin(now, self.step.alarm, self.sight.evidence)
        silent = self.sight.hear(now, peer)
        if self.direct and self.standing.works and peer.id in self.members and not self.paused:
            self.sight.measure(now, silent)  # a silence that ended without a view change
        if not self.sight.hears(peer.id) and self.voice.recompute(now):
            self.standing.happens(now, Happening.NEWS)
        self.stay.met(now, peer)
        return self._end(now)

    def hears(self, peer: Peer) -> bool:
        """This life of it, as of now."""
        link = self._links.get(peer.id)
        return link is not None and link.hears and link.incarnation == peer.incarnation

    def knows(self, now: Nanoseconds, peer: Peer) -> bool:
        """Whether a packet of it may be believed that is no sign of life."""
        return self.hears(peer) or (self.state is not State.PARTED and self.sight.admit(now, peer))

    def ignored(self, now: Nanoseconds, peer: Peer, packet: Packet) -> list[Action]:
        """A packet that `heard` has not let pass: perhaps it shows two lives of one id, or my T after all."""
        rival = packet.rival if type(packet) is Hello else None
        if self.state is State.PARTED:
            return []
        if peer.id == self.me and peer.incarnation != self.sight.incarnation:
            self.step.paused = False
            self.voice.announce |= self.sight.met(now, peer.incarnation)
            if rival is not None and self.sight.rivals.outdone(now, peer.incarnation, rival):
                self.standing.happens(now, Happening.OUTDONE, report.outdone(self.me, peer.incarnation, rival))
            return self._end(now)
        counts = rival is not None and self.sight.rival(now, peer, rival)
        if type(packet) is Join and packet.timeout_ns == self.times.timeout:
            counts = self.sight.same_timeout(peer)
        if counts:
            return (self.heard(now, peer) or []) + self.receive(now, peer, packet)
        return []

    def receive(self, now: Nanoseconds, peer: Peer, packet: Packet) -> list[Action]:
        """A packet of PACKETS that `heard` has let pass."""
        self.step.paused = False
        if self.state is not State.PARTED:
            match packet:
                case Hello():
                    self._hello(now, peer, packet)
                case Join():
                    self._join(now, peer, packet)
                case CommitToken():
                    self._commit_token(now, peer, packet)
        return self._end(now)

    def _hello(self, now: Nanoseconds, peer: Peer, hello: Hello) -> None:
        if not self.sight.believable(now, peer.id, hello.view.seq, hello.rows):
            return
        if hello.rival is not None:
            self.sight.rival(now, peer, hello.rival)
        if self.voice.absorb(now, peer, hello.rows):
            self.standing.happens(now, Happening.NEWS)
        self.stay.named(now, peer.id, hello.view)

    def _join(self, now: Nanoseconds, peer: Peer, join: Join) -> None:
        if join.timeout_ns != self.times.timeout:
            self.sight.refuse(now, peer, join.timeout_ns)
            if self.voice.recompute(now):
                self.standing.happens(now, Happening.NEWS)
            return
        self.sight.same_timeout(peer)
        if not self.sight.believable(now, peer.id, join.ring_seq, join.rows):
            return
        changed = self.voice.absorb(now, peer, join.rows)
        if self.ballot.newer(now, peer.id, join.number, self.times.timeout):
            self.number.see(peer.id, join.ring_seq)
            self._left_by(now, peer.id, join)
            if self.standing.happens(now, Happening.JOIN, peer.id, join):
                return
        if changed:
            self.standing.happens(now, Happening.NEWS)

    def _commit_token(self, now: Nanoseconds, peer: Peer, token: CommitToken) -> None:
        plausible, youngest = self.sight.plausible, max(entry.incarnation for entry in token.entries)
        if plausible.ring(now, token.ring_id.seq) and plausible.life(now, youngest):
            self.commit.came(now, token)
        else:
            self.sight.doubt(peer.id, f"ring number {token.ring_id.seq}, life {youngest}")

    def _left_by(self, now: Nanoseconds, q: MemberId, join: Join) -> None:
        """A Join moves us only if it comes from one of ours, and shows that it left what we have in common."""
        ring = self.standing.present
        if q not in ring.members:
            return
        if join.ring_seq >= ring.id.seq:
            self.standing.happens(now, Happening.JOIN_OF_OURS, causes.told(join.cause, q))
        elif ring.id.rep == self.me and join.proposal != ring.members:
            cause = Cause("withdrawal", q, "", f"no longer for {ring.members}")
            self.standing.happens(now, Happening.WITHDRAWN, cause, Note("withdrawn", {"member": q}))

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        """A timer whose name starts with "m."."""
        over = self.step.over(now, name)
        if self.state is State.PARTED:
            if over and name == PART:
                self.voice.hello(now)
                self.step.say(Parted())
            return self._end(now)
        self.step.begin(now, due + self.times.late, self.sight.evidence)
        if over and not self.step.spare(now, name):
            self._due(now, name)
        return self._end(now)

    def _due(self, now: Nanoseconds, name: str) -> None:
        if name == TICK:
            self._tick(now)
        elif name == POLL:
            self.voice.recompute(now)
            self.standing.happens(now, Happening.NEWS)
        elif name == REPEAT:
            self.step.out += self.handover.repeat(now)
        elif name == LOSS:
            self.stay.lost(now)
        elif name == COMMIT:
            self.commit.late(now)
        elif name == CONSENSUS:
            self.standing.happens(now, Happening.CONSENSUS)

    def _tick(self, now: Nanoseconds) -> None:
        self.sight.tick(now)
        if self.number.error:
            self.step.out += self.number.again()
        if self.number.unrecorded and self.primary is not None:
            self.step.out += self.primary.write()
        gathers = self.standing.gathers
        wait = self.times.join if gathers else self.times.hello
        self.step.tick_at(now + wait - self.rng.randrange(wait // 8))  # so that members do not speak in step
        self.voice.announce = True
        if self.voice.recompute(now) or gathers:
            self.standing.happens(now, Happening.NEWS)

    def stood_still(self, now: Nanoseconds, due: Nanoseconds) -> list[Action]:
        """Called first at the owner's own timers; sets `paused`."""
        self.step.begin(now, due + self.times.late, self.sight.evidence)
        return self._end(now)

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        self.step.paused = False
        ill = self.number.ill
        if key == PRIMARY and self.primary is not None:
            self.step.out += self.primary.answered(number)
            self.number.unrecorded = False
        else:
            self.number.answered(number)
        self.standing.happens(now, Happening.STORED, ill)
        return self._end(now)

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        self.step.paused = False
        if key == PRIMARY and self.primary is not None:
            self.primary.failed(why)
            self.number.unrecorded = True
        else:
            self.number.failed(number, why)
        self.step.say(Note("storage_failed", {"number": number, "why": why}))
        self.standing.happens(now, Happening.STORE_FAILED)
        return self._end(now)

    def unreachable(self, now: Nanoseconds, member: MemberId) -> list[Action]:
        """The port of `member` answered that nobody is there: say so to all, who need not wait then."""
        self.step.paused = False
        if self.state is State.PARTED or member == self.me or not self.sight.table.gone(now, member):
            return []
        self.sight.evidence.forget(member)
        self.step.say(Note("crash_hint", {"member": member}))
        self.voice.announce = True
        ours = member in self.standing.present.members
        if not (ours and self.standing.happens(now, Happening.HINT, causes.hint(member))):
            self.voice.recompute(now)
            self.standing.happens(now, Happening.NEWS)
        return self._end(now)

    def leave(self, now: Nanoseconds) -> list[Action]:
        """The owner has drained: say Leave twice, then Parted."""
        return self._end(now) if self.standing.happens(now, Happening.LEAVE) else []

    # ---------------------------------------------------------------------------------------- what the owner tells it

    def token(self, now: Nanoseconds, ring_id: ViewId, number: int) -> list[Action]:
        """A regular token of my ring (installed or in recovery) was accepted; restarts T_loss, measures rotation."""
        standing = self.standing
        assert ring_id == (standing.forming or standing.installed).id, "a token of another ring was accepted"
        standing.got = Got(ring_id, 1, number)
        self.handover.went_on()
        self.stay.visited(now)
        if standing.young:
            standing.young = False
            self.standing.happens(now, Happening.NEWS)
        return self._end(now) if self.step.out else []

    def pass_token(self, now: Nanoseconds, to: MemberId, packet: Packet, ring_id: ViewId, number: int) -> list[Action]:
        """Transmit a regular token (already naming `to`) and repeat it until it is known to have gone on."""
        return self.handover.send(now, to, packet, Got(ring_id, 1, number))

    def went_on(self, now: Nanoseconds) -> list[Action]:
        """A sign that the token passed on is alive: a message of its ring with seq above the copy's, a later token."""
        self.handover.went_on()
        return []

    def used(self, now: Nanoseconds) -> list[Action]:
        """The same, where its holder is yet to pass it on, and may die before."""
        return self.handover.used(now)

    @property
    def recorded(self) -> bool:
        """Whether the owner may say that it has finished: what must be remembered of that is on storage."""
        return self.primary is None or self.primary.ready

    def finished(self) -> None:
        """The owner says, in this step, that it has finished its part of recovery: somebody may install from now on."""
        if self.primary is not None:
            self.primary.finish()

    def foreign(self, now: Nanoseconds, peer: Peer, ring_id: ViewId) -> list[Action]:
        """A packet of another ring came straight from `peer`: if newer, and a member of mine, it has left my view."""
        self.step.paused = False
        if self.sight.plausible.ring(now, ring_id.seq):
            self.stay.named(now, peer.id, ring_id)
        else:
            self.sight.doubt(peer.id, f"ring number {ring_id.seq}")
        return self._end(now)

    def suspect(self, now: Nanoseconds, cause: Cause, strike: Sequence[MemberId] = ()) -> list[Action]:
        """The owner gives the view (or attempt) up: stuck receiver or link, Flush too long; strikes whom it blames."""
        self.step.paused = False
        blamed = [q for q in strike if q in self._links]
        self.standing.happens(now, Happening.BLAMED, cause, None, blamed)
        return self._end(now)

    def blame(self, now: Nanoseconds, members: Sequence[MemberId], why: str) -> list[Action]:
        """The owner left an attempt in which these owed it something: their links are struck, whatever ended it."""
        self.step.paused = False
        for q in members:
            if q in self._links:
                self.sight.strike(now, q, why)
        self.voice.recompute(now)
        self.standing.happens(now, Happening.NEWS)
        return self._end(now)

    def installed(self, now: Nanoseconds) -> list[Action]:
        """Recovery is over: the ring that was formed is the view now, and it works."""
        self.step.paused = False
        if self.primary is not None:
            self.step.out += self.primary.installed()
        acted = self.standing.happens(now, Happening.INSTALLED)
        assert acted, "installed outside of recovery"
        return self._end(now)
