"""Variants of the token ring: what the marks on the token mean, what is kept, what is accepted."""

from __future__ import annotations

from msgspec.structs import replace
from tests.mutants.parts import totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Ordered, Originate, SetTimer, Setup, Up
from ordercast.protocols.totem.packets import Data, HoldCancel, Token
from ordercast.protocols.totem.ring import SAFE, Exchanging, Held, Ring, Source, Visit
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.turning import Turning
from ordercast.stack import Stack
from ordercast.types import MemberId, Nanoseconds, Peer, ViewId

AREA = "token ring"


@mutant("ring_agreed_past_holes", "totem", AREA, "frames go up though one before them is missing")
def ring_agreed_past_holes(setup: Setup) -> Stack:
    class Hasty(Ring):
        def deliver(self) -> list[Held]:
            out = super().deliver()
            ready = sorted(seq for seq in self.store if seq > max(self.delivered, getattr(self, "skipped", -1)))
            held = [self.store[seq] for seq in ready if seq > self.my_aru]
            held = [one for one in held if type(one) is Data and one.frame.service != SAFE]
            if held:
                self.skipped = held[-1].seq
            return out + held

    return totem(setup, ring=Hasty)


@mutant("ring_safe_after_one_rotation", "totem", AREA, "a frame counts as safe when aru has passed it once")
def ring_safe_after_one_rotation(setup: Setup) -> Stack:
    class Eager(Ring):
        def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
            self.last_aru = max(self.last_aru, min(token.aru, self.my_aru))
            return super().visit(token, source, exchange)

    return totem(setup, ring=Eager)


@mutant("ring_safe_when_received", "totem", AREA, "a frame counts as safe as soon as it is here without a hole")
def ring_safe_when_received(setup: Setup) -> Stack:
    class AtOnce(Ring):
        def deliver(self) -> list[Held]:
            before, self.safe_upto = self.safe_upto, self.my_aru
            out = super().deliver()
            self.safe_upto = before
            return out

    return totem(setup, ring=AtOnce)


@mutant("ring_aru_never_lowered", "totem", AREA, "who lacks a frame does not lower the mark")
def ring_aru_never_lowered(setup: Setup) -> Stack:
    class Proud(Ring):
        def _mark(self, token: Token, seq: int) -> tuple[int, MemberId | None]:
            if self.my_aru < token.aru:
                return token.aru, token.aru_id
            return super()._mark(token, seq)

    return totem(setup, ring=Proud)


@mutant("ring_anyone_raises_aru", "totem", AREA, "a member that has everything raises the mark another one lowered")
def ring_anyone_raises_aru(setup: Setup) -> Stack:
    class Raises(Ring):
        def _mark(self, token: Token, seq: int) -> tuple[int, MemberId | None]:
            return self.my_aru, None if self.my_aru == seq else self.me

    return totem(setup, ring=Raises)


@mutant("ring_freed_when_delivered", "totem", AREA, "a frame is forgotten when it was delivered here, safe or not")
def ring_freed_when_delivered(setup: Setup) -> Stack:
    class Forgets(Ring):
        def deliver(self) -> list[Held]:
            out = super().deliver()
            for seq in [seq for seq in self.store if seq <= self.delivered]:
                del self.store[seq]
            return out

        def release(self) -> None:
            self.released = min(self.safe_upto, self.delivered)

    return totem(setup, ring=Forgets)


@mutant("ring_resent_with_new_number", "totem", AREA, "a frame that was asked for is sent again as a new one")
def ring_resent_with_new_number(setup: Setup) -> Stack:
    class Renumbers(Ring):
        def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
            visit = super().visit(token, source, exchange)
            again = [held for held in visit.resent if type(held) is Data]
            if exchange is not None or not again:
                return visit
            seq, new = visit.token.seq, list(visit.new)
            for held in again:
                seq += 1
                new.append(replace(held, seq=seq))
                self.store[seq] = new[-1]
            self._advance()
            self.high = max(self.high, seq)
            return Visit(visit.resent, new, replace(visit.token, seq=seq))

    return totem(setup, ring=Renumbers)


