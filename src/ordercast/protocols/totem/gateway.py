"""A member's place in a topology: which frames it carries from ring to ring, to whom, and what it tells behind them.

Paper: "Performance engineering of the Totem group communication system" (1998), sections 2.2 and 3.2.

A gateway takes the frames of one of its rings in their order there, and queues them for another with the same timestamp
and source.  For each source there is one way to each ring (`topology.Route`), so no frame comes twice to a ring.  A
Guarantee Vector message goes behind what was forwarded, as soon as somebody waits for it.

Differs from the paper:
  D1  A vector message is sent only where the promises told so far are below the latest stamp that anybody waits for:
      idle rings fall silent.
  D2  A frame for process groups waits at the gateway until its place in the order is known, because only then it is
      known who is in them; and where there is more than one way between two rings nothing is filtered, so that whoever
      takes over a way has all that went by it.
  D3  While such a frame waits, a vector message tells more of what changes groups than of all frames: gateways that
      wait for each other's frames would take turns.
  D4  The clock of a gateway runs with time while it has the token of a ring from which it begins the longest way
      (`Lamport.run`).  Of each ring one does: what two raise stamps higher, and who stamps high waits long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.joining import Audience
from ordercast.protocols.totem.bodies import Vector
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.guarantee import Merge
from ordercast.protocols.totem.topology import Route, Topology
from ordercast.types import Frame, MemberId, ViewId


class Carrying:
    """What one member does for others in one topology.

    mine: ring of mine, numbered as a child of the layer -> its number in the topology; None: it has no view yet.
    """

    def __init__(
        self, me: MemberId, view: ViewId, topology: Topology, mine: Sequence[int | None], merge: Merge,
        feeds: Sequence[Feed],
    ) -> None:  # fmt: skip
        self.view, self.topology, self.mine, self.merge, self.feeds = view, topology, mine, merge, feeds
        sources = len(topology.rings)
        place = {ring: child for child, ring in enumerate(mine) if ring is not None}
        self.onward: list[list[list[int]]] = [[[] for _ in range(sources)] for _ in mine]  # child, source -> children
        self.into: list[list[tuple[int, int]]] = [[] for _ in mine]  # child -> sources I bring to it, from which child
        self.mine_into: set[tuple[int, int]] = set()  # source, child
        self.audience: dict[tuple[int, int], frozenset[MemberId]] = {}  # child, source -> who is behind it
        for source, route in enumerate(topology.routes):
            for ring, child in place.items():
                if route.gateway[ring] == me:
                    origin = place[route.parent[ring]]
                    self.onward[origin][source].append(child)
                    self.into[child].append((source, origin))
                    self.mine_into.add((source, child))
                    behind = [m for other in route.beyond(ring) for m in topology.rings[other].members]
                    self.audience[child, source] = frozenset(behind)
        self.runs = [ring is not None and self._first_of_longest(topology.routes[ring]) == me for ring in mine]
        self.labels = [0 if ring is None else topology.label(ring) for ring in mine]
        self.need = 0  # the latest stamp that anybody waits for
        self.told_need = [0] * len(mine)
        self.promised = [[0] * sources for _ in mine]
        self.promised_controls = [[0] * sources for _ in mine]
        self.heard = [[list(merge.rows[0]) for _ in range(sources)] for _ in mine]  # rows, as told on each ring of mine
        self._due: list[bool | None] = [None] * len(mine)

    @staticmethod
    def _first_of_longest(route: Route) -> MemberId:
        """Who brings a source's frames to the first ring on the way to the farthest."""
        ring = max(range(len(route.depth)), key=lambda k: route.depth[k])
        while route.depth[ring] > 1:
            ring = route.parent[ring]
        return route.gateway[ring]

    def changed(self) -> None:
        """Something that vectors tell of has moved."""
        self._due = [None] * len(self.mine)

    # ------------------------------------------------------------------------------------------------------- vectors

    def due(self, child: int) -> bool:
        """Whether somebody on that ring waits for what I could tell (D1)."""
        due = self._due[child]
        if due is None:
            due = self._due[child] = self._is_due(child)
        return due

    def _is_due(self, child: int) -> bool:
        need, merge, promised = self.need, self.merge, self.promised[child]
        if len(self.mine) < 2:
            return False
        if need > self.told_need[child]:
            return True
        queued = self.feeds[child].queued()
        if any(
            promised[source] < need and self._carried(source, origin, queued) > promised[source]
            for source, origin in self.into[child]
        ) or self._controls(child):
            return True
        return any(self._news(child, ring) for ring in range(len(merge.rows)))

    def _carried(self, source: int, origin: int, queued: Mapping[int, int]) -> int:
        """Up to where everything of a source that I bring has left: nothing that still waits is promised."""
        arrived = self.merge.arrived[origin][source]
        return min(arrived, queued[source] - 1) if source in queued else arrived

    def _controls(self, child: int) -> list[tuple[int, int]]:
        """Where frames wait for their place: up to which stamp all that changes groups has left, as far as it is news
        to somebody who waits (D3)."""
        feed, merge, told = self.feeds[child], self.merge, self.promised_controls[child]
        if not feed.undecided:
            return []
        queued, out = feed.queued_controls(), []
        for source, _ in self.into[child]:
            upto = max(merge.known[source], merge.controls[source])
            upto = min(upto, queued[source] - 1) if source in queued else upto
            if upto > told[source] and told[source] < self.need:
                out.append((source, upto))
        return out

    def _news(self, child: int, ring: int) -> bool:
        """Whether that ring's row is further than is known on this one."""
        if ring == self.mine[child]:
            return False
        need = self.need
        return any(
            told < need and row > told
            for row, told in zip(self.merge.rows[ring], self.heard[child][ring], strict=True)
        )  # fmt: skip

    def vector(self, child: int) -> Vector:
        merge, promised, queued = self.merge, self.promised[child], self.feeds[child].queued()
        entries = []
        for source, origin in self.into[child]:
            upto = self._carried(source, origin, queued)
            if upto > promised[source]:
                promised[source] = upto
                entries.append((source, upto))
        rows = []
        for ring, row in enumerate(merge.rows):
            if self._news(child, ring):
                rows.append((ring, tuple(row)))
                self.heard[child][ring] = list(row)
        controls = self._controls(child)
        for source, upto in controls:
            self.promised_controls[child][source] = upto
        self.told_need[child] = self.need
        self._due[child] = False
        return Vector(self.view, self.need, tuple(entries), tuple(rows), tuple(controls))

    def believable(self, child: int, author: MemberId, vector: Vector) -> bool:
        """Whether its author can have said that on this ring of mine."""
        ring, sources = self.mine[child], len(self.topology.rings)
        carried = ring is not None and all(
            source < sources and self.topology.routes[source].gateway[ring] == author
            for source, _ in (*vector.entries, *vector.controls)
        )
        return carried and all(number < sources and len(row) == sources for number, row in vector.rows)

    def hear(self, child: int, seq: int, vector: Vector) -> bool:
        """A vector message came on a ring of mine; whether something became stable."""
        merge, news = self.merge, False
        for source, stamp in vector.entries:
            merge.promise(child, source, stamp)
        for source, stamp in vector.controls:
            merge.controls[source] = max(merge.controls[source], stamp)
        for ring, row in vector.rows:
            self.heard[child][ring] = list(map(max, self.heard[child][ring], row))
            if ring not in self.mine:
                news = merge.learn(ring, row) or news
        self.need = max(self.need, vector.need)
        self.told_need[child] = max(self.told_need[child], vector.need)
        self.changed()
        return news


class Filter:
    """Who is in which process group, as far as the place in the order is reached; and what to do with frames for them.

    Between a frame's place and the decision somebody may leave its group: who left counts until then.
    """

    def __init__(self) -> None:
        self.groups: dict[str, set[MemberId]] = {}
        self.fading: dict[str, set[MemberId]] = {}
        self.knows = False

    def hear(self, event: Audience) -> None:
        if not event.group:
            self.knows = event.settled
            return
        gone = self.groups.get(event.group, set()).difference(event.members)
        self.groups[event.group] = set(event.members)
        if gone:
            self.fading.setdefault(event.group, set()).update(gone)

    def concerns(self, frame: Frame, carrying: Carrying) -> bool:
        """Whether a frame may stay on this side; a fragment never does, and nothing where ways may change."""
        return bool(frame.groups) and frame.parts == 1 and not frame.control and carrying.topology.tree

    def wanted(self, frame: Frame, behind: frozenset[MemberId]) -> bool:
        """Whether anybody of them is in its groups, as far as is known."""
        if not self.knows:
            return True
        groups, fading = self.groups, self.fading
        return any(
            not behind.isdisjoint(groups.get(name, ())) or not behind.isdisjoint(fading.get(name, ()))
            for name in frame.groups
        )
