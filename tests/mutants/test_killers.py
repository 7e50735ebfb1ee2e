"""What kills each mutant still does, the sound protocol survives every directed scenario, and nobody is forgotten."""

from __future__ import annotations

import pytest
from tests.mutants import MUTANTS, killers
from tests.mutants.hunt import SCENARIOS, directed

from ordercast.swarm.judge import judge
from ordercast.swarm.seeds import expand

KILLERS = killers.read()
AGAIN = [name for name, kill in KILLERS.items() if kill.promise != "S25"]  # those take two processes each


@pytest.mark.parametrize("name", AGAIN)
def test_is_killed_again(name: str) -> None:
    kill, mutant = KILLERS[name], MUTANTS[name]
    scenario = directed(kill.scenario) if kill.scenario else expand(kill.seed or 0, (mutant.protocol,)).scenario
    assert not judge(scenario, maker=mutant.maker).ok, f"run `python -m tests.mutants {name} --write`"


@pytest.mark.parametrize("title", SCENARIOS)
def test_the_sound_protocol_survives(title: str) -> None:
    assert [found.text for found in judge(directed(title), plain=True).breaks] == []


def test_each_is_killed_or_explained() -> None:
    reasons = killers.reasons()
    assert set(KILLERS) | set(reasons) == set(MUTANTS)
    assert not set(KILLERS) & set(reasons), "what is killed needs no reason to live"
    assert len(KILLERS) >= 0.85 * len(MUTANTS)
    assert {mutant.scenario for mutant in MUTANTS.values()} - {""} <= set(SCENARIOS)
