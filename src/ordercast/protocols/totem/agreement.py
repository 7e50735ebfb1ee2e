"""How members of several rings agree on the next topology: everybody says where it stands, and when it is ready.

When a ring changes, its members stop, and say so (`State`); gateways carry that everywhere, and whoever hears of a
change in its topology stops and says where it stands as well.  As soon as everybody on every ring that hangs together
has spoken, all can tell the same topology and the same plan (`topology.next_topology`): who sends again which frames of
an old topology that others lack.  Who has all that it needs says Done; who heard it of everybody goes on.  A further
change on the way is a new beginning; what was sent again until then is kept.

So an old topology ends for all who come along with the same frames, as a ring does (`recovery`): before anybody goes
on, all hold all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.contract import Ordered
from ordercast.protocols.totem.bodies import Bodies, Done, RingView, State, Supply
from ordercast.protocols.totem.guarantee import Merge
from ordercast.protocols.totem.topology import NextTopology, Old, Topology, connected, next_topology
from ordercast.types import Frame, MemberId, ViewId


class Word(Struct, frozen=True):
    """The newest state of a member, and the frame it came in."""

    incarnation: int
    state: State
    frame: Frame


class Supplies:
    """What one member sends again for one plan."""

    def __init__(self, incarnation: int, first: Supply) -> None:
        self.age, self.key, self.total = (incarnation, first.stamp), first.key, first.total
        self.items: dict[int, Supply] = {}

    @property
    def whole(self) -> bool:
        return len(self.items) >= self.total


class Agreement:
    """Of one member."""

    def __init__(self, me: MemberId) -> None:
        self.me = me
        self.words: dict[MemberId, Word] = {}
        self.spent: set[MemberId] = set()  # a topology was made from their words: they count no more
        self.done: dict[MemberId, tuple[int, int, bytes]] = {}  # incarnation, stamp, key: the newest of each
        self.supplies: dict[MemberId, Supplies] = {}
        self.plan: NextTopology | None = None
        self.missing: MemberId | None = None  # whose word is awaited
        self.said = b""  # the key I said Done for last
        self.sent = b""  # the key I supplied for last
        self.promised: set[ViewId] = set()  # topologies I was ready for since I spoke last: somebody may be in them
        self.extra: tuple[frozenset[int], ...] = ()  # stamps behind holes, as in my own word
        self._made: tuple[tuple[RingView, ...], list[int]] = ((), [])  # what the plan was made from

    # ----------------------------------------------------------------------------------------------------------- words

    def hear(self, frame: Frame, body: Bodies) -> bool:
        """Keep it if it is news."""
        author, life = frame.sender, frame.incarnation
        if type(body) is State:
            known = self.words.get(author)
            if known is not None and (known.incarnation, known.state.stamp) >= (life, body.stamp):
                return False
            self.words[author] = Word(life, body, frame)
            self.spent.discard(author)
        elif type(body) is Done:
            if self.done.get(author, (0, 0, b"")) >= (life, body.stamp, body.key):
                return False
            self.done[author] = (life, body.stamp, body.key)
        else:
            assert type(body) is Supply
            return self._supplied(author, life, body)
        return True

    def _supplied(self, author: MemberId, life: int, body: Supply) -> bool:
        known = self.supplies.get(author)
        if known is not None and known.age > (life, body.stamp):
            return False
        if known is None or known.age < (life, body.stamp):
            known = self.supplies[author] = Supplies(life, body)
        if body.index in known.items or body.total != known.total or body.key != known.key:
            return False
        if known.total == 0:
            known.items[0] = body
            return True
        known.items[body.index] = body
        return True

    # ------------------------------------------------------------------------------------------------------------ plan

    def make(self, rings: Iterable[RingView], was: dict[ViewId, Topology]) -> bool:
        """Whether everybody has spoken; then `plan` says what follows."""
        states = {member: word.state for member, word in self.words.items() if member not in self.spent}
        found, self.missing = connected(rings, states)
        if not found:
            self.plan = None
            return False
        words = [states[member].stamp for ring in found for member in ring.members]
        if self.plan is None or (found, words) != self._made:
            self.plan, self._made = next_topology(found, states, was), (found, words)
        return True

    def supplied(self, old: Old) -> bool:
        """Whether all that others send again for my old topology is here."""
        assert self.plan is not None
        key = self.plan.key
        for member in old.supply:
            sent = self.supplies.get(member)
            if member != self.me and (sent is None or sent.key != key or not sent.whole):
                return False
        return True

    def supply(self, old: Old, merge: Merge, stamp: int) -> list[Supply]:
        """What I send again, if I am one of those who do."""
        assert self.plan is not None
        key, items = self.plan.key, []
        known = self.words[self.me].state.known
        for source in old.supply[self.me]:
            kept = merge.kept[source]
            low, high, extra = old.low[source], known[source], self.extra[source]
            items += [(source, event) for at, event in sorted(kept.items()) if low < at <= high or at in extra]
        total = len(items)
        if not items:
            return [Supply(stamp, key, 0)]
        return [
            Supply(
                stamp, key, total, index, old.view, source, event.stamp, event.ring, event.epoch, event.seq, event.frame
            )
            for index, (source, event) in enumerate(items)
        ]

    def received(self, view: ViewId) -> Iterator[tuple[int, Ordered]]:
        """All frames of a topology that were sent again, with their sources, for whichever plan."""
        for sent in self.supplies.values():
            for item in sent.items.values():
                if item.view == view and item.frame is not None:
                    place = (item.frame, item.epoch, item.seq, None, item.ring, item.at, item.source + 1)
                    yield item.source, Ordered(*place)

    def beyond(self, old: Old) -> set[tuple[int, int]]:
        """Frames behind holes that all who come along hold: what the suppliers of this plan have."""
        assert self.plan is not None
        out: set[tuple[int, int]] = set()
        for member in old.supply:
            if member != self.me:
                out |= {(item.source, item.at) for item in self.supplies[member].items.values()}
        others = {source for member, sources in old.supply.items() if member != self.me for source in sources}
        mine = set(old.supply.get(self.me, ())).union(set(range(len(self.extra))) - others)  # or all have the same
        return out | {(source, stamp) for source in mine for stamp in self.extra[source]}

    def ready(self) -> bool:
        """Whether all have said Done to the plan."""
        plan = self.plan
        if plan is None:
            return False
        return all(self.done.get(member, (0, 0, b""))[2] == plan.key for member in plan.topology.members)

    def clear(self) -> None:
        """The topology was installed: nobody asks for what was sent again before it."""
        assert self.plan is not None
        self.spent.update(self.plan.topology.members)
        self.supplies.clear()
        self.plan, self.said, self.sent = None, b"", b""
