"""The view-synchronous layer: reliable causal multicast and unicast in views that change.

Papers: the Transis layer of "Total ordering of messages in broadcast domains" (ToTo); extended virtual synchrony after
Moser, Amir, Melliar-Smith, Agarwal (1994).  Who is in the next view is decided by ordercast.membership.
Provides: in a view, reliable FIFO or causal multicast (traffic.py) and unicast (unicast.py); between views, that all
who move on together have received the same, and one well-defined point at which a crash is told.

Gather: nothing new leaves, what comes is inserted as before.  From the moment at which this member writes its entry on
a commit token until its next view it is *frozen*, also if that attempt fails: nothing of the old view is inserted, what
the protocol above says is discarded.  With all entries in, those of one old view exchange what one of them lacks
(flush.py); a token tells when all are done (barrier.py); then everybody installs, in one step (install.py).

Differs from the papers:
  D1  Who is done with an exchange keeps it when the attempt fails (plan.py): somebody may have installed it.
  D2  What a protocol says in Gather, before the freeze, is still sent: it belongs to the old view, and entries count
      it; only new frames wait.  What it says later is known by the view it names, and discarded.
  D3  Signs of life are what goes to all: answers and repair say nothing of the path that messages take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ordercast.contract import (
    Action,
    CancelTimer,
    Down,
    Ended,
    Event,
    FreeSpace,
    Frozen,
    Layer,
    Leave,
    Left,
    Multicast,
    Note,
    Packet,
    SetTimer,
    Setup,
    UnicastTo,
    Up,
    dropped,
)
from ordercast.membership import Committed, Decision, Gathering, Hello, Membership, Outdone, Parted, Returned
from ordercast.membership.bitmap import to_bitmap
from ordercast.membership.primary import Knows, known, learn
from ordercast.transis import report
from ordercast.transis.barrier import Barrier
from ordercast.transis.flush import FLUSH, FLUSH_NACK, BadEntry, Early, Flush
from ordercast.transis.install import closing, views
from ordercast.transis.packets import FlushData, FlushNack, FlushState, FlushToken, Nack, Retrans, UAck, Unicast
from ordercast.transis.plan import LayerEntry, Plan
from ordercast.transis.talk import PACKETS, Talk
from ordercast.transis.traffic import Traffic
from ordercast.types import Cause, Identity, MemberId, Nanoseconds, NetId, Peer, ViewId

NOBODY: MemberId = -1
SYNC, OPEN, LEAVE = "sync", "open", "leave"  # timers

_encode = msgspec.msgpack.Encoder().encode
_FLUSH_PACKETS = frozenset((FlushToken, FlushData, FlushState, FlushNack))
_UNICAST = frozenset((Unicast, UAck, Nack, Retrans))  # none is a sign of life: a path of these alone is no link


class Link(Layer):
    """One member's end: the lowest layer."""

    name = "link"

    def __init__(self, setup: Setup, *, causal: bool = True, crash_hint: bool = True) -> None:
        identity = setup.identity
        self.me, self.configured = identity.me, tuple(sorted(identity.members))
        self.timeout_ns, self.causal, self.crash_hint = setup.timeout_ns, causal, crash_hint
        self.frame_bytes, self.packet_bytes = setup.frame_bytes, setup.packet_bytes
        self.sync_ns = max(1_000_000, setup.timeout_ns // 50)  # T_sync
        self.membership = Membership(
            identity, setup.timeout_ns, setup.random, entry=self._entry, direct=True, packet_bytes=setup.packet_bytes,
            partition=setup.partition,
        )  # fmt: skip
        self.standing = self.membership.standing
        self.space: int | None = None  # delivery space at the application
        self.talk = self._talk(0, ViewId(0, self.me), (self.me,))  # nobody shares what is before the first view
        self.flush: Flush | None = None  # from a full commit token to the install
        self.plan: Plan | None = None  # the one this member is done with
        self.barrier: Barrier | None = None
        self.state: bytes | None = None  # what the protocol above contributes, from the freeze on
        self.frozen_told = False
        self.early = Early()
        self.awaited: MemberId = NOBODY  # whose packet of the new view shows that my last token went on
        self.leaving = self.parted = False

    def _talk(self, now: Nanoseconds, id: ViewId, members: tuple[MemberId, ...]) -> Talk:
        traffic = Traffic(
            self.me, id, members, timeout_ns=self.timeout_ns, frame_bytes=self.frame_bytes, causal=self.causal
        )
        if self.space is not None:
            traffic.room(now, self.space)
        return Talk(traffic, self.timeout_ns)

    # ------------------------------------------------------------------------------------------------------ life cycle

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return self._carry(now, self.membership.start(now, stored))

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        waited, out = not self.membership.recorded, self._carry(now, self.membership.stored(now, key, number))
        return out + self._visit(now, rested=True) if waited else out

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        return self._carry(now, self.membership.store_failed(now, key, number, why))

    def unreachable(self, now: Nanoseconds, net: NetId, member: MemberId) -> list[Action]:
        if self.parted or not self.crash_hint:
            return []
        return self._carry(now, self.membership.unreachable(now, member))

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        kind = type(event)
        if self.parted:
            return []
        if kind is Multicast or kind is UnicastTo:
            said: Any = event
            if self.standing.frozen or (said.view is not None and said.view != self.talk.id):
                return [Note("discard", {"body": type(said.body).__name__})]  # said in an earlier view: no meaning here
            if kind is Multicast:
                return self.talk.traffic.multicast(now, said.body)
            return self.talk.unicasts.send(now, said.to, said.body)
        if kind is FreeSpace:
            self.space = event.frames  # type: ignore[attr-defined]
            return self.talk.traffic.room(now, event.frames)  # type: ignore[attr-defined]
        if kind is Leave:
            self.leaving, until = True, event.until  # type: ignore[attr-defined]
            self.talk.traffic.owed = self.talk.traffic.owed or tuple(self.talk.traffic.have)
            return [SetTimer(LEAVE, now + self.timeout_ns if until is None else until), *self._settle(now)]
        return learn(self.membership.primary, event) if kind is Knows else [Down(event)]  # type: ignore[arg-type]

    # --------------------------------------------------------------------------------------------------------- packets

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if self.parted:
            return []
        if type(packet) in _UNICAST:
            actions: list[Action] | None = [] if self.membership.knows(now, source) else None
        else:
            actions = self.membership.heard(now, source)
        if actions is None:
            told = [] if source.id == self.me else [dropped("not admitted", member=source.id)]  # my own id was counted
            return [*told, *self._carry(now, self.membership.ignored(now, source, packet))]
        out = self._carry(now, actions) if actions else []
        self._packet(now, source, packet, out)
        return out

    def _packet(self, now: Nanoseconds, source: Peer, packet: Any, out: list[Action]) -> None:
        kind = type(packet)
        if kind in PACKETS:
            view = packet.view if kind is not Retrans else packet.data.view
            if view != self.talk.id:
                self._of_another(now, source, view, packet, out)
            elif not self.standing.frozen:
                if source.id == self.awaited:
                    self._went_on(now, out)
                self.talk.packet(now, source.id, packet, out)
        elif kind in _FLUSH_PACKETS:
            self._flush_packet(now, source, packet, out)
        else:
            if kind is Hello and source.id == self.awaited and self.flush is None and packet.view == self.talk.id:
                self._went_on(now, out)
            out += self._carry(now, self.membership.receive(now, source, packet))

    def _of_another(self, now: Nanoseconds, source: Peer, view: ViewId, packet: Packet, out: list[Action]) -> None:
        """Of the view being formed: kept, and if I am done it shows that all are.  Of a later one: its sender has
        left mine."""
        forming = self.standing.forming
        if forming is not None and view == forming.id:
            out.append(self.early.keep(source, packet))
            if self.flush is not None and self.flush.done and self.membership.recorded:
                out += self._install(now)
        elif view > self.talk.id:
            out += self._carry(now, self.membership.foreign(now, source, view))

    def _went_on(self, now: Nanoseconds, out: list[Action]) -> None:
        """My successor is in the new view: the token I passed on has arrived."""
        self.awaited = NOBODY
        out += self._carry(now, self.membership.went_on(now))

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        if self.parted:
            return []
        out = self._visit(now) if self.barrier is not None and self.barrier.pending is not None else []
        if not self.standing.frozen:
            out += self.talk.traffic.drained(now)
            if self.leaving:
                out += self._settle(now)
        return out

    # ---------------------------------------------------------------------------------------------------------- timers

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if self.parted:
            return []
        if name.startswith("m."):
            return self._carry(now, self.membership.timer(now, name, due))
        out = self._carry(now, self.membership.stood_still(now, due))
        if name == SYNC:
            return out + self._visit(now, rested=True)
        if name == FLUSH:
            return out + self._too_long(now)
        if name == FLUSH_NACK:
            return out + (self.flush.ask(now) if self.flush is not None else [])
        if name == LEAVE:
            return out + self._go(now)
        if name == OPEN:
            for source, packet in self.early.take():  # what is received is told after its view
                self._packet(now, source, packet, out)
            out += self.talk.traffic.start() if self.standing.works else []
            return out + self._settle(now) if self.leaving else out
        if self.standing.frozen:
            return out
        out += self.talk.due(now, name)
        out += self._stuck(now)
        return out + self._settle(now) if self.leaving else out

    def _stuck(self, now: Nanoseconds) -> list[Action]:
        found = self.talk.stuck(now)
        if found is None or not self.standing.works or self.membership.paused:
            return []
        cause, blamed = found
        note = Note("stuck link", {"blamed": blamed})
        return [note, *self._carry(now, self.membership.suspect(now, cause, blamed))]

    def _settle(self, now: Nanoseconds) -> list[Action]:
        """A member that leaves goes when everybody has what it sent, and what it had then: tickets, for example."""
        if not self.standing.works:
            return []
        self.talk.traffic.advance()
        return self._go(now) if self.talk.traffic.settled else []

    def _go(self, now: Nanoseconds) -> list[Action]:
        """Say what I have, and goodbye; an attempt at another view goes on without me."""
        self.flush = self.barrier = None
        said = self.talk.traffic.report() if self.standing.works else []
        return [*said, *self._carry(now, self.membership.leave(now))]

    # ---------------------------------------------------------------------------------------------------- view changes

    def _carry(self, now: Nanoseconds, actions: list[Action]) -> list[Action]:
        """Do what the membership decided; pass on the rest."""
        if not actions:
            return []
        out: list[Action] = []
        for action in actions:
            if isinstance(action, Decision):
                out += self._decided(now, action)
            else:
                out.append(action)
        return out + self._freeze()

    def _decided(self, now: Nanoseconds, decision: Decision) -> list[Action]:
        match decision:
            case Gathering():
                return self._gather(now, decision.cause)
            case Committed():
                return self._freeze() + self._committed(now, decision)
            case Returned():
                if self.barrier is not None:  # else an entry was bad: the attempt is over
                    self.barrier.first()
                return self._visit(now)
            case Parted():
                return [*self._stop(), Up(Left(report.unsent(self.talk)))]
            case Outdone():
                return [*self._stop(), Up(Ended(decision.why))]
        raise AssertionError(decision)

    def _stop(self) -> list[Action]:
        self.parted = True
        return [*self.talk.end(), *map(CancelTimer, (SYNC, OPEN, LEAVE, FLUSH, FLUSH_NACK))]

    def _entry(self) -> bytes:
        """My state of the old view, for the commit token: from here on it is frozen."""
        if self.state is None:
            self.state = self.flush_state_above()
        plan = None if self.plan is None else (self.plan.ring_id, to_bitmap(self.plan.together, self.configured))
        return _encode(LayerEntry(self.talk.id, tuple(self.talk.traffic.have), plan))

    def _freeze(self) -> list[Action]:
        """Tell the layer above, once, that its view is frozen."""
        if self.state is None or self.frozen_told:
            return []
        self.frozen_told = True
        return [Up(Frozen())] if self.talk.id.seq else []

    def _gather(self, now: Nanoseconds, cause: Cause) -> list[Action]:
        """The view, or the attempt at the next one, is left."""
        out: list[Action] = [Note("gather", {"reason": cause.reason, "of": cause.member}), *self.talk.traffic.stop()]
        flush, self.flush, self.barrier, self.awaited = self.flush, None, None, NOBODY
        self.early.take()
        if flush is None:
            return out
        out += [*flush.end(), CancelTimer(SYNC)]
        if not flush.done:
            blamed = flush.blamed(now)
            if blamed:
                out.append(Note("flush blamed", {"members": blamed}))
                out += self._carry(now, self.membership.blame(now, blamed, "owes a flush"))
        return out

    def _committed(self, now: Nanoseconds, committed: Committed) -> list[Action]:
        """All entries are in: what those of my old view lack is exchanged."""
        assert self.state is not None
        try:
            self.flush = Flush(
                now, committed, self.configured, self.talk.traffic, self.plan, self.state, self.timeout_ns,
                self.packet_bytes,
            )  # fmt: skip
        except BadEntry as why:
            cause = Cause("bad entry", why.member, "", str(why))
            given_up = self.membership.suspect(now, cause, (why.member,))
            return [dropped(why.reason, what=str(why)), *self._carry(now, given_up)]
        out: list[Action] = []
        if self.plan is not None and self.flush.plan is None:
            out.append(Note("plan dropped", {"ring": str(self.plan.ring_id)}))
        self.barrier = Barrier(committed.ring_id, committed.members, self.me)
        out += self.flush.begin(now)
        self.plan = self.flush.plan
        for source, packet in self.early.take():
            self._packet(now, source, packet, out)
        return out

    def _flush_packet(self, now: Nanoseconds, source: Peer, packet: Any, out: list[Action]) -> None:
        flush, forming, kind = self.flush, self.standing.forming, type(packet)
        if kind is FlushToken and self.barrier is not None and packet.ring_id == self.barrier.ring_id:
            out += self.barrier.keep(packet)
        elif flush is not None and packet.ring_id == flush.ring_id:
            out += flush.came(now, packet) if kind is not FlushToken else []
            self.plan = flush.plan
        elif forming is not None and packet.ring_id == forming.id:
            out.append(self.early.keep(source, packet))
        elif packet.ring_id > self.talk.id:
            out += self._carry(now, self.membership.foreign(now, source, packet.ring_id))

    def _visit(self, now: Nanoseconds, rested: bool = False) -> list[Action]:
        """The token is here: say that I am done, pass it on; if all are, install."""
        barrier = self.barrier
        if barrier is None or (barrier.pending is None and barrier.held is None):
            return []
        if self.flush is not None and self.flush.done and not self.membership.recorded:
            return []  # the token waits for the disk
        token, done = barrier.take(), self.flush is None or self.flush.done
        if token.install and not done:
            return [dropped("install before the flush")]
        out = self._carry(now, self.membership.token(now, barrier.ring_id, token.number))
        if self.barrier is not barrier:
            return out
        if not rested and barrier.rests(token, done):
            barrier.held = token
            return [*out, SetTimer(SYNC, now + self.sync_ns)]
        after = barrier.visit(token, done)
        if after is None:
            return out
        if done and self.flush is not None:
            self.membership.finished()
        if after.to != self.me:
            self.awaited = after.to
            out += self.membership.pass_token(now, after.to, after, barrier.ring_id, after.number)
        return out + self._install(now) if after.install and self.flush is not None else out

    def _too_long(self, now: Nanoseconds) -> list[Action]:
        """A flush of 4 T: one member that cannot be done would otherwise stop the group for ever."""
        flush = self.flush
        if flush is None:
            return []
        if self.membership.paused:
            more = flush.spare(now)
            if more:
                return more
        cause = Cause("flush timeout", None, "4 T", f"view {flush.ring_id} is not installed")
        return [Note("flush late"), *self._carry(now, self.membership.suspect(now, cause))]

    def _install(self, now: Nanoseconds) -> list[Action]:
        flush, old, plan = self.flush, self.talk.traffic, self.plan
        assert flush is not None and plan is not None
        committed, out, inserted = flush.committed, self.talk.end() + flush.end(), 0
        if old.id.seq:
            closed, inserted = closing(old.id, old.members, old.have, plan, self.causal)
            out += closed
        out += known(self.membership.primary) + views(committed, flush.mine, flush.components, self.talk.primary)
        if flush.mine.intermediate is not None:
            out.append(Note("intermediate view", {"members": list(flush.mine.members)}))
        kept = plan.ring_id != committed.ring_id
        out.append(Note("install", {"inserted": inserted, "kept": kept, "ns": now - flush.began}))
        self.talk = self._talk(now, committed.ring_id, committed.members)
        self.talk.primary = committed.primary
        self.flush = self.plan = self.state = None
        self.frozen_told = False
        out += self._carry(now, self.membership.installed(now))
        return [*out, SetTimer(OPEN, now)]  # in a step of its own: the view has then reached the application

    def status(self) -> dict[str, Any]:
        return report.status(self)
