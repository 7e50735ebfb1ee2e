"""What kills each mutant still does, the sound protocol survives every directed scenario, and nobody is forgotten."""

from __future__ import annotations

import random

import pytest
from tests.mutants import MUTANTS, cases, graphs, killers, rows
from tests.mutants.hunt import EXPECTED, SCENARIOS, Misfit, broken, directed

from ordercast import registry
from ordercast.contract import Setup
from ordercast.stack import Stack
from ordercast.swarm.judge import judge
from ordercast.types import Identity

KILLERS = killers.read()
AGAIN = [name for name, kill in KILLERS.items() if kill.promise != "S25"]  # those take two processes each


@pytest.mark.parametrize("name", AGAIN)
def test_is_killed_again(name: str) -> None:
    mutant, kept = MUTANTS[name], KILLERS[name]
    promise, text = broken(kept.by, mutant.protocol, mutant.maker)
    assert promise == kept.promise, f"{text}; if that is right, run `python -m tests.mutants {name} --write`"


@pytest.mark.parametrize("title", sorted({kill.row for kill in KILLERS.values()} - {""}))
def test_the_sound_protocol_shows_what_the_row_says(title: str) -> None:
    assert rows.broken(title, registry.get(rows.PROTOCOL).factory) == ("", "")


@pytest.mark.parametrize("title", cases.CASES)
def test_the_sound_protocol_delivers_what_the_definitions_say(title: str) -> None:
    assert cases.broken(title, registry.get(cases.PROTOCOL).factory) == ("", "")


@pytest.mark.parametrize("title", graphs.CASES)
def test_the_sound_dpg_does_what_the_examples_say(title: str) -> None:
    assert cases.broken(title, registry.get("dpg").factory) == ("", "")


@pytest.mark.parametrize("title", SCENARIOS)
def test_the_sound_protocol_survives(title: str) -> None:
    scenario = directed(title)
    judgement = judge(scenario, plain=True)
    assert [found.text for found in judgement.breaks] == []
    if title in EXPECTED:
        assert judgement.outcome is not None
        assert EXPECTED[title].broken(scenario, judgement.outcome.trace) == ("", "")


@pytest.mark.parametrize("name", sorted(killers.reasons()))
def test_a_survivor_fits_the_code(name: str) -> None:
    info = registry.get(MUTANTS[name].protocol)
    identity = Identity(1, 1, (1, 2))
    setup = Setup(identity, 40_000_000, info.options(), 1_000, random.Random(1))
    assert MUTANTS[name].maker(setup).start(0, identity, {})


def test_each_is_killed_or_explained() -> None:
    reasons = killers.reasons()
    assert set(KILLERS) | set(reasons) == set(MUTANTS)
    assert not set(KILLERS) & set(reasons), "what is killed needs no reason to live"
    assert len(KILLERS) >= 0.9 * len(MUTANTS)
    assert {mutant.scenario for mutant in MUTANTS.values()} - {""} <= set(SCENARIOS)
    assert {mutant.row for mutant in MUTANTS.values()} - {""} <= set(rows.SHORT)
    assert {mutant.case for mutant in MUTANTS.values()} - {""} <= {*cases.CASES, *graphs.CASES}
    assert set(EXPECTED) <= set(SCENARIOS)


def test_a_mutant_that_does_not_fit_the_code_kills_nobody() -> None:
    def outdated(setup: Setup) -> Stack:
        return setup.no_such_part  # type: ignore[attr-defined]

    for by in ({"seed": 21}, {"row": next(iter(rows.SHORT))}):
        with pytest.raises(Misfit, match="no_such_part"):
            broken(by, "totem", outdated)
