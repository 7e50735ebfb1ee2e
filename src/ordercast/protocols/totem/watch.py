"""What a member notices at its token visits: a receiver that is stuck, a reader that is, how long a rotation takes.

Differs from the papers:
  D1  The stuck receiver (aru unmoved for T with the same member named as the one that keeps it down) is voted out by
      the others instead of declaring itself failed; and the time counts only over several visits, so that one long
      pause of the token accuses nobody.
"""

from __future__ import annotations

from ordercast.protocols.totem.packets import Token
from ordercast.types import MemberId, Nanoseconds

STUCK_VISITS = 4


class Watch:
    """Of one ring."""

    def __init__(self, me: MemberId, timeout_ns: Nanoseconds) -> None:
        self.me, self.timeout_ns = me, timeout_ns
        self.mark: tuple[int, MemberId | None] = (0, None)  # aru, and who keeps it down
        self.since, self.visits = 0, 0  # of this mark
        self.visited_at = 0
        self.full: tuple[MemberId, Nanoseconds] | None = None  # whose application has no room left, and since when

    def stuck(self, now: Nanoseconds, token: Token) -> bool:
        """Whether the member named on the token I forward has kept aru down for too long."""
        mark = (token.aru, token.aru_id)
        if token.aru_id is None or mark != self.mark:
            self.mark, self.since, self.visits = mark, now, 0
            return False
        self.visits += 1
        return token.aru_id != self.me and self.visits >= STUCK_VISITS and now - self.since >= self.timeout_ns  # D1

    def reads(self, now: Nanoseconds, token: Token) -> None:
        """Whether somebody's application has stopped to read, as the token I forward says."""
        if token.room != 0 or token.room_id is None:
            self.full = None
        elif self.full is None or self.full[0] != token.room_id:
            self.full = (token.room_id, now)

    def rotation(self, now: Nanoseconds) -> Nanoseconds:
        """Time since my last visit; 0 at the first."""
        before, self.visited_at = self.visited_at, now
        return now - before if before else 0
