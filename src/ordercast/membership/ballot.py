"""Gather's agreement: my proposal, and what the others' Joins propose."""

from __future__ import annotations

from ordercast.types import MemberId


class Ballot:
    """A member set counts only if all of it propose it (and then accept the commit token)."""

    __slots__ = ("agreed", "me", "proposal")

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.proposal: tuple[MemberId, ...] = ()  # empty: none
        self.agreed: dict[MemberId, tuple[MemberId, ...]] = {}  # last proposal in a Join of each

    def void(self) -> None:
        """Gather begins, or starts over."""
        self.proposal = ()
        self.agreed.clear()

    def propose(self, members: tuple[MemberId, ...]) -> None:
        assert not members or self.me in members, "I am in every set I propose"
        self.proposal = members

    def note(self, q: MemberId, proposal: tuple[MemberId, ...]) -> None:
        self.agreed[q] = proposal

    def forget(self, q: MemberId) -> None:
        self.agreed.pop(q, None)

    def dissenters(self) -> list[MemberId]:
        """Those of my proposal who have not said the same."""
        return [q for q in self.proposal if q != self.me and self.agreed.get(q) != self.proposal]

    def mine_to_commit(self) -> bool:
        """Everybody agreed and I am the smallest: the representative."""
        return bool(self.proposal) and self.proposal[0] == self.me and not self.dissenters()
