"""A process that dies is found out by its port, whatever became of the token: nobody has to wait for T_loss."""

from __future__ import annotations

import pytest

from ordercast.sim.faults import Crash, Pause
from ordercast.sim.scenario import Hosts, Load, Net, Scenario
from ordercast.swarm.judge import judge
from ordercast.trace.schema import Kind
from ordercast.types import ViewKind

RINGS = (Net(members=(1, 2, 3)), Net(members=(3, 4, 5)))


def causes(*faults: Crash | Pause) -> list[str]:
    """Why each survivor's first view without the gateway came."""
    scenario = Scenario(
        protocol="multiring", members=5, nets=RINGS, messages=300, load=Load(rate=200.0), faults=faults,
        hosts=Hosts(unreachable=True), heal_ms=500.0, core=(1, 2), away="crashed",
    )  # fmt: skip
    found = judge(scenario)
    assert found.ok and found.outcome is not None, found.breaks
    rows = found.outcome.trace.rows
    died = next(row.time_ns for row in rows if row.kind == Kind.CRASH)
    out: dict[int, str] = {}
    for row in rows:
        if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR and row.time_ns >= died:
            assert row.detail is not None and row.members is not None
            if 3 not in row.members:
                out.setdefault(row.member, row.detail["reason"])
    assert set(out) == {1, 2, 4, 5}
    return sorted(set(out.values()))


@pytest.mark.parametrize("nth", [1, 4, 55, 58])
def test_of_a_gateway_that_dies_between_its_frames_and_the_token(nth: int) -> None:
    assert causes(Crash(member=3, at_ms=100.0, on="Token", nth=nth)) == ["crash hint"]


def test_of_a_gateway_that_stood_still_until_its_tokens_went_by_multicast() -> None:
    """T is 40 ms, the second repetition comes after 19 ms."""
    stopped, died = Pause(member=3, at_ms=100.0, for_ms=35.0), Crash(member=3, at_ms=122.0)
    assert causes(stopped, died) == ["crash hint"]
