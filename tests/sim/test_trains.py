"""Packets larger than a datagram travel as trains, cut and joined by the code that runs live."""

import pytest

from ordercast.sim.faults import Crash, Loss, Mtu, Reordering
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.verify.plain import check
from ordercast.verify.verdict import BROKEN

SIZE, DATAGRAM, HEAD = 10_000, 1_472, 32 + 5  # a car's header
TRAINS = Scenario(
    protocol="tiny",
    members=2,
    messages=40,
    senders=(1,),
    sizes=(SIZE,),
    load=Load(regime="periodic", rate=500.0),
    nets=(Net(model="links", delay=Delay(mean_us=100)),),
    datagram_bytes=DATAGRAM,
    packet_bytes=12_000,
    limit_ms=400.0,
)


def words(outcome):
    """How many words reached the other member's core."""
    got = [row.detail for row in outcome.trace.rows if row.kind == Kind.NOTE and row.detail["name"] == "got"]
    return sum(detail["kind"] == "Word" for detail in got)


def transmitted(outcome, member):
    (end,) = [row for row in outcome.trace.rows if row.kind == Kind.END and row.member == member]
    return end.detail["traffic"]


@pytest.mark.parametrize("wire", [False, True])
def test_a_large_packet_travels_as_datagrams_of_the_nets_size(wire):
    outcome = run(TRAINS.changed(wire=wire, faults=(Mtu(bytes=DATAGRAM, at_ms=0),)), level="full")
    assert words(outcome) == 40 and not outcome.drops
    cars = -(-SIZE // (DATAGRAM - HEAD))
    tokens = transmitted(outcome, 2)["transmitted"]
    assert transmitted(outcome, 1)["transmitted"] == 40 * cars + tokens
    whole = run(TRAINS.changed(datagram_bytes=12_000, packet_bytes=0, wire=wire), level="full")
    assert words(whole) == 40 and transmitted(whole, 1)["transmitted"] == 40 + tokens
    assert (
        transmitted(whole, 1)["transmitted_bytes"] + 40 * (cars * HEAD - 32)
        == (transmitted(outcome, 1)["transmitted_bytes"])
    )


def test_each_datagram_of_a_train_is_lost_or_late_on_its_own():
    lossy = run(TRAINS.changed(faults=(Loss(p=0.05, packets=("Word",)),)), level="full")
    lost = lossy.drops["loss"]
    assert 0 < 40 - words(lossy) <= lost, "a train is lost with any of its datagrams"
    mixed = run(TRAINS.changed(faults=(Reordering(p=0.5, within_ms=0.3, packets=("Word",)),)), level="full")
    assert mixed.effects["reordering"] > 40 and words(mixed) == 40


def test_a_ring_with_packets_above_the_datagram_keeps_its_promises():
    scenario = Scenario(
        protocol="totem",
        members=4,
        messages=300,
        sizes=(64, 5_000),
        packet_bytes=20_000,
        wire=True,
        faults=(Loss(p=0.02), Crash(member=2, at_ms=100, down_ms=50)),
        heal_ms=400.0,
        closing=4,
        seed=5,
    )
    outcome = run(scenario, level="full")
    assert outcome.ended == "delivered" and outcome.delivered >= 250
    assert [v for v in check(outcome.trace) if v.state == BROKEN] == []
    assert outcome.digest == run(scenario).digest


@pytest.mark.parametrize("delay_ms", [2, 10, 50])
def test_jitter_alone_costs_a_tenth_at_most(delay_ms):
    """What is delivered everywhere in ten seconds, beside packets that fit one datagram; nothing is lost on the way."""

    def delivered(packet_bytes):
        scenario = Scenario(
            protocol="totem",
            members=4,
            messages=8_000,
            sizes=(1_000,),
            load=Load(regime="periodic", rate=200.0),
            nets=(Net(model="links", delay=Delay("uniform", high_us=2_000.0 * delay_ms)),),
            datagram_bytes=DATAGRAM,
            packet_bytes=packet_bytes,
            timeout_ms=1_000.0,
            limit_ms=10_000.0,
        )
        outcome = run(scenario, level="deliver")
        assert not outcome.drops
        rows = [row for row in outcome.trace.rows if row.kind == Kind.DELIVER]
        return min(sum(row.count for row in rows if row.member == member) for member in scenario.ids)

    small = delivered(DATAGRAM)
    assert small > 7_000 and delivered(65_000) >= 0.9 * small
