"""Members in network namespaces on a bridge; needs root, and says so where it cannot run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ordercast.lab import namespaces
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK

from .conftest import Cli, environment

REASON = namespaces.why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON or "-")


@pytest.mark.parametrize("mtu", ["1500", "65535"])
def test_a_group_on_a_bridge(cli: Cli, mtu: str) -> None:
    figures = cli.json("bench", "--members", "3", "--size", "1000", "--seconds", "0.5", "--mtu", mtu)
    assert figures["same_order"] is True and figures["msgs_s"] > 0
    assert figures["datagram_bytes"] == min(int(mtu) - 28, DATAGRAM_BYTES_LOOPBACK)
    assert figures["messages_per_frame"] > 2, "frames are larger than the path"


def test_nothing_is_left_behind() -> None:
    with pytest.raises(RuntimeError), namespaces.bridge(2, 1500) as hosts:
        made = [host.name for host in hosts]
        raise RuntimeError("a fault in the middle")
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert not [name for name in made if name in left]


STUCK = """
import socket, time
from ordercast.live.sockets import NetAddresses, NetSockets
nobody = ("10.77.0.99", 7400)  # its address is asked for in vain: datagrams wait for the answer, in our send buffer
net = NetSockets(NetAddresses(1, {1: ("10.77.0.1", 7400), 2: nobody}), b"", lambda member: None)
net._unicast.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
before = time.monotonic()
for _ in range(1_000):
    net.send(bytes(1_400), 1_400, (nobody,))
print(time.monotonic() - before, net.sent["full"])
"""


def test_a_visit_against_a_queue_that_is_stuck() -> None:
    with namespaces.bridge(1, 1500) as hosts:
        words = [*hosts[0].enter, sys.executable, "-c", STUCK]
        said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment()).stdout
    seconds, unsent = said.split()
    assert int(unsent) > 900 and float(seconds) < 0.5
