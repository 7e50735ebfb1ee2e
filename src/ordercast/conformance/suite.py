"""The conformance suite: whoever writes a protocol runs the same checks on it.

``check_protocol("totem")`` for a registered one; ``check_protocol(info, maker)`` for one of your own, where maker takes
a `Setup` and returns a `Stack`.  Every service it provides goes through every situation below, in the simulator, with
packets going through the wire's encoding; all promises it claims must hold, nothing may be left waiting, and the same
seed must give the same run.  The error says which promise broke, where, and with which scenario.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from ordercast import registry, verify
from ordercast.contract import Setup
from ordercast.registry import ProtocolInfo
from ordercast.sim.faults import (
    AnyFault,
    Corruption,
    Crash,
    DiskFault,
    Duplication,
    Leaving,
    Loss,
    Partition,
    Pause,
    Reordering,
    SmallBuffer,
)
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.stack import Stack
from ordercast.types import PRIMARY_MAJORITY

Maker = Callable[[Setup], Stack]


class NotConforming(AssertionError):
    """A promise was broken; the text is the promise, the smallest example and the scenario."""


def situations(protocol: str, service: str) -> Iterator[tuple[str, Scenario]]:
    """What every protocol must master, as (name, scenario)."""
    base = Scenario(protocol=protocol, service=service, members=3, messages=120, wire=True)
    make = msgspec.structs.replace
    yield "three members, no faults", base
    yield "alone", make(base, members=1, messages=30)
    yield "two members", make(base, members=2)
    yield "nine members", make(base, members=9, messages=90)
    yield "one talker, others silent", make(base, senders=(2,), load=Load(rate=200.0))
    yield "one message at a time", make(base, messages=40, load=Load(regime="one_by_one"))
    yield "nothing to say", make(base, messages=0, load=Load(regime="idle"))
    yield "saturated", make(base, members=4, messages=2_000, load=Load(regime="saturate"))
    yield "bursts", make(base, load=Load(regime="bursts", rate=20.0, burst=15))
    limit = base.datagram_bytes
    sizes = (0, 1, limit - 200, limit - 1, limit, limit + 1, 3 * limit)
    yield "sizes around the limits", make(base, sizes=sizes)
    survives = registry.get(protocol).survives
    if "loss" in survives:
        yield "a fifth is lost", make(base, faults=(Loss(p=0.2, until_ms=400.0),), heal_ms=400.0)
    if "overload" in survives:
        small = SmallBuffer(member=1, packets=3, until_ms=200.0)
        yield "a small receive buffer", make(base, faults=(small,), heal_ms=200.0, load=Load(regime="saturate"))
    if {"duplication", "reordering"} <= survives:
        faults = (Duplication(p=0.2, until_ms=300.0), Reordering(p=0.2, until_ms=300.0))
        yield "duplicates and reordering", make(base, faults=faults, heal_ms=300.0)
    if "corruption" in survives:
        yield "flipped bits", make(base, faults=(Corruption(p=0.1, until_ms=300.0),), heal_ms=300.0)
    if "pause" in survives:
        yield "a member stands still", make(base, faults=(Pause(member=2, at_ms=20.0, for_ms=25.0),), heal_ms=100.0)
    if registry.get(protocol).changes_views:
        base = make(base, members=4, load=Load(rate=100.0), closing=4, timeout_ms=40.0)
        yield from _changes(base)
        if PRIMARY_MAJORITY in registry.get(protocol).partitions:
            yield from _one_part(make(base, partition=PRIMARY_MAJORITY))


def _one_part(base: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Only one part of a split group goes on: the other waits, and what it accepted is sent later."""
    make = msgspec.structs.replace
    split = Partition(groups=((1, 2), (3, 4)), at_ms=300.0, until_ms=600.0)
    yield "primary: two halves", make(base, faults=(split,), heal_ms=600.0)
    other = Partition(groups=((1, 4), (2, 3)), at_ms=400.0, until_ms=600.0)
    early = make(split, until_ms=400.0)
    yield "primary: other halves after these", make(base, faults=(early, other), heal_ms=600.0)
    crashes = tuple(Crash(member=m, at_ms=300.0, down_ms=50.0 * m, disk=m != 4) for m in (2, 3, 4))
    yield "primary: three die and come back, one without its disk", make(base, faults=crashes, heal_ms=900.0)
    yield "primary: a minority is left", make(base, faults=crashes[1:], heal_ms=310.0, core=(2,), away="cut")


def _changes(base: Scenario) -> Iterator[tuple[str, Scenario]]:
    """What a protocol whose views change must master beside: a group under load loses and gets members."""

    def hurt(*faults: AnyFault, heal_ms: float = 900.0, **fields: object) -> Scenario:
        return msgspec.structs.replace(base, faults=faults, heal_ms=heal_ms, **fields)

    yield "a crash", hurt(Crash(member=2, at_ms=300.0), core=(1, 3, 4))
    yield "a crash and a return", hurt(Crash(member=4, at_ms=300.0, down_ms=150.0))
    yield "a return without its disk", hurt(Crash(member=1, at_ms=300.0, down_ms=10.0, disk=False))
    yield "a split and a merge", hurt(Partition(shape="halves", at_ms=300.0, until_ms=600.0))
    yield "a member leaves", hurt(Leaving(member=3, at_ms=300.0), core=(1, 2, 4))
    yield "a pause that costs a view", hurt(Pause(member=2, at_ms=300.0, for_ms=120.0))
    full = DiskFault(member=2, how="full", at_ms=250.0, until_ms=700.0)
    yield "storage that fails", hurt(full, Crash(member=3, at_ms=300.0, down_ms=100.0))


def check_protocol(protocol: str | ProtocolInfo, maker: Maker | None = None, *, seeds: int = 2) -> int:
    """Raise NotConforming, or return the number of runs that held."""
    info = protocol if isinstance(protocol, ProtocolInfo) else registry.get(protocol)
    known = info.name in registry.names()
    if not known:
        registry.register(info)
    try:
        runs = 0
        for service in info.provides:
            for name, scenario in situations(info.name, service.word):
                for seed in range(1, seeds + 1):
                    _check_run(name, msgspec.structs.replace(scenario, seed=seed), maker)
                    runs += 1
        return runs
    finally:
        if not known:
            registry.unregister(info.name)


def _check_run(name: str, scenario: Scenario, maker: Maker | None) -> None:
    outcome = run(scenario, level="full", maker=maker)
    info = registry.get(scenario.protocol)
    where = f"{scenario.protocol}, {scenario.service}, {name}, seed {scenario.seed}"
    for verdict in verify.check(outcome.trace):
        if verdict.state == "broken":
            rows = "\n".join(f"    {row}" for row in verdict.example)
            raise NotConforming(f"{where}: {verdict.promise} broken: {verdict.text}\n{rows}")
    allowed = 0 if info.exact else math.ceil(verify.RATE * outcome.messages)
    everywhere = outcome.messages == scenario.messages and outcome.delivered >= outcome.messages - allowed
    if not everywhere and not scenario.closing:  # where members come and go, promises alone say who delivers what
        raise NotConforming(f"{where}: {outcome.delivered} of {scenario.messages} messages were delivered everywhere")
    again = run(scenario, level="deliver", maker=maker)
    if again.digest != outcome.digest:
        raise NotConforming(f"{where}: S25 broken: the same seed gave another run")
