"""Whole groups in simulation, judged by the catalogue of promises."""

from __future__ import annotations

import pytest

from ordercast import verify
from ordercast.sim.faults import (
    AnyFault,
    Burst,
    Claimant,
    Consumer,
    Crash,
    Leaving,
    Loss,
    Partition,
    Pause,
    Replay,
    Subset,
)
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Hosts, Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind


def judged(scenario: Scenario) -> Outcome:
    outcome = run(scenario, level="full")
    found = [
        f"{v.promise}: {v.state}: {v.text}"
        for v in verify.check(outcome.trace)
        if v.state in ("broken", "cannot judge")
    ]
    assert not found, found
    return outcome


def situation(*faults: AnyFault, **fields: object) -> Scenario:
    plain: dict[str, object] = {"members": 4, "messages": 150, "load": Load(rate=200), "heal_ms": 300.0}
    return Scenario(protocol="totem", faults=faults, **{**plain, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize("service", ["agreed", "safe"])
@pytest.mark.parametrize("first", [2**31 - 20, 2**32 - 20, 2**53 - 20, 2**63 - 2**33])
def test_numbers_cross_every_wrap_point(first: int, service: str) -> None:
    scenario = situation(
        Loss(p=0.05), Crash(member=3, at_ms=80, down_ms=60),
        service=service, options={"first_seq": first}, wire=True, members=3, messages=90,
    )  # fmt: skip
    assert judged(scenario).delivered


@pytest.mark.parametrize("options", [{}, {"accelerated": 2}, {"max_messages": 1, "window_size": 2}, {"request_lag": 3}])
def test_options_keep_the_promises(options: dict[str, object]) -> None:
    judged(situation(Loss(p=0.1), Partition(shape="halves", at_ms=60, until_ms=160), options=options, service="safe"))


def test_crash_in_every_step_of_a_view_change() -> None:
    for packet in ("Token", "CommitToken", "Recovered", "Join", "Data"):
        judged(situation(Loss(p=0.1), Crash(member=4, at_ms=60), Crash(member=2, at_ms=62, on=packet, down_ms=80)))


def test_partition_in_the_middle_of_a_recovery() -> None:
    for at in (1.5, 4.0, 8.0, 12.0):
        judged(
            situation(
                Subset(p=0.8, at_ms=40, until_ms=62),
                Partition(shape="halves", groups=((1, 2), (3, 4)), at_ms=60, until_ms=140),
                Partition(shape="halves", groups=((1, 3), (2, 4)), at_ms=140 + at, until_ms=220),
                service="safe",
            )
        )


@pytest.mark.parametrize("at", [40.0, 61.3, 90.0])
@pytest.mark.parametrize("wire", [False, True])
def test_a_second_claimant_ends_and_the_first_stays(at: float, wire: bool) -> None:
    scenario = situation(Claimant(member=2, at_ms=at), wire=wire, service="safe", closing=6)
    outcome = judged(scenario)
    ends = [row for row in outcome.trace.rows if row.kind == Kind.CRASH]
    lives = [row.incarnation for row in outcome.trace.rows if row.member == 2 and row.kind == Kind.END]
    assert len(ends) == 1 and (ends[0].detail or {})["reason"] == "outdone"
    assert ends[0].sender_incarnation not in lives, "the second one"


def test_a_second_claimant_takes_the_place_of_one_that_was_cut_off() -> None:
    judged(
        situation(
            Partition(shape="isolate", member=2, at_ms=60, until_ms=160), Claimant(member=2, at_ms=80, until_ms=260),
            service="safe", closing=6,
        )
    )  # fmt: skip


def test_pause_of_the_token_holder_breaks_nothing() -> None:
    judged(situation(Pause(member=2, at_ms=50, for_ms=200, on="Token"), service="safe"))


def one_speaker(member: int, *faults: AnyFault, **fields: object) -> Scenario:
    """Somebody sends once in a millisecond; a rotation takes less."""
    plain: dict[str, object] = {"senders": (member,), "load": Load(rate=1000), "messages": 200, "heal_ms": 0.0}
    return situation(*faults, **{**plain, **fields})


@pytest.mark.parametrize("member", [1, 3])
def test_a_lone_speaker_keeps_the_token(member: int) -> None:
    spinning = judged(one_speaker(member, options={"hold_after": 0}))
    lingering = judged(one_speaker(member))
    assert lingering.notes["linger"] > 10 and not spinning.notes["linger"]
    assert lingering.notes["rotation"] < spinning.notes["rotation"] / 2


def test_safe_messages_do_not_wait_for_a_lone_speaker() -> None:
    assert not judged(one_speaker(3, service="safe")).notes["linger"] > 2


def test_others_call_a_lingering_token_off() -> None:
    outcome = judged(situation(senders=(1, 3), load=Load(rate=400), messages=400, heal_ms=0.0))
    assert outcome.notes["linger"] and outcome.notes["hold cancel"]


def test_a_hole_calls_a_lingering_token_off() -> None:
    """Only the token can ask for the frame that was lost: who sees the hole does not wait for it."""
    whole, holes = (judged(one_speaker(3, Loss(p=p, packets=("Data",)), heal_ms=500.0)) for p in (0.0, 0.05))
    assert holes.notes["retransmit"]
    assert holes.notes["hold cancel"] > whole.notes["hold cancel"] + holes.notes["request"]


@pytest.mark.parametrize("packet", ["Data", "Token", "HoldCancel"])
def test_a_lone_speaker_crashes_or_loses_what_it_sent(packet: str) -> None:
    faults = Loss(p=0.1), Crash(member=3, at_ms=100, on=packet, down_ms=50), Pause(member=3, at_ms=300, for_ms=120)
    judged(situation(*faults, senders=(1, 3), load=Load(rate=400), messages=500, heal_ms=700.0))


def test_leave_and_return_without_a_timeout() -> None:
    outcome = judged(situation(Leaving(member=2, at_ms=100, away_ms=60)))
    reasons = {row.detail["reason"] for row in outcome.trace.rows if row.detail and "reason" in row.detail}
    assert "leave" in reasons and "token loss" not in reasons


def test_crash_hint_needs_no_timeout() -> None:
    outcome = judged(situation(Crash(member=2, at_ms=100, down_ms=80), hosts=Hosts(unreachable=True)))
    reasons = {row.detail["reason"] for row in outcome.trace.rows if row.detail and "reason" in row.detail}
    assert "crash hint" in reasons and "token loss" not in reasons


def test_old_tokens_and_commits_come_again() -> None:
    for packet in ("Token", "CommitToken", "Data", "Join"):
        replay = Replay(packets=(packet,), at_ms=20, every_ms=3, age_ms=5, copies=2, until_ms=280)
        judged(situation(replay, Crash(member=1, at_ms=100, down_ms=60), service="safe"))


def test_a_reader_that_stops_holds_the_senders_and_loses_nothing() -> None:
    outcome = judged(
        situation(
            Consumer(member=3, frames=20, at_ms=20, until_ms=250), Burst(member=1, at_ms=30, messages=3000, size=400)
        )
    )
    assert outcome.delivered == outcome.messages


def test_messages_larger_than_a_datagram_survive_view_changes() -> None:
    judged(
        situation(
            Loss(p=0.1), Crash(member=1, at_ms=70, down_ms=50),
            Partition(shape="isolate", member=3, at_ms=150, until_ms=220),
            sizes=(10, 4000, 20_000), messages=60, load=Load(rate=100),
        )
    )  # fmt: skip
