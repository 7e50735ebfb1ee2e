"""Two ring cores in one process, each on a network of its own, side by side: neither disturbs the other."""

from __future__ import annotations

from ordercast.contract import Action, Control, Down, Event, Layer, Setup, Submit, Up, ViewChange
from ordercast.framing import Framing
from ordercast.joining import Progress, SafeUpTo
from ordercast.protocols.totem import TotemOptions
from ordercast.protocols.totem.layer import RingLayer
from ordercast.sim.faults import Cut, Loss
from ordercast.sim.scenario import Net, Scenario
from ordercast.sim.world import run
from ordercast.stack import Node, Stack
from ordercast.types import Nanoseconds, Submission, ViewKind


class Second(Framing):
    """Framing of the second ring."""

    name = "second"


class Both(Layer):
    """Submits to both rings; what the first one says goes up, what the second one says is kept."""

    name = "both"

    def __init__(self) -> None:
        self.events: list[Event] = []  # of the second ring

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        out: list[Action] = [Down(Submit(submission), child=0)]
        if any(isinstance(event, ViewChange) for event in self.events):
            out.append(Down(Submit(submission, control=True), child=1))  # unknown to the application
        return out

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        if child == 0:
            return [Up(event)]
        self.events.append(event)
        return []


def test_side_by_side() -> None:
    tops: dict[int, Both] = {}

    def maker(setup: Setup) -> Stack:
        top = tops[setup.identity.me] = Both()
        options = TotemOptions()
        first = Node(Framing(), [Node(RingLayer(setup, options, net=0), nets=(0,))])
        stamped = RingLayer(setup, options, net=1, hold_safe=False, stamps=True, ring_number=2)
        second = Node(Second(), [Node(stamped, nets=(1,))])
        return Stack(Node(top, [first, second]))

    scenario = Scenario(
        protocol="totem", members=4, messages=400, nets=(Net(), Net()), heal_ms=300.0,
        faults=(Loss(p=0.05), Cut(pairs=("1-2", "1-3", "1-4"), net=1, at_ms=60.0, until_ms=200.0)),
    )  # fmt: skip
    outcome = run(scenario, maker=maker)
    assert outcome.delivered == outcome.messages == 400

    views = [row for row in outcome.trace.rows if row.member and row.members and row.view_kind == ViewKind.REGULAR]
    first_ring = {row.members for row in views}
    assert first_ring == {(1, 2, 3, 4)}, "a cut of the second network alone does not move the first ring"

    assert set(tops) == {1, 2, 3, 4}
    seen = {
        me: [(e.batch.sender, p) for e in top.events if isinstance(e, Control) for p in e.batch.payloads()]
        for me, top in tops.items()
    }
    others = {me: [e.view.members for e in top.events if isinstance(e, ViewChange)] for me, top in tops.items()}
    assert (1,) in others[1] and (2, 3, 4) in others[2], "the second ring lived through its own partition"
    assert all(members[-1] == (1, 2, 3, 4) for members in others.values())
    assert len(seen[2]) > 100 and seen[2] == seen[3] == seen[4]
    for top in tops.values():
        stamps = [event.timestamp for event in top.events if isinstance(event, Progress)]
        assert len(stamps) > 100, "a ring with stamps says how far its order is known"
        safe = [event.seq for event in top.events if isinstance(event, SafeUpTo)]
        assert len(safe) > 10, "and up to where everybody has it"
