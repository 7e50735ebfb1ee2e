"""Two ring cores in one process, each on a network of its own, side by side: neither disturbs the other."""

from __future__ import annotations

from ordercast.contract import Action, Delivered, Event, Layer, Setup, ViewChange
from ordercast.framing import Framing, Outbox
from ordercast.protocols.totem import TotemOptions
from ordercast.protocols.totem.layer import RingLayer
from ordercast.sim.faults import Cut, Loss
from ordercast.sim.scenario import Net, Scenario
from ordercast.sim.world import run
from ordercast.stack import Node, Stack
from ordercast.types import Nanoseconds, Service, Submission, ViewKind


class Second(Framing):
    """Framing of the second ring; says to the layer above what is its own."""

    name = "second"


class Both(Layer):
    """Submits to both rings; what the first one says goes up."""

    name = "both"

    def __init__(self, first: Framing, second: Second) -> None:
        self.first, self.second = first, second

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        if self.second.in_view:
            self.second.submit(now, submission)  # the ring takes it at its next token
        return self.first.submit(now, submission)


class Ear(Layer):
    """Between the second ring's framing and the top: keeps its events from the application."""

    name = "ear"

    def __init__(self) -> None:
        self.events: list[Event] = []

    def up(self, now: Nanoseconds, event: Event) -> list[Action]:
        self.events.append(event)
        return []


def test_side_by_side() -> None:
    ears: dict[int, Ear] = {}

    def maker(setup: Setup) -> Stack:
        me = setup.identity.me
        boxes = [Outbox(me, setup.identity.incarnation, setup.frame_bytes) for _ in range(2)]
        services = (Service.AGREED, Service.SAFE)
        first, second, ear = Framing(boxes[0], services), Second(boxes[1], services), Ear()
        ears[me] = ear
        rings = [RingLayer(setup, box, TotemOptions(), net=k) for k, box in enumerate(boxes)]
        left = Node(first, [Node(rings[0], nets=(0,))])
        right = Node(ear, [Node(second, [Node(rings[1], nets=(1,))])])
        return Stack(Node(Both(first, second), [left, right]))

    scenario = Scenario(
        protocol="totem", members=4, messages=400, nets=(Net(), Net()), heal_ms=300.0,
        faults=(Loss(p=0.05), Cut(pairs=("1-2", "1-3", "1-4"), net=1, at_ms=60.0, until_ms=200.0)),
    )  # fmt: skip
    outcome = run(scenario, maker=maker)
    assert outcome.delivered == outcome.messages == 400

    views = [row for row in outcome.trace.rows if row.member and row.members and row.view_kind == ViewKind.REGULAR]
    first_ring = {row.members for row in views}
    assert first_ring == {(1, 2, 3, 4)}, "a cut of the second network alone does not move the first ring"

    assert set(ears) == {1, 2, 3, 4}
    seen = {
        me: [
            (e.batch.sender, e.batch.counter + k)
            for e in ear.events
            if isinstance(e, Delivered)
            for k in range(e.batch.count)
        ]
        for me, ear in ears.items()
    }
    others = {me: [e.view.members for e in ear.events if isinstance(e, ViewChange)] for me, ear in ears.items()}
    assert (1,) in others[1] and (2, 3, 4) in others[2], "the second ring lived through its own partition"
    assert all(members[-1] == (1, 2, 3, 4) for members in others.values())
    assert len(seen[2]) > 100 and seen[2] == seen[3] == seen[4]
