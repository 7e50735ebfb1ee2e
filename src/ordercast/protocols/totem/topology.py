"""Rings joined by gateways: who is connected with whom, by which ways frames go, what an old topology leaves behind.

A *topology* is a set of rings that hang together: a member on two of them is a gateway.  All here follows from what
members told of themselves (`State`), so whoever heard the same comes to the same topology, the same ways and the same
plan.  No clock, no packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from msgspec import Struct

from ordercast.limits import RINGS_MAX
from ordercast.protocols.totem.bodies import KEY_BYTES, SOURCES_MAX, RingView, State
from ordercast.types import MemberId, ViewId


class Route(NamedTuple):
    """How frames of one source come to the rings: a tree with that source's ring as its root."""

    parent: tuple[int, ...]  # ring -> the ring its frames come from; its own number for the root
    gateway: tuple[MemberId, ...]  # ring -> who brings them; 0 for the root
    depth: tuple[int, ...]

    def beyond(self, ring: int) -> set[int]:
        """The ring and all that get the frames by way of it."""
        out = {ring}
        for other in sorted(range(len(self.parent)), key=self.depth.__getitem__):
            if self.parent[other] in out and other != self.parent[other]:
                out.add(other)
        return out


class Topology(Struct, frozen=True):
    """Rings, sorted; members of all of them, sorted."""

    rings: tuple[RingView, ...]
    members: tuple[MemberId, ...]
    routes: tuple[Route, ...]
    tree: bool  # there is one way only between any two rings

    def label(self, ring: int) -> int:
        """Its net's number; where a net is in parts that hang together otherwise, of the second part 16 more, ..."""
        number = self.rings[ring].number
        return number + RINGS_MAX * sum(1 for other in self.rings[:ring] if other.number == number)


def topology(rings: Iterable[RingView]) -> Topology:
    ordered = tuple(sorted(rings))
    on: dict[MemberId, list[int]] = {}
    for number, ring in enumerate(ordered):
        for member in ring.members:
            on.setdefault(member, []).append(number)
    links: dict[int, dict[int, MemberId]] = {number: {} for number in range(len(ordered))}
    joints = 0
    for member, places in sorted(on.items()):
        joints += len(places) - 1
        for a in places:
            for b in places:
                if a != b:
                    links[a].setdefault(b, member)
    routes = tuple(_route(root, links) for root in range(len(ordered)))
    return Topology(ordered, tuple(sorted(on)), routes, joints == len(ordered) - 1)


def _route(root: int, links: Mapping[int, Mapping[int, MemberId]]) -> Route:
    parent, gateway, depth = {root: root}, {root: 0}, {root: 0}
    edge = [root]
    for ring in edge:
        for other in sorted(links[ring]):
            if other not in parent:
                parent[other], gateway[other], depth[other] = ring, links[ring][other], depth[ring] + 1
                edge.append(other)
    size = range(len(links))
    return Route(
        tuple(parent[n] for n in size), tuple(gateway[n] for n in size), tuple(depth[n] for n in size)
    )  # fmt: skip


def connected(
    mine: Iterable[RingView], states: Mapping[MemberId, State]
) -> tuple[tuple[RingView, ...], MemberId | None]:
    """All rings that hang together with mine, or whose word is still missing.

    Everybody on a ring must have said that it is on it, and with whom.
    """
    found: dict[tuple[int, ViewId], RingView] = {}
    todo = list(mine)
    for ring in todo:
        known = found.setdefault((ring.number, ring.id), ring)
        if known is not ring:
            if known != ring:
                return (), min(ring.members)
            continue
        for member in ring.members:
            state = states.get(member)
            if state is None or ring not in state.rings:
                return (), member
            todo += [other for other in state.rings if (other.number, other.id) not in found]
    return tuple(sorted(found.values())) if len(found) <= SOURCES_MAX else (), None


