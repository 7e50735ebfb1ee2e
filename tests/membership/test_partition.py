"""`primary-majority` under every protocol that has it: one part of a split group goes on, and nothing is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ordercast import registry
from ordercast.contract import Store, Transmit
from ordercast.errors import UsageError
from ordercast.membership.packets import CommitToken
from ordercast.membership.primary import PRIMARY, RecordedEntry
from ordercast.protocols.totem.packets import RingEntry, Token
from ordercast.sim.driver import Driver
from ordercast.sim.faults import Crash, DiskFault, Leaving, Partition
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import MS, Load, Scenario
from ordercast.sim.world import run
from ordercast.swarm.judge import judge
from ordercast.trace.schema import Kind, Row
from ordercast.transis.packets import FlushToken
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY, ViewKind

PROTOCOLS = [name for name in registry.names() if PRIMARY_MAJORITY in registry.get(name).partitions]
SPLIT, HEAL = 100.0, 400.0


def scenario(protocol: str, *faults: Any, **fields: Any) -> Scenario:
    given: dict[str, Any] = {"members": 3, "messages": 0, "heal_ms": HEAL, "closing": 3, "settle_ms": 320.0} | fields
    return Scenario(protocol=protocol, partition=PRIMARY_MAJORITY, faults=tuple(faults), **given)


def held(scenario: Scenario) -> Outcome:
    """Nothing is broken, by both forms, and the chain of primary views was judged."""
    judged = judge(scenario, plain=True)
    assert judged.ok, judged.breaks
    assert judged.outcome is not None and "S8" in judged.held
    assert judged.outcome.trace.header.partition == PRIMARY_MAJORITY
    return judged.outcome


def views(outcome: Outcome, member: int, since_ms: float = 0, until_ms: float = 1e9) -> list[tuple[Any, ...]]:
    """(members, primary) of the regular views a member installed."""
    return [
        (row.members, (row.detail or {})["primary"])
        for row in outcome.trace.rows
        if row.member == member and row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR
        and since_ms * MS <= row.time_ns < until_ms * MS
    ]  # fmt: skip


def rows(outcome: Outcome, member: int, kind: Kind) -> list[Row]:
    return [row for row in outcome.trace.rows if row.member == member and row.kind == kind]


def test_who_has_it() -> None:
    with_views = [name for name in registry.names() if registry.get(name).views]
    assert [name for name in with_views if not registry.get(name).rings] == PROTOCOLS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_larger_part_goes_on_and_the_other_waits(protocol: str) -> None:
    """Under load: 1 is cut off, nothing is delivered there, and what it had accepted goes out afterwards."""
    cut = Partition(groups=((1,), (2, 3)), at_ms=SPLIT, until_ms=HEAL)
    load = Load(rate=2000.0)  # more than any window takes until the view changes
    outcome = held(scenario(protocol, cut, messages=2400, load=load))
    assert views(outcome, 1, SPLIT, HEAL) == [((1,), False)]
    assert views(outcome, 2, SPLIT, HEAL)[-1] == ((2, 3), True)
    assert views(outcome, 1, HEAL)[-1] == ((1, 2, 3), True)
    alone = next(row.time_ns for row in rows(outcome, 1, Kind.VIEW) if row.members == (1,))
    for kind in (Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT):
        assert not [row for row in rows(outcome, 1, kind) if alone < row.time_ns < HEAL * MS], kind
    refused = [(row.detail or {})["why"] for row in rows(outcome, 1, Kind.REFUSE) if alone < row.time_ns < HEAL * MS]
    assert refused and set(refused) == {"not primary"}
    accepted = sum(row.count or 0 for row in rows(outcome, 1, Kind.SUBMIT))
    originated = rows(outcome, 1, Kind.ORIGINATE)
    assert sum(row.count or 0 for row in originated) == accepted, "all leave in the end"
    waited = sum(row.count or 0 for row in originated if row.time_ns > HEAL * MS)
    last = max(row.counter or 0 for row in originated if row.time_ns < alone)
    assert waited and any(last < (row.counter or 0) for row in rows(outcome, 1, Kind.SUBMIT) if row.time_ns < alone)
    for member in (1, 2, 3):
        mine = [row for row in rows(outcome, member, Kind.DELIVER) if row.sender == 1 and row.time_ns > HEAL * MS]
        assert sum(row.count or 0 for row in mine) == waited


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_f8_one_member_installed_what_the_other_left_finished(protocol: str) -> None:
    """v = {1, 2, 3}; {1, 2} is finished by both and installed by 1 alone: then {2, 3} is not primary, {1} is."""
    split = Partition(groups=((1, 2), (3,)), at_ms=SPLIT, until_ms=HEAL)
    before = run(scenario(protocol, split))
    one, two = (
        next(row.time_ns for row in rows(before, m, Kind.VIEW) if row.members == (1, 2) and row.view_kind == 1)
        for m in (1, 2)
    )
    assert one < two
    moment = one / MS - 0.001  # what makes 1 install is on its way, what 1 sends then is lost
    faults = (
        Partition(groups=((1, 2), (3,)), at_ms=SPLIT, until_ms=moment),
        Partition(groups=((1,), (2, 3)), at_ms=moment, until_ms=HEAL),
    )
    outcome = held(scenario(protocol, *faults))
    assert outcome.notes["pending held"] == 2
    assert views(outcome, 1, SPLIT, HEAL) == [((1, 2), True), ((1,), True)]
    assert views(outcome, 2, SPLIT, HEAL) == [((2, 3), False)]
    assert views(outcome, 3, HEAL)[-1] == ((1, 2, 3), True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_of_three_come_back_without_their_state(protocol: str) -> None:
    """1 alone is no majority; back without records 2 and 3 count for nobody, until all are there."""
    crashes = [Crash(member=m, at_ms=SPLIT, down_ms=down, disk=False) for m, down in ((2, 120.0), (3, 240.0))]
    outcome = held(scenario(protocol, *crashes))
    assert views(outcome, 1) == [((1, 2, 3), True), ((1,), False), ((1, 2), False), ((1, 2, 3), True)]
    assert outcome.notes["record lost"] == 5, "told by 1 and 2 of 2, and by all of 2 and 3"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_their_state_two_of_three_are_enough(protocol: str) -> None:
    crashes = [Crash(member=m, at_ms=SPLIT, down_ms=down) for m, down in ((2, 120.0), (3, 240.0))]
    outcome = held(scenario(protocol, *crashes))
    assert views(outcome, 1) == [((1, 2, 3), True), ((1,), False), ((1, 2), True), ((1, 2, 3), True)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_leaves_where_nothing_can_be_sent_does_not_wait(protocol: str) -> None:
    cut = Partition(groups=((1,), (2, 3)), at_ms=SPLIT, until_ms=HEAL)
    outcome = held(scenario(protocol, cut, Leaving(member=1, at_ms=200.0), messages=1200, load=Load(rate=2000.0)))
    left = rows(outcome, 1, Kind.LEAVE)[0]
    assert left.time_ns < 240 * MS, "within T: its patience would be 8 T"
    unsent = (left.detail or {}).get("unsent")
    assert unsent, "what it had accepted when it was cut off is named"


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name in ("totem", "token_site")])
def test_process_groups_wait_for_a_primary_view(protocol: str) -> None:
    """Members that start apart join their groups when they can."""
    apart = Partition(groups=((1,), (2,), (3,)), at_ms=0.0, until_ms=200.0)
    again = Partition(groups=((1,), (2,), (3,)), at_ms=300.0, until_ms=HEAL)
    outcome = held(scenario(protocol, apart, again, messages=300, groups=3, load=Load(rate=300.0)))
    assert not [row for m in (1, 2, 3) for row in rows(outcome, m, Kind.GROUP_VIEW) if row.time_ns < 200 * MS]
    assert views(outcome, 1)[-1] == ((1, 2, 3), True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_storage_that_fails_keeps_a_member_out_of_primary_views_until_it_works(protocol: str) -> None:
    split = Partition(groups=((1, 2), (3,)), at_ms=SPLIT, until_ms=HEAL)
    full = DiskFault(member=2, how="full", at_ms=SPLIT, until_ms=250.0)
    outcome = held(scenario(protocol, split, full))
    assert outcome.notes["storage_failed"]
    shared = [row for row in rows(outcome, 2, Kind.VIEW) if row.members == (1, 2) and row.view_kind == 1]
    assert shared and shared[0].time_ns > 250 * MS


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("slow", [1.0, 100.0])
def test_an_attempt_is_stored_before_its_token_goes_on(protocol: str, slow: float, monkeypatch: Any) -> None:
    """From a member's commit entry on, no token says that it has finished before its record was answered."""
    said: dict[int, list[str]] = {1: [], 2: [], 3: []}
    carry_out, stored = Driver.perform, Driver._stored

    def perform(self: Driver, host: Any, actions: Any) -> None:
        for action in actions:
            if isinstance(action, Store) and action.key.endswith(PRIMARY):
                said[host.id].append("store")
            elif isinstance(action, Transmit) and isinstance(action.packet, CommitToken):
                said[host.id].append("commit")
            elif isinstance(action, Transmit) and isinstance(action.packet, FlushToken | Token):
                done = not isinstance(action.packet, FlushToken) or host.id in action.packet.done
                said[host.id].append("token" if done else "")
        carry_out(self, host, actions)

    def answered(self: Driver, host: Any, job: Any) -> None:
        said[host.id].append("stored")
        stored(self, host, job)

    monkeypatch.setattr(Driver, "perform", perform)
    monkeypatch.setattr(Driver, "_stored", answered)
    split = Partition(groups=((1, 2), (3,)), at_ms=SPLIT, until_ms=HEAL)
    outcome = run(scenario(protocol, split, DiskFault(member=2, how="slow", times=slow, at_ms=SPLIT, until_ms=HEAL)))
    assert views(outcome, 2, SPLIT, HEAL) == [((1, 2), True)]
    for member in (1, 2):
        waiting, fresh, seen = False, False, 0
        for what in said[member]:
            if what == "store":
                waiting = True
            elif what == "stored":
                waiting, seen = False, seen + waiting
            elif what == "commit":
                fresh = True
            elif what == "token" and fresh:
                assert not waiting, f"member {member} passed on a token of recovery before its record was stored"
                fresh = False
        assert seen >= 2


