"""One attempt at a new ring: from the commit token that names its members to the install of its view.

Given up, it leaves nothing behind but what the exchange put into the old ring's store (and who is obliged to whom).
"""

from __future__ import annotations

from ordercast.contract import Action, Note, Ordered, Up, ViewChange
from ordercast.membership import Committed
from ordercast.protocols.totem.packets import Data, RingEntry
from ordercast.protocols.totem.recovery import Exchange, recovery_plan
from ordercast.protocols.totem.ring import Ring
from ordercast.types import MemberId, View, ViewId, ViewKind


class Attempt:
    """The new ring, what the entries said, and the exchange."""

    def __init__(self, old: Ring, new: Ring, committed: Committed, entries: list[RingEntry], ring_number: int) -> None:
        self.old, self.new, self.committed, self.ring_number = old, new, committed, ring_number
        self.entries = dict(zip(committed.members, entries, strict=True))
        self.plan = recovery_plan(old.id, self.entries, old.store, old.high)
        self.exchange = Exchange(old, self.plan)

    def install(self) -> list[Action]:
        """The old ring's last frames, the transitional view with its own, and the new view: one step."""
        regular, transitional, discarded = self.exchange.install()
        trans, cause, id = self.plan.transitional, self.committed.cause, self.new.id
        previous = self.old.id if self.old.id.seq else None
        out = self._ordered(regular)
        if previous is not None:
            was = self.old.primary
            out.append(Up(ViewChange(View(id, ViewKind.TRANSITIONAL, trans, trans, (), previous, cause, was))))
            out += self._ordered(transitional)
        else:
            trans = ()
        members, primary = self.new.members, self.new.primary
        view = View(id, ViewKind.REGULAR, members, trans, self._components(), previous, cause, primary)
        out.append(Up(ViewChange(view)))
        exchange = self.exchange
        fields = {"sent": exchange.sent, "spared": exchange.spared, "got": exchange.got, "discarded": discarded}
        out.append(Note("install", fields))
        return out

    def _ordered(self, frames: list[Data]) -> list[Action]:
        epoch, number = self.old.id.seq, self.ring_number
        return [Up(Ordered(data.frame, epoch, data.seq, None, number, data.stamp, data.source)) for data in frames]

    def _components(self) -> tuple[tuple[ViewId | None, tuple[MemberId, ...]], ...]:
        """The old views behind the new one."""
        by_ring: dict[ViewId, list[MemberId]] = {}
        for member, entry in self.entries.items():
            by_ring.setdefault(entry.ring, []).append(member)
        return tuple((ring if ring.seq else None, tuple(members)) for ring, members in sorted(by_ring.items()))