class Old(Struct, frozen=True):
    """What those who come from one topology do together before they go on."""

    view: ViewId | None
    members: tuple[MemberId, ...]
    bound: int = 0  # up to here everything of all sources is held
    upto: tuple[int, ...] = ()  # and up to here of each, once the suppliers have sent what they have
    stable: tuple[int, ...] = ()
    low: tuple[int, ...] = ()  # of each source, what all of them have already
    supply: Mapping[MemberId, tuple[int, ...]] = {}  # who sends again what it has, and of which sources


class NextTopology(Struct, frozen=True):
    """The topology to come, by the word of all its members."""

    topology: Topology
    key: bytes  # names the words it was made from
    base: int  # its frames are stamped from here on
    id: ViewId
    old: tuple[Old, ...]

    def of(self, member: MemberId) -> Old:
        return next(old for old in self.old if member in old.members)


def next_topology(
    rings: tuple[RingView, ...], states: Mapping[MemberId, State], routes: Mapping[ViewId, Topology]
) -> NextTopology:
    """`routes`: the topologies I was in, for what is to be supplied in mine."""
    new = topology(rings)
    words = [(member, states[member]) for member in new.members]
    text = ",".join(f"{member}:{state.stamp}" for member, state in words)
    base = 1 + max(state.stamp for _, state in words)
    by_view: dict[ViewId | None, list[MemberId]] = {}
    for member, state in words:
        by_view.setdefault(state.view, []).append(member)
    order = sorted(by_view, key=lambda view: (view is not None, view or ViewId(0, 0), by_view[view]))
    old = []
    for view in order:
        if view is None:
            old += [Old(None, (member,)) for member in by_view[view]]
        else:
            old.append(_old(view, tuple(by_view[view]), states, routes.get(view)))
    id = ViewId(RINGS_MAX * base + new.rings[0].number - 1, new.members[0])
    return NextTopology(new, blake2b(text.encode(), digest_size=KEY_BYTES).digest(), base, id, tuple(old))


def _old(view: ViewId, members: tuple[MemberId, ...], states: Mapping[MemberId, State], was: Topology | None) -> Old:
    told = [states[member] for member in members]
    size = min(len(state.known) for state in told)
    if any(len(state.known) != size for state in told):  # somebody forges: nothing can be supplied
        return Old(view, members)
    known = [max(state.known[s] for state in told) for s in range(size)]
    stable = tuple(max(state.stable[s] for state in told) for s in range(size))
    low = tuple(min(state.known[s] for state in told) for s in range(size))
    supply: dict[MemberId, tuple[int, ...]] = {}
    for s in range(size):
        for member in _suppliers(s, {m: states[m] for m in members}, low[s], was):
            supply[member] = (*supply.get(member, ()), s)
    return Old(view, members, min(known), tuple(known), stable, low, dict(sorted(supply.items())))


def _suppliers(source: int, told: Mapping[MemberId, State], low: int, was: Topology | None) -> Iterable[MemberId]:
    """Who sends again its frames of a source: of those who hold the same, the nearest to it; nobody where all do, and
    not who holds no more, without holes, than one that is as near."""
    holdings: dict[tuple[int, int, int], tuple[int, MemberId]] = {}
    for member, state in sorted(told.items()):
        held = (state.known[source], state.top[source], state.extra[source])
        place = (_depth(was, source, member), member)
        holdings[held] = min(holdings.get(held, place), place)
    for held, (depth, member) in holdings.items():
        more = any(
            other != held and other[0] >= held[0] and at <= depth and not held[2]
            for other, (at, _) in holdings.items()
        )  # fmt: skip
        if len(holdings) > 1 and max(held[:2]) > low and not more:
            yield member


def _depth(was: Topology | None, source: int, member: MemberId) -> int:
    """How far from a source a member was: who is nearer has what is meant for those behind it."""
    if was is None or source >= len(was.rings):
        return 0
    return min(was.routes[source].depth[k] for k, ring in enumerate(was.rings) if member in ring.members)
