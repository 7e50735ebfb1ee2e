"""Replicas of a ledger over real protocols, in virtual time: a crash with its disk, a restart, a split."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ordercast.errors import UsageError
from ordercast.sim.faults import Crash, Partition
from ordercast.sim.ledger import Ledger
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.swarm.judge import RAISES, judge
from ordercast.swarm.seeds import expand
from ordercast.types import ALL_CONTINUE, POLICIES


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("protocol", ["totem", "token_site"])
def test_all_are_complete_and_equal_in_the_end(protocol: str, policy: str) -> None:
    faults = (
        Crash(member=2, at_ms=150.0, down_ms=150.0),
        Partition(shape="isolate", member=3, at_ms=450.0, until_ms=700.0),
    )
    scenario = Scenario(
        protocol=protocol, partition=policy, messages=20, calls=60, durable=0.5, faults=faults, heal_ms=1_000.0,
        settle_ms=1_500.0,
    )  # fmt: skip
    found = judge(scenario, plain=True)
    assert found.ok and {"A1", "A3", "A5", "A6"} <= set(found.held), found
    assert found.outcome is not None
    states = [status["state"] for status in found.outcome.status.values()]
    assert len({(state["n"], state["h"]) for state in states}) == 1 and len(states) == 3
    assert found.outcome.notes["answered"] > 20


def test_a_state_that_is_not_what_its_history_says_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known bad: a snapshot that leaves the last call out."""
    snapshot = Ledger.snapshot

    def early(self: Ledger) -> Iterator[bytes]:
        lines, self.lines = self.lines, self.lines[:-1]
        pieces = list(snapshot(self))
        self.lines = lines
        return iter(pieces)

    monkeypatch.setattr(Ledger, "snapshot", early)
    scenario = Scenario(
        protocol="totem", partition=ALL_CONTINUE, messages=0, calls=30, heal_ms=600.0, settle_ms=500.0,
        faults=(Crash(member=2, at_ms=200.0, down_ms=100.0, disk=False),),
    )  # fmt: skip
    found = judge(scenario)
    assert found.first == RAISES and "and not its state" in found.breaks[0].text


def test_a_seed_with_state_has_the_same_group_and_faults() -> None:
    plain, with_calls = expand(3, ("totem",)).scenario, expand(3, ("totem",), state=True).scenario
    assert with_calls.calls and with_calls.changed(calls=0, durable=0.0) == plain


@pytest.mark.parametrize(("fields", "level", "why"), [
    ({"protocol": "causal"}, "full", "no total order"),
    ({"protocol": "totem"}, "record", "not recorded"),
])  # fmt: skip
def test_where_replicas_cannot_be_it_says_so(fields: dict[str, str], level: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        run(Scenario(calls=1, **fields), level=level)  # type: ignore[arg-type]
