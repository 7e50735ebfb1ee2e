"""Faults of processes, clocks, disks and applications: one test per class, its effect counted in the trace."""

import pytest

from ordercast import registry
from ordercast.sim.faults import (
    Burst,
    ClockJump,
    Consumer,
    Crash,
    DiskFault,
    Drift,
    Leaving,
    OtherTimeout,
    Pause,
    Slow,
    SmallBuffer,
    Storm,
    Version,
)
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Cost, Hosts, Load, Net, Scenario, Start
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

MS = 1_000_000
PLAIN = Scenario(
    protocol="tiny",
    messages=300,
    load=Load(regime="periodic", rate=500.0),
    nets=(Net(model="links", delay=Delay(mean_us=100)),),
    limit_ms=400.0,
)


def tiny(*faults, **fields):
    return run(PLAIN.changed(faults=faults, **fields), level="full")


def notes(outcome, name, member=None):
    rows = [r for r in outcome.trace.rows if r.kind == Kind.NOTE and r.detail["name"] == name]
    return [r for r in rows if member in (None, r.member)]


def rows(outcome, kind, member=None):
    return [r for r in outcome.trace.rows if r.kind == kind and member in (None, r.member)]


def ticks(outcome, member):
    return [(r.time_ns, r.now_ns) for r in notes(outcome, "tick", member)]


# ---------------------------------------------------------------------------------------------------------- crashes


