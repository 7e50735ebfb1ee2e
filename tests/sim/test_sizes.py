"""Frames are as large as both drivers say, and their packets fit the datagram."""

import pytest

from ordercast.drivers.sizes import FRAME_BYTES_MIN, frame_bytes, least_packet
from ordercast.errors import UsageError
from ordercast.sim.faults import Mtu
from ordercast.sim.scenario import Scenario, Start
from ordercast.sim.world import World


def test_the_least_packet_leaves_the_least_frame():
    least = least_packet(64)
    assert frame_bytes(least, 64) == FRAME_BYTES_MIN
    Scenario.from_dict({"members": 64, "datagram_bytes": least})
    with pytest.raises(UsageError, match=f"{least - 1}.*{least} or more with 64 members"):
        Scenario.from_dict({"members": 64, "datagram_bytes": least - 1})


@pytest.mark.parametrize(("protocol", "members", "groups"), [("totem", 16, 8), ("totem", 3, 0), ("token_site", 5, 0)])
def test_packets_with_full_frames_fit_a_datagram(protocol, members, groups):
    """With the largest numbers that headers and packets can hold."""
    size = 548
    frame = frame_bytes(size, members)
    scenario = Scenario(
        protocol=protocol,
        members=members,
        messages=200,
        groups=groups,
        sizes=(1, frame - 4, 5 * frame),
        datagram_bytes=size,
        start=Start(ring_seq=2**48 - 4, incarnation=2**62),
        faults=(Mtu(bytes=size, at_ms=0),),
    )
    world = World(scenario)
    assert world.lives.frame_bytes == frame
    outcome = world.run()
    assert outcome.ended == "delivered" and outcome.drops["mtu"] == 0
