"""The choice of members: a deterministic function of the table of rows, the same at all who hold the same table.

Two members are linked if each hears the other or, for an owner that can do without direct links, if both work in one
view.  Within the component of the chooser, again and again the best clique is taken away as a view: the largest, then
the one most of whose members share one view id, then the smallest sorted ids.  A view formed by this function wins
again against every other clique of its size, so a permanent pattern of broken links costs one view change, not many.

Bron-Kerbosch with pivot over bit sets, vertices in sorted order; after `STEPS_MAX` steps the best clique found so far
counts (a deterministic cut-off, so it falls alike everywhere).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ordercast.types import Incarnation, MemberId, ViewId

STEPS_MAX = 20_000
NO_VIEW = ViewId(0, 0)


class Row(Struct, frozen=True, gc=False):
    """What one member says of itself.  Empty `hears` means: gone."""

    id: MemberId
    incarnation: Incarnation
    version: int
    view: ViewId  # installed
    working: bool  # true in Operational only
    hears: frozenset[MemberId]


Rows = Mapping[MemberId, Row]


def linked(a: Row, b: Row, direct: bool = False) -> bool:
    """Can a and b be in one view?  `direct`: only by hearing each other."""
    if not a.hears or not b.hears:
        return False
    if b.id in a.hears and a.id in b.hears:
        return True
    return not direct and a.working and b.working and a.view == b.view != NO_VIEW


class Graph:
    """The links among the members of a table, as one bit set of neighbours per rank."""

    __slots__ = ("ids", "neighbours", "views")

    def __init__(self, rows: Rows, direct: bool = False) -> None:
        self.ids = sorted(q for q, row in rows.items() if row.hears)
        self.views = [rows[q].view for q in self.ids]
        self.neighbours = [0] * len(self.ids)
        for i, a in enumerate(self.ids):
            for j in range(i):
                if linked(rows[a], rows[self.ids[j]], direct):
                    self.neighbours[i] |= 1 << j
                    self.neighbours[j] |= 1 << i

    def component(self, rank: int) -> int:
        """Everybody connected with `rank` in any way."""
        found = todo = 1 << rank
        while todo:
            reached = 0
            for v in bits(todo):
                reached |= self.neighbours[v]
            todo = reached & ~found
            found |= todo
        return found

    def names(self, vertices: int) -> tuple[MemberId, ...]:
        return tuple(self.ids[v] for v in bits(vertices))

    def best(self, among: int) -> int:
        """The best clique among these vertices."""
        return max(self.cliques(among), key=self._merit)

    def _merit(self, clique: int) -> tuple[int, int, tuple[int, ...]]:
        ranks = list(bits(clique))
        views = [self.views[v] for v in ranks]
        shared = max(views.count(view) for view in views if view != NO_VIEW) if set(views) != {NO_VIEW} else 0
        return len(ranks), shared, tuple(-v for v in ranks)

    def cliques(self, among: int) -> Iterator[int]:
        """Maximal cliques of the subgraph; all of them unless the search is cut off, and always at least one."""
        neighbours = self.neighbours
        stack = [(0, among, 0)]
        steps = 0
        while stack and steps < STEPS_MAX:
            steps += 1
            clique, candidates, excluded = stack.pop()
            if not candidates:
                if not excluded:
                    yield clique
                continue
            pivot = max(bits(candidates | excluded), key=lambda v: ((neighbours[v] & candidates).bit_count(), -v))
            branches = []
            for v in bits(candidates & ~neighbours[pivot]):
                branches.append((clique | 1 << v, candidates & neighbours[v], excluded & neighbours[v]))
                candidates &= ~(1 << v)
                excluded |= 1 << v
            stack += reversed(branches)


def bits(vertices: int) -> Iterator[int]:
    while vertices:
        low = vertices & -vertices
        yield low.bit_length() - 1
        vertices ^= low


def choose(rows: Rows, me: MemberId, direct: bool = False) -> tuple[MemberId, ...]:
    """The members of my next view, sorted.  I am always among them."""
    graph = Graph(rows, direct)
    if me not in graph.ids:
        return (me,)
    mine = 1 << graph.ids.index(me)
    rest = graph.component(graph.ids.index(me))
    while True:
        clique = graph.best(rest)
        if clique & mine:
            return graph.names(clique)
        rest &= ~clique


def views(rows: Rows, direct: bool = False) -> list[tuple[MemberId, ...]]:
    """What all members of the table choose together: disjoint sets, sorted; who is gone stands alone."""
    graph = Graph(rows, direct)
    out: list[tuple[MemberId, ...]] = [(q,) for q in rows if not rows[q].hears]
    left = (1 << len(graph.ids)) - 1
    while left:
        rest = graph.component((left & -left).bit_length() - 1)
        left &= ~rest
        while rest:
            clique = graph.best(rest)
            out.append(graph.names(clique))
            rest &= ~clique
    return sorted(out)


class Chooser:
    """`choose` for one member, remembering the last result by what it depends on."""

    __slots__ = ("_key", "_result", "direct", "me")

    def __init__(self, me: MemberId, direct: bool) -> None:
        self.me, self.direct = me, direct
        self._key: tuple[tuple[MemberId, ViewId, bool, frozenset[MemberId]], ...] | None = None
        self._result: tuple[MemberId, ...] = (me,)

    def __call__(self, rows: Rows) -> tuple[MemberId, ...]:
        key = tuple((q, rows[q].view, rows[q].working, rows[q].hears) for q in sorted(rows))
        if key != self._key:
            self._key, self._result = key, choose(rows, self.me, self.direct)
        return self._result
