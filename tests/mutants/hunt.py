"""The hunt for one mutant: run after run until one breaks a promise.  Happens in a child process.

First the directed scenario (tests/mutants/scenarios) or the row of the membership's table (rows.py) the mutant names,
then the seeds, those with little work first, then the other directed scenarios of its protocol and the other rows; at
the end the case (cases.py) it names.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from tests.mutants import cases, expect, rows
from tests.mutants.registry import MUTANTS, Maker, make

from ordercast.sim.scenario import Scenario
from ordercast.swarm.judge import RAISES, judge
from ordercast.swarm.seeds import expand

By = dict[str, Any]  # a run, named by one of: seed, scenario, row, case
WORK = "tests.mutants.hunt:hunt"
MEMBERS_MAX = 8  # larger groups cost most and kill nothing that small ones do not
MAKE = "tests.mutants.registry:make"
SCENARIOS = {path.stem: path for path in sorted(Path(__file__).with_name("scenarios").glob("*.toml"))}
EXPECTED = expect.read()
RUN_S = 10.0  # seconds of work one run may take: killers are run again in every test, and some mutants never end


MISFITS = ("AttributeError", "ImportError", "NameError", "TypeError")  # of code that does not fit together


class TooLong(BaseException):
    """A run is given up; that kills nobody."""


class Misfit(Exception):
    """A mutant was written for other code: it raises before it can break anything, and that kills nobody."""


def variant(name: str) -> str:
    """How a task names a mutant."""
    return f"{MAKE}:{name}"


def hunt(argument: dict[str, Any]) -> dict[str, Any]:
    """argument: name, first, last (not included).  What killed it, or nothing; `tried` counts seeds."""
    name = argument["name"]
    maker = make(name)
    tried, given_up = 0, 0
    for by in runs(name, range(argument["first"], argument["last"])):
        tried += "seed" in by
        try:
            promise, text = limited(by, MUTANTS[name].protocol, maker)
        except TooLong:
            given_up += 1
            continue
        if promise:
            return {**by, "tried": tried, "given_up": given_up, "promise": promise, "text": text}
    return {"tried": tried, "given_up": given_up, "promise": ""}


def runs(name: str, seeds: range) -> Iterator[By]:
    """What is tried, in its order."""
    mutant = MUTANTS[name]
    if mutant.scenario:
        yield {"scenario": mutant.scenario}
    if mutant.row:
        yield {"row": mutant.row}
    scenarios = {seed: expand(seed, (mutant.protocol,)).scenario for seed in seeds}
    for seed in sorted(scenarios, key=lambda seed: work(scenarios[seed])):
        if scenarios[seed].members <= MEMBERS_MAX:
            yield {"seed": seed}
    for title in SCENARIOS:
        if title != mutant.scenario and directed(title).protocol == mutant.protocol:
            yield {"scenario": title}
    if mutant.protocol == rows.PROTOCOL:
        yield from ({"row": title} for title in rows.SHORT if title != mutant.row)
    if mutant.case:
        yield {"case": mutant.case}


def broken(by: By, protocol: str, maker: Maker) -> tuple[str, str]:
    """(promise, what broke it) of one run with this variant; empty if nothing did."""
    promise, text = _broken(by, protocol, maker)
    if promise == RAISES and text.startswith(MISFITS):
        raise Misfit(text)
    return promise, text


def _broken(by: By, protocol: str, maker: Maker) -> tuple[str, str]:
    if "row" in by:
        return rows.broken(by["row"], maker)
    if "case" in by:
        return cases.broken(by["case"], maker)
    scenario = directed(by["scenario"]) if "scenario" in by else expand(by["seed"], (protocol,)).scenario
    judgement = judge(scenario, maker=maker)
    if judgement.breaks:
        return judgement.breaks[0].promise, judgement.breaks[0].text
    wanted = EXPECTED.get(by.get("scenario", ""))
    assert judgement.outcome is not None
    return wanted.broken(scenario, judgement.outcome.trace) if wanted else ("", "")


def directed(title: str) -> Scenario:
    return Scenario.from_file(SCENARIOS[title])


def work(scenario: Scenario) -> float:
    """About how many events a run has: messages times members, and rotations of a token that rarely rests."""
    span_ns = 1e6 * (scenario.heal_ms or scenario.limit_ms)
    return scenario.messages * scenario.members + span_ns / max(1.0, scenario.nets[0].delay.mean)


def limited(by: By, protocol: str, maker: Maker) -> tuple[str, str]:
    """As `broken`, unless it takes too long."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_S)
    try:
        return broken(by, protocol, maker)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