def test_another_timeout_lasts_as_long_as_the_fault():
    seen = []

    def maker(setup):
        seen.append((setup.identity.me, setup.timeout_ns))
        return registry.get("tiny").factory(setup)

    fault = OtherTimeout(member=2, at_ms=50, until_ms=120, times=2.0)
    outcome = run(PLAIN.changed(faults=(fault,)), level="full", maker=maker)
    assert [timeout for member, timeout in seen if member == 2] == [40 * MS, 80 * MS, 40 * MS]
    assert [row.time_ns // MS for row in rows(outcome, Kind.CRASH)] == [50, 120]


def test_crash_between_handlers_for_good():
    outcome = tiny(Crash(member=2, at_ms=51))
    (crash,) = rows(outcome, Kind.CRASH)
    assert (crash.member, crash.sender, crash.time_ns) == (0, 2, 51 * MS)
    assert max(r.time_ns for r in outcome.trace.rows if r.member == 2) < 51 * MS
    (stable,) = rows(outcome, Kind.STABLE)
    assert stable.members == (1, 3)
    assert 2 not in outcome.status


@pytest.mark.parametrize("disk", [True, False])
def test_restart_with_and_without_disk(disk):
    outcome = tiny(Crash(member=2, at_ms=51, down_ms=20, disk=disk))
    first, second = notes(outcome, "started", 2)
    assert second.incarnation > first.incarnation
    assert second.detail["ring_seq"] > first.detail["ring_seq"]
    assert second.detail["ring_seq"] % 4 == 0
    assert second.detail["stored"] == ({"sent": 5} if disk else {})
    lives = [r.sender_incarnation for r in rows(outcome, Kind.START) if r.sender == 2]
    assert lives == [first.incarnation, second.incarnation]


def test_crash_in_mid_handler_carries_out_the_first_actions():
    whole = tiny(Crash(member=2, at_ms=51))
    assert len(notes(whole, "stored", 2)) == 5
    for actions, sent in ((1, 5), (2, 6)):  # a tick is: note, token, store, timer
        outcome = tiny(Crash(member=2, at_ms=55, actions=actions), load=Load(regime="idle"))
        (crash,) = rows(outcome, Kind.CRASH)
        assert crash.detail["reason"] == "mid-handler"
        assert crash.time_ns == 60 * MS
        assert len(notes(outcome, "tick", 2)) == 6
        tokens = [r for r in notes(outcome, "got", 3) if r.detail["source"] == 2]
        assert len(tokens) == sent
    assert outcome.faults == {"crash.mid_handler": 1}


def test_crash_just_before_a_packet_leaves():
    outcome = tiny(Crash(member=2, at_ms=55, on="Token", down_ms=5))
    tokens = [r for r in notes(outcome, "got", 3) if r.detail["source"] == 2 and r.detail["kind"] == "Token"]
    assert len([r for r in tokens if r.time_ns < 65 * MS]) == 5
    assert len(notes(outcome, "started", 2)) == 2


def test_restart_storm():
    outcome = tiny(Storm(member=1, at_ms=20, times=4, every_ms=30, down_ms=10))
    assert len(rows(outcome, Kind.CRASH)) == 4
    starts = notes(outcome, "started", 1)
    assert len(starts) == 5
    assert [r.incarnation for r in starts] == sorted({r.incarnation for r in starts})


def test_leave_and_come_back():
    outcome = tiny(Leaving(member=3, at_ms=50, away_ms=30))
    assert [r.member for r in rows(outcome, Kind.LEAVE)] == [3]
    assert len(notes(outcome, "started", 3)) == 2
    assert not [r for r in outcome.trace.rows if r.member == 3 and 50 * MS < r.time_ns < 80 * MS]


def test_a_core_is_healed_the_rest_stays_away():
    outcome = tiny(Crash(member=1, at_ms=20), Pause(member=2, at_ms=30, for_ms=60_000), heal_ms=100, core=(1, 2))
    (stable,) = rows(outcome, Kind.STABLE)
    assert stable.members == (1, 2)
    assert sorted(outcome.status) == [1, 2]
    assert [r.sender for r in rows(outcome, Kind.CRASH)] == [1, 3]
    assert [r.time_ns for r in rows(outcome, Kind.RESUME)] == [100 * MS]


# ----------------------------------------------------------------------------------------------- pauses, slowness


def test_pause_packets_before_late_timers():
    outcome = tiny(Pause(member=2, at_ms=50.5, for_ms=40))
    assert [(r.kind, r.sender, r.time_ns) for r in outcome.trace.rows if r.kind in (Kind.PAUSE, Kind.RESUME)] == [
        (Kind.PAUSE, 2, 50_500_000),
        (Kind.RESUME, 2, 90_500_000),
    ]
    during = [r for r in outcome.trace.rows if r.member == 2 and 50.5 * MS <= r.time_ns < 90.5 * MS]
    assert during == []
    back = [r.detail["name"] for r in outcome.trace.rows if r.time_ns == 90_500_000 and r.kind == Kind.NOTE]
    assert back.count("got") > 20
    assert back.index("drained") > max(k for k, name in enumerate(back) if name == "got")
    assert back.index("tick") > back.index("drained")
    assert outcome.deliveries == 900


def test_pause_while_holding_the_token():
    outcome = tiny(Pause(member=2, at_ms=55, for_ms=30, on="Token"), load=Load(regime="idle"))
    (pause,) = rows(outcome, Kind.PAUSE)
    assert pause.time_ns == 60 * MS
    at = [r.time_ns for r in notes(outcome, "got", 3)]
    assert at[5] - at[4] > 39 * MS
    assert [r.detail["number"] for r in notes(outcome, "tick", 2)][:7] == [1, 2, 3, 4, 5, 6, 7]


def test_slow_member_takes_longer_per_step():
    outcome = tiny(Slow(member=2, times=50, step_us=20))
    origin = {(r.sender, r.counter): r.time_ns for r in rows(outcome, Kind.ORIGINATE)}
    delay = {m: [r.time_ns - origin[r.sender, r.counter] for r in rows(outcome, Kind.RECEIVE, m)] for m in (1, 2)}
    assert set(delay[1]) == {min(delay[1])}
    assert min(delay[2]) >= min(delay[1]) + 1 * MS


def test_cost_function_of_the_scenario_and_of_the_caller():
    hosts = Hosts(receive=Cost(us=100, per_kb_us=10), transmit=Cost(us=50, latency_us=25), work=Cost(us=5))
    outcome = tiny(hosts=hosts, messages=30)
    origin = {(r.sender, r.counter): r.time_ns for r in rows(outcome, Kind.ORIGINATE)}
    delays = [r.time_ns - origin[r.sender, r.counter] for r in rows(outcome, Kind.RECEIVE)]
    assert min(delays) >= (100 + 50 + 25 + 5 + 100) * 1000
    asked = []

    def cost(what, size, messages, work, packet):
        asked.append((what, work))
        return (1000, 0) if what == "receive" else (0, 0)

    run(PLAIN.changed(messages=30), cost=cost)
    assert {what for what, _ in asked} >= {"receive", "transmit", "submit", "deliver", "timer", "work"}
    assert ("work", 1) in asked


# ----------------------------------------------------------------------------------------------------------- clocks


def test_drift_moves_timers_only():
    outcome = tiny(Drift(member=2, percent=10, at_ms=50))
    before = [b - a for (a, _), (b, _) in zip(ticks(outcome, 2)[:4], ticks(outcome, 2)[1:5], strict=True)]
    after = [b - a for (a, _), (b, _) in zip(ticks(outcome, 2)[6:9], ticks(outcome, 2)[7:10], strict=True)]
    assert set(before) == {10 * MS}
    assert all(9.0 * MS < gap < 9.2 * MS for gap in after)
    nows = [r.now_ns for r in outcome.trace.rows if r.member == 2]
    assert nows == sorted(nows)
    assert all(r.detail["late"] in (0, 1) for r in notes(outcome, "tick"))


def test_skewed_and_drifting_clocks():
    outcome = tiny(clocks=Clocks(skew_ms=500, drift_percent=10))
    paces = {m: (ticks(outcome, m)[10][0] - ticks(outcome, m)[0][0]) / (100 * MS) for m in (1, 2, 3)}
    assert len(set(paces.values())) == 3
    assert all(0.9 < pace < 1.12 for pace in paces.values())
    offsets = {r.now_ns - r.time_ns for m in (1, 2, 3) for r in rows(outcome, Kind.VIEW, m)}
    assert len(offsets) == 3


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_wall_clock_jumps_show_at_a_restart_only(by_ms):
    outcome = tiny(ClockJump(member=2, at_ms=40, by_ms=by_ms), Crash(member=2, at_ms=51, down_ms=20))
    first, second = (r.incarnation for r in notes(outcome, "started", 2))
    assert second > first
    assert (second - first > 3_000_000 * MS) == (by_ms > 0)
    calm = tiny(Crash(member=2, at_ms=51, down_ms=20))
    assert [t for t, _ in ticks(outcome, 2)] == [t for t, _ in ticks(calm, 2)]


def test_numbers_to_start_from():
    outcome = tiny(start=Start(ring_seq=2**32 - 4, incarnation=2**62), messages=3)
    assert {(r.incarnation, r.detail["ring_seq"]) for r in notes(outcome, "started")} == {(2**62, 2**32 - 4)}


# ------------------------------------------------------------------------------------------------------------- disk


def stored_after_crash(*faults):
    outcome = tiny(*faults, Crash(member=2, at_ms=61.05, down_ms=20))
    return outcome, notes(outcome, "started", 2)[1].detail["stored"]


def test_disk_slow():
    outcome = tiny(DiskFault(member=2, how="slow", times=100))
    ticked = {r.detail["number"]: r.time_ns for r in notes(outcome, "tick", 2)}
    waits = [r.time_ns - ticked[r.detail["number"]] for r in notes(outcome, "stored", 2)]
    assert min(waits) >= 10 * MS
    others = [r.time_ns - ticked[r.detail["number"]] for r in notes(outcome, "stored", 1)]
    assert max(others) < 10 * MS


@pytest.mark.parametrize(("how", "why"), [("full", "no space left on device"), ("error", "input/output error")])
def test_disk_full_and_write_error(how, why):
    outcome, stored = stored_after_crash(DiskFault(member=2, how=how, at_ms=25, until_ms=70))
    failed = notes(outcome, "store_failed", 2)
    assert {r.detail["why"] for r in failed} == {why}
    assert stored == {"sent": 2}


def test_no_life_begins_whose_incarnation_cannot_be_stored():
    outcome = tiny(DiskFault(member=2, how="full", until_ms=100), Crash(member=2, at_ms=50, down_ms=20))
    assert [r.time_ns for r in rows(outcome, Kind.START) if r.sender == 2] == [0, 100 * MS]
    assert notes(outcome, "started", 2)[1].detail["stored"] == {}


def test_disk_loses_what_it_acknowledged():
    outcome, stored = stored_after_crash(DiskFault(member=2, how="lost", at_ms=35))
    assert len(notes(outcome, "stored", 2)) > 6
    assert stored == {"sent": 3}


def passed_over(outcome):
    damaged = [r.detail["what"] for r in rows(outcome, Kind.DROP) if r.detail["reason"] == "disk"]
    assert outcome.drops["disk"] == len(damaged)
    return damaged


def test_disk_bit_flips_are_found_and_the_newest_good_record_used():
    seen = set()
    for seed in range(12):
        outcome = tiny(DiskFault(member=2, how="flip"), Crash(member=2, at_ms=61.05, down_ms=20), seed=seed)
        damaged = passed_over(outcome)
        good = [n for n in (6, 5, 4, 3) if f"tiny%2Fsent.{n % 4}.state" not in damaged]
        stored = notes(outcome, "started", 2)[1].detail["stored"]
        assert stored == ({"sent": good[0]} if good else {}), damaged
        assert set(damaged) <= {f"tiny%2Fsent.{k}.state" for k in range(4)} | {"incarnation.1.state"}
        seen |= {*damaged, *stored.values()}
    assert {6, 5, 3, "incarnation.1.state"} <= seen, "one back, and further, and the driver's own record"


def test_disk_torn_write():
    for seed in range(12):
        outcome = tiny(DiskFault(member=2, how="torn"), Crash(member=2, at_ms=60.05, down_ms=20), seed=seed)
        assert notes(outcome, "started", 2)[1].detail["stored"] == {"sent": 5}
        assert passed_over(outcome) == ["tiny%2Fsent.2.state"]


# --------------------------------------------------------------------------------------------------------- overload


def test_small_receive_buffer_drops_and_says_so():
    outcome = tiny(SmallBuffer(member=2, packets=3), Pause(member=2, at_ms=50, for_ms=40))
    lost = [r for r in rows(outcome, Kind.DROP, 2) if r.detail["reason"] == "buffer"]
    assert len(lost) > 20
    told = sum(r.detail["drops"] for r in notes(outcome, "got", 2))
    assert told == len(lost) == outcome.drops["buffer"]


def test_losses_before_datagrams_that_are_refused_are_told_with_the_next_that_is_not():
    outcome = tiny(
        SmallBuffer(member=2, packets=1), Pause(member=2, at_ms=50, for_ms=40), Version(pairs=("1>2",), version=9)
    )
    told = sum(r.detail["drops"] for r in notes(outcome, "got", 2))
    assert outcome.drops["version"] > 50 and told == outcome.drops["buffer"] > 20


def test_buffer_in_bytes():
    outcome = tiny(Pause(member=2, at_ms=50, for_ms=40), hosts=Hosts(buffer_bytes=1000))
    assert outcome.drops["buffer"] > 10


def test_burst_of_an_application():
    outcome = tiny(Burst(member=1, at_ms=50, messages=2000, size=8, batch=500))
    assert outcome.messages == 2300
    sent = [r for r in rows(outcome, Kind.SUBMIT, 1) if r.time_ns == 50 * MS]
    assert sum(r.count for r in sent) >= 2000
    giant = tiny(Burst(member=1, at_ms=50, messages=1, size=1_000_000))
    assert [r.count for r in rows(giant, Kind.ORIGINATE, 1) if r.time_ns == 50 * MS] == [1]


def test_consumer_that_does_not_read():
    outcome = tiny(Consumer(member=2, frames=16, at_ms=20, until_ms=100))
    room = [r.detail["frames"] for r in notes(outcome, "room", 2)]
    assert room[:17] == list(range(16, -1, -1))
    assert room[-1] == 65_535  # no limit of its own
    assert notes(outcome, "room", 1) == []


def test_nobody_there_is_answered_where_the_option_says_so():
    quiet = tiny(Crash(member=2, at_ms=50))
    assert notes(quiet, "unreachable") == []
    loud = tiny(Crash(member=2, at_ms=50), hosts=Hosts(unreachable=True))
    told = notes(loud, "unreachable")
    assert {(r.member, r.detail["member"]) for r in told} == {(1, 2)}  # unicasts only, and only their sender
    assert len(told) > 10


def test_a_random_member_is_drawn_by_the_seed():
    one, two = (tiny(Crash(at_ms=50), seed=3) for _ in range(2))
    assert one.digest == two.digest
    members = {tiny(Crash(at_ms=50), seed=s, messages=3).trace.rows[0].member for s in range(3)}
    assert members == {0}
    assert len({rows(tiny(Crash(at_ms=50), seed=s, messages=3), Kind.CRASH)[0].sender for s in range(12)}) == 3


def test_faults_on_one_thing_may_overlap():
    faults = (Slow(member=2, at_ms=20, until_ms=80), Slow(member=2, times=50, at_ms=40, until_ms=120))
    faults += (SmallBuffer(member=2, packets=1, until_ms=50), SmallBuffer(member=2, packets=3, at_ms=10, until_ms=30))
    faults += (
        DiskFault(member=2, how="full", at_ms=20, until_ms=60),
        DiskFault(member=2, how="error", at_ms=30, until_ms=50),
    )
    faults += (Drift(member=2, percent=10, at_ms=20, until_ms=60), Drift(member=2, percent=-5, at_ms=30, until_ms=50))
    faults += (Consumer(member=2, at_ms=20, until_ms=60), Consumer(member=2, frames=4, at_ms=30, until_ms=90))
    outcome = tiny(*faults)
    after = [b - a for (a, _), (b, _) in zip(ticks(outcome, 2)[-6:], ticks(outcome, 2)[-5:], strict=False)]
    assert set(after) == {10 * MS}
    assert [r.time_ns / MS for r in notes(outcome, "stored", 2)][-1] > 150
    assert outcome.delivered + outcome.drops["buffer"] == 300
    (stable,) = rows(outcome, Kind.STABLE)
    assert stable.time_ns == 120 * MS


def test_pauses_of_ten_milliseconds_to_a_minute():
    outcome = tiny(Pause(member=2, at_ms=20, for_ms=10), Pause(member=3, at_ms=50, for_ms=60_000), limit_ms=70_000.0)
    assert [r.time_ns // MS for r in rows(outcome, Kind.RESUME)] == [30, 60_050]
    assert outcome.deliveries == 900
