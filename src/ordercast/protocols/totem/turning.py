"""A member's turn on the ring: frames and tokens come, the token is visited, rests or goes on, frames go up.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.1; the rules of a visit are
in `ring`, what is known of the token in `hand`.  Views and recovery are put around it in `layer`, which holds it.

Differs from the papers:
  D1  An idle token is held *before* the representative's visit, so that a frame of its own leaves without a rotation.
  D2  A ring of one does not spin: the token rests until there is something to do.
  D3  Who alone has sent for some rotations keeps the token for some more: its frames leave at once, and the ring does
      not spin between them.  Anybody else with something to send, or with a hole, calls it off, as an idle hold.  Not
      where rings are joined: others wait for what a token that goes round tells.
  D4  While the token rests in my hand nobody else can number a frame: a number above it is not believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ordercast.contract import ALL, Action, CancelTimer, Note, Ordered, Receive, SetTimer, Setup, Transmit, Up, dropped
from ordercast.joining import Progress, SafeUpTo
from ordercast.membership import Membership, State
from ordercast.protocols.totem.attempt import Attempt
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.hand import LONE, Hand
from ordercast.protocols.totem.packets import Data, HoldCancel, Recovered, Token
from ordercast.protocols.totem.ring import Held, Ring
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.watch import Watch
from ordercast.sender import Sender
from ordercast.types import Cause, Frame, MemberId, Nanoseconds, NetId, Peer, Service, ViewId

Carry = Callable[[Nanoseconds, list[Action]], list[Action]]
Recovering = Callable[[Nanoseconds, Attempt, Token, int], list[Action]]


class Turning:
    """Works while a view lasts, and carries its recovery on the new ring.

    carry: does what the membership decided, passes on the rest.
    recovering: called after a visit on a new ring with the token passed on and the mark before: is the exchange over?
    go: says goodbye, when all of mine has arrived or waiting is over.
    feed: what stands in for the Sender where a layer above joins several rings.
    """

    def __init__(
        self,
        setup: Setup,
        rings: Rings,
        membership: Membership,
        net: NetId,
        *,
        carry: Carry,
        recovering: Recovering,
        go: Callable[[Nanoseconds, Nanoseconds], list[Action]],
        feed: Feed | None = None,
    ) -> None:
        self.me, self.net, self.timeout_ns = setup.identity.me, net, setup.timeout_ns
        self.rings, self.membership, self.options = rings, membership, rings.options
        self.standing = membership.standing
        self._carry, self._recovering = carry, recovering
        self.sender: Sender | Feed
        self.feed = feed
        if feed is not None:
            feed.bind(self.wake, go)
            self.sender = feed
        else:
            self.sender = Sender(setup, (Service.AGREED, Service.SAFE), self.unsettled, wake=self.wake, go=go)
        self.hold_ns = setup.timeout_ns * 7 // 42  # 0.7 of T_retx: no predecessor repeats meanwhile
        self.busy_ns = max(1, setup.timeout_ns // 200)  # a ring of one visits itself so often, if there is work
        self.calm()

    def calm(self) -> None:
        """Nothing of a token in hand; the counters of a fresh ring."""
        self.hand = Hand()
        self.watch = Watch(self.me, self.timeout_ns)
        self.told_safe = self.options.first_seq

    def unsettled(self) -> Iterator[Frame]:
        """What I sent on this ring and did not deliver, or of which I do not know that every member holds it."""
        ring = self.rings.ring
        for seq in range(min(ring.delivered, ring.safe_upto) + 1, ring.high + 1):
            held = ring.store.get(seq)
            if type(held) is Data and held.frame.sender == self.me:
                yield held.frame

    # ---------------------------------------------------------------------------------------------------------- packets

    def data(self, now: Nanoseconds, source: Peer, data: Data, out: list[Action]) -> None:
        """A frame of my ring is kept; nothing is delivered before the input is drained."""
        ring, attempt = self.rings.ring, self.rings.attempt
        if data.ring != ring.id:
            if attempt is None or data.ring != attempt.new.id:
                out += self._foreign(now, source, data.ring)
                return
            ring = attempt.new
        elif self.standing.frozen:  # layer D2
            return
        seq, frame, held = data.seq, data.frame, self.hand.held
        why = "number" if held is not None and seq > held.seq + ring.ahead else ring.doubt(seq, frame)  # D4
        if why:
            out.append(dropped(why, seq=seq))
        elif ring.receive(data):
            out.append(Receive(frame))
            self._alive(now, ring, seq, frame.sender, out)
        else:
            out.append(Note("duplicate"))

    def recovered(self, now: Nanoseconds, source: Peer, packet: Recovered, out: list[Action]) -> None:
        """A frame of an old ring on the new one: it counts here, and the old ring keeps it if that is mine."""
        attempt, held, seq = self.rings.attempt, self.hand.held, packet.seq
        if attempt is None or packet.ring != attempt.new.id:
            out += self._foreign(now, source, packet.ring)
        elif attempt.new.far(seq, packet.old.frame) or (held is not None and seq > held.seq):
            out.append(dropped("number", seq=seq))
        elif attempt.new.receive(packet):
            if attempt.exchange.received(packet.old):
                out.append(Receive(packet.old.frame))
            self._alive(now, attempt.new, seq, source.id, out)

    def _foreign(self, now: Nanoseconds, source: Peer, ring: ViewId) -> list[Action]:
        if self.rings.knows(ring):
            return []
        return self._carry(now, self.membership.foreign(now, source, ring))

    def _alive(self, now: Nanoseconds, ring: Ring, seq: int, sender: MemberId, out: list[Action]) -> None:
        """A new frame came: if it is numbered above the token I passed on, that has arrived."""
        hand = self.hand
        hand.heard(sender)
        if hand.arrived(seq):
            out += self._carry(now, self.membership.used(now))
        if self.options.accelerated and seq > hand.passed_seq and sender == ring.before and not hand.eager:
            hand.eager = True
            if hand.pending is not None:
                out += self.take(now)

    def token_came(self, now: Nanoseconds, source: Peer, token: Token) -> list[Action]:
        ring = self.current()
        if ring is None or token.ring != ring.id:
            return self._foreign(now, source, token.ring)
        out: list[Action] = []
        if token.room_id is not None and token.room_id not in ring.members:  # nobody would ever take it off
            token = replace(token, room=None, room_id=None)
            out.append(dropped("room of nobody"))
        if token.to != self.me or not ring.accepts(token) or not self.hand.keep(token):
            return out
        return out + self.take(now) if self.hand.eager else out

    def current(self) -> Ring | None:
        """The ring whose tokens I handle now."""
        return self.rings.turning(self.standing.state)

    # ------------------------------------------------------------------------------------------------------------ token

    def drained(self, now: Nanoseconds) -> list[Action]:
        """All frames are in: now the token, and after it the application."""
        out = self.take(now) if self.hand.pending is not None else []
        ring = self.rings.ring
        if self.standing.state is State.OPERATIONAL:
            if ring.delivered < ring.my_aru:
                out += self.deliver() + self._progress(ring)
            if ring.my_aru < ring.high:  # only the token can ask for what is missing
                out += self._call_off()
        return out

    def take(self, now: Nanoseconds) -> list[Action]:
        hand, ring = self.hand, self.current()
        if self.rings.attempt is not None and not self.membership.recorded:
            return []  # layer D3
        token, hand.pending = hand.pending, None
        if token is None or ring is None or not ring.accepts(token):
            return []
        out = self._carry(now, self.membership.token(now, ring.id, token.token_seq))
        if self.current() is not ring:
            return out
        if hand.may_rest(token, self.options.hold_after) and self._holds_idle_tokens(ring, token):
            hand.held = token  # D1
            return [*out, Note("hold", {"rotations": hand.idle}), SetTimer("hold", now + self.hold_ns)]
        if hand.lone >= LONE and self._lone_speaker(ring, token):
            hand.held, hand.lingers = token, True  # D3
            out += [Note("linger"), SetTimer("hold", hand.linger(now, self.hold_ns))]
            return out + self._early(now) if self.sender else out
        return out + self.visit(now, ring, token)

    def _lone_speaker(self, ring: Ring, token: Token) -> bool:
        """Nobody but me has sent anything, nobody lacks anything, nothing waits to become safe."""
        mine = (
            self.hand.speaker == self.me and ring.my_trc > 0 and self.options.hold_after > 0 and not self.sender.leaving
        )
        calm = not token.rtr and token.aru_id is None and token.room is None and ring.delivered == token.seq
        calm = calm and not self.rings.stamps  # other rings wait for what a token that goes round tells
        return mine and calm and not self.sender.leaving and ring is self.rings.ring and self.rings.attempt is None

    def _early(self, now: Nanoseconds) -> list[Action]:
        """Frames leave while the token stays; what cannot leave so, or wants to become safe, ends the stay."""
        ring, token = self.rings.ring, self.hand.held
        out: list[Action] = []
        assert token is not None
        self._originate(ring, ring.early(token, self.sender), out)
        out += self.deliver()
        return out + self.resume(now) if self.sender or ring.delivered < ring.my_aru else out

    def _holds_idle_tokens(self, ring: Ring, token: Token) -> bool:
        mine = ring.members[0] == self.me and len(ring.members) > 1 and ring is self.rings.ring
        return mine and not self.sender.leaving and (not self.sender or token.room == 0)

    def visit(self, now: Nanoseconds, ring: Ring, token: Token) -> list[Action]:
        out: list[Action] = []
        last_aru, attempt = ring.last_aru, self.rings.attempt
        if self.feed is not None and attempt is None:
            out += self.feed.turn(now, ring, token)
        visit = ring.visit(token, self.sender, attempt.exchange if attempt is not None else None)
        self.hand.visited()
        if visit.resent:
            out.append(Note("retransmit", {"frames": len(visit.resent)}))
            out += [Transmit(self.net, ALL, held) for held in visit.resent]
        new = visit.new
        first = len(new) - min(self.options.accelerated, len(new))
        self._originate(ring, new[:first] if first < len(new) else new, out)
        out += self._pass(now, ring, visit.token)
        if first < len(new):
            self._originate(ring, new[first:], out)  # accelerated: behind the token
        if len(visit.token.rtr) > len(token.rtr):
            out.append(Note("request", {"frames": len(visit.token.rtr)}))
        out.append(Note("rotation", {"ns": self.watch.rotation(now)}))
        if visit.token.room == 0 or self.watch.full is not None:
            self.watch.reads(now, visit.token)
        if attempt is not None:
            return out + self._recovering(now, attempt, visit.token, last_aru)
        out += self.deliver()
        if self.rings.stamps:
            self.hand.promised(visit.token)
            out += self._progress(ring)
        if self.sender.leaving:
            out += self.sender.settle(now)
        return out + self.stuck(now, visit.token)

    def _progress(self, ring: Ring) -> list[Action]:
        """What a token said of its ring holds once all that it counts has come, also if it overtook its last frames."""
        token = self.hand.kept(ring.my_aru)
        return [] if token is None else [Up(Progress(token.timestamp, token.seq, token.room == 0))]

    def _originate(self, ring: Ring, new: list[Held], out: list[Action]) -> None:
        mine = [held.frame for held in new if type(held) is Data]
        if mine:
            out += self.sender.originated(mine)
            out += map(Receive, mine)
            self.hand.heard(self.me)
        if len(ring.members) > 1:
            out += [Transmit(self.net, ALL, held) for held in new]

    def _pass(self, now: Nanoseconds, ring: Ring, token: Token) -> list[Action]:
        if token.to == self.me:  # D2
            self.hand.held = token
            work = self.rings.attempt is not None or self.sender or ring.safe_upto < ring.high
            return [SetTimer("alone", now + (self.busy_ns if work else self.hold_ns))]
        self.hand.pass_on(now, token)
        return self._carry(now, self.membership.pass_token(now, token.to, token, ring.id, token.token_seq))

    def stuck(self, now: Nanoseconds, token: Token) -> list[Action]:
        if not self.watch.stuck(now, token):
            return []
        cause = Cause("stuck receiver", token.aru_id, "T", f"aru stayed at {token.aru} below {token.seq}")
        out: list[Action] = [Note("stuck", {"member": token.aru_id, "aru": token.aru, "seq": token.seq})]
        assert token.aru_id is not None
        return out + self._carry(now, self.membership.suspect(now, cause, (token.aru_id,)))

    def deliver(self) -> list[Action]:
        ring = self.rings.ring
        epoch, number = ring.id.seq, self.rings.number
        out: list[Action] = [
            Up(Ordered(held.frame, epoch, held.seq, None, number, held.stamp, held.source))
            for held in ring.deliver()
            if type(held) is Data
        ]
        if ring.released < ring.safe_upto:
            ring.release()
        if not self.rings.hold_safe and ring.safe_upto > self.told_safe:
            self.told_safe = ring.safe_upto
            out.append(Up(SafeUpTo(ring.safe_upto)))
        return out

    # ------------------------------------------------------------------------------------------------------------- idle

    def wake(self, now: Nanoseconds) -> list[Action]:
        """There is something to do: use a token in hand, or ask the representative not to hold it."""
        hand, several = self.hand, len(self.rings.ring.members) > 1
        if self.standing.state is not State.OPERATIONAL:
            return []
        if hand.lingers and not self.sender.leaving:
            return self._early(now)
        if hand.held is not None:
            return self.resume(now) if several else [SetTimer("alone", now + self.busy_ns)]
        return self._call_off()

    def _call_off(self) -> list[Action]:
        """Where a token rests that is not in my hand, as far as I can know: it is to come round."""
        ring, hand = self.rings.ring, self.hand
        if len(ring.members) == 1 or not hand.may_be_resting(self.me, self.options.hold_after):
            return []
        hand.cancelled = True
        return [Note("hold cancel"), Transmit(self.net, ALL, HoldCancel(ring.id))]

    def hold_cancel(self, now: Nanoseconds, source: Peer, packet: HoldCancel) -> list[Action]:
        if packet.ring != self.rings.ring.id:
            return self._foreign(now, source, packet.ring)
        self.hand.idle = self.hand.lone = 0
        return self.resume(now) if self.hand.held is not None and len(self.rings.ring.members) > 1 else []

    def resume(self, now: Nanoseconds) -> list[Action]:
        """The held token goes on, after my visit."""
        token, ring = self.hand.empty(), self.current()
        if token is None or ring is None or not ring.accepts(token):
            return []
        return [CancelTimer("hold"), *self.visit(now, ring, token)]

    def alone(self, now: Nanoseconds) -> list[Action]:
        """A ring of one visits itself."""
        token, ring = self.hand.empty(), self.current()
        if token is None or ring is None or not ring.accepts(token):
            return []
        out = self._carry(now, self.membership.token(now, ring.id, token.token_seq))
        return out + self.visit(now, ring, token)
