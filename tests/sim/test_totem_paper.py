"""The machines of the Totem paper: the closed form of a visit, and what a cost per step cannot say."""

from __future__ import annotations

import random

import pytest

from ordercast.errors import ConfigError
from ordercast.protocols.totem import totem
from ordercast.protocols.totem.packets import Data, Token
from ordercast.sim import totem_paper
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Hosts, Load, NamedGroup, Net, Scenario
from ordercast.sim.totem_paper import Sun
from ordercast.sim.world import run
from ordercast.swarm.judge import RAISES
from ordercast.swarm.shrink import shrink
from ordercast.trace.schema import Kind
from ordercast.types import Frame, Peer, ViewId

RING = ViewId(4, 1)
WIRE = Net(mbit=0.0, delay=Delay("constant"))


def saturated(window, **changes):
    """Nine Suns, 1 kB, as many messages at each visit as the window allows, no limit of the buffer."""
    return Scenario(
        members=9, messages=10**6, sizes=(1000,), pack=False, nets=(WIRE,), timeout_ms=1000.0, datagram_bytes=2400,
        options={"max_messages": window, "window_size": 18 * window, "hold_after": 0},
        hosts=Hosts(model="totem-paper"), load=Load(regime="saturate", window=128), limit_ms=300.0,
    ).changed(**changes)  # fmt: skip


def frame(size=1000, count=1, control=False):
    return Frame(1, 1, 1, count, 1, b"", bytes(size), control=control)


def sun(gateway=False, seed=1):
    return Sun(gateway, random.Random(seed))


@pytest.mark.parametrize("window", [1, 2, 7, 13])
def test_closed_form_of_a_visit(window):
    """From visit to visit 338 + 156.5 w us, without loss."""
    outcome = run(saturated(window))
    times = sorted({row.time_ns for row in outcome.trace.rows if row.kind == Kind.ORIGINATE and row.member == 5})
    times = [time for time in times if time > 100e6]
    visit_us = (times[-1] - times[0]) / (len(times) - 1) / 9 / 1e3
    assert visit_us == pytest.approx(338 + 156.5 * window, rel=0.02)
    assert not outcome.drops["buffer"]


def test_an_idle_token_takes_240_us_from_member_to_member():
    outcome = run(saturated(1, load=Load(regime="idle")), level="full")
    noted = [row.detail for row in outcome.trace.rows if row.kind == Kind.NOTE and row.time_ns > 100e6]
    rotations = [detail["ns"] for detail in noted if detail["name"] == "rotation"]
    assert sum(rotations) / len(rotations) / 9 == pytest.approx(240_000, rel=0.02)


def test_what_steps_cost():
    packet, token = Data(RING, 1, frame()), Token(RING, 2, 1, 1, 1)
    assert sun().cost("transmit", 5000, 1, 0, packet) == (19_300 + 80 * 1134, 0)  # whatever our own headers take
    assert sun().cost("receive", 5000, 1, 0, packet)[0] == 156_500
    assert sun().cost("receive", 90, 0, 0, token)[0] + sun().cost("transmit", 90, 0, 0, token)[0] == 240_000
    packed = Data(RING, 1, frame(932, 233))
    assert sun().cost("receive", 5000, 233, 0, packed)[0] == int(130_600 + 25.9 * 1396 + 720 * 233)
    vector = Data(RING, 1, frame(200, control=True))
    assert sun().cost("receive", 400, 0, 0, vector)[0] == int(130_600 + 25.9 * 40)


def test_gateways_are_other_machines():
    packet, token = Data(RING, 1, frame()), Token(RING, 2, 1, 1, 1)
    for what, each, share, carried in (
        ("receive", packet, 0.68, 0),
        ("transmit", packet, 0.95, 16_000),  # what it sends comes from another ring
        ("transmit", Data(RING, 1, frame(200, control=True)), 0.95, 0),
        ("receive", token, 0.8, 0),
    ):
        usual = sun().cost(what, 100, 1, 0, each)[0]
        assert sun(gateway=True).cost(what, 100, 1, 0, each)[0] == pytest.approx(share * usual + carried, abs=1)


