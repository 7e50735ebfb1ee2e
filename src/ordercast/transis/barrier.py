"""The barrier of a new view: a token that goes round its members until all are done, and once more to say so.

Who is done adds itself; the first to see that all are sets `install`.  Everybody installs when it comes and passes it
on once; so it stops after one rotation.  The representative holds it for T_sync at each turn while somebody is missing.
A copy is repeated until the next token, or a packet of the new view, is heard from the successor (membership/handover).
"""

from __future__ import annotations

from ordercast.contract import Action, dropped
from ordercast.transis.packets import FlushToken
from ordercast.types import MemberId, ViewId


class Barrier:
    """Of one attempt; it outlives the install, for the token's last rotation."""

    __slots__ = ("_next", "_told", "held", "me", "members", "number", "pending", "ring_id")

    def __init__(self, ring_id: ViewId, members: tuple[MemberId, ...], me: MemberId) -> None:
        self.ring_id, self.members, self.me = ring_id, members, me
        self._next = members[(members.index(me) + 1) % len(members)]
        self._told = False  # I have passed on that all are done
        self.number = -1  # of the last token taken
        self.pending: FlushToken | None = None  # came; is handled when the input is drained
        self.held: FlushToken | None = None  # rests with the representative

    def first(self) -> None:
        """The representative's: the commit token came back."""
        self.pending = FlushToken(self.ring_id, self.me, 0, ())

    def keep(self, token: FlushToken) -> list[Action]:
        """Take a token that came, unless it is not for me, or a copy."""
        done, newest = set(token.done), max(self.number, self.pending.number if self.pending is not None else -1)
        if not done <= set(self.members) or (token.install and len(done) != len(self.members)):
            return [dropped("flush token")]  # names strangers, or says too early that all are done
        if token.to == self.me and token.number > newest:
            self.pending = token
        return []

    def take(self) -> FlushToken:
        token = self.pending or self.held
        assert token is not None
        self.pending = self.held = None
        self.number = token.number
        return token

    def rests(self, token: FlushToken, done: bool) -> bool:
        """Whether the representative should hold it: somebody is missing, and it has been round."""
        return self.me == self.members[0] and token.number > 0 and not self._after(token, done).install

    def visit(self, token: FlushToken, done: bool) -> FlushToken | None:
        """The token as it goes on; None: it has said what it had to say."""
        if self._told:
            return None
        after = self._after(token, done)
        self._told = after.install
        return after

    def _after(self, token: FlushToken, done: bool) -> FlushToken:
        names = tuple(sorted({*token.done, self.me})) if done else token.done
        everybody = len(set(names)) == len(self.members)
        return FlushToken(self.ring_id, self._next, token.number + 1, names, token.install or everybody)
