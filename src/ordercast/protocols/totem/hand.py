"""What a member has of the token: one that came, one that rests, and what it knows of the one it passed on."""

from __future__ import annotations

from collections import deque

from ordercast.protocols.totem.packets import Token
from ordercast.types import MemberId, Nanoseconds

NOBODY: MemberId = 0
LONE = 3  # rotations with one speaker only, until it keeps the token
LINGER = 16  # rotations for which a lone speaker keeps it
REPAIRS = 6  # times as many rotations until a token with requests rests: they are served first, but not for ever


class Hand:
    """Of one ring; a new one for every ring."""

    __slots__ = (
        "cancelled", "eager", "held", "idle", "idle_seq", "lingers", "lone", "passed", "passed_at", "passed_seq",
        "pending", "promises", "speaker",
    )  # fmt: skip

    def __init__(self) -> None:
        self.pending: Token | None = None  # came; is handled when the input is drained
        self.held: Token | None = None  # rests until there is something to do
        self.lingers = False  # it rests with a lone speaker, whose frames leave at once
        self.passed, self.passed_seq = False, -1  # one is on its way, not yet known to have arrived; its seq
        self.passed_at: Nanoseconds = 0
        self.speaker: MemberId = NOBODY  # who sent the newest frame
        self.lone = 0  # visits since another did
        self.idle, self.idle_seq = 0, -1  # visits in a row without a new frame
        self.cancelled = False  # hold cancel was said since the last visit
        self.eager = False  # accelerated: the predecessor's next round has begun, its token goes first
        self.promises: deque[Token] = deque()  # passed on before all it counts had come

    def keep(self, token: Token) -> bool:
        """Take a token that came, unless it is a copy of the one in hand."""
        mine = self.pending or self.held
        if mine is not None and token.token_seq <= mine.token_seq:
            return False
        self.pending = token
        return True

    def may_rest(self, token: Token, hold_after: int) -> bool:
        """Count a visit; whether the ring has been idle for long enough."""
        self.idle = self.idle + 1 if token.seq == self.idle_seq else 0
        self.idle_seq = token.seq
        if token.rtr or token.aru < token.seq:
            hold_after *= REPAIRS
        return 0 < hold_after <= self.idle

    def heard(self, sender: MemberId) -> None:
        """A new frame, of mine or another's."""
        if sender != self.speaker:
            self.speaker, self.lone = sender, 0

    def linger(self, now: Nanoseconds, most: Nanoseconds) -> Nanoseconds:
        """Until when a lone speaker keeps the token that came: the time of some rotations."""
        return now + min(most, LINGER * (now - self.passed_at))

    def may_be_resting(self, me: MemberId, hold_after: int) -> bool:
        """As far as I can know, the representative or a lone speaker keeps the token; nobody of us called it off."""
        if self.cancelled or hold_after == 0:
            return False
        return hold_after <= self.idle + 1 or (self.lone >= LONE - 1 and self.speaker not in (NOBODY, me))

    def arrived(self, seq: int) -> bool:
        """A frame numbered above the token passed on shows that it has arrived; true the first time."""
        if self.passed and seq > self.passed_seq:
            self.passed = False
            return True
        return False

    def visited(self) -> None:
        self.cancelled = self.eager = False
        self.lone += 1

    def pass_on(self, now: Nanoseconds, token: Token) -> None:
        self.passed, self.passed_seq, self.passed_at = True, token.seq, now

    def promised(self, token: Token) -> None:
        """Nothing of this ring that is stamped so or earlier comes above its seq."""
        if self.promises and self.promises[-1].seq == token.seq:
            self.promises.pop()
        self.promises.append(token)

    def kept(self, upto: int) -> Token | None:
        """The last token passed on of which everything has come, if that is news."""
        token: Token | None = None
        while self.promises and self.promises[0].seq <= upto:
            token = self.promises.popleft()
        return token

    def empty(self) -> Token | None:
        """Let go of the token that rests."""
        held, self.held, self.lingers = self.held, None, False
        return held