def test_a_gateway_pays_for_a_vector_message_at_each_visit():
    """Its own where it sends one; else the token leaves later by what one costs, and comes later by its reception."""
    token, vector = Token(RING, 2, 1, 1, 1), Data(RING, 1, frame(200, control=True))
    assert sun(gateway=True).cost("transmit", 90, 0, 0, token) == (9_600 + 31_559, 131_636)
    gateway = sun(gateway=True)
    gateway.cost("transmit", 300, 0, 0, vector)
    assert gateway.cost("transmit", 90, 0, 0, token) == (9_600, 0)
    assert gateway.cost("transmit", 90, 0, 0, token)[1] == 131_636
    assert sun().cost("transmit", 90, 0, 0, token) == (12_000, 0)


def test_blocks_of_the_buffer():
    def takes(size, multicast=True):
        return sun().buffered((0, Peer(1, 1), Data(RING, 1, frame(size)), size, None, multicast))

    assert [takes(size) for size in (60, 61, 100, 1000, 1400)] == [128, 256, 256, 2048, 2048]
    assert sun().buffered((0, Peer(1, 1), Token(RING, 2, 1, 1, 1), 90, None, False)) == 0


def test_a_datagram_without_room_costs_half_a_receive():
    """Four blocks hold what comes while one is received: up to 14 of one visit, and no more."""
    lost = {window: _lost(window) for window in (14, 16)}
    assert lost[14] < 40 < lost[16]
    assert sun().lost((0, Peer(1, 1), Data(RING, 1, frame()), 1000, None, True)) == 78_250


def _lost(window):
    outcome = run(saturated(window, hosts=Hosts(model="totem-paper", buffer_bytes=totem_paper.BUFFER_BYTES)))
    early = run(saturated(1, hosts=Hosts(model="totem-paper", buffer_bytes=totem_paper.BUFFER_BYTES)))
    return outcome.drops["buffer"] - early.drops["buffer"]  # those of the first view are the same


def test_stalls_come_every_400_ms_for_400_us():
    machine, working, lost = sun(seed=3), 1_000_000, 0
    for time in range(0, 400_000_000_000, working):
        lost += machine.stalled(time, time + working)
    assert lost / 1000 == pytest.approx(400_000, rel=0.15)


def test_a_stall_of_an_idle_host_delays_only_what_comes_meanwhile():
    machine = sun()
    begin, lasts = machine.stall_at, machine.stall_ns
    assert machine.stalled(begin + lasts + 1, begin + lasts + 2) == 0
    machine = sun()
    assert machine.stalled(begin + lasts // 2, begin + lasts) == lasts - lasts // 2


def test_a_model_survives_toml_and_gives_the_same_run():
    groups = (NamedGroup(name="a", members=(1, 2)), NamedGroup(name="b", members=(3, 4)))
    nets = (Net(members=(1, 2, 5), mbit=0.0, delay=Delay("constant")), Net(members=(3, 4, 5), mbit=0.0))
    scenario = saturated(
        2, protocol="multiring", members=5, pure=(5,), nets=nets, named_groups=groups, messages=50, limit_ms=900.0
    )
    again = Scenario.from_toml(scenario.to_toml())
    assert again == scenario and again.hosts.model == "totem-paper"
    assert run(again).digest == run(scenario).digest


def test_the_shrinker_runs_a_model_and_leaves_it_out_where_it_does_not_matter():
    def broken(setup):
        if setup.identity.me == 3:
            raise RuntimeError("member 3 never starts")
        return totem(setup)

    found = shrink(saturated(2, messages=20), RAISES, maker=broken, budget_s=5.0)
    assert found.scenario.members == 3 and found.scenario.hosts == Hosts()


def test_an_unknown_model_is_refused_with_the_nearest_name():
    words = r"totem-papr: expected dpg-paper or totem-paper; did you mean totem-paper"
    with pytest.raises(ConfigError, match=rf"hosts\.model: {words}"):
        Scenario.from_dict({"hosts": {"model": "totem-papr"}})
