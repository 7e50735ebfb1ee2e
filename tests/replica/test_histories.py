"""Histories of objects in simulated groups that are hurt: linearizable under `primary-majority`; no number twice."""

from __future__ import annotations

import random

import pytest

from ordercast.sim.faults import AnyFault, Crash, Partition
from ordercast.sim.scenario import Scenario
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY

from .linear import Model, Op, counter, linearizable, queue, register
from .simulated import Histories, run

MODELS: dict[str, tuple[Model, object]] = {"n": (counter, 0), "q": (queue, ())}


def hurt(draw: random.Random, members: int) -> tuple[AnyFault, ...]:
    """Crashes and splits, one after the other."""
    faults: list[AnyFault] = []
    at = 200.0
    while at < 1_600:
        if draw.random() < 0.5:
            faults.append(Crash(at_ms=at, member=draw.randint(1, members), down_ms=draw.uniform(50, 300)))
        else:
            faults.append(
                Partition(at_ms=at, until_ms=at + draw.uniform(60, 300), shape=draw.choice(["halves", "isolate"]))
            )
        at += draw.uniform(100, 400)
    return tuple(faults)


def scenario(seed: int, protocol: str, partition: str) -> Scenario:
    draw = random.Random(f"histories/{seed}/{protocol}")
    members = draw.choice([3, 3, 4, 5])
    return Scenario(
        protocol=protocol, members=members, seed=seed, messages=0, calls=150, durable=1.0, partition=partition,
        faults=hurt(draw, members), heal_ms=2_000.0, timeout_ms=20.0,
    )  # fmt: skip


def fenced(ops: list[Op]) -> list[Op]:
    """Who got the lock; no two have one number."""
    got = [op for op in ops if op.method == "_ask" and op.answer]
    numbers = [op.answer for op in got]
    assert len(set(numbers)) == len(numbers), "one number twice"
    return got


def broken_of(histories: Histories) -> list[str]:
    """What is not linearizable, and owners of the lock that have one number, or a smaller one than earlier ones."""
    out = []
    for name, ops in histories.ops.items():
        if name != "l":
            model, start = MODELS.get(name, (register, None))
            out += [] if linearizable(ops, model, start) else [f"{name} is not linearizable: {ops}"]
    try:
        got = fenced(histories.ops["l"])
    except AssertionError as why:
        return [*out, str(why)]
    for op in got:
        late = [other for other in got if other.begin > (op.end or 0) and other.answer <= op.answer]
        out += [f"{each} got a number that is not above that of {op}" for each in late]
    return out


@pytest.mark.parametrize("protocol", ["totem", "toto"])
@pytest.mark.parametrize("seed", range(3))
def test_objects_are_linearizable_where_one_part_goes_on(protocol: str, seed: int) -> None:
    histories, _ = run(scenario(seed, protocol, PRIMARY_MAJORITY))
    assert not broken_of(histories)
    assert histories.answers > 40, "something was judged"


@pytest.mark.parametrize("protocol", ["totem", "token_site"])
def test_no_number_twice_where_all_parts_go_on(protocol: str) -> None:
    histories, _ = run(scenario(1, protocol, ALL_CONTINUE))
    assert len(fenced(histories.ops["l"])) > 1


def test_the_judge_sees_a_machine_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known bad: a member that comes back with an empty dictionary, counter and queue."""
    from ordercast.replica.counter import Counter

    monkeypatch.setattr(Counter, "restore", lambda self, piece: setattr(self, "value", 0))
    broken = 0
    for seed in range(3):
        histories, _ = run(scenario(seed, "totem", PRIMARY_MAJORITY))
        broken += not linearizable(histories.ops["n"], counter, 0)
    assert broken
