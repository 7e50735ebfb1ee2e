"""The precedence graph of one site: what is known of the network's order, and its linearisation.

Paper: "Membership-insensitive totally ordered multicast" (Konorski), section 3.  Vertices are messages; an arc says
"before", a marked arc "and nothing was multicast between".  A mark may be *excused*: nothing lies between unless it is
one of the named messages (own ones whose place is not known yet), so that no mark is ever false.

Linearising uses all that marks imply.  The paper rescans pairs of arcs until nothing changes (rules 1 and 2); here the
fixpoint is written down at once: marked arcs form disjoint chains, the blocks; an arc between blocks leads from the
last of one to the first of the other, and only those stay that no longer way implies.

Differs from the paper:
  E4  The formula printed with Observation 3 is wrong, a marked arc yields its own reversal; the closed form is not.
  E5  Observation 2 holds for the order, not for arcs: linearising may replace an arc by a longer way.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Vertex = Any  # hashable and ordered
Mark = frozenset[Any] | None  # None: plain; empty: contiguous; else contiguous unless one of these lies between
Arcs = dict[Vertex, dict[Vertex, Mark]]

MARKED: frozenset[Any] = frozenset()


class Inconsistent(Exception):
    """No order explains these arcs and marks: the network or a detector broke its promise."""


def join(one: Mark, other: Mark) -> Mark:
    """What two sites know of the same pair: a mark outweighs a plain arc, and fewer excuses more."""
    if one is None:
        return other
    return one if other is None else one & other


class Graph:
    """Arcs by their beginning, and who is before whom."""

    __slots__ = ("_form", "_heard", "_tail", "conflicts", "into", "out", "splits")

    def __init__(self, vertices: Iterable[Vertex] = (), arcs: Iterable[tuple[Vertex, Vertex, Mark]] = ()) -> None:
        self.out: Arcs = {}  # every vertex is a key
        self.into: dict[Vertex, set[Vertex]] = {}
        self.conflicts = 0  # contradictions met and settled
        self.splits = 0  # excused marks whose excuse was found between
        self._form: _Form | None = None  # of the last linearisation
        self._heard = 0
        self._tail: dict[Vertex, int] = {}  # heard since then, each after everything before it
        for vertex in vertices:
            self.add(vertex)
        for x, y, mark in arcs:
            self.arc(x, y, mark)

    def __contains__(self, vertex: Vertex) -> bool:
        return vertex in self.out

    def __len__(self) -> int:
        return len(self.out)

    def arcs(self) -> list[tuple[Vertex, Vertex, Mark]]:
        return [(x, y, mark) for x, ends in self.out.items() for y, mark in ends.items()]

    # ----------------------------------------------------------------------------------------------------- growing

    def add(self, vertex: Vertex) -> bool:
        """A vertex without a place; whether it is new."""
        if vertex in self.out:
            return False
        self.out[vertex] = {}
        self.into[vertex] = set()
        return True

    def arc(self, x: Vertex, y: Vertex, mark: Mark) -> bool:
        """An arc between vertices that are here; whether that told anything new."""
        ends = self.out[x]
        if y not in ends:
            ends[y] = mark
            self.into[y].add(x)
            return True
        both = join(ends[y], mark)
        if both == ends[y]:
            return False
        ends[y] = both
        return True

    def receive(self, z: Vertex, last: Vertex | None, mark: Mark) -> None:
        """z was heard after everything known, right after `last` if marked; linearised only where that tells more."""
        sinks = [x for x, ends in self.out.items() if not ends and x != z]
        if not self.add(z):
            if last is not None and last in self.out and self.tell(last, z, mark):
                self.settle()
            return
        for x in sinks:
            self.arc(x, z, None)
        self._heard += 1
        self._tail[z] = self._heard
        if mark is not None and last is not None and last in self.out:
            self.arc(last, z, mark)
            if len(sinks) > 1 or last not in sinks:
                self.settle()

    def tell(self, x: Vertex, y: Vertex, mark: Mark) -> bool:
        """An arc somebody knows of; whether it says more than is known already."""
        if x == y or (mark is None and self._before(x, y)):
            return False
        return self.arc(x, y, mark)

    def _before(self, x: Vertex, y: Vertex) -> bool:
        """Known to be before; false also where that is not known at once."""
        tail, form = self._tail, self._form
        if x in tail:
            return y in tail and tail[x] < tail[y]
        if form is None or x not in form.block:
            return False
        return y in tail or (y in form.block and form.before(x, y))

    def remove(self, vertex: Vertex) -> None:
        """It is gone; what was before it stays before what was after it."""
        before, after = self.into.pop(vertex), self.out.pop(vertex)
        self._tail.pop(vertex, None)
        if self._form is not None:
            self._form.block.pop(vertex, None)
        for y in after:
            self.into[y].discard(vertex)
        for x in before:
            del self.out[x][vertex]
            for y in after:
                self.arc(x, y, None)

    # ------------------------------------------------------------------------------------------------- linearising

    def linearise(self) -> None:
        """Replace the arcs by all that they imply; raise Inconsistent, and change nothing, where that cannot be."""
        out = self.out
        while True:
            form = _Form(out)
            if not form.excused:
                break
            changed = form.excuses_used()
            if changed is None:
                break
            out = changed
            self.splits += form.splits
        self.out = form.arcs()
        self._form, self._tail = form, {}
        self._turn_around()

    def settle(self) -> None:
        """Linearise whatever it takes: contradictions are counted, doubtful marks become plain, cycles are broken."""
        while True:
            try:
                self.linearise()
                return
            except Inconsistent:
                self.conflicts += 1
                self._form, self._tail = None, {}
                if not self._distrust_forks() and not self._break_cycles():
                    self._distrust_excused()

    def _distrust_forks(self) -> bool:
        """Marks that contradict each other become plain."""
        ways_in: dict[Vertex, list[Vertex]] = {}
        doubtful: list[tuple[Vertex, Vertex]] = []
        for x, ends in self.out.items():
            marked = [y for y, mark in ends.items() if mark is not None and not mark]
            if len(marked) > 1:
                doubtful += [(x, y) for y in marked]
            for y in marked:
                ways_in.setdefault(y, []).append(x)
        for y, beginnings in ways_in.items():
            if len(beginnings) > 1:
                doubtful += [(x, y) for x in beginnings]
        for x, y in doubtful:
            self.out[x][y] = None
        return bool(doubtful)

    def _distrust_excused(self) -> None:
        """What follows from excused marks contradicts the rest."""
        for ends in self.out.values():
            for y, mark in ends.items():
                if mark:
                    ends[y] = None

    def _break_cycles(self) -> bool:
        """Inside each knot of vertices that are before one another: no marks, and only arcs to larger ones.

        Where only blocks go round, not vertices, their marks become plain.
        """
        knots, broken = _knots(self.out), False
        for x, ends in self.out.items():
            for y in [y for y in ends if knots[x] == knots[y]]:
                broken = True
                if x < y:
                    ends[y] = None
                else:
                    del ends[y]
        if not broken:
            both_ways = {x: dict(ends) for x, ends in self.out.items()}
            for x, y, mark in self.arcs():
                if mark is not None and not mark:
                    both_ways[y][x] = None
            knots = _knots(both_ways)
            bad = {knots[x] for x, y, mark in self.arcs() if (mark is None or mark) and knots[x] == knots[y]}
            for x, ends in self.out.items():
                for y in ends:
                    if knots[x] == knots[y] and knots[x] in bad:
                        ends[y] = None
            broken = bool(bad)
        self._turn_around()
        return broken

    def _turn_around(self) -> None:
        into: dict[Vertex, set[Vertex]] = {vertex: set() for vertex in self.out}
        for x, ends in self.out.items():
            for y in ends:
                into[y].add(x)
        self.into = into

    def ancestors(self, vertices: Iterable[Vertex]) -> set[Vertex]:
        """All that is before any of them."""
        found: set[Vertex] = set()
        todo = list(vertices)
        while todo:
            fresh = self.into[todo.pop()] - found
            found |= fresh
            todo += fresh
        return found


class _Form:
    """The closed form of one set of arcs: blocks, which block is before which, and the arcs that say so."""

    def __init__(self, out: Arcs) -> None:
        self.out = out
        self.next: dict[Vertex, Vertex] = {}
        self.excused: list[tuple[Vertex, Vertex, frozenset[Any]]] = []
        self.splits = 0
        self._blocks()
        self._before()

    def _blocks(self) -> None:
        following, inner = self.next, set()
        for x, ends in self.out.items():
            for y, mark in ends.items():
                if mark is None:
                    continue
                if mark:
                    self.excused.append((x, y, mark))
                elif x in following or y in inner:
                    raise Inconsistent("two marks contradict each other")
                else:
                    following[x] = y
                    inner.add(y)
        self.block: dict[Vertex, int] = {}
        self.place: dict[Vertex, int] = {}  # within its block
        self.first: list[Vertex] = []
        self.last: list[Vertex] = []
        block, place = self.block, self.place
        for number, x in enumerate([x for x in self.out if x not in inner]):
            self.first.append(x)
            k = 0
            while True:
                block[x], place[x] = number, k
                if x not in following:
                    break
                x, k = following[x], k + 1
            self.last.append(x)
        if len(block) < len(self.out):
            raise Inconsistent("marks go round")

    def _before(self) -> None:
        """Which blocks follow each, as bit sets; the direct ones that no longer way implies."""
        block, place, count = self.block, self.place, len(self.first)
        after: list[set[int]] = [set() for _ in range(count)]
        for x, ends in self.out.items():
            a = block[x]
            for y in ends:
                b = block[y]
                if a != b:
                    after[a].add(b)
                elif place[y] <= place[x]:
                    raise Inconsistent("an arc against a chain of marks")
        entering = [0] * count
        for ends_of in after:
            for b in ends_of:
                entering[b] += 1
        order = [a for a in range(count) if not entering[a]]
        for a in order:
            for b in after[a]:
                entering[b] -= 1
                if not entering[b]:
                    order.append(b)
        if len(order) < count:
            raise Inconsistent("blocks go round")
        self.rank = rank = [0] * count
        for k, a in enumerate(order):
            rank[a] = k
        self.follow, self.direct = [0] * count, after
        follow = self.follow
        for a in reversed(order):
            behind, kept = 0, set()
            ends_of = after[a]
            for b in sorted(ends_of, key=rank.__getitem__) if len(ends_of) > 1 else ends_of:
                if not behind >> b & 1:
                    kept.add(b)
                    behind |= 1 << b | follow[b]
            follow[a], after[a] = behind, kept

    def before(self, x: Vertex, y: Vertex) -> bool:
        a, b = self.block[x], self.block[y]
        return self.place[x] < self.place[y] if a == b else bool(self.follow[a] >> b & 1)

    def excuses_used(self) -> Arcs | None:
        """The same arcs, excuses discharged where the place of the excused is known, and arcs split by those that lie
        between; None if nothing changes."""
        fresh: Arcs | None = None
        for x, y, excuses in self.excused:
            open_, between = self._open(x, y, excuses)
            if len(open_) == len(excuses) and not between:
                continue
            if fresh is None:
                fresh = {vertex: dict(ends) for vertex, ends in self.out.items()}
            if not between:
                fresh[x][y] = frozenset(open_)
                continue
            self.splits += 1
            fresh[x][y] = None
            way = [x, *between, y]  # those between are on a way: each pair of neighbours is excused by the rest
            for a, b in pairwise(way):
                rest = frozenset(self._open(a, b, frozenset(open_) - {a, b})[0])
                fresh[a][b] = join(fresh[a].get(b), rest)
        return fresh

    def _open(self, x: Vertex, y: Vertex, excuses: frozenset[Any]) -> tuple[list[Vertex], list[Vertex]]:
        """The excuses that still count, and of those known to lie between as many as are on one way."""
        block, before = self.block, self.before
        open_ = [z for z in excuses if z not in block or not (z in (x, y) or before(z, x) or before(y, z))]
        between = [z for z in open_ if z in block and before(x, z) and before(z, y)]
        way: list[Vertex] = []
        for z in sorted(between, key=lambda z: (self.rank[block[z]], self.place[z])):
            if not way or before(way[-1], z):
                way.append(z)
        return open_, way

    def arcs(self) -> Arcs:
        """Chains, and one arc per pair of neighbouring blocks, excused where it was."""
        fresh: Arcs = {vertex: {} for vertex in self.out}
        for x, y in self.next.items():
            fresh[x][y] = MARKED
        first, last = self.first, self.last
        for a, ends in enumerate(self.direct):
            x = last[a]
            for b in ends:
                fresh[x][first[b]] = None
        for x, y, excuses in self.excused:
            if y in fresh[x] and fresh[x][y] is None:
                fresh[x][y] = excuses
        return fresh


def _knots(out: Arcs) -> dict[Vertex, int]:
    """The number of the strongly connected part each vertex is in (Kosaraju, without recursion)."""
    order: list[Vertex] = []
    seen: set[Vertex] = set()
    for root in out:
        todo = [(root, iter(out[root]))] if root not in seen else []
        seen.add(root)
        while todo:
            vertex, ends = todo[-1]
            for y in ends:
                if y not in seen:
                    seen.add(y)
                    todo.append((y, iter(out[y])))
                    break
            else:
                order.append(vertex)
                todo.pop()
    into: dict[Vertex, list[Vertex]] = {vertex: [] for vertex in out}
    for x, starts in out.items():
        for y in starts:
            into[y].append(x)
    knot: dict[Vertex, int] = {}
    for number, root in enumerate(reversed(order)):
        stack = [root]
        while stack:
            vertex = stack.pop()
            if vertex not in knot:
                knot[vertex] = number
                stack += into[vertex]
    return knot
