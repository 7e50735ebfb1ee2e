"""One member of the token ring: ring order, membership and recovery put together.

Paper: "Performance engineering of the Totem group communication system" (1998); extended virtual synchrony after the
1994 and 1995 papers (see `turning`, which works while a view lasts, `ring` and `recovery`).
Provides: agreed, safe.  Needs below: a network on which a multicast reaches most members most of the time.

Differs from the papers:
  D1  Who is in the next ring is decided by ordercast.membership (rows of who hears whom), not by proc and fail sets.
  D2  From writing its commit entry until the next install a member adds to its old ring's store only through the
      exchange, also if that attempt fails: late frames of an excluded member reach the others unequally.
  D3  Under `primary-majority` no token of recovery goes on before it is stored that this member may finish the attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ordercast.contract import (
    Action,
    CancelTimer,
    Ended,
    Event,
    FreeSpace,
    Layer,
    Leave,
    Left,
    Note,
    Packet,
    Setup,
    Up,
    dropped,
)
from ordercast.errors import WireError
from ordercast.membership import NOTHING, Committed, Decision, Gathering, Membership, Outdone, Parted, Returned, State
from ordercast.membership.primary import Knows, known, learn
from ordercast.protocols.totem.attempt import Attempt
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.packets import Data, HoldCancel, Recovered, Token
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.turning import Turning
from ordercast.sender import LEAVE
from ordercast.types import Cause, Identity, MemberId, Nanoseconds, NetId, Peer


class RingLayer(Layer):
    """The lowest layer: packets below, ordered frames and views above."""

    name = "ring"

    def __init__(
        self,
        setup: Setup,
        options: TotemOptions,
        *,
        net: NetId = 0,
        hold_safe: bool = True,
        stamps: bool = False,
        ring_number: int = 0,
        lamport: Lamport | None = None,
        feed: Feed | None = None,
    ) -> None:
        identity = setup.identity
        if net in setup.on_nets:
            identity = replace(identity, members=setup.on_nets[net])
        self.me, self.options = identity.me, options
        limits = options.limits(setup.frame_bytes)
        self.rings = Rings(
            identity.me, limits, options, hold_safe=hold_safe, stamps=stamps, number=ring_number, lamport=lamport,
            urgent=feed.urgent if feed is not None else None, first=feed.first if feed is not None else None,
        )  # fmt: skip
        self.membership = Membership(
            identity, setup.timeout_ns, setup.random, entry=self.rings.entry, net=net, packet_bytes=setup.packet_bytes,
            partition=setup.partition,
        )  # fmt: skip
        self.turn = Turning(
            setup, self.rings, self.membership, net, carry=self._carry, recovering=self._recovering, go=self._go,
            feed=feed,
        )  # fmt: skip
        self.sender = self.turn.sender
        self.parted = False

    # ------------------------------------------------------------------------------------------------------- life cycle

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return self._carry(now, self.membership.start(now, stored))

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        waited = not self.membership.recorded
        out = self._carry(now, self.membership.stored(now, key, number))
        return out + self.turn.take(now) if waited else out

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        return self._carry(now, self.membership.store_failed(now, key, number, why))

    def unreachable(self, now: Nanoseconds, net: NetId, member: MemberId) -> list[Action]:
        if self.parted or not self.options.crash_hint:
            return []
        return self._carry(now, self.membership.unreachable(now, member))

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if self.parted:
            return []
        if type(event) is FreeSpace and not self.sender.leaving:
            more = self.rings.room is not None and event.frames > self.rings.room
            self.rings.give_room(event.frames)
            return self.turn.wake(now) if more and self.turn.hand.idle else []
        if type(event) is Leave:
            self.rings.give_room(None)
        if type(event) is Knows:
            return learn(self.membership.primary, event)
        return self.sender.down(now, event)

    # ---------------------------------------------------------------------------------------------------------- packets

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if self.parted:
            return []
        actions = self.membership.heard(now, source)
        if actions is None:
            told = [] if source.id == self.me else [dropped("not admitted", member=source.id)]  # my own id was counted
            return [*told, *self._carry(now, self.membership.ignored(now, source, packet))]
        out = self._carry(now, actions) if actions else []
        kind = type(packet)
        if kind is Data:
            self.turn.data(now, source, packet, out)  # type: ignore[arg-type]
        elif kind is Token:
            out += self.turn.token_came(now, source, packet)  # type: ignore[arg-type]
        elif kind is Recovered:
            self.turn.recovered(now, source, packet, out)  # type: ignore[arg-type]
        elif kind is HoldCancel:
            out += self.turn.hold_cancel(now, source, packet)  # type: ignore[arg-type]
        else:
            out += self._carry(now, self.membership.receive(now, source, packet))
        return out

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        return self.turn.drained(now)

    # ---------------------------------------------------------------------------------------------------- timers, leave

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if self.parted:
            return []
        if name.startswith("m."):
            return self._carry(now, self.membership.timer(now, name, due))
        out = self._carry(now, self.membership.stood_still(now, due))
        if name == LEAVE:
            return out + self.sender.timer(now)
        if name == "alone":
            return out + self.turn.alone(now)
        assert name == "hold"
        return out + self.turn.resume(now)

    def _go(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        """Drained, or waited for long enough: pass on a token in hand and say goodbye."""
        held = self.turn.hand.held is not None and len(self.rings.ring.members) > 1
        out = self.turn.resume(now) if held else []
        return out + self._carry(now, self.membership.leave(now))

    # ----------------------------------------------------------------------------------------------------- view changes

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
        return out

    def _decided(self, now: Nanoseconds, decision: Decision) -> list[Action]:
        match decision:
            case Gathering():
                return self._gather(decision.cause)
            case Committed():
                return self._recover(now, decision)
            case Returned():
                assert self.rings.knows(decision.ring_id)
                first = self.options.first_seq
                self.turn.hand.pending = Token(decision.ring_id, self.me, 0, first, first)
                return self.turn.take(now)
            case Parted():
                return [*self._stop(), Up(Left(self.sender.unsent()))]
            case Outdone():
                return [*self._stop(), Up(Ended(decision.why))]
        raise AssertionError(decision)

    def _stop(self) -> list[Action]:
        self.parted = True
        return [CancelTimer("hold"), CancelTimer("alone"), CancelTimer(LEAVE)]

    def _gather(self, cause: Cause) -> list[Action]:
        """The ring (or the attempt at a new one) is given up; the old ring's store stays as it is."""
        fields = {"reason": cause.reason, "of": cause.member, "recovering": self.rings.attempt is not None}
        out: list[Action] = [Note("gather", fields)]
        if self.turn.hand.held is not None:
            out += [CancelTimer("hold"), CancelTimer("alone")]
        self.turn.calm()
        self.rings.attempt = None
        return out

    def _recover(self, now: Nanoseconds, committed: Committed) -> list[Action]:
        self.turn.calm()
        try:
            return [self.rings.begin(committed)]
        except WireError as why:
            given_up = self.membership.suspect(now, Cause("bad entry", evidence=str(why)))
            return [dropped(why.reason, what=str(why)), *self._carry(now, given_up)]

    def _recovering(self, now: Nanoseconds, attempt: Attempt, token: Token, last_aru: int) -> list[Action]:
        if not attempt.exchange.waiting():
            self.membership.finished()
        if not self.rings.visited(attempt, token, last_aru):
            return self.turn.stuck(now, token)
        out = known(self.membership.primary) + self.rings.install(attempt)
        out += self.sender.enter(self.rings.ring.id, self.rings.ring.primary)
        out += self._carry(now, self.membership.installed(now))
        return out + self.turn.deliver()

    def status(self) -> dict[str, Any]:
        ring, attempt = self.rings.ring, self.rings.attempt
        return {
            "view": str(ring.id), "members": ring.members, "seq": ring.high, "aru": ring.my_aru,
            "delivered": ring.delivered, "safe": ring.safe_upto, "buffered": len(ring.store),
            "token": "held" if self.turn.hand.held else "", "sender": self.sender.status(),
            "membership": self.membership.status(), "in_view": self.membership.standing.works,
            "waits": self._words(), "waits_since_ns": self._since(), "repeated": dict(self.rings.repeated),
            "apart": self.membership.apart(),
            "queues": {
                "outbox": self.sender.held(), "unsafe": len(ring.store),
                "exchange": attempt.exchange.waiting() if attempt else 0,
            },
        }  # fmt: skip

    def _words(self) -> str:
        """What this member waits for."""
        ring, attempt, state = self.rings.ring, self.rings.attempt, self.membership.state
        if state is State.RECOVERY and attempt is not None:
            return f"the exchange of old frames, {attempt.exchange.waiting()} of them mine"
        if state is not State.OPERATIONAL:
            words = self.membership.words()
            return f"a view, which waits {words}" if words != NOTHING else f"a view: {state.value}"
        if self.turn.watch.full is not None:
            return f"the application of member {self.turn.watch.full[0]}, which does not read what it was delivered"
        if ring.my_aru < ring.high:
            return f"frame {ring.my_aru + 1} of ring {ring.id}, asked for on the token"
        if ring.delivered < ring.my_aru:
            return f"frame {ring.delivered + 1} to be safe"
        return "the token" if self.sender else self.sender.waits()

    def _since(self) -> Nanoseconds | None:
        """When that began, where it is remembered."""
        standing, full = self.membership.standing, self.turn.watch.full
        if not standing.works:
            return standing.left
        return full[1] if full is not None else None
