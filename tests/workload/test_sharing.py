"""Sites that share a resource: no unit is lost or given twice, and what an order that is almost one order costs."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ordercast.errors import ConfigError
from ordercast.pipeline.experiment import from_file
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.workload.sharing import (
    Allocation,
    Hold,
    Message,
    Release,
    Request,
    Site,
    Start,
    Step,
    decode,
    encode,
)

EXPERIMENT = Path(__file__).resolve().parents[2] / "examples" / "experiments" / "sharing.toml"
SITES, UNITS = range(1, 11), 8
WORK_S = 0.3


class World:
    """Ten sites on one ordered channel, 30 to 120 ms wide; requests are late as in the paper's example."""

    def __init__(self, violating: float, patience_s: float, need: tuple[int, int], seed: int) -> None:
        self.draw = random.Random(seed)
        self.violating, self.patience_s, self.need = violating, patience_s, need
        self.sites = {k: Site(k, SITES, UNITS) for k in SITES}
        self.events: list[tuple[float, int, Any]] = []
        self.ids = count()
        self.read = dict.fromkeys(SITES, 0.0)  # when a site read the last message
        self.held: dict[int, tuple[int, Request]] = {}
        self.operations = self.timeouts = 0
        self.time = 0.0

    def at(self, time: float, *event: Any) -> None:
        heappush(self.events, (time, next(self.ids), event))

    def say(self, site: int, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Start):
                self.operations += 1
                self.at(self.time + WORK_S, "finished", site)
            elif isinstance(step, Hold):
                self.at(self.time + self.patience_s, "expired", site, self.sites[site].number)
            else:
                self.at(self.time + self.draw.uniform(0.0, 0.03), "ordered", site, step)

    def run(self, seconds: float) -> World:
        for k in SITES:
            self.say(k, self.sites[k].request(self.draw.randint(*self.need)))
        while self.events[0][0] < seconds:
            self.time, _, (what, site, *more) = heappop(self.events)
            getattr(self, what)(site, *more)
        return self

    def ordered(self, sender: int, message: Message) -> None:
        late: list[int] = []
        if isinstance(message, Request) and self.draw.random() < self.violating:
            late = self.draw.sample(SITES, len(SITES) // 2)
        for k in SITES:
            self.read[k] = max(self.read[k], self.time + self.draw.uniform(0.03, 0.09))
            self.at(self.read[k], "heard", k, sender, message, k in late)

    def heard(self, site: int, sender: int, message: Message, late: bool) -> None:
        if not isinstance(message, Request):
            self.say(site, self.sites[site].heard(sender, message))
            return
        before = self.held.pop(site, None)
        if late and before is None:
            self.held[site] = sender, message
            return
        self.say(site, self.sites[site].heard(sender, message))
        if before is not None:
            self.say(site, self.sites[site].heard(*before))

    def finished(self, site: int) -> None:
        self.say(site, self.sites[site].finished())
        self.say(site, self.sites[site].request(self.draw.randint(*self.need)))

    def expired(self, site: int, number: int) -> None:
        need, steps = self.sites[site].need, self.sites[site].expired(number)
        if steps:
            self.timeouts += 1
            self.say(site, steps)
            self.say(site, self.sites[site].request(need))

    def units(self) -> int:
        """Wherever they are."""
        waiting = [event for _, _, event in self.events]
        under_way = sum(e[2].units for e in waiting if e[0] == "ordered" and isinstance(e[2], Allocation))
        read = [e for e in waiting if e[0] == "heard" and isinstance(e[3], Allocation) and e[3].to == e[1]]
        return sum(s.free + s.collected for s in self.sites.values()) + under_way + sum(e[3].units for e in read)


def test_a_request_waits_for_its_units_and_a_release_gives_them_on() -> None:
    one, two = Site(1, (1, 2), 4), Site(2, (1, 2), 4)
    assert two.request(3) == [Request(1, 3)]
    given = one.heard(2, Request(1, 3)) + two.heard(2, Request(1, 3))
    assert given == [Allocation(2, 1, 2), Allocation(2, 1, 2)], "both gave, before they knew of each other"
    assert two.heard(1, Allocation(2, 1, 2)) == [Hold()]
    assert two.heard(2, Allocation(2, 1, 2)) == [Start()] and (two.collected, two.free) == (3, 1)
    assert one.request(4) == [Request(1, 4)]
    assert two.heard(1, Request(1, 4)) == [Allocation(1, 1, 1)], "what it does not need"
    assert two.finished() == [Release(1), Allocation(1, 1, 3)] and not two.free and not two.line


def test_who_has_too_few_gives_them_back_and_what_comes_too_late_goes_to_the_next() -> None:
    one = Site(1, (1, 2, 3), 3)
    one.request(3)
    one.heard(1, Request(1, 3))
    one.heard(1, Allocation(1, 1, 1))
    assert one.expired(1) == [Release(1)] and one.free == 1 and not one.line
    assert one.expired(1) == [], "once"
    one.heard(3, Request(1, 2))
    assert one.heard(2, Allocation(1, 1, 1)) == [Allocation(3, 1, 1)]
    assert not one.free


def test_a_time_out_does_not_end_an_operation() -> None:
    one = Site(1, (1,), 2)
    one.request(2)
    (given,) = one.heard(1, Request(1, 2))
    assert isinstance(given, Allocation) and one.heard(1, given) == [Start()]
    assert one.expired(1) == [] and one.finished() == [Release(1)]


def test_what_is_said_is_read_again_and_other_bytes_are_nothing() -> None:
    for message in (Request(7, 3), Allocation(2, 7, 1), Release(7)):
        assert decode(encode(message)) == message
    assert decode(b"") is None and decode(b"hello") is None and decode(encode(Release(7))[:-1]) is None


@pytest.mark.parametrize("need", [(5, 8), (7, 8)])
def test_late_requests_cost_operations_the_more_the_more_there_are(need: tuple[int, int]) -> None:
    """Published: some 10 % of the operations with 5 % of the messages violating."""
    worlds = [World(share, 4.0, need, 1).run(500.0) for share in (0.0, 0.05, 0.1)]
    calm, some, many = (world.operations for world in worlds)
    assert 0.01 <= 1 - some / calm <= 0.12 and many < some, (calm, some, many)
    assert worlds[0].timeouts == 0 and all(world.units() == UNITS for world in worlds)


def test_the_longer_the_time_out_the_more_a_late_request_costs() -> None:
    short, long = (World(0.1, patience, (5, 8), 1).run(500.0).operations for patience in (1.0, 4.0))
    assert long < 0.95 * short


def test_the_experiment_of_the_paper_on_our_own_protocols() -> None:
    points = from_file(EXPERIMENT).points
    assert {p.parameters["load.sharing.violating"] for p in points} == {0.0, 0.05, 0.1}
    outcome = run(Scenario.from_dict({**points[-1].scenario, "limit_ms": 12_000.0}))
    assert outcome.notes["operation"] >= 15 and outcome.ended == "limit", outcome.notes


def test_a_lossy_exact_order_shares_too_and_the_run_ends_when_enough_was_said() -> None:
    load = {"regime": "sharing", "sharing": {"units": 4, "need": [2, 3], "work_ms": 20.0, "patience_ms": 200.0}}
    loss = {"fault": "loss", "p": 0.02, "until_ms": 400.0}
    outcome = run(Scenario.from_dict({"members": 4, "messages": 400, "load": load, "faults": [loss]}))
    assert outcome.ended == "delivered" and outcome.notes["operation"] > 60 and not outcome.notes["operation expired"]
    with pytest.raises(ConfigError, match=r"load.sharing.need.*at most 4 units"):
        Scenario.from_dict({"load": {"regime": "sharing", "sharing": {"units": 4, "need": [2, 5]}}})