def test_without_the_policy_entries_are_as_they_were(monkeypatch: Any) -> None:
    """No record on the entry, none on the disk."""
    entries: list[bytes] = []
    keys: set[str] = set()
    carry_out = Driver.perform

    def perform(self: Driver, host: Any, actions: Any) -> None:
        keys.update(action.key for action in actions if isinstance(action, Store))
        for action in actions:
            if isinstance(action, Transmit) and isinstance(action.packet, CommitToken):
                entries.extend(entry.state for entry in action.packet.entries)
        carry_out(self, host, actions)

    monkeypatch.setattr(Driver, "perform", perform)
    outcome = run(Scenario(protocol="totem", messages=10))
    assert keys == {"ring/ring_seq"} and entries
    assert all(msgspec.msgpack.encode(msgspec.msgpack.decode(e, type=RingEntry)) == e for e in entries)
    with pytest.raises(msgspec.MsgspecError):
        msgspec.msgpack.decode(entries[0], type=RecordedEntry)
    assert all("primary" not in (row.detail or {}) for m in (1, 2, 3) for row in rows(outcome, m, Kind.VIEW))
    assert "S8" not in outcome.trace.header.promises


def test_other_policies_and_protocols_without_it_are_refused() -> None:
    with pytest.raises(UsageError, match="partition"):
        scenario("totem").changed(partition="keep-oldest").check()
    totem = registry.get("totem")
    registry.register(replace(totem, name="plain", partitions=(ALL_CONTINUE,)))
    registry.register(replace(totem, name="viewless", partitions=(ALL_CONTINUE,), views=False))
    try:
        for name, why in (("plain", "does not have this policy"), ("viewless", "has no views")):
            words = f"partition: primary-majority: {name} {why}: expected {ALL_CONTINUE}"
            with pytest.raises(UsageError, match=words):
                run(scenario(name))
    finally:
        registry.unregister("plain")
        registry.unregister("viewless")
