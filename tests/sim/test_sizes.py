"""Frames are as large as both drivers say, and their packets fit the datagram."""

from collections import Counter

import pytest

from ordercast.drivers.sizes import FRAME_BYTES_MIN, frame_bytes, least_packet
from ordercast.errors import UsageError
from ordercast.limits import AROUND_PACKET_BYTES, DATAGRAM_BYTES_MIN, packet_bytes_max
from ordercast.membership import Hello
from ordercast.sim.faults import Mtu
from ordercast.sim.scenario import Scenario, Start
from ordercast.sim.world import World
from ordercast.wire.header import HEADER_BYTES
from ordercast.wire.seal import TAG_BYTES


def test_the_least_packet_leaves_the_least_frame():
    least = least_packet(64)
    assert frame_bytes(least, 64) == FRAME_BYTES_MIN
    Scenario.from_dict({"members": 64, "datagram_bytes": least})
    with pytest.raises(UsageError, match=f"{least - 1}.*{least} or more with 64 members"):
        Scenario.from_dict({"members": 64, "datagram_bytes": least - 1})


def test_a_packet_without_a_frame_has_the_whole_datagram():
    assert AROUND_PACKET_BYTES == HEADER_BYTES + TAG_BYTES
    assert packet_bytes_max(frame_bytes(1_472, 9), 9) == 1_472 - AROUND_PACKET_BYTES


@pytest.mark.parametrize("protocol", ["totem", "tomp"])
def test_sixteen_members_say_whom_they_hear_in_one_of_the_smallest_datagrams(protocol):
    """One row in each would be sixteen datagrams a Hello: heartbeats alone would fill the buffers of small hosts."""
    scenario = Scenario(protocol=protocol, members=16, messages=16, datagram_bytes=DATAGRAM_BYTES_MIN, settle_ms=400.0)
    world = World(scenario)
    transmit, hellos = world.driver.transmit, Counter()

    def count(host, action):
        if isinstance(action.packet, Hello):
            hellos[host.id, world.schedule.time] += 1
        transmit(host, action)

    world.driver.transmit = count
    world.run()
    assert len(hellos) > 16 and set(hellos.values()) == {1}


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
