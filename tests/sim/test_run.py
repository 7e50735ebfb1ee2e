"""A run of the simulator: everything delivered, the same digest whenever it is run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.conformance.recording import replay
from ordercast.errors import UsageError
from ordercast.sim.faults import Crash, Duplication, Loss, Pause, Slow
from ordercast.sim.scenario import MS, Hosts, Load, Pace, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

PLAIN = Scenario(protocol="token_site", members=5, messages=400, seed=7)
ROUGH = Scenario(
    protocol="token_site",
    members=4,
    messages=300,
    seed=8,
    wire=True,
    faults=(
        Loss(p=0.2, at_ms=5, until_ms=60),
        Duplication(p=0.2, until_ms=100),
        Pause(member=2, at_ms=20, for_ms=25),
        Slow(member=3, at_ms=20, until_ms=100),
    ),
)
CODE = """
import sys
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
print(run(Scenario.from_toml(sys.stdin.read())).digest)
"""


@pytest.mark.parametrize("scenario", [PLAIN, ROUGH], ids=["plain", "rough"])
def test_everything_is_delivered_everywhere(scenario):
    outcome = run(scenario)
    assert outcome.ended == "delivered"
    assert outcome.messages == outcome.delivered == scenario.messages
    assert outcome.deliveries == scenario.messages * scenario.members
    assert set(outcome.status) == set(scenario.ids)


@pytest.mark.parametrize("scenario", [PLAIN, ROUGH], ids=["plain", "rough"])
def test_one_digest_under_any_hash_seed_and_level(scenario):
    digests = {run(scenario, level=level).digest for level in ("deliver", "full")}
    for seed in ("0", "4711"):
        out = subprocess.run(
            [sys.executable, "-c", CODE],
            input=scenario.to_toml(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(out.stdout.strip())
    assert len(digests) == 1


def test_another_seed_gives_another_run():
    assert run(PLAIN).digest != run(PLAIN.changed(seed=8)).digest


@pytest.mark.parametrize(("protocol", "layer"), [("totem", "ring"), ("token_site", "link")])
def test_a_status_counts_what_was_lost_by_its_sender(protocol, layer):
    calm = run(PLAIN.changed(protocol=protocol, members=3))
    assert [said[layer]["repeated"] for said in calm.status.values()] == [{}, {}, {}]
    lossy = run(PLAIN.changed(protocol=protocol, members=3, faults=(Loss(p=0.2, pairs=("1>*",), cast="multicast"),)))
    for member in (2, 3):
        repeated = lossy.status[member][layer]["repeated"]
        assert repeated[1] > 0 and repeated[1] == max(repeated.values())


def test_start_rows_tell_the_wall_clock():
    scenario = PLAIN.changed(faults=(Crash(member=2, at_ms=40, down_ms=60),), protocol="totem")
    starts = [row for row in run(scenario).trace.rows if row.kind == Kind.START]
    assert len(starts) == 6 and starts[-1].time_ns > 0
    assert {row.detail["wall_ns"] - row.time_ns for row in starts} == {scenario.start.wall_s * 10**9}


def test_rows_of_the_life_cycle():
    rows = run(PLAIN).trace.rows
    kinds = [Kind(row.kind) for row in rows if row.member == 0]
    assert kinds.count(Kind.START) == 5
    stable = [row for row in rows if row.kind == Kind.STABLE]
    assert [row.members for row in stable] == [(1, 2, 3, 4, 5)]
    ends = [row for row in rows if row.kind == Kind.END]
    assert [row.member for row in ends] == [1, 2, 3, 4, 5]
    assert all(row.detail["queues"] and not any(row.detail["queues"].values()) for row in ends)


@pytest.mark.parametrize("regime", ["poisson", "periodic", "quasi", "bursts", "saturate", "one_by_one"])
def test_every_load_regime_ends(regime):
    scenario = Scenario(
        protocol="token_site", members=3, messages=60, sizes=(0, 1, 64, 3000), load=Load(regime=regime, batch=2)
    )
    outcome = run(scenario)
    assert (outcome.delivered, outcome.ended) == (60, "delivered")


def test_idle_sends_nothing():
    outcome = run(Scenario(protocol="token_site", load=Load(regime="idle")))
    assert (outcome.messages, outcome.delivered, outcome.ended) == (0, 0, "delivered")


def test_one_talker_talks_alone():
    rows = run(Scenario(protocol="token_site", messages=20, senders=(2,))).trace.rows
    assert {row.member for row in rows if row.kind == Kind.SUBMIT} == {2}


def test_wrong_words_are_one_sentence():
    with pytest.raises(UsageError, match="level: expected one of off, deliver, full, record"):
        run(PLAIN, level="some")
    with pytest.raises(UsageError, match="service: token_site provides agreed, not safe"):
        run(PLAIN.changed(service="safe"))
    with pytest.raises(UsageError, match="options of token_site"):
        run(PLAIN.changed(options={"fast": True}))


def test_a_recorded_run_replays_byte_for_byte(tmp_path):
    from ordercast.conformance.recording import replay

    plain = run(ROUGH)
    outcome = run(ROUGH, level="record", record=tmp_path)
    assert outcome.digest == plain.digest
    replayed = replay(tmp_path)
    assert len(replayed) == ROUGH.members
    assert all(each.inputs > 100 and not each.difference for each in replayed)


def test_process_groups_are_joined_left_and_addressed():
    from ordercast.sim.faults import Crash, Regroup
    from ordercast.verify import check

    faults = (Regroup(member=1, at_ms=60, away_ms=50), Regroup(at_ms=90), Crash(member=3, at_ms=120, down_ms=100))
    scenario = Scenario(protocol="totem", members=4, messages=200, groups=3, seed=5, load=Load(rate=100.0))
    scenario = scenario.changed(faults=faults, heal_ms=400)
    outcome = run(scenario, level="full")
    assert outcome.ended == "delivered"
    kinds = [row.kind for row in outcome.trace.rows]
    assert kinds.count(Kind.GROUP_VIEW) > 6
    assert {row.groups for row in outcome.trace.rows if row.kind == Kind.DELIVER} > {("g1",), ("g2",), ("g3",)}
    verdicts = {verdict.promise: verdict.state for verdict in check(outcome.trace)}
    assert "broken" not in verdicts.values()
    assert verdicts["S21"] == verdicts["S22"] == "holds"


def test_groups_need_a_protocol_that_has_them():
    with pytest.raises(UsageError, match="groups: causal has no process groups"):
        run(Scenario(protocol="causal", groups=2))


def test_senders_have_rates_of_their_own_that_change() -> None:
    """Member 1 talks fast and falls silent, 2 goes on, 3 begins late."""
    rates = (
        Pace(members=(1,), rate=1000.0),
        Pace(members=(3,), rate=0.0),
        Pace(members=(1,), rate=0.0, at_ms=200.0),
        Pace(members=(3,), rate=500.0, at_ms=300.0),
    )
    load = Load(rate=50.0, rates=rates, start_ms=50.0)
    outcome = run(Scenario(protocol="fifo", members=3, messages=300, seed=2, load=load))
    times: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for row in outcome.trace.rows:
        if row.kind == Kind.SUBMIT:
            times[row.member].append(row.time_ns / MS)
    counts = {member: len(line) for member, line in times.items()}
    assert counts == pytest.approx({1: 150, 2: 25, 3: 125}, abs=30) and sum(counts.values()) == 300
    assert times[1][0] >= 50.0 and times[1][-1] < 200.0 and times[3][0] >= 300.0
    assert outcome.delivered == 300


def test_one_message_per_frame() -> None:
    """As the papers count: nothing shares a frame, whatever waits; what is too large is still cut."""
    scenario = Scenario(
        protocol="totem", members=3, messages=60, sizes=(10, 3000), load=Load(regime="saturate", batch=10)
    )
    for pack in (True, False):
        outcome = run(scenario.changed(pack=pack))
        counts = {row.count for row in outcome.trace.rows if row.kind == Kind.ORIGINATE}
        assert (counts == {1}) != pack
        assert outcome.delivered == 60


def test_a_run_without_packing_and_with_a_small_outbox_replays(tmp_path: Path) -> None:
    hosts = Hosts(outbox_bytes=500)
    scenario = Scenario(
        protocol="token_site", members=2, messages=60, pack=False, hosts=hosts, load=Load(regime="saturate")
    )
    run(scenario, level="record", record=tmp_path)
    assert [found.difference for found in replay(tmp_path)] == ["", ""]
