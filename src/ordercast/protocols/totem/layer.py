"""One member of the token ring: ring order, membership and recovery put together.

Paper: "Performance engineering of the Totem group communication system" (1998); extended virtual synchrony after the
1994 and 1995 papers (see `turning`, `ring` and `recovery`).
Provides: agreed, safe.  Needs below: a network on which a multicast reaches most members most of the time.

Differs from the papers:
  D1  Who is in the next ring is decided by ordercast.membership (rows of who hears whom), not by proc and fail sets.
  D2  From writing its commit entry until the next install a member adds to its old ring's store only through the
      exchange, also if that attempt fails: late frames of an excluded member reach the others unequally.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ordercast.contract import Action, CancelTimer, Event, FreeSpace, Leave, Left, Note, SetTimer, Up, Waiting
from ordercast.membership import Committed, Decision, Gathering, Parted, Returned, State
from ordercast.protocols.totem.attempt import Attempt
from ordercast.protocols.totem.packets import Token
from ordercast.protocols.totem.turning import Turning
from ordercast.types import Cause, Identity, MemberId, Nanoseconds, NetId


class RingLayer(Turning):
    """The lowest layer: packets below, ordered frames and views above."""

    name = "ring"

    # ------------------------------------------------------------------------------------------------------- life cycle

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return self._carry(now, self.membership.start(now, stored))

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        return self._carry(now, self.membership.stored(now, key, number))

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        return self._carry(now, self.membership.store_failed(now, key, number, why))

    def unreachable(self, now: Nanoseconds, net: NetId, member: MemberId) -> list[Action]:
        if self.parted or not self.options.crash_hint:
            return []
        return self._carry(now, self.membership.unreachable(now, member))

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if self.parted:
            return []
        if type(event) is Waiting:
            return self._wake(now)
        if type(event) is FreeSpace:
            more = self.rings.room is not None and event.frames > self.rings.room
            self.rings.give_room(event.frames)
            return self._wake(now) if more and self.hand.idle else []
        if type(event) is Leave and not self.leaving:
            self.leaving = True
            return [SetTimer("leave", now + self.timeout_ns), *self._wake(now)]
        return []

    # ---------------------------------------------------------------------------------------------------- timers, leave

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if self.parted:
            return []
        if name.startswith("m."):
            return self._carry(now, self.membership.timer(now, name, due))
        out = self._carry(now, self.membership.stood_still(now, due))
        if name == "leave":
            return out + self._go(now)
        if name == "alone":
            token, ring = self.hand.empty(), self._turning()
            if token is None or ring is None or not ring.accepts(token):
                return out
            out += self._carry(now, self.membership.token(now, ring.id, token.token_seq))
            return out + self._visit(now, ring, token)
        assert name == "hold"
        return out + self._resume(now)

    def _leave_if_done(self, now: Nanoseconds) -> list[Action]:
        ring = self.rings.ring
        if self.outbox or min(ring.delivered, ring.safe_upto) < self.own_last:
            return []
        return self._go(now)

    def _go(self, now: Nanoseconds) -> list[Action]:
        """Drained, or waited for T: pass on a token in hand and say goodbye."""
        if self.parted:
            return []
        self.leaving = False
        out: list[Action] = [CancelTimer("leave")]
        if self.hand.held is not None and len(self.rings.ring.members) > 1:
            out += self._resume(now)
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
                self.hand.pending = Token(decision.ring_id, self.me, 0, first, first)
                return self._take(now)
            case Parted():
                self.parted = True
                return [CancelTimer("hold"), CancelTimer("alone"), CancelTimer("leave"), Up(Left())]
        raise AssertionError(decision)

    def _gather(self, cause: Cause) -> list[Action]:
        """The ring (or the attempt at a new one) is given up; the old ring's store stays as it is."""
        fields = {"reason": cause.reason, "of": cause.member, "recovering": self.rings.attempt is not None}
        out: list[Action] = [Note("gather", fields)]
        if self.hand.held is not None:
            out += [CancelTimer("hold"), CancelTimer("alone")]
        self._calm()
        self.rings.attempt = None
        return out

    def _recover(self, now: Nanoseconds, committed: Committed) -> list[Action]:
        self._calm()
        try:
            return [self.rings.begin(committed)]
        except msgspec.MsgspecError as why:
            return self._carry(now, self.membership.suspect(now, Cause("bad entry", evidence=str(why))))

    def _recovering(self, now: Nanoseconds, attempt: Attempt, token: Token, last_aru: int) -> list[Action]:
        if not self.rings.visited(attempt, token, last_aru):
            return self._stuck(now, token)
        out = self.rings.install(attempt)
        self.outbox.unwind()
        out += self._carry(now, self.membership.installed(now))
        return out + self._deliver()

    def status(self) -> dict[str, Any]:
        ring, attempt = self.rings.ring, self.rings.attempt
        return {
            "view": str(ring.id), "members": ring.members, "seq": ring.high, "aru": ring.my_aru,
            "delivered": ring.delivered, "safe": ring.safe_upto, "buffered": len(ring.store),
            "token": "held" if self.hand.held else "", "membership": self.membership.status(), "waits": self._words(),
            "queues": {"unsafe": len(ring.store), "exchange": attempt.exchange.waiting() if attempt else 0},
        }  # fmt: skip

    def _words(self) -> str:
        """What this member waits for."""
        ring, attempt, state = self.rings.ring, self.rings.attempt, self.membership.state
        if state is State.RECOVERY and attempt is not None:
            return f"the exchange of old frames, {attempt.exchange.waiting()} of them mine"
        if state is not State.OPERATIONAL:
            return f"a view: {state.value}"
        if ring.my_aru < ring.high:
            return f"frame {ring.my_aru + 1} of ring {ring.id}, asked for on the token"
        if ring.delivered < ring.my_aru:
            return f"frame {ring.delivered + 1} to be safe"
        return "the token" if self.outbox else ""
