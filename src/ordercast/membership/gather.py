"""The moves of the automaton: leave a view, propose members, carry the commit token.  `member.py` is its border.

Paper: the membership of Totem (Amir, Moser, Melliar-Smith, Agarwal, Ciarfella 1995): its states and commit token.
Differs from it:
  D1  Members are chosen by rows of who hears whom and cliques, not by proc_set and fail_set (choose.py).
  D2  A Join from outside moves nobody; only the choice of members does (automaton.py).
  D3  Links that keep breaking are on probation (evidence.py); tokens are repeated by multicast (handover.py).
  D4  T_loss tunes itself (tuning.py); a pause of this member is told from a silence of the others (`_begin`).
  D5  A representative whose commit token waits for somebody who now proposes other members gives it up at once
      instead of after T_commit; Joins are numbered, so that an overtaken one is no such sign.
  D6  A member whose storage fails says that it is gone until a write succeeds, so that it holds nobody up.
  D7  The time given after an own pause is bounded (timers.py, evidence.py): on a machine so busy that every timer is
      late, the dead are noticed all the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ordercast.contract import Action, Note
from ordercast.membership import cause as causes
from ordercast.membership import commit
from ordercast.membership.automaton import Happening, State, allowed
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import NO_VIEW, Chooser, Row
from ordercast.membership.events import Committed, Gathering, Returned
from ordercast.membership.evidence import PROBATION_MAX_NS
from ordercast.membership.handover import Handover
from ordercast.membership.packets import CommitToken, Entry, Got, Hello, Join
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, POLL, REPEAT, TICK, Deadlines, Times
from ordercast.membership.voice import Voice
from ordercast.membership.waits import Patience
from ordercast.types import Cause, Identity, Incarnation, MemberId, Nanoseconds, NetId, Peer, ViewId

NEVER: Nanoseconds = 2**63


class Moves:
    """State of one member and what it does in each event; every public input of Membership is one step of it."""

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
        self._out: list[Action] = []
        self.me, self.incarnation, self.first_ring_seq = identity.me, identity.incarnation, identity.ring_seq
        self.rng, self.entry, self.direct = rng, entry, direct
        self.times = Times.of(timeout_ns)
        self.ballot = Ballot(self.me)
        self.sight = Sight(identity, timeout_ns, probation_max_ns, self._say, self.ballot.forget)
        self.patience = Patience(self.sight, self.times, direct, self._say)
        self.chooser = Chooser(self.me, direct)
        self.number = RingNumber()
        self.voice = Voice(self.sight, net, packet_bytes)
        self.deadlines = Deadlines(timeout_ns // 8)
        self.handover = Handover(self.deadlines, net, self.times.repeat)

        self.state = State.GATHER
        self.view: ViewId = NO_VIEW  # installed; NO_VIEW before the first
        self.members: tuple[MemberId, ...] = ()  # of the installed view
        self.incarnations: dict[MemberId, Incarnation] = {}  # theirs, from the commit entries
        self.pending: CommitToken | None = None  # waits for the ring number to be stored
        self.new_ring: ViewId | None = None  # from Commit until installed or given up
        self.new_members: tuple[MemberId, ...] = ()
        self.new_incarnations: dict[MemberId, Incarnation] = {}
        self.frozen = False  # entry written since the last install
        self.paused = False  # it came out in this step that this member itself had stood still
        self.cause = causes.START  # why the installed view was left, or is being left
        self._got: Got | None = None  # last token accepted
        self._visited: Nanoseconds | None = None  # when the last regular token of this ring came
        self._beyond: dict[MemberId, ViewId] = {}  # newer views that members named while one is being formed
        self._young = False  # installed here, perhaps not yet everywhere: no choice moves us before the next token
        self._alarm: Nanoseconds = NEVER  # an input later than this proves that we stood still

    @property
    def t_loss(self) -> Nanoseconds:
        """T_loss in force."""
        return self.sight.tuning.loss_ns

    # ---------------------------------------------------------------------------------------------- one step, its frame

    def _say(self, action: Action) -> None:
        self._out.append(action)

    def _set(self, name: str, at: Nanoseconds) -> None:
        self._out += self.deadlines.set(name, at)

    def _begin(self, now: Nanoseconds, late: Nanoseconds) -> None:
        """Own pause: if we come later than a timer allows, it was us who stood still, not the others."""
        self.paused = now > late
        if self.paused:
            self._alarm = now + self.times.late
            self.sight.evidence.stood_still(now, self.times.grace)
            self._out += self.deadlines.postpone(now, self.times.grace, LOSS, COMMIT, CONSENSUS)
            self._say(Note("own_pause", {"late_ns": now - late + self.times.late}))

    def _end(self, now: Nanoseconds) -> list[Action]:
        """Say once what changed in this step, and hand over its actions."""
        if self.voice.asked and self.state is not State.PARTED:
            gathering, earliest = self.state is State.GATHER, self.voice.last + self.times.gap
            if now < earliest and not (gathering and self.voice.announce):
                self.voice.announce = self.voice.relay = False
                if self.deadlines.due.get(TICK, NEVER) > earliest:
                    self._tick_at(earliest)
            elif gathering:
                self._out += self.voice.join(now, self.number.used, self.ballot.proposal, self._got, self.cause)
            else:
                self._out += self.voice.hello(now, self.view)
        out, self._out = self._out, []
        return out

    def _tick_at(self, at: Nanoseconds) -> None:
        self._set(TICK, at)
        self._alarm = at + self.times.late

    def _recompute(self, now: Nanoseconds) -> bool:
        """Bring the own row up to date.  True if it changed."""
        ill = self.state is State.GATHER and self.number.ill
        changed = self.sight.recompute(now, self.view, self.state is State.OPERATIONAL, ill)
        self.voice.announce |= changed
        return changed

    def _absorb(self, now: Nanoseconds, peer: Peer, packet: Hello | Join) -> bool:
        """Take the rows of a packet.  True if the table changed."""
        news = self.sight.absorb(now, peer, packet.rows)
        self.number.see(self.sight.ring_seq)
        for row in news:
            self.voice.announce |= row.id == self.me
            self.voice.relay |= self.sight.table.worth_relaying(row.id)
        return bool(news)

    # ----------------------------------------------------------------------------------------------------- packets in

    def _on_hello(self, now: Nanoseconds, peer: Peer, hello: Hello) -> None:
        self.number.see(hello.view.seq)
        if self._absorb(now, peer, hello):
            self._decide(now)
        self._named(now, peer.id, hello.view)

    def _on_join(self, now: Nanoseconds, peer: Peer, join: Join) -> None:
        if join.timeout_ns != self.times.timeout:
            self.sight.refuse(peer, join.timeout_ns)
            if self._recompute(now):
                self._decide(now)
            return
        self.number.see(join.ring_seq)
        changed = self._absorb(now, peer, join)
        newer = self.ballot.newer(peer.id, join.number)
        if newer and self.state is not State.GATHER:
            self._join_outside_gather(now, peer.id, join)
        if newer and self.state is State.GATHER:
            self.ballot.note(peer.id, join.proposal)
            if self.handover.judge(peer.id, join.got):
                self._say(Note("blame", {"member": peer.id}))
                self.sight.strike(now, peer.id, "token did not arrive")
                self._recompute(now)
            self._propose(now)
        elif changed:
            self._decide(now)

    def _join_outside_gather(self, now: Nanoseconds, q: MemberId, join: Join) -> None:
        """A Join moves us only if it comes from one of ours, and shows that it left what we have in common."""
        if q not in (self.new_members or self.members):
            return
        ring = self.new_ring or self.view
        if join.ring_seq >= ring.seq:
            self._gather(now, Happening.JOIN_OF_OURS, causes.told(join.cause, q))
        elif self.state is State.COMMIT and ring.rep == self.me and join.proposal != self.new_members:
            self._say(Note("withdrawn", {"member": q}))
            self._gather(now, Happening.WITHDRAWN, Cause("withdrawal", q, "", f"no longer for {self.new_members}"))

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
            newer = self.pending is None or token.ring_id > self.pending.ring_id
            if newer and token.members == self.ballot.proposal and token.ring_id.seq > self.number.used:
                self._accept(now, token)
        elif token.ring_id != self.new_ring:
            return
        elif rotation == 1 and self.state is State.COMMIT:
            self._commit(now, token)
        elif rotation == 2 and self.state is State.RECOVERY and self._got == Got(token.ring_id, 0, n):
            self._got = Got(token.ring_id, 0, token.hop)
            self._say(Returned(token.ring_id))

    # ------------------------------------------------------------------------------------------- Gather and proposals

    def _gather(self, now: Nanoseconds, happening: Happening, cause: Cause) -> None:
        assert allowed(self.state, happening, State.GATHER), f"{happening.name} does not move {self.state.name}"
        if self.state is State.OPERATIONAL:
            self.cause = cause
        if self.state is State.GATHER:
            self._say(Note("gather_again", {"cause": str(cause)}))
        else:
            self._say(Gathering(cause))
        self._enter_gather(now)

    def _enter_gather(self, now: Nanoseconds) -> None:
        self.state = State.GATHER
        self.new_ring, self.new_members, self.new_incarnations = None, (), {}
        self.pending, self._visited, self._young = None, None, False
        self._beyond.clear()
        self.ballot.void()
        self.handover.give_up()
        self.deadlines.clear(LOSS, COMMIT, POLL)
        self._set(CONSENSUS, now + self.times.consensus)
        self._tick_at(now + self.times.join)
        self.voice.announce = True
        self._recompute(now)
        self._propose(now)

    def _decide(self, now: Nanoseconds) -> None:
        """The table or the own row changed, or a wait may be over."""
        if self.state is State.GATHER:
            self._propose(now)
        elif self.state is State.OPERATIONAL and not self._young:
            self._stay_or_go(now)

    def _stay_or_go(self, now: Nanoseconds) -> None:
        links, rows = self.sight.evidence.links, self._rows()
        for q in self.members:
            if q in rows and rows[q].view > self.view:
                return self._depart(now, q, f"names view {rows[q].view}")
            if q != self.me and links[q].incarnation != self.incarnations[q]:
                return self._depart(now, q, "came back in another life")
        chosen = self.chooser(rows)
        if chosen == self.members:
            self.patience.over()
            self.deadlines.clear(POLL)
        elif self.patience.too_early(now, rows, chosen):
            self._set(POLL, now + self.times.gap)
        else:
            self._gather(now, Happening.CHOICE, causes.choice(self.members, chosen, rows))
        return None

    def _propose(self, now: Nanoseconds) -> None:
        rows = self._rows()
        proposal = () if self.number.ill else self.chooser(rows)
        if proposal != self.ballot.proposal:
            if proposal and self.patience.too_early(now, rows, proposal):
                self._set(POLL, now + self.times.gap)
                proposal = ()
            if proposal != self.ballot.proposal:
                self.ballot.propose(proposal)
                self.pending = None
                self.voice.announce = True
                self._set(CONSENSUS, now + self.times.consensus)
        if self.ballot.mine_to_commit() and self.pending is None:
            self._accept(now, commit.blank(ViewId(self.number.next(), self.me), self.ballot.proposal))

    def _rows(self) -> dict[MemberId, Row]:
        """The table as a member of my view sees it: the commit token told more than rows that show an older view.

        While the view works, they count as working in it; afterwards only as having come from it."""
        rows = dict(self.sight.table.rows)
        works = self.state is State.OPERATIONAL
        for q in self.members:
            row = rows.get(q)
            if row is not None and row.view < self.view and row.incarnation == self.incarnations[q]:
                rows[q] = Row(q, row.incarnation, row.version, self.view, works, row.hears)
        return rows

    def _depart(self, now: Nanoseconds, q: MemberId, what: str) -> None:
        self._say(Note("departed", {"member": q, "what": what}))
        self._gather(now, Happening.DEPARTED, causes.moved_on(q, what))

    def _named(self, now: Nanoseconds, q: MemberId, view: ViewId) -> None:
        """A packet of q names a view: newer than the one we share, q has left that."""
        if self.state is State.OPERATIONAL and q in self.members and view > self.view:
            self._depart(now, q, f"names view {view}")
        elif self.new_ring is not None and q in self.new_members and view > self.new_ring:
            self._beyond[q] = view

    # --------------------------------------------------------------------------------------------------- commit token

    def _accept(self, now: Nanoseconds, token: CommitToken) -> None:
        """First rotation: the ring number goes to storage, then my entry is written."""
        self.pending = token
        if token.hop:
            self._got = Got(token.ring_id, 0, token.hop)
        self._out += self.number.need(token.ring_id.seq)
        self._write_entry(now)

    def _write_entry(self, now: Nanoseconds) -> None:
        token = self.pending
        if token is None or token.members != self.ballot.proposal or self.number.stored < token.ring_id.seq:
            return
        assert allowed(self.state, Happening.TOKEN_FIRST if token.hop else Happening.ALL_AGREED, State.COMMIT)
        self._out += self.number.use(token.ring_id.seq)
        self.state, self.pending = State.COMMIT, None
        self.new_ring, self.new_members, self.frozen = token.ring_id, token.members, True
        self.handover.new_ring()
        self.deadlines.clear(CONSENSUS, POLL)
        self._say(Note("commit", {"ring": str(token.ring_id), "members": list(token.members)}))
        self._recompute(now)
        self._tick_at(now + self.times.hello)
        token = commit.write(token, Entry(self.incarnation, self.entry()))
        if len(token.members) == 1:
            self._commit(now, token)
        else:
            self._set(COMMIT, now + self.times.commit)
            self._forward(now, token)

    def _commit(self, now: Nanoseconds, token: CommitToken) -> None:
        """Second rotation: all entries are in; recovery begins."""
        assert allowed(self.state, Happening.TOKEN_SECOND, State.RECOVERY)
        self.state = State.RECOVERY
        self._got = Got(token.ring_id, 0, token.hop)
        self.deadlines.clear(COMMIT)
        self._expect_token(now)
        incarnations = tuple(entry.incarnation for entry in token.entries)
        self.new_incarnations = dict(zip(token.members, incarnations, strict=True))
        for q, incarnation in self.new_incarnations.items():
            if q != self.me:
                self.sight.learn(now, q, incarnation)
        alone = len(token.members) == 1
        if not alone:
            self._forward(now, commit.forward(token))
        entries = tuple(entry.state for entry in token.entries)
        self._say(Committed(token.ring_id, token.members, entries, incarnations, self.cause))
        if alone:
            self._say(Returned(token.ring_id))

    def _forward(self, now: Nanoseconds, token: CommitToken) -> None:
        self._out += self.handover.send(now, token.to, token, Got(token.ring_id, 0, token.hop))

    def _expect_token(self, now: Nanoseconds) -> None:
        if len(self.new_members or self.members) > 1:
            self._set(LOSS, now + self.t_loss)

    # --------------------------------------------------------------------------------------------------------- timers

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
            self._say(Note("commit_late", {"ring": str(self.new_ring)}))
            self._gather(now, Happening.COMMIT_LATE, Cause("commit timeout", None, "T_commit", f"ring {self.new_ring}"))
        elif name == CONSENSUS:
            self._on_consensus(now)

    def _on_tick(self, now: Nanoseconds) -> None:
        self.sight.tick(now)
        if self.number.error:
            self._out += self.number.need(self.number.next()) or self.number.more()
        wait = self.times.join if self.state is State.GATHER else self.times.hello
        self._tick_at(now + wait - self.rng.randrange(wait // 8))  # so that members do not speak in step
        self.voice.announce = True
        if self._recompute(now) or self.state is State.GATHER:
            self._decide(now)

    def _on_loss(self, now: Nanoseconds) -> None:
        if not self.direct:
            silent = now - self._visited if self._visited is not None else self.t_loss
            return self._gather(now, Happening.LOSS, causes.token_loss(silent, self.t_loss))
        q, heard = self.sight.silent_longest(self.new_members or self.members)
        if heard + self.t_loss <= now:
            return self._gather(now, Happening.LOSS, causes.silence(q, now - heard, self.t_loss))
        return self._set(LOSS, heard + self.t_loss)

    def _on_consensus(self, now: Nanoseconds) -> None:
        for q in self.ballot.dissenters():
            if self.sight.hears(q):
                self._say(Note("refused_agreement", {"member": q}))
                self.sight.strike(now, q, "did not agree")
        self._gather(now, Happening.CONSENSUS, Cause("consensus timeout", None, "T_consensus", "not all agreed"))
