"""The order on one ring: token visits, delivery, release.  No clock, no timers, no membership.

Paper: "Performance engineering of the Totem group communication system" (1998), section 2.1, after Amir, Moser,
Melliar-Smith, Agarwal, Ciarfella, "The Totem single-ring ordering and membership protocol" (1995).

Who holds the token numbers frames; aru on the token is the mark up to which everybody may have everything.  Whoever
lacks a frame lowers aru below it during the next rotation and nobody else can raise it, so what stays below aru on two
visits running is held by all: *safe*.

Differs from the papers:
  D1  With nobody named as the one who lowered aru, the mark runs along with seq.
  D2  Requests for frames known to be safe are taken off the token: everybody has them, nobody keeps them.
  D3  Holes are asked for when the token has shown them `request_lag` visits earlier (0: at once; the accelerated ring
      needs 1, because its last frames follow the token; networks on which a token overtakes frames may need more).
  D4  No new frames while `buffer_frames` of them are not yet safe: the store is bounded.
  D5  A visit may last: frames numbered `early` leave at once, while the token stays in hand, and count as sent at the
      visit that ends it.
  D6  A frame that I sent again at my last visit and that is asked for once more is left to another: my multicasts may
      not reach who asks, and its successor would serve every request for ever.  If that is so of all that I sent again,
      I send nothing at this visit: else, with more requests than the window has room for, mine would fill it at every
      rotation and nobody else could serve them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ordercast.limits import LARGE_FRAMES_MAX
from ordercast.protocols.totem.flow import Limits, allowance, least_room
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.packets import Data, Recovered, Token
from ordercast.types import Frame, Incarnation, MemberId, Service, ViewId

SAFE = int(Service.SAFE)
Held = Data | Recovered


class Stamped(Struct, frozen=True, gc=False):
    """A frame that keeps the place it was given on another ring (several rings joined by gateways)."""

    frame: Frame
    stamp: int
    source: int


Item = Frame | Stamped | Data  # Data: a frame of the old ring, to be carried on this one


class Source(Protocol):
    """Where new frames come from: the Outbox, or the exchange of a recovery."""

    def waiting(self) -> int: ...

    def take(self, n: int) -> Sequence[Item]: ...


class Exchanging(Source, Protocol):
    """The exchange of a recovery; see `recovery.Exchange`."""

    def flag(self, retrans_flg: bool) -> bool: ...


class Visit(Struct, frozen=True, gc=False):
    """What one token visit sends, in this order, and the token that goes on."""

    resent: list[Held]
    new: list[Held]
    token: Token


class Ring:
    """One member's state of one ring."""

    def __init__(
        self,
        id: ViewId,
        me: MemberId,
        members: tuple[MemberId, ...],
        limits: Limits,
        *,
        first_seq: int = 0,
        request_lag: int = 0,
        hold_safe: bool = True,
        stamps: bool = False,
        source: int = 0,
        lamport: Lamport | None = None,
    ) -> None:
        assert me in members and list(members) == sorted(members)
        self.id, self.me, self.members, self.limits = id, me, members, limits
        self.next = members[(members.index(me) + 1) % len(members)]
        self.before = members[members.index(me) - 1]
        self.lives: dict[MemberId, Incarnation] = {}  # of those whose frames are on it; empty: not known
        self.near = min(LARGE_FRAMES_MAX, 4 * limits.buffer_frames)  # so far ahead frames of any size are kept
        self.store: dict[int, Held] = {}  # received, not yet released
        self.my_aru = self.high = first_seq  # received without a hole; highest number seen
        self.delivered = self.released = self.safe_upto = first_seq
        self.last_aru = first_seq  # aru as forwarded last time
        self.my_token_seq = -1
        self.my_trc = self.my_pbl = 0  # my transmissions, my queue at the last visit
        self.ahead = 0  # frames numbered early on the token in hand
        self.again: set[int] = set()  # sent again at the last visit
        self.starved = False  # at the last visit something waited and nothing was allowed, where rings are joined
        self.room: int | None = None  # free delivery space; None: no limit
        self.primary: bool | None = None  # whether the view is, where a policy says
        self.asked: set[int] = set()  # holes I have asked for
        self.repeated: Counter[MemberId] = Counter()  # those that came then, by who had sent them first
        self.lag: deque[int] = deque([first_seq] * request_lag, request_lag)  # seq as received at the last visits
        self.hold_safe = hold_safe  # safe frames wait here (else the layer above decides)
        self.stamps, self.source = stamps, source
        self.lamport = lamport or Lamport()
        self.urgent: Callable[[], int] | None = None  # of what waits, how much no reader's lack of room holds back
        self.first: Callable[[], bool] | None = None  # whether what is first of it must leave at the next visit

    @property
    def clock(self) -> int:
        return self.lamport.clock

    # -------------------------------------------------------------------------------------------------------- receive

    def receive(self, data: Held) -> bool:
        """Keep a frame of this ring; False if it is here already, or was."""
        seq, store = data.seq, self.store
        if seq <= self.my_aru or seq in store:
            return False
        store[seq] = data
        if self.asked and seq in self.asked:
            self.asked.discard(seq)
            self.repeated[(data.old if isinstance(data, Recovered) else data).frame.sender] += 1
        if seq > self.high:
            self.high = seq
        if seq == self.my_aru + 1:
            self._advance()
        if self.stamps and type(data) is Data:
            self.lamport.receive(data.stamp)
        return True

    def _advance(self) -> None:
        seq, store = self.my_aru + 1, self.store
        while seq in store:
            seq += 1
        self.my_aru = seq - 1

    def far(self, seq: int, frame: Frame) -> bool:
        """Whether a number is too far ahead; one far ahead is kept only with a frame no larger than mine are."""
        ahead, limits = seq - self.released, self.limits
        return ahead > self.near and (ahead > 4 * limits.buffer_frames or len(frame.data) > limits.frame_bytes)

    def doubt(self, seq: int, frame: Frame) -> str:
        """Why a frame must not be kept; empty: it may be.  A number not absurdly far ahead, of this ring's lives."""
        if seq - self.released > self.near and self.far(seq, frame):
            return "number"
        lives = self.lives
        return "origin" if lives and lives.get(frame.sender) != frame.incarnation else ""

    # ---------------------------------------------------------------------------------------------------------- visit

    def accepts(self, token: Token) -> bool:
        """Kills repeated copies, tokens of other rings, and one that knows less than was already numbered."""
        return token.ring == self.id and token.token_seq > self.my_token_seq and token.seq + self.ahead >= self.high

    def past(self, token: Token, source: int) -> int:
        """With an accepted token in hand: of frames of that source, this ring's own, none that changes process groups
        and has not gone up is stamped so or earlier.  0: not known."""
        if self.my_aru < token.seq:
            return 0
        for seq in range(self.delivered + 1, self.my_aru + 1):
            held = self.store[seq]
            if type(held) is Data and held.source == source and held.frame.control:
                return held.stamp - 1
        return max(self.clock - 1, token.timestamp)

    def early(self, token: Token, source: Source) -> list[Held]:
        """Number new frames on an accepted token that stays in hand (D5)."""
        window = self.limits.window_size if token.room is None else min(token.room, self.limits.window_size)
        if self.stamps:
            self.lamport.receive(token.timestamp)
        waiting = source.waiting() + self.ahead
        allowed = allowance(self.limits, window, token.fcc, self.my_trc, token.backlog, waiting, self.my_pbl)
        new = self._number(source, self._least(allowed, token.seq), token.seq + self.ahead)
        self.ahead += len(new)
        return new

    def _least(self, allowed: int, seq_in: int) -> int:
        """New frames that may leave now, of those a visit is allowed."""
        return min(allowed, self.released + self.limits.buffer_frames - seq_in) - self.ahead

    def visit(self, token: Token, source: Source, exchange: Exchanging | None = None) -> Visit:
        """Handle an accepted token, steps 2 to 10; the caller transmits what comes out, then delivers.

        In recovery new frames come from `exchange`, never from `source`.
        """
        limits, seq_in = self.limits, token.seq
        self.my_token_seq = token.token_seq
        if seq_in > self.high:
            self.high = seq_in
        if exchange is not None:
            source = exchange
        my_backlog = source.waiting() + self.ahead
        window = limits.window_size
        allowed = allowance(limits, window, token.fcc, self.my_trc, token.backlog, my_backlog, self.my_pbl)
        if self.urgent is not None and exchange is None:
            if allowed == 0 and (self.starved or self.urgent()):
                allowed = 1  # what joins rings starves beside nobody, and nobody beside it
            self.starved = allowed == 0 and my_backlog > 0
        first = int(exchange is None and self.first is not None and self.first())  # ahead of what goes again
        in_vain = self._in_vain(token.rtr)
        resent, rest = self._resend(token.rtr, 0 if in_vain else allowed - first)
        if token.room is not None and exchange is None and token.room < window:
            most = allowed if self.urgent is not None else 0
            allowed = allowance(limits, token.room, token.fcc, self.my_trc, token.backlog, my_backlog, self.my_pbl)
            if self.urgent is not None:
                allowed = max(allowed, min(most, self.urgent()))
        if self.stamps:
            self.lamport.receive(token.timestamp)
        ahead, n = self.ahead, self._least(first if in_vain else allowed - len(resent), seq_in)
        new = self._number(source, n, seq_in + ahead)
        seq = seq_in + ahead + len(new)
        sent = len(resent) + ahead + len(new)
        self.ahead = 0
        assert sent <= limits.max_messages, "P4: above the window of one visit"
        if self.my_aru < seq_in:
            self._ask(rest, seq_in)
        elif self.lag:
            self.lag.append(seq_in)
        assert len(rest) <= max(limits.rtr_max, len(token.rtr)), "P5: more requests than allowed"
        aru, aru_id = self._mark(token, seq)
        assert aru <= seq, "P3: aru above seq"
        free = None if self.room is None else max(0, self.room - (self.high - self.delivered))
        room, room_id = least_room(token.room, token.room_id, self.me, free, window)
        fcc = max(0, token.fcc + sent - self.my_trc)
        backlog = max(0, token.backlog + my_backlog - self.my_pbl)
        self.my_trc, self.my_pbl = sent, my_backlog
        self.safe_upto = max(self.safe_upto, min(self.last_aru, aru))
        assert self.released <= self.safe_upto <= self.my_aru, "P6: released <= safe_upto <= my_aru"
        self.last_aru = aru
        stamp = self.lamport.send() if self.stamps else 0
        return Visit(
            resent,
            new,
            Token(
                self.id, self.next, token.token_seq + 1, seq, aru, aru_id, tuple(rest), fcc, backlog, room, room_id,
                exchange is not None and exchange.flag(token.retrans_flg), stamp,
            ),
        )  # fmt: skip

    def _in_vain(self, rtr: tuple[int, ...]) -> bool:
        """D6: all that I sent again at my last visit is asked for once more."""
        return bool(self.again) and len(self.members) > 2 and self.again.issubset(rtr)

    def _resend(self, rtr: tuple[int, ...], allowed: int) -> tuple[list[Held], list[int]]:
        """Step 3: what I hold of the requests, up to the allowance; and the rest."""
        resent: list[Held] = []
        rest: list[int] = []
        if not rtr:
            self.again.clear()
            return resent, rest
        others = self.again if len(self.members) > 2 else ()  # D6
        self.again = set()
        for seq in rtr:
            held = self.store.get(seq) if len(resent) < allowed and seq not in others else None
            if held is not None:
                resent.append(held)
                self.again.add(seq)
            elif seq > self.released:  # D2
                rest.append(seq)
        return resent, rest

    def _number(self, source: Source, n: int, seq: int) -> list[Held]:
        """Step 4: the next n frames get their numbers; my own copy is kept at once."""
        if n <= 0:
            return []
        new: list[Held] = []
        store, contiguous = self.store, self.my_aru == seq
        for item in source.take(n):
            seq += 1
            assert seq not in store, "P2: a number names one frame"
            data: Held
            if type(item) is Frame:
                stamped = self.stamps
                data = Data(self.id, seq, item, self.lamport.send() if stamped else 0, self.source if stamped else 0)
            elif type(item) is Data:
                data = Recovered(self.id, seq, item)
            else:
                assert type(item) is Stamped
                data = Data(self.id, seq, item.frame, item.stamp, item.source)
            store[seq] = data
            new.append(data)
        self.high = max(self.high, seq)
        if contiguous:
            self.my_aru = seq
        return new

    def _ask(self, rest: list[int], seq_in: int) -> None:
        """Step 5: my holes join the requests, ascending, without repetition, up to the bound."""
        upto = seq_in
        if self.lag:
            upto = min(upto, self.lag[0])  # D3
            self.lag.append(seq_in)
        room = self.limits.rtr_max - len(rest)
        asked = set(rest)
        store = self.store
        for seq in range(self.my_aru + 1, upto + 1):
            if room <= 0:
                return
            if seq not in store:
                self.asked.add(seq)
                if seq not in asked:
                    rest.append(seq)
                    room -= 1

    def _mark(self, token: Token, seq: int) -> tuple[int, MemberId | None]:
        """Step 6: only the one who lowered aru raises it; with nobody named it runs along with seq (D1)."""
        if self.my_aru < token.aru or token.aru_id == self.me or token.aru_id is None:
            return self.my_aru, None if self.my_aru == seq else self.me
        return token.aru, token.aru_id

    # -------------------------------------------------------------------------------------------------------- deliver

    def deliver(self) -> list[Held]:
        """Frames that go up now, in order; safe ones, and all behind them, wait until they are safe."""
        out: list[Held] = []
        seq, last, store = self.delivered, self.my_aru, self.store
        bound = self.safe_upto if self.hold_safe else last
        while seq < last:
            held = store[seq + 1]
            if seq >= bound and type(held) is Data and held.frame.service == SAFE:
                break
            seq += 1
            out.append(held)
        self.delivered = seq
        return out

    def release(self) -> None:
        """Forget what is safe and delivered, never what is merely delivered."""
        upto = min(self.safe_upto, self.delivered)
        seq, pop = self.released, self.store.pop
        while seq < upto:
            seq += 1
            pop(seq)
        self.released = seq
