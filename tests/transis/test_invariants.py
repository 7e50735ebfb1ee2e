"""Variants that break an invariant of the layer which no promise states: the harness sees them."""

from __future__ import annotations

import pytest
from tests.mutants import MUTANTS
from vs_world import CHANGES, ONSET, T_MS, Struck, delivered_in, scenario

from ordercast.sim.faults import Loss
from ordercast.sim.scenario import Hosts, Load

BUSY = {"load": Load(regime="poisson", rate=300.0, start_ms=2 * T_MS), "messages": 1_200}


@pytest.mark.parametrize("variant", ["", "layer_plan_given_up"])
def test_R11_who_could_have_installed_a_plan_delivers_its_list(variant: str) -> None:
    """V6: without kept plans those who go on discard what the first to install delivered."""
    world = Struck(
        scenario(4, "token_site", CHANGES["crash of the last"](4), **BUSY),
        maker=MUTANTS[variant].maker if variant else None,
        note=("install", lambda w, who: w.isolate(who, 4.0)),
    )
    outcome = world.run()
    views = delivered_in(outcome.trace)
    old = next(view for view, lives in sorted(views.items()) if len(lives) == 4)
    lists = {tuple(messages) for messages, then in views[old].values() if then is not None}
    assert (len(lists) == 1) is (variant == "")


@pytest.mark.parametrize("variant", ["", "layer_frozen_inserts"])
def test_R4_nothing_is_inserted_after_the_freeze(variant: str) -> None:
    lossy = Loss(p=0.3, at_ms=(ONSET - 1) * T_MS, until_ms=(ONSET + 1) * T_MS)
    seen = 0
    for seed in range(1, 7):
        faults = (lossy, *CHANGES["restart"](4))
        hosts = Hosts(disk_us=100.0, unreachable=True)
        made = scenario(4, "causal", faults, seed=seed, **BUSY | {"hosts": hosts})
        try:
            Struck(made, maker=MUTANTS[variant].maker if variant else None).run()
        except AssertionError as why:
            assert "R4" in str(why)
            seen += 1
    assert (seen > 0) is (variant != "")


@pytest.mark.parametrize("variant", ["", "stable_one_too_far"])
def test_R1_nobody_releases_what_another_lacks(variant: str) -> None:
    world = Struck(
        scenario(4, "token_site", CHANGES["split"](4), **BUSY), maker=MUTANTS[variant].maker if variant else None
    )
    if not variant:
        world.run()
        return
    with pytest.raises(AssertionError, match="R1"):
        world.run()
