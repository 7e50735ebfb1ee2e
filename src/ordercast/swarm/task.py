"""What a child process does with one seed: expand, run, judge, and answer with a row."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Scenario
from ordercast.swarm.failure import describe_failure
from ordercast.swarm.judge import Judgement, Maker, judge
from ordercast.swarm.probes import reached
from ordercast.swarm.seeds import SeedPlan, expand
from ordercast.swarm.shrink import shrink
from ordercast.verify.plain.model import Run
from ordercast.verify.plain.quasi import tally

WORK_SEED = "ordercast.swarm.task:seed"
WORK_SHRINK = "ordercast.swarm.task:shrunk"
PLAIN_EVERY = 10  # the plain checkers judge each tenth seed beside the array ones
EXAMPLE_ROWS = 12
TEXT_CHARS = 600


class Task(Struct):
    """One seed to run.  `variant`: "module:function:name" of a known-bad variant, whose maker the function gives."""

    seed: int
    protocols: tuple[str, ...] = ()
    variant: str = ""
    plain: bool = False
    state: bool = False  # with replicas of a ledger above the protocol


class SeedRow(Struct):
    """One row of a campaign.  All of it follows from the seed and the version, so it can be compared."""

    seed: int
    protocol: str
    service: str
    members: int
    regime: str
    options: str
    on: tuple[str, ...]
    left_out: tuple[str, ...]
    events: int
    datagrams: int
    messages: int
    deliveries: int
    sim_ns: int
    ended: str
    digest: str
    faults: dict[str, int]
    probes: dict[str, int]
    held: list[str]
    unjudged: dict[str, str]
    plain: bool
    broken: list[dict[str, Any]]  # promise, text, example
    quasi: tuple[int, int] = (0, 0)  # messages that violate quasi order, of how many; where that is promised

    @property
    def ok(self) -> bool:
        return not self.broken


def maker_of(variant: str) -> Maker | None:
    """The maker behind "module:function:name"; nothing named: the protocol's own."""
    if not variant:
        return None
    module, function, name = variant.split(":")
    maker: Maker = getattr(importlib.import_module(module), function)(name)
    return maker


def seed(argument: dict[str, Any]) -> dict[str, Any]:
    """Run one seed and judge it."""
    task = msgspec.convert(argument, Task)
    plan = expand(task.seed, task.protocols, task.state)
    plain = task.plain or task.seed % PLAIN_EVERY == 0
    judgement = judge(plan.scenario, maker=maker_of(task.variant), plain=plain)
    answer: dict[str, Any] = msgspec.to_builtins(row(plan, judgement))
    return answer


def row(plan: SeedPlan, judgement: Judgement) -> SeedRow:
    outcome, scenario = judgement.outcome, plan.scenario
    return SeedRow(
        seed=plan.seed,
        protocol=scenario.protocol,
        service=scenario.service,
        members=scenario.members,
        regime=plan.regime,
        options=plan.text(),
        on=plan.on,
        left_out=plan.left_out,
        events=outcome.events if outcome else 0,
        datagrams=outcome.datagrams if outcome else 0,
        messages=outcome.messages if outcome else 0,
        deliveries=outcome.deliveries if outcome else 0,
        sim_ns=outcome.sim_ns if outcome else 0,
        ended=outcome.ended if outcome else "raised",
        digest=outcome.digest if outcome else "",
        faults=dict(sorted(outcome.faults.items())) if outcome else {},
        probes=dict(sorted(reached(outcome, scenario).items())) if outcome else {},
        held=judgement.held,
        unjudged=judgement.unjudged,
        plain=judgement.plain,
        broken=[
            {"promise": b.promise, "text": b.text[:TEXT_CHARS], "example": b.example[:EXAMPLE_ROWS]}
            for b in judgement.breaks
        ],
        quasi=_quasi(outcome) if outcome else (0, 0),
    )


def _quasi(outcome: Outcome) -> tuple[int, int]:
    if "Q1" not in outcome.trace.header.promises:
        return 0, 0
    found = tally(Run(outcome.trace))
    return found.violating, found.messages


class ShrinkTask(Struct):
    """A failing seed, or scenario, to be made small."""

    promise: str
    budget_s: float
    seed: int = 0
    protocols: tuple[str, ...] = ()
    variant: str = ""
    scenario: dict[str, Any] | None = None
    state: bool = False


def shrunk(argument: dict[str, Any]) -> dict[str, Any]:
    """Make a failing run small, for at most `budget_s` seconds, and tell it."""
    task = msgspec.convert(argument, ShrinkTask)
    maker = maker_of(task.variant)
    if task.scenario is not None:
        scenario = Scenario.from_dict(task.scenario)
        options = "a scenario of its own"
    else:
        plan = expand(task.seed, task.protocols, task.state)
        scenario, options = plan.scenario, plan.text()
    small = shrink(scenario, task.promise, maker=maker, budget_s=task.budget_s)
    failure = describe_failure(task.seed, task.promise, options, small.scenario, small.steps, small.runs, maker)
    answer: dict[str, Any] = msgspec.to_builtins(failure)
    return answer
