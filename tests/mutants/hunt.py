"""The hunt for one mutant: run after run until one breaks a promise.  Happens in a child process.

First the directed scenario the mutant names (tests/mutants/scenarios), then the seeds, those with little work first,
then the other directed scenarios of its protocol.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from tests.mutants.registry import MUTANTS, make

from ordercast.sim.scenario import Scenario
from ordercast.swarm.judge import judge
from ordercast.swarm.seeds import expand

WORK = "tests.mutants.hunt:hunt"
MEMBERS_MAX = 8  # larger groups cost most and kill nothing that small ones do not
MAKE = "tests.mutants.registry:make"
SCENARIOS = {path.stem: path for path in sorted(Path(__file__).with_name("scenarios").glob("*.toml"))}
RUN_S = 10.0  # seconds of work one run may take: killers are run again in every test, and some mutants never end


class TooLong(BaseException):
    """A run is given up; that kills nobody."""


def variant(name: str) -> str:
    """How a task names a mutant."""
    return f"{MAKE}:{name}"


def hunt(argument: dict[str, Any]) -> dict[str, Any]:
    """argument: name, first, last (not included).  What killed it, or nothing; `tried` counts seeds."""
    name = argument["name"]
    maker = make(name)
    tried, given_up = 0, 0
    for seed, title, scenario in runs(name, range(argument["first"], argument["last"])):
        tried += not title
        try:
            judgement = _limited(scenario, maker)
        except TooLong:
            given_up += 1
            continue
        if not judgement.ok:
            found = judgement.breaks[0]
            by = {"scenario": title} if title else {"seed": seed}
            return {**by, "tried": tried, "given_up": given_up, "promise": found.promise, "text": found.text}
    return {"tried": tried, "given_up": given_up, "promise": ""}


def runs(name: str, seeds: range) -> Iterator[tuple[int, str, Scenario]]:
    """(seed, title of a directed scenario or "", scenario), in the order in which they are tried."""
    mutant = MUTANTS[name]
    if mutant.scenario:
        yield -1, mutant.scenario, directed(mutant.scenario)
    scenarios = {seed: expand(seed, (mutant.protocol,)).scenario for seed in seeds}
    for seed in sorted(scenarios, key=lambda seed: work(scenarios[seed])):
        if scenarios[seed].members <= MEMBERS_MAX:
            yield seed, "", scenarios[seed]
    for title in SCENARIOS:
        scenario = directed(title)
        if title != mutant.scenario and scenario.protocol == mutant.protocol:
            yield -1, title, scenario


def directed(title: str) -> Scenario:
    return Scenario.from_file(SCENARIOS[title])


def work(scenario: Scenario) -> float:
    """About how many events a run has: messages times members, and rotations of a token that rarely rests."""
    span_ns = 1e6 * (scenario.heal_ms or scenario.limit_ms)
    return scenario.messages * scenario.members + span_ns / max(1.0, scenario.nets[0].delay.mean)


def _limited(scenario: Scenario, maker: Any) -> Any:
    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_S)
    try:
        return judge(scenario, maker=maker)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
