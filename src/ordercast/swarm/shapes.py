"""What nets a swarm's run has: rings, for a protocol that joins several, in which shape, who is a gateway; a LAN that
all hear in one order, for one that has a tagger elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec.structs import replace

from ordercast.sim.faults import Claimant
from ordercast.sim.scenario import Edge, Net, Scenario

ONE_ORDER = frozenset(("crash", "pause", "leave", "slow", "drift", "clock", "overload"))
SHAPES = ("one", "two", "chain", "star", "cycle")


def draw_bus(draw: random.Random) -> frozenset[str]:
    """In one run of five a LAN takes the tagger's place; these families keep its order.  In one of five of them they do
    not: marks then contradict each other, and hurt nobody.  Empty: there is a tagger."""
    if draw.random() >= 0.2:
        return frozenset()
    return ONE_ORDER | {"reordering"} if draw.random() < 0.2 else ONE_ORDER


def one_order(scenario: Scenario) -> bool:
    """Whether it is a LAN that all hear in one order; what a second process of a member hears comes by another way."""
    kept = all(fault.family in ONE_ORDER and not isinstance(fault, Claimant) for fault in scenario.faults)
    return kept and all(net.model == "lan" and net.delay.same_for_all for net in scenario.nets)


def draw_rings(draw: random.Random, ids: tuple[int, ...], net: Net) -> tuple[str, tuple[Net, ...]]:
    """The shape in words, and a net for each ring.  `net`: what each of them is like."""
    shape = draw.choices(SHAPES, (1, 4, 4, 3, 4))[0]
    rings = {"one": 1, "two": 2, "chain": 3, "star": 4, "cycle": draw.choice((3, 4))}[shape]
    joints = _joints(shape, rings)
    if shape == "two" and draw.random() < 0.3:
        joints *= 2  # two gateways side by side
    if len(ids) < len(joints) + 1:
        return "one", (net,)
    members: list[set[int]] = [set() for _ in range(rings)]
    order = draw.sample(ids, len(ids))
    for (a, b), gateway in zip(joints, order, strict=False):
        members[a].add(gateway)
        members[b].add(gateway)
    rest = order[len(joints) :]
    draw.shuffle(empty := [ring for ring in members if len(ring) < 2])
    for member in rest:
        (empty.pop() if empty else draw.choice(members)).add(member)
    if rings == 1:
        return shape, (net,)
    return shape, tuple(_on(net, tuple(sorted(ring)), max(ids) + 1) for ring in members)


def _joints(shape: str, rings: int) -> list[tuple[int, int]]:
    """Which rings share a gateway."""
    if shape == "star":
        return [(0, ring) for ring in range(1, rings)]
    ways = [(ring, ring + 1) for ring in range(rings - 1)]
    return [*ways, (rings - 1, 0)] if shape == "cycle" else ways


def _on(net: Net, members: tuple[int, ...], relay: int) -> Net:
    if net.model != "graph":
        return replace(net, members=members)
    us = net.edges[0].us
    return replace(net, members=members, edges=tuple(Edge(a=member, b=relay, us=us) for member in members))


def pure_gateways(draw: random.Random, nets: Sequence[Net], senders: tuple[int, ...]) -> tuple[int, ...]:
    """In two runs of five some gateways, none of which is to send anything, have no application."""
    some = [member for member in gateways(nets) if member not in senders and draw.random() < 0.5]
    return tuple(some) if draw.random() < 0.4 else ()


def gateways(nets: Sequence[Net]) -> tuple[int, ...]:
    """Who sits on several of them."""
    seen: set[int] = set()
    twice: set[int] = set()
    for net in nets:
        twice |= seen.intersection(net.members)
        seen |= set(net.members)
    return tuple(sorted(twice))
