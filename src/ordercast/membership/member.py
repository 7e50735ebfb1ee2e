"""One member's part in the membership: the object an owner holds.  See the package's docstring for its use.

Paper: the membership of Totem (Amir, Moser, Melliar-Smith, Agarwal, Ciarfella 1995): its states and commit token.
Differs from it:
  D1  Members are chosen by rows of who hears whom and cliques, not by proc_set and fail_set (choose.py).
  D2  A Join from outside moves nobody; only the choice of members does (automaton.py).
  D3  Links that keep breaking are on probation (evidence.py); tokens are repeated by multicast (handover.py).
  D4  T_loss tunes itself (tuning.py); a pause of this member is told from a silence of the others (`_begin`).
  D5  A member whose storage fails says that it is gone until a write succeeds, so that it holds nobody up.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.contract import ALL, Action, Note, Packet, Transmit
from ordercast.membership import cause as causes
from ordercast.membership import commit, waits
from ordercast.membership.automaton import Happening, State, allowed
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import NO_VIEW, Chooser, Row
from ordercast.membership.events import Committed, Gathering, Parted, Returned
from ordercast.membership.evidence import PROBATION_MAX_NS, Evidence
from ordercast.membership.handover import Handover
from ordercast.membership.packets import CommitToken, Entry, Got, Hello, Join, PackedRows
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.table import NOBODY, Table, pack, unpack
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, PART, POLL, REPEAT, TICK, Deadlines, Times
from ordercast.membership.tuning import Tuning
from ordercast.types import Cause, Identity, Incarnation, MemberId, Nanoseconds, NetId, Peer, ViewId

NEVER: Nanoseconds = 2**63

PROBES = (
    "token_by_multicast",
    "own_pause",
    "contradiction",
    "blame",
    "refused_agreement",
    "crash_hint",
    "departed",
    "waited",
    "commit_late",
    "other_timeout",
    "clone",
    "storage_failed",
    "t_loss",
    "probation",
)


class Membership:
    """Evidence, rows, choice, Gather and Commit of one member.

    direct: the owner cannot do without direct links (the view-synchronous layer): suspicion by silence of any member of
    the view instead of token loss, and a common working view is no evidence of a link.
    entry: called when the commit entry is written; from then on the owner is frozen until the next install.
    packet_bytes: rows beyond it are spread over several packets.
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
    ) -> None:
        self.me, self.incarnation = identity.me, identity.incarnation
        self.configured = frozenset(identity.members) | {identity.me}
        self.times = Times.of(timeout_ns)
        self.rng, self.entry, self.direct, self.net, self.packet_bytes = rng, entry, direct, net, packet_bytes
        self.evidence = Evidence(timeout_ns, probation_max_ns)
        self.tuning = Tuning(timeout_ns)
        self.table = Table(self.me, self.incarnation, self.configured, 0)
        self.chooser = Chooser(self.me, direct)
        self.ballot = Ballot(self.me)
        self.number = RingNumber()
        self.first_ring_seq = identity.ring_seq
        self.deadlines = Deadlines()
        self.handover = Handover(self.deadlines, net, self.times.repeat)

        self.state = State.GATHER
        self.view: ViewId = NO_VIEW  # installed; NO_VIEW before the first
        self.members: tuple[MemberId, ...] = ()  # of the installed view
        self.incarnations: dict[MemberId, Incarnation] = {}  # theirs, from the commit entries
        self.new_ring: ViewId | None = None  # from Commit until installed or given up
        self.new_members: tuple[MemberId, ...] = ()
        self.new_incarnations: dict[MemberId, Incarnation] = {}
        self.frozen = False  # entry written since the last install
        self.paused = False  # it came out in this step that this member itself had stood still
        self.cause = causes.START  # why the installed view was left, or is being left

        self._pending: CommitToken | None = None  # waits for the ring number to be stored
        self._got: Got | None = None  # last token accepted
        self._visited: Nanoseconds | None = None  # when the last regular token of this ring came
        self._beyond: dict[MemberId, ViewId] = {}  # newer views that members named while one is being formed
        self._rows_seen: dict[MemberId, PackedRows] = {}
        self._young = False  # installed here, perhaps not yet everywhere: no choice moves us before the next token
        self._other_timeout: dict[MemberId, tuple[Incarnation, Nanoseconds]] = {}
        self._clone: Incarnation | None = None
        self._waiting = ""  # the wait that runs, in words
        self._resting: Nanoseconds | None = None  # since when rows have been given time to rest
        self._started: Nanoseconds = 0
        self._alarm: Nanoseconds = NEVER  # an input later than this proves that we stood still
        self._spoke: Nanoseconds = -NEVER  # last Hello or Join
        self._announce = False  # own row or proposal changed in this step
        self._relay = False  # another's row changed that some do not hear themselves
        self._out: list[Action] = []

    @property
    def t_loss(self) -> Nanoseconds:
        """T_loss in force."""
        return self.tuning.loss_ns

    @property
    def ring_seq(self) -> int:
        """Highest ring number on a token this member wrote; always on storage first."""
        return self.number.used

    # -------------------------------------------------------------------------------------------- inputs of the driver

    def start(self, now: Nanoseconds, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """Begin in Gather; a view of one follows when nobody answers."""
        self._started = self.table.moved = now
        self.tuning.start(now)
        self.number.start(self.first_ring_seq, stored)
        self._enter_gather(now, causes.START)
        return self._end(now)

    def heard(self, now: Nanoseconds, peer: Peer) -> list[Action] | None:
        """A packet came straight from `peer`.  None: drop it (stranger, earlier incarnation, other T, or I left)."""
        q = peer.id
        link = self.evidence.links.get(q)
        if link is not None and link.hears and link.incarnation == peer.incarnation and now <= self._alarm:
            assert link.heard is not None
            if now - link.heard <= self.times.grace:
                link.heard = now
                return []
        if not self._admit(peer):
            return self._end(now) if self._out else None
        self._begin(now, self._alarm)
        self._hear(now, peer)
        return self._end(now)

    def receive(self, now: Nanoseconds, peer: Peer, packet: Packet) -> list[Action]:
        """A packet of PACKETS that `heard` has let pass."""
        self.paused = False
        if self.state is State.PARTED:
            return []
        match packet:
            case Hello():
                self._on_hello(now, peer, packet)
            case Join():
                self._on_join(now, peer, packet)
            case CommitToken():
                self._on_commit_token(now, packet)
            case _:
                raise AssertionError(f"not a membership packet: {type(packet).__name__}")
        return self._end(now)

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        """A timer whose name starts with "m."."""
        over, again = self.deadlines.fired(now, name)
        self._out += again
        if self.state is not State.PARTED:
            self._begin(now, due + self.times.late)
            if self.paused and over and name in (LOSS, COMMIT, CONSENSUS):
                self._out += self.deadlines.set(name, now + self.times.grace)
            elif over:
                self._on_deadline(now, name)
        elif over and name == PART:
            self._hello(now)
            self._out.append(Parted())
        return self._end(now)

    def stood_still(self, now: Nanoseconds, due: Nanoseconds) -> list[Action]:
        """Called first at the owner's own timers; sets `paused`."""
        self._begin(now, due + self.times.late)
        return self._end(now)

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        self.paused = False
        failed_before = bool(self.number.error)
        self.number.answered(number)
        if self.state is State.GATHER:
            if failed_before and self._recompute(now):
                self._decide(now)
            self._write_entry(now)
        return self._end(now)

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        self.paused = False
        self.number.failed(number, why)
        self._out.append(Note("storage_failed", {"number": number, "why": why}))
        if self.state is State.GATHER:
            self._pending = None
            self._recompute(now)
            self._propose(now)
        return self._end(now)

    def unreachable(self, now: Nanoseconds, member: MemberId) -> list[Action]:
        """The port of `member` answered that nobody is there: say so to all, who need not wait then."""
        self.paused = False
        if self.state is State.PARTED or member == self.me or not self.table.gone(now, member):
            return []
        self.evidence.forget(member)
        self._out.append(Note("crash_hint", {"member": member}))
        self._announce = True
        concerned = self.members if self.state is State.OPERATIONAL else self.new_members
        if self.state is not State.GATHER and member in concerned:
            evidence = "its port answered that nobody is there"
            self._gather(now, Happening.HINT, Cause("crash hint", member, "", evidence))
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
        self.table.write(now, self.view, False, NOBODY)
        self._hello(now)
        self._out += self.deadlines.set(PART, now + self.times.gap)
        return self._end(now)

    # ---------------------------------------------------------------------------------------- what the owner tells it

    def token(self, now: Nanoseconds, ring_id: ViewId, number: int) -> list[Action]:
        """A regular token of my ring (installed or in recovery) was accepted; restarts T_loss, measures rotation."""
        assert ring_id == (self.new_ring or self.view), "a token of another ring was accepted"
        self._got = Got(ring_id, 1, number)
        self.handover.went_on()
        if self._visited is not None:
            self._measure(now, now - self._visited)
        self._visited = now
        self._expect_token(now)
        if self._young and self.state is State.OPERATIONAL:
            self._young = False
            self._decide(now)
        return self._end(now)

    def pass_token(self, now: Nanoseconds, to: MemberId, packet: Packet, ring_id: ViewId, number: int) -> list[Action]:
        """Transmit a regular token (already naming `to`) and repeat it until it is known to have gone on."""
        return self.handover.send(now, to, packet, Got(ring_id, 1, number))

    def went_on(self, now: Nanoseconds) -> list[Action]:
        """A sign that the token passed on is alive: a message of its ring with seq above the copy's."""
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
                if q != self.me and q in self.evidence.links:
                    self._strike(now, q, cause.reason)
            self._gather(now, Happening.BLAMED, cause)
        return self._end(now)

    def installed(self, now: Nanoseconds) -> list[Action]:
        """Recovery is over: new_ring and new_members are the view now, and it works."""
        assert self.new_ring is not None and allowed(self.state, Happening.INSTALLED, State.OPERATIONAL)
        self.paused = False
        self.state = State.OPERATIONAL
        self.view, self.members, self.incarnations = self.new_ring, self.new_members, self.new_incarnations
        self.new_ring, self.new_members, self.new_incarnations = None, (), {}
        self.frozen = False
        self._young = not self.direct and len(self.members) > 1
        self._recompute(now)
        beyond, self._beyond = self._beyond, {}
        self._decide(now)
        for q, view in beyond.items():
            self._named(now, q, view)
        return self._end(now)

    # -------------------------------------------------------------------------------------------- evidence and own row

    def _begin(self, now: Nanoseconds, late: Nanoseconds) -> None:
        """Own pause: if we come later than a timer allows, it was us who stood still, not the others."""
        self.paused = now > late
        if self.paused:
            self._alarm = now + self.times.late
            self.evidence.stood_still(now)
            self._out += self.deadlines.postpone(now, self.times.grace, LOSS, COMMIT, CONSENSUS)
            self._out.append(Note("own_pause", {"late_ns": now - late + self.times.late}))

    def _admit(self, peer: Peer) -> bool:
        q, incarnation = peer.id, peer.incarnation
        if self.state is State.PARTED or q not in self.configured or self.evidence.stale(q, incarnation):
            return False
        if q == self.me:
            if incarnation > self.incarnation and incarnation != self._clone:
                self._clone = incarnation
                self._out.append(Note("clone", {"incarnation": incarnation}))
            return False
        return self._other_timeout.get(q, (None, 0))[0] != incarnation

    def _hear(self, now: Nanoseconds, peer: Peer) -> None:
        q = peer.id
        self._learn(now, q, peer.incarnation)
        link = self.evidence.links[q]
        before, since = link.heard, link.since
        self.evidence.packet(now, q)
        if self.direct and before is not None and q in self.members and not self.paused:
            self._measure(now, now - before)
        if not link.hears:
            if link.since != since and self.evidence.on_probation(now, q):
                self._note_probation(q)
            if self._recompute(now):
                self._decide(now)
        if self.state is State.OPERATIONAL and self.incarnations.get(q, peer.incarnation) != peer.incarnation:
            self._depart(now, q, "came back in another life")

    def _learn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        if self.evidence.learn(now, q, incarnation):
            self.table.void(now, q, incarnation)
            self.ballot.forget(q)
            self._rows_seen.pop(q, None)

    def _recompute(self, now: Nanoseconds) -> bool:
        """Bring the own row up to date.  True if it changed."""
        self.evidence.hear_ns = self.tuning.loss_ns
        gone = {q for q, row in self.table.rows.items() if not row.hears}
        for q in self.evidence.recompute(now, gone):
            self._note_strike(q, "silence")
        hears = NOBODY if self.number.error else self.evidence.hears() | {self.me}
        changed = self.table.write(now, self.view, self.state is State.OPERATIONAL, hears)
        self._announce |= changed
        return changed

    def _strike(self, now: Nanoseconds, q: MemberId, why: str) -> None:
        self.evidence.strike(now, q)
        self._note_strike(q, why)

    def _note_strike(self, q: MemberId, why: str) -> None:
        strikes = self.evidence.links[q].strikes
        self._out.append(Note("strike", {"member": q, "strikes": strikes, "why": why}))
        if self.evidence.probation_ns(q):
            self._note_probation(q)

    def _note_probation(self, q: MemberId) -> None:
        until = self.evidence.links[q].since + self.evidence.probation_ns(q)
        self._out.append(Note("probation", {"member": q, "until": until}))

    def _measure(self, now: Nanoseconds, rotation_ns: Nanoseconds) -> None:
        if self.tuning.observe(now, rotation_ns):
            self._out.append(Note("t_loss", {"ns": self.tuning.loss_ns}))

    def _absorb(self, now: Nanoseconds, peer: Peer, packed: PackedRows) -> bool:
        """Take the rows of a packet.  True if the table changed."""
        if self._rows_seen.get(peer.id) == packed:
            return False
        self._rows_seen[peer.id] = packed
        changed = False
        for row in unpack(packed):
            if row.id not in self.configured or self.evidence.stale(row.id, row.incarnation):
                continue
            if row.id != self.me:
                self._learn(now, row.id, row.incarnation)
            if self.table.take(now, row):
                changed = True
                self.number.see(row.view.seq)
                self._relay |= self.table.worth_relaying(row.id)
                if row.id == self.me:
                    self._announce = True
                    self._out.append(Note("contradiction", {"by": peer.id}))
        return changed

    # -------------------------------------------------------------------------------------------- packets in

    def _on_hello(self, now: Nanoseconds, peer: Peer, hello: Hello) -> None:
        self.number.see(hello.view.seq)
        if self._absorb(now, peer, hello.rows):
            self._decide(now)
        self._named(now, peer.id, hello.view)

    def _on_join(self, now: Nanoseconds, peer: Peer, join: Join) -> None:
        q = peer.id
        if join.timeout_ns != self.times.timeout:
            self._other_timeout[q] = (peer.incarnation, join.timeout_ns)
            self.evidence.forget(q)
            self._out.append(Note("other_timeout", {"member": q, "timeout_ns": join.timeout_ns}))
            if self._recompute(now):
                self._decide(now)
            return
        self.number.see(join.ring_seq)
        changed = self._absorb(now, peer, join.rows)
        ring, members = self.new_ring or self.view, self.new_members or self.members
        if self.state is not State.GATHER and q in members and join.ring_seq >= ring.seq:
            self._gather(now, Happening.JOIN_OF_OURS, causes.told(join.cause, q))
        if self.state is State.GATHER:
            self.ballot.note(q, join.proposal)
            if self.handover.judge(q, join.got):
                self._out.append(Note("blame", {"member": q}))
                self._strike(now, q, "token did not arrive")
                changed |= self._recompute(now)
        if changed or self.state is State.GATHER:
            self._decide(now)

    def _on_commit_token(self, now: Nanoseconds, token: CommitToken) -> None:
        self.number.see(token.ring_id.seq)
        sent = self.handover.sent
        if sent is not None and token.ring_id == sent.ring_id and not sent.regular and token.hop > sent.number:
            self.handover.went_on()
        if token.to != self.me:
            return
        n, rotation = len(token.members), commit.rotation(token)
        if rotation == 0 and self.state is State.GATHER:
            self._propose(now)
            newer = self._pending is None or token.ring_id > self._pending.ring_id
            if newer and token.members == self.ballot.proposal and token.ring_id.seq > self.number.used:
                self._accept(now, token)
        elif token.ring_id != self.new_ring:
            return
        elif rotation == 1 and self.state is State.COMMIT:
            self._commit(now, token)
        elif token.hop == 2 * n and self.state is State.RECOVERY and self._got == Got(token.ring_id, 0, n):
            self._got = Got(token.ring_id, 0, token.hop)
            self._out.append(Returned(token.ring_id))

    # --------------------------------------------------------------------------------------------- Gather and proposals

    def _gather(self, now: Nanoseconds, happening: Happening, cause: Cause) -> None:
        assert allowed(self.state, happening, State.GATHER), f"{happening.name} does not move {self.state.name}"
        before = self.state
        if before is State.OPERATIONAL:
            self.cause = cause
        if before is not State.GATHER:
            self._out.append(Gathering(cause))
        self._enter_gather(now, cause)

    def _enter_gather(self, now: Nanoseconds, cause: Cause) -> None:
        self._out.append(Note("gather", {"cause": str(cause)}))
        self.state = State.GATHER
        self.new_ring, self.new_members, self.new_incarnations = None, (), {}
        self._pending, self._visited, self._young = None, None, False
        self._beyond.clear()
        self.ballot.void()
        self.handover.give_up()
        self.deadlines.clear(LOSS, COMMIT, POLL)
        self._out += self.deadlines.set(CONSENSUS, now + self.times.consensus)
        self._tick_in(now, self.times.join)
        self._announce = True
        self._recompute(now)
        self._propose(now)

    def _decide(self, now: Nanoseconds) -> None:
        """The table or the own row changed, or a wait may be over."""
        if self.state is State.GATHER:
            self._propose(now)
        elif self.state is State.OPERATIONAL and not self._young:
            self._stay_or_go(now)

    def _stay_or_go(self, now: Nanoseconds) -> None:
        for q in self.members:
            row = self.table.rows.get(q)
            if row is not None and row.view > self.view:
                return self._depart(now, q, f"names view {row.view}")
            if q != self.me and self.evidence.links[q].incarnation != self.incarnations[q]:
                return self._depart(now, q, "came back in another life")
        rows = self._rows()
        chosen = self.chooser(rows)
        if chosen == self.members:
            self._waiting, self._resting = "", None
            self.deadlines.clear(POLL)
        elif not self._wait(now, rows, chosen):
            self._gather(now, Happening.CHOICE, causes.choice(self.members, chosen, self.table.rows))
        return None

    def _propose(self, now: Nanoseconds) -> None:
        rows = self._rows()
        chosen = () if self.number.error else self.chooser(rows)
        if chosen != self.ballot.proposal:
            proposal = () if chosen and self._wait(now, rows, chosen) else chosen
            if proposal != self.ballot.proposal:
                self.ballot.propose(proposal)
                self._pending = None
                self._announce = True
                self._out += self.deadlines.set(CONSENSUS, now + self.times.consensus)
        if self.ballot.mine_to_commit() and self._pending is None:
            self._accept(now, commit.blank(ViewId(self.number.next(), self.me), self.ballot.proposal))

    def _rows(self) -> dict[MemberId, Row]:
        """The table as a member of my view sees it: the commit token told more than rows that still show an older view.

        While the view works, they count as working in it; afterwards only as having come from it."""
        rows = dict(self.table.rows)
        works = self.state is State.OPERATIONAL
        for q in self.members:
            row = rows.get(q)
            if row is not None and row.view < self.view and row.incarnation == self.incarnations[q]:
                rows[q] = Row(q, row.incarnation, row.version, self.view, works, row.hears)
        return rows

    def _wait(self, now: Nanoseconds, rows: dict[MemberId, Row], chosen: tuple[MemberId, ...]) -> bool:
        """Is it too early for this choice?  Then it is looked at again in T_gap."""
        words = self._reason_to_wait(now, rows, chosen)
        if not words:
            self._resting = None
        elif words != self._waiting:
            self._out.append(Note("waited", {"words": words}))
        self._waiting = words
        if words:
            self._out += self.deadlines.set(POLL, now + self.times.gap)
        return bool(words)

    def _reason_to_wait(self, now: Nanoseconds, rows: dict[MemberId, Row], chosen: tuple[MemberId, ...]) -> str:
        q = waits.unknown_link(now, self.me, rows, self.evidence, self.times, self.direct)
        if q is not None:
            return f"for the link with member {q} to settle"
        if waits.beginning(now, rows, chosen, self.configured, self._started, self.times):
            return "for the others to start"
        moved = max(self.table.moved, self.table.shown)
        q = waits.left_out(now, rows, chosen, moved, self.times, self.direct)
        if q is None:
            return ""
        self._resting = now if self._resting is None else self._resting
        if now - self._resting > self.times.timeout:
            return ""
        return f"for rows to rest before member {q} is left out"

    def _depart(self, now: Nanoseconds, q: MemberId, what: str) -> None:
        self._out.append(Note("departed", {"member": q, "what": what}))
        self._gather(now, Happening.DEPARTED, causes.moved_on(q, what))

    def _named(self, now: Nanoseconds, q: MemberId, view: ViewId) -> None:
        """A packet of q names a view: newer than the one we share, q has left that."""
        if self.state is State.OPERATIONAL and q in self.members and view > self.view:
            self._depart(now, q, f"names view {view}")
        elif self.new_ring is not None and q in self.new_members and view > self.new_ring:
            self._beyond[q] = view

    # -------------------------------------------------------------------------------------------- commit token

    def _accept(self, now: Nanoseconds, token: CommitToken) -> None:
        """First rotation: the ring number goes to storage, then my entry is written."""
        self._pending = token
        if token.hop:
            self._got = Got(token.ring_id, 0, token.hop)
        self._out += self.number.need(token.ring_id.seq)
        self._write_entry(now)

    def _write_entry(self, now: Nanoseconds) -> None:
        token = self._pending
        if token is None or token.members != self.ballot.proposal or self.number.stored < token.ring_id.seq:
            return
        happening = Happening.TOKEN_FIRST if token.hop else Happening.ALL_AGREED
        assert allowed(self.state, happening, State.COMMIT)
        self._pending = None
        self.number.use(token.ring_id.seq)
        self.state, self.new_ring, self.new_members = State.COMMIT, token.ring_id, token.members
        self.frozen = True
        self.handover.new_ring()
        self.deadlines.clear(CONSENSUS, POLL)
        self._out.append(Note("commit", {"ring": str(token.ring_id), "members": list(token.members)}))
        self._recompute(now)
        self._tick_in(now, self.times.hello)
        token = commit.write(token, Entry(self.incarnation, self.entry()))
        if len(token.members) == 1:
            self._commit(now, token)
        else:
            self._out += self.deadlines.set(COMMIT, now + self.times.commit)
            self._forward(now, token)

    def _commit(self, now: Nanoseconds, token: CommitToken) -> None:
        """Second rotation: all entries are in; recovery begins."""
        assert allowed(self.state, Happening.TOKEN_SECOND, State.RECOVERY)
        self.state = State.RECOVERY
        self._got = Got(token.ring_id, 0, token.hop)
        self.new_incarnations = {q: e.incarnation for q, e in zip(token.members, token.entries, strict=True)}
        self.deadlines.clear(COMMIT)
        self._expect_token(now)
        alone = len(token.members) == 1
        if not alone:
            self._forward(now, commit.forward(token))
        for q, incarnation in self.new_incarnations.items():
            if q != self.me:
                self._learn(now, q, incarnation)
        entries = tuple(entry.state for entry in token.entries)
        incarnations = tuple(entry.incarnation for entry in token.entries)
        self._out.append(Committed(token.ring_id, token.members, entries, incarnations, self.cause))
        if alone:
            self._out.append(Returned(token.ring_id))

    def _forward(self, now: Nanoseconds, token: CommitToken) -> None:
        self._out += self.handover.send(now, token.to, token, Got(token.ring_id, 0, token.hop))

    def _expect_token(self, now: Nanoseconds) -> None:
        members = self.new_members or self.members
        if len(members) > 1:
            self._out += self.deadlines.set(LOSS, now + self.tuning.loss_ns)

    # -------------------------------------------------------------------------------------------- timers

    def _on_deadline(self, now: Nanoseconds, name: str) -> None:
        if name == TICK:
            self._on_tick(now)
        elif name == POLL:
            self._recompute(now)
            self._decide(now)
        elif name == REPEAT:
            self._out += self.handover.repeat(now)
        elif name == LOSS:
            self._on_loss(now)
        elif name == COMMIT:
            self._out.append(Note("commit_late", {"ring": str(self.new_ring)}))
            self._gather(now, Happening.COMMIT_LATE, Cause("commit timeout", None, "T_commit", f"ring {self.new_ring}"))
        elif name == CONSENSUS:
            self._on_consensus(now)

    def _on_tick(self, now: Nanoseconds) -> None:
        if self.tuning.tick(now):
            self._out.append(Note("t_loss", {"ns": self.tuning.loss_ns}))
        self._tick_in(now, self.times.join if self.state is State.GATHER else self.times.hello)
        self._announce = True
        if self._recompute(now) or self.state is State.GATHER:
            self._decide(now)

    def _on_loss(self, now: Nanoseconds) -> None:
        if not self.direct:
            silent = now - self._visited if self._visited is not None else self.tuning.loss_ns
            return self._gather(now, Happening.LOSS, causes.token_loss(silent, self.tuning.loss_ns))
        heard = {q: self.evidence.links[q].heard or 0 for q in self.new_members or self.members if q != self.me}
        q = min(heard, key=lambda q: (heard[q], q))
        if heard[q] + self.tuning.loss_ns <= now:
            return self._gather(now, Happening.LOSS, causes.silence(q, now - heard[q], self.tuning.loss_ns))
        self._out += self.deadlines.set(LOSS, heard[q] + self.tuning.loss_ns)
        return None

    def _on_consensus(self, now: Nanoseconds) -> None:
        if self.number.error:
            self._out += self.number.need(self.number.next())
        for q in self.ballot.dissenters():
            if self.evidence.links[q].hears:
                self._out.append(Note("refused_agreement", {"member": q}))
                self._strike(now, q, "did not agree")
        cause = Cause("consensus timeout", None, "T_consensus", "not all agreed")
        self._gather(now, Happening.CONSENSUS, cause)

    def _tick_in(self, now: Nanoseconds, wait: Nanoseconds) -> None:
        self._out += self.deadlines.set(TICK, now + wait)
        self._alarm = now + wait + self.times.late

    # -------------------------------------------------------------------------------------------- packets out

    def _end(self, now: Nanoseconds) -> list[Action]:
        """Say once what changed in this step, and hand over its actions."""
        if (self._announce or self._relay) and self.state is not State.PARTED:
            if now - self._spoke >= self.times.gap or (self._announce and self.state is State.GATHER):
                self._speak(now)
            elif self.deadlines.due.get(TICK, NEVER) > self._spoke + self.times.gap:
                self._tick_in(now, self._spoke + self.times.gap - now)
            self._announce = self._relay = False
        out, self._out = self._out, []
        return out

    def _speak(self, now: Nanoseconds) -> None:
        self._spoke = now
        if self.state is State.GATHER:
            self._join(now)
        else:
            self._hello(now)

    def _hello(self, now: Nanoseconds) -> None:
        for packed in pack(self._relayed(now), self.packet_bytes):
            self._out.append(Transmit(self.net, ALL, Hello(self.view, packed)))

    def _join(self, now: Nanoseconds) -> None:
        cause = causes.tell(self.cause)
        for packed in pack(self._relayed(now), self.packet_bytes):
            join = Join(self.number.used, self.ballot.proposal, self._got, packed, self.times.timeout, cause)
            self._out.append(Transmit(self.net, ALL, join))

    def _relayed(self, now: Nanoseconds) -> list[Row]:
        return self.table.relayed(now, self.evidence.cap_ns)

    # -------------------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        """State, view, T_loss, who hears whom, strikes and probations, refused members, and what it waits for."""
        links = self.evidence.links
        return {
            "state": self.state.value,
            "view": str(self.view) if self.view != NO_VIEW else None,
            "members": list(self.members),
            "forming": list(self.new_members),
            "cause": str(self.cause),
            "t_loss_ns": self.tuning.loss_ns,
            "hears": sorted(self.table.own.hears),
            "rows": {q: sorted(row.hears) for q, row in sorted(self.table.rows.items())},
            "strikes": {q: link.strikes for q, link in sorted(links.items()) if link.strikes},
            "probation_ns": {q: self.evidence.probation_ns(q) for q in sorted(links) if self.evidence.probation_ns(q)},
            "other_timeout_ns": {q: timeout for q, (_, timeout) in sorted(self._other_timeout.items())},
            "clone": self._clone,
            "storage_error": self.number.error or None,
            "waits": self._words(),
        }

    def _words(self) -> str:
        """What this member waits for, in plain words."""
        if self.number.error:
            return f"for its storage, which says: {self.number.error}"
        match self.state:
            case State.PARTED:
                return "for nothing: it left"
            case State.GATHER if self._pending is not None:
                return f"for ring number {self._pending.ring_id.seq} to be stored"
            case State.GATHER if self.ballot.proposal:
                missing = self.ballot.dissenters()
                if missing:
                    return "for members " + ", ".join(map(str, missing)) + " to agree"
                return f"for the commit token of member {self.ballot.proposal[0]}"
            case State.COMMIT:
                return f"for the commit token of ring {self.new_ring}"
            case State.RECOVERY:
                return f"for recovery in ring {self.new_ring}"
        return self._waiting or "for nothing"
