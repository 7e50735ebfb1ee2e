"""A seed expands to a scenario: always the same, within what the protocol survives, over the whole of the plan."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct, convert, structs

from ordercast import registry
from ordercast.registry import Draw
from ordercast.sim.faults import FAULTS, DiskFault
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.swarm import seeds
from ordercast.swarm.seeds import REGIMES, SCALES, expand
from ordercast.swarm.trouble import FAMILIES, MAKERS, PERMANENT, Ground, more
from ordercast.toml_input import struct_of
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY
from ordercast.verify.plain import check

PLANS = [expand(seed) for seed in range(400)]


def test_expansion_is_a_function_of_the_seed() -> None:
    assert [expand(seed) for seed in range(20)] == PLANS[:20]


def test_naming_the_drawn_protocol_changes_nothing() -> None:
    for plan in PLANS[:40]:
        assert expand(plan.seed, (plan.scenario.protocol,)) == plan


def test_scenarios_are_valid_and_survive_toml() -> None:
    for plan in PLANS[:100]:
        plan.scenario.check()
        assert Scenario.from_toml(plan.scenario.to_toml()) == plan.scenario


def test_every_family_of_the_simulator_can_be_drawn() -> None:
    assert {fault.family for fault in FAULTS} | {PERMANENT} == set(FAMILIES)


@pytest.mark.parametrize("protocol", registry.names())
def test_only_what_is_survived_is_drawn_and_the_rest_is_told(protocol: str) -> None:
    info = registry.get(protocol)
    assert info.survives <= set(FAMILIES)
    for seed in range(100):
        plan = expand(seed, (protocol,))
        families = {fault.family for fault in plan.scenario.faults}
        assert families <= set(plan.on) | {"partition"} if PERMANENT in plan.on else families <= set(plan.on)
        assert set(plan.on) <= info.survives
        assert set(plan.left_out) == set(FAMILIES) - info.survives
        assert plan.scenario.protocol in plan.text() and str(seed) in plan.text()


@pytest.mark.parametrize("protocol", ["totem", "multiring", "tomp"])
def test_a_fault_for_good_meets_a_load(protocol: str) -> None:
    """Silence would hide it: views that change when somebody speaks at last would look late."""
    scenarios = [plan.scenario for seed in range(300) if PERMANENT in (plan := expand(seed, (protocol,))).on]
    assert len(scenarios) > 10
    for scenario in scenarios:
        assert scenario.load.start_ms <= min(fault.at_ms for fault in scenario.faults)


def test_every_dimension_is_covered() -> None:
    assert {plan.regime for plan in PLANS} == set(REGIMES)
    assert {plan.scale for plan in PLANS} == set(SCALES)
    sizes = Counter(plan.scenario.members for plan in PLANS)
    assert set(sizes) == set(range(1, 17))
    assert sum(sizes[n] for n in range(3, 9)) > len(PLANS) // 2
    assert {True, False} == {plan.scenario.wire for plan in PLANS}
    assert any(not plan.on for plan in PLANS) and any(not plan.off for plan in PLANS)
    drawn = {family for plan in PLANS for family in plan.on}
    assert drawn >= set.union(*(set(registry.get(name).survives) - {PERMANENT} for name in registry.names()))


@pytest.mark.parametrize("protocol", registry.names())
def test_rates_differ_and_change_in_some_runs_of_every_protocol(protocol: str) -> None:
    plans = [expand(seed, (protocol,)) for seed in range(200)]
    drawn = [plan.scenario.load.rates for plan in plans if plan.scenario.load.rates]
    assert len(plans) // 20 <= len(drawn) <= len(plans) // 5
    assert any(pace.at_ms for rates in drawn for pace in rates)
    assert any(pace.at_ms and not pace.rate for rates in drawn for pace in rates)
    assert max(max(p.rate for p in rates) / min(p.rate for p in rates if p.rate) for rates in drawn) > 10


def test_strengths_spread_over_orders_of_magnitude() -> None:
    chances = [fault.p for plan in PLANS for fault in plan.scenario.faults if getattr(fault, "p", None) is not None]
    assert min(chances) < 0.01 and max(chances) > 0.5


def test_makers_give_their_own_family() -> None:
    from random import Random

    from ordercast.swarm.trouble import Ground

    ground = Ground(Random(1), (1, 2, 3), ("Data",), 40.0, 100.0, 500.0, 1472, (64,))
    for family, maker in MAKERS.items():
        for _ in range(20):
            for fault in maker(ground):
                assert fault.family == ("partition" if family == PERMANENT else family)
                assert fault.at_ms >= 100.0 and (fault.until_ms is None or fault.until_ms <= 500.0)


class _Options(Struct, frozen=True, forbid_unknown_fields=True):
    pace: Annotated[int, Meta(ge=0), Draw(0, 1)] = 5
    calm: bool = True
    kept: int = 5
    pair: Annotated[int, Meta(ge=2, le=9)] = 3
    word: Literal["one", "two"] = "one"


def test_an_option_says_itself_what_may_be_drawn() -> None:
    registry.register(structs.replace(registry.get("token_site"), name="drawn", options=_Options))
    try:
        drawn = [expand(seed, ("drawn",)).scenario.options for seed in range(200)]
    finally:
        registry.unregister("drawn")
    assert {options.get("pace") for options in drawn} == {None, 0, 1}
    assert {options.get("calm") for options in drawn} == {None, False}
    assert {options.get("pair") for options in drawn} == {None, 2, 9}
    assert {options.get("word") for options in drawn} == {None, "two"}
    assert not any("kept" in options for options in drawn)


@pytest.mark.parametrize("protocol", registry.names())
def test_what_may_be_drawn_is_allowed_and_the_swarm_names_no_option(protocol: str) -> None:
    swarm = "".join(path.read_text() for path in Path(seeds.__file__).parent.glob("*.py"))
    options = registry.get(protocol).options
    assert not [name for name in options.__struct_fields__ if f'"{name}"' in swarm]
    for name, values in registry.draws(options).items():
        for value in values:
            assert struct_of({name: value}, options, name) == convert({name: value}, options)


def test_the_policy_is_a_dimension_of_its_own() -> None:
    """Drawn where the protocol has it, never with a disk that lies, and other seeds are what they would be without."""
    info = registry.get("totem")
    plans = [expand(seed, ("totem",)) for seed in range(200)]
    drawn = [plan for plan in plans if plan.scenario.partition == PRIMARY_MAJORITY]
    assert 40 <= len(drawn) <= 80 and all(PRIMARY_MAJORITY in plan.text() for plan in drawn)
    faults = [fault for plan in drawn for fault in plan.scenario.faults]
    assert not [fault for fault in faults if isinstance(fault, DiskFault) and fault.how == "lost"]
    registry.register(structs.replace(info, partitions=info.partitions[:1]))
    try:
        without = [expand(seed, ("totem",)) for seed in range(200)]
    finally:
        registry.unregister("totem")
    assert all(plan.scenario.partition == ALL_CONTINUE for plan in without)
    assert all(one == two for one, two in zip(plans, without, strict=True) if one not in drawn)


def test_a_disks_fault_shows_at_a_start() -> None:
    """Drawn alone, a while of bad disk and a start would hardly ever meet."""
    missing = {"full", "error", "torn", "flip"}
    ground = Ground(random.Random(1), (1, 2, 3), (), 40.0, 120.0, 600.0, 1472, (64,))
    for seed in range(100):
        faults = tuple(more(ground, ("crash", "disk")))
        for how in missing & {fault.how for fault in faults if isinstance(fault, DiskFault)}:
            outcome = run(Scenario(members=3, messages=60, faults=faults, heal_ms=600.0, seed=seed), level="full")
            assert [verdict for verdict in check(outcome.trace) if verdict.state == "broken"] == [], faults
            if outcome.drops["disk"] + outcome.notes["storage_failed"]:
                missing.remove(how)
    assert not missing
