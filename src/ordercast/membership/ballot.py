"""Gather's agreement: my proposal, what the others' Joins propose, and the commit token that waits for storage."""

from __future__ import annotations

from ordercast.membership.packets import CommitToken
from ordercast.types import MemberId, Nanoseconds


class Ballot:
    """A member set counts only if all of it propose it (and then accept the commit token)."""

    __slots__ = ("_newest", "agreed", "me", "pending", "proposal")

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.proposal: tuple[MemberId, ...] = ()  # empty: none
        self.pending: CommitToken | None = None  # for my proposal; waits for its ring number to be stored
        self.agreed: dict[MemberId, tuple[MemberId, ...]] = {}  # last proposal in a Join of each
        self._newest: dict[MemberId, tuple[int, Nanoseconds]] = {}  # number of each one's newest Join, when it came

    def void(self) -> None:
        """Gather begins, or starts over."""
        self.proposal, self.pending = (), None
        self.agreed.clear()

    def propose(self, members: tuple[MemberId, ...]) -> None:
        assert not members or self.me in members, "I am in every set I propose"
        self.proposal, self.pending = members, None

    def newer(self, now: Nanoseconds, q: MemberId, number: int, timeout_ns: Nanoseconds) -> bool:
        """Is this Join the newest of q?  One that was overtaken, within T, says nothing any more.

        A number that q never wrote does no lasting harm so."""
        newest, came = self._newest.get(q, (0, now))
        if number <= newest and now - came <= timeout_ns:
            return False
        self._newest[q] = number, now
        return True

    def note(self, q: MemberId, proposal: tuple[MemberId, ...]) -> None:
        self.agreed[q] = proposal

    def forget(self, q: MemberId) -> None:
        """A new life of q began."""
        self.agreed.pop(q, None)
        self._newest.pop(q, None)

    def dissenters(self) -> list[MemberId]:
        """Those of my proposal who have not said the same."""
        return [q for q in self.proposal if q != self.me and self.agreed.get(q) != self.proposal]

    def mine_to_commit(self) -> bool:
        """Everybody agreed and I am the smallest: the representative."""
        return bool(self.proposal) and self.proposal[0] == self.me and not self.dissenters()
