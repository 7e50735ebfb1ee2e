"""The choice of members: a deterministic function of the table of rows, the same at all who hold the same table.

Two members are linked if each hears the other or, for an owner that can do without direct links, if both work in one
view.  Within the component of the chooser, again and again the best clique is taken away as a view: the largest, then
the one most of whose members share one view id, then the smallest sorted ids.  A view formed by this function wins
again against every other clique of its size, so a permanent pattern of broken links costs one view change, not many.

Bron-Kerbosch with pivot over bit sets, vertices in sorted order.  One choice has a budget of `STEPS_MAX` steps; when it
is spent, the best clique found so far counts, and each further cell is the first one that the search meets, after at
most n + 1 steps (a deterministic cut-off, so it falls alike everywhere).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ordercast.types import Incarnation, MemberId, Nanoseconds, ViewId

STEPS_MAX = 2_000  # of one choice: some 5 ms with 64 members
STEPS_FREE = 200  # a choice that took more is followed by a rest: nobody can keep a member busy by new tables
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

    __slots__ = ("ids", "neighbours", "steps", "views")

    def __init__(self, rows: Rows, direct: bool = False) -> None:
        self.ids = sorted(q for q, row in rows.items() if row.hears)
        self.neighbours = [0] * len(self.ids)
        self.steps = 0  # of the search, so far
        views: dict[ViewId, int] = {}
        for i, a in enumerate(self.ids):
            views[rows[a].view] = views.get(rows[a].view, 0) | 1 << i
            for j in range(i):
                if linked(rows[a], rows[self.ids[j]], direct):
                    self.neighbours[i] |= 1 << j
                    self.neighbours[j] |= 1 << i
        views.pop(NO_VIEW, None)
        self.views = list(views.values())  # who shares one

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
        """The best clique among these vertices: the largest, most of one view, the smallest ids."""
        best, merit = 0, (0, 0)
        for clique in self.cliques(among):
            found = clique.bit_count(), max(((clique & view).bit_count() for view in self.views), default=0)
            if found > merit or (found == merit and clique & (differ := clique ^ best) & -differ):
                best, merit = clique, found
        return best

    def cliques(self, among: int) -> Iterator[int]:
        """Maximal cliques of the subgraph; all of them unless the budget is spent, and always at least one."""
        neighbours = self.neighbours
        stack = [(0, among, 0)]
        upto = max(STEPS_MAX, self.steps + len(self.ids) + 1)
        while stack and self.steps < upto:
            self.steps += 1
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
    return search(rows, me, direct)[0]


def search(rows: Rows, me: MemberId, direct: bool = False) -> tuple[tuple[MemberId, ...], int]:
    """The choice, and how many steps it took."""
    graph = Graph(rows, direct)
    if me not in graph.ids:
        return (me,), 0
    mine = 1 << graph.ids.index(me)
    rest = graph.component(graph.ids.index(me))
    while True:
        clique = graph.best(rest)
        if clique & mine:
            return graph.names(clique), graph.steps
        rest &= ~clique


def views(rows: Rows, direct: bool = False) -> list[tuple[MemberId, ...]]:
    """What all members of the table choose together: disjoint sets, sorted; who is gone stands alone."""
    graph = Graph(rows, direct)
    out: list[tuple[MemberId, ...]] = [(q,) for q in rows if not rows[q].hears]
    left = (1 << len(graph.ids)) - 1
    while left:
        rest = graph.component((left & -left).bit_length() - 1)
        left &= ~rest
        graph.steps = 0  # who chooses looks at one component
        while rest:
            clique = graph.best(rest)
            out.append(graph.names(clique))
            rest &= ~clique
    return sorted(out)


class Chooser:
    """`choose` for one member: the last result is remembered by what it depends on, and a dear one is paid for.

    After a search of more than `STEPS_FREE` steps there is none for `gap_ns`: whatever tables come, a member spends a
    bounded share of its time on them.  An ordinary table, where nearly all are linked, takes n + 1 steps and no rest.
    """

    __slots__ = ("_gap_ns", "_key", "_result", "direct", "me", "rest")

    def __init__(self, me: MemberId, direct: bool, gap_ns: Nanoseconds) -> None:
        self.me, self.direct, self._gap_ns = me, direct, gap_ns
        self._key: tuple[tuple[MemberId, ViewId, bool, frozenset[MemberId]], ...] | None = None
        self._result: tuple[MemberId, ...] = (me,)
        self.rest: Nanoseconds | None = None  # no search before then

    def __call__(self, now: Nanoseconds, rows: Rows) -> tuple[MemberId, ...] | None:
        """What the table gives; None: ask again at `rest`."""
        key = tuple((q, rows[q].view, rows[q].working, rows[q].hears) for q in sorted(rows))
        if key == self._key:
            return self._result
        if self.rest is not None and now < self.rest:
            return None
        self._result, steps = search(rows, self.me, self.direct)
        self._key, self.rest = key, now + self._gap_ns if steps > STEPS_FREE else None
        return self._result
