"""View changes under an order: the source of a frame dies at every stage; a link hides what it loses."""

from __future__ import annotations

import pytest
from tests.transis.vs_world import ONSET, T_MS, Struck, scenario

from ordercast.conformance.script import Script
from ordercast.sim.faults import Cut
from ordercast.swarm.judge import judge_outcome
from ordercast.trace.schema import Kind

BOTH = pytest.mark.parametrize("protocol", ["abcast", "tomp"])
# 3 sends c; 2 has sent b, which 3 has before c, and 1 after it
STAGES = {
    "before the frame reaches all": ("pass 3 1", "drop 3 2", "crash 3"),
    "after all answers": (
        "pass 3 1", "pass 3 2", "pass 2 1 1", "quietly pass 1 3", "quietly pass 2 3", "drop 3 1", "drop 3 2", "crash 3",
    ),
    "after the validation reached one": (
        "pass 3 1", "pass 3 2", "pass 2 1 1", "pass 1 3", "pass 2 3", "pass 3 1", "drop 3 2", "crash 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("protocol", ["abcast", "allack", "hybrid", "symmetric", "token_site", "tomp", "toto"])
@pytest.mark.parametrize("stage", STAGES)
def test_V19_the_source_dies(protocol: str, stage: str) -> None:
    """The survivors deliver its message, in one order with those of others."""
    made = Script()
    for line in (f"members 3 protocol={protocol}", "run 30ms", "submit 2 b", "submit 3 c", *STAGES[stage], "run 200ms"):
        made.run(line)
    assert "1: view 12.1 of 1 2" in made.out
    assert made.members[1].log == made.members[2].log and sorted(made.members[1].log) == ["2.1", "3.1"]


@BOTH
def test_F11_heartbeats_pass_and_data_do_not(protocol: str) -> None:
    """Nobody is silent, and nothing could be delivered by anybody: 1 and 2 part, and go on."""
    faults = (Cut(pairs=("1>2",), packets=("Data", "Retrans", "Unicast", "FlushData"), at_ms=ONSET * T_MS,
                  lasting=True),)  # fmt: skip
    world = Struck(scenario(3, protocol, faults, heal_ms=None, closing=0, limit_ms=120 * T_MS, messages=600))
    outcome = world.run()
    assert outcome.notes["stuck link"] >= 1
    assert not [b for b in judge_outcome(outcome).breaks if b.promise.startswith("S")]
    late = [
        row.member for row in outcome.trace.rows if row.kind == Kind.DELIVER and row.time_ns > 2 * ONSET * T_MS * 1e6
    ]
    assert {1, 2, 3} <= set(late), "everybody goes on delivering"