@mutant("ring_token_accepted_twice", "totem", AREA, "a repeated copy of the token is handled again")
def ring_token_accepted_twice(setup: Setup) -> Stack:
    class Again(Ring):
        def accepts(self, token: Token) -> bool:
            return token.ring == self.id and token.token_seq >= self.my_token_seq

    return totem(setup, ring=Again)


@mutant("ring_any_token", "totem", AREA, "the token's own number is not looked at")
def ring_any_token(setup: Setup) -> Stack:
    class Any(Ring):
        def accepts(self, token: Token) -> bool:
            return token.ring == self.id

    return totem(setup, ring=Any)


@mutant("linger_early_not_counted", "totem", AREA, "frames sent while the token stays do not count at its next visit")
def linger_early_not_counted(setup: Setup) -> Stack:
    class Forgets(Ring):
        def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
            self.ahead = 0
            return super().visit(token, source, exchange)

    return totem(setup, ring=Forgets)


@mutant(
    "linger_beyond_the_window", "totem", AREA, "frames sent while the token stays know no window",
    scenario="lone_window",
)  # fmt: skip
def linger_beyond_the_window(setup: Setup) -> Stack:
    class Floods(Ring):
        def early(self, token: Token, source: Source) -> list[Held]:
            new = self._number(source, source.waiting(), token.seq + self.ahead)
            self.ahead += len(new)
            return new

    return totem(setup, ring=Floods)


@mutant(
    "linger_for_ever", "totem", AREA, "a lone speaker keeps the token until another one asks for it",
    scenario="lone_speaker",
)  # fmt: skip
def linger_for_ever(setup: Setup) -> Stack:
    class Keeps(Turning):
        def take(self, now: Nanoseconds) -> list[Action]:
            out = super().take(now)
            if not self.hand.lingers:
                return out
            return [action for action in out if not (isinstance(action, SetTimer) and action.name == "hold")]

    return totem(setup, turn=Keeps)


@mutant(
    "linger_though_safe_waits",
    "totem",
    AREA,
    "a lone speaker keeps the token though a frame waits to become safe",
    scenario="lone_safe",
)
def linger_though_safe_waits(setup: Setup) -> Stack:
    class Keeps(Turning):
        def _lone_speaker(self, ring: Ring, token: Token) -> bool:
            mine = (
                self.hand.speaker == self.me
                and ring.my_trc > 0
                and self.options.hold_after > 0
                and not self.sender.leaving
            )
            calm = not token.rtr and token.aru_id is None and token.room is None
            return mine and calm and ring is self.rings.ring and self.rings.attempt is None

        def _early(self, now: Nanoseconds) -> list[Action]:
            ring, token = self.rings.ring, self.hand.held
            assert token is not None
            out: list[Action] = []
            self._originate(ring, ring.early(token, self.sender), out)
            return out + self.deliver()

    return totem(setup, turn=Keeps)


@mutant(
    "linger_not_called_off",
    "totem",
    AREA,
    "a lone speaker goes on when another one calls the token off",
    scenario="lone_caller",
)
def linger_not_called_off(setup: Setup) -> Stack:
    class Deaf(Turning):
        def hold_cancel(self, now: Nanoseconds, source: Peer, packet: HoldCancel) -> list[Action]:
            return [] if self.hand.lingers else super().hold_cancel(now, source, packet)

    return totem(setup, turn=Deaf)


@mutant("ring_frames_of_others_kept", "totem", AREA, "frames of an earlier ring are taken for frames of this one")
def ring_frames_of_others_kept(setup: Setup) -> Stack:
    class Mixes(Turning):
        def data(self, now: Nanoseconds, source: Peer, data: Data, out: list[Action]) -> None:
            super().data(now, source, replace(data, ring=self.rings.ring.id), out)

    return totem(setup, turn=Mixes)


@mutant("flow_sent_never_forgotten", "totem", AREA, "what a member sent at its last visit stays on the token's count")
def flow_sent_never_forgotten(setup: Setup) -> Stack:
    class Bears(Ring):
        def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
            visit = super().visit(token, source, exchange)
            self.my_trc = 0
            return visit

    return totem(setup, ring=Bears)


