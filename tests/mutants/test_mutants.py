"""Every mutant that some seed kills is killed by that seed again; the survivors are those that are explained."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.mutants import MUTANTS
from tests.mutants.__main__ import reasons
from tests.mutants.hunt import hunt

KILLERS: dict[str, int] = tomllib.loads(Path(__file__).with_name("killers.toml").read_text(encoding="utf-8"))


def test_every_mutant_is_accounted_for() -> None:
    by_seed = {name for name, mutant in MUTANTS.items() if mutant.by == "swarm"}
    assert by_seed == set(KILLERS) | (set(reasons()) & by_seed)
    assert not set(KILLERS) & set(reasons())
    assert len(KILLERS) >= 0.9 * len(by_seed)


@pytest.mark.parametrize("name", sorted(KILLERS))
def test_is_killed(name: str) -> None:
    seed = KILLERS[name]
    found = hunt({"name": name, "first": seed, "last": seed + 1})
    assert found["seed"] == seed, f"{name} survives seed {seed}: run `python -m tests.mutants {name}`"


def test_the_canary_never_lives() -> None:
    for seed in range(5):
        assert hunt({"name": "canary", "first": seed, "last": seed + 1})["seed"] == seed