@mutant(
    "flow_one_frame_a_rotation", "totem", AREA, "a rotation has room for one frame: one sender starves the others",
    scenario="lone_speaker",
)  # fmt: skip
def flow_one_frame_a_rotation(setup: Setup) -> Stack:
    class Narrow(Rings):
        def _make(self, id: ViewId, members: tuple[MemberId, ...]) -> Ring:
            self.limits = replace(self.limits, max_messages=1, window_size=1)
            return super()._make(id, members)

    return totem(setup, rings=Narrow)


@mutant("hold_for_ever", "totem", AREA, "an idle token rests until somebody has something to send")
def hold_for_ever(setup: Setup) -> Stack:
    class Keeps(Turning):
        def take(self, now: Nanoseconds) -> list[Action]:
            out = super().take(now)
            if self.hand.held is None or self.hand.lingers:
                return out
            return [action for action in out if not (isinstance(action, SetTimer) and action.name == "hold")]

    return totem(setup, turn=Keeps)


@mutant("alone_never_visits", "totem", AREA, "the token of a ring of one rests for ever")
def alone_never_visits(setup: Setup) -> Stack:
    class Rests(Turning):
        def _pass(self, now: Nanoseconds, ring: Ring, token: Token) -> list[Action]:
            out = super()._pass(now, ring, token)
            done = self.rings.attempt is None and len(ring.members) == 1
            return [] if done else out

    return totem(setup, turn=Rests)


@mutant("ring_numbers_wrap", "totem", AREA, "numbers of frames are kept in 31 bits")
def ring_numbers_wrap(setup: Setup) -> Stack:
    class Wraps(Ring):
        def receive(self, data: Held) -> bool:
            return super().receive(replace(data, seq=data.seq % 2**31) if data.seq >= 2**31 else data)

    return totem(setup, ring=Wraps)


@mutant(
    "ring_requests_ignored", "totem", AREA, "what is asked for on the token is never sent again", scenario="one_lost"
)
def ring_requests_ignored(setup: Setup) -> Stack:
    class Deaf(Ring):
        def _resend(self, rtr: tuple[int, ...], allowed: int) -> tuple[list[Held], list[int]]:
            return [], [seq for seq in rtr if seq > self.released]

    return totem(setup, ring=Deaf)


@mutant("ring_holes_not_asked_for", "totem", AREA, "a member does not ask for what it lacks", scenario="one_lost")
def ring_holes_not_asked_for(setup: Setup) -> Stack:
    class Shy(Ring):
        def _ask(self, rest: list[int], seq_in: int) -> None:
            return

    return totem(setup, ring=Shy)


@mutant("ring_duplicates_kept", "totem", AREA, "a frame that was here before is kept and delivered again")
def ring_duplicates_kept(setup: Setup) -> Stack:
    class Keeps(Ring):
        def receive(self, data: Held) -> bool:
            if data.seq <= self.delivered and type(data) is Data:
                self.twice = [*getattr(self, "twice", []), data]
            return super().receive(data)

        def deliver(self) -> list[Held]:
            twice, self.twice = getattr(self, "twice", []), []
            return twice + super().deliver()

    return totem(setup, ring=Keeps)


@mutant("ring_own_at_once", "totem", AREA, "a sender delivers its own agreed frame when it numbers it")
def ring_own_at_once(setup: Setup) -> Stack:
    class Early(Turning):
        def _originate(self, ring: Ring, new: list[Held], out: list[Action]) -> None:
            before = len(out)
            super()._originate(ring, new, out)
            for action in out[before:]:
                if isinstance(action, Originate) and action.frame.service != SAFE:
                    out.append(Up(Ordered(action.frame)))

        def deliver(self) -> list[Action]:
            return [
                action for action in super().deliver()
                if not (isinstance(action, Up) and isinstance(action.event, Ordered)
                        and action.event.frame.sender == self.me and action.event.frame.service != SAFE)
            ]  # fmt: skip

    return totem(setup, turn=Early)


@mutant("ring_room_ignored", "totem", AREA, "free space at the application, once gone, is never given back to the ring")
def ring_room_ignored(setup: Setup) -> Stack:
    class Stingy(Rings):
        def give_room(self, frames: int) -> None:
            super().give_room(frames if self.room is None else min(frames, self.room))

    return totem(setup, rings=Stingy)
