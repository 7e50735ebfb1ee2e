"""Members in network namespaces on a bridge; needs root, and says so where it cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.lab import namespaces, switch
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK

from .conftest import WAIT_SECONDS, Cli, environment

REASON = switch.why_not()
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


PROBE = """
import socket, sys, time
me, other = sys.argv[1:]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 7400))
sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.1.1.1") + socket.inet_aton(me))
sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
sock.settimeout(1.0)
print("ready", flush=True)
sys.stdin.readline()
for k in range(100):
    for to in (other, "239.1.1.1"):
        sock.sendto(f"{to[:3]} {k} {time.monotonic_ns()}".encode(), (to, 7400))
try:
    while True:
        data = sock.recv(2000).decode()
        print(data, time.monotonic_ns(), flush=True)
except TimeoutError:
    pass
"""


def test_a_switch_delays_and_mixes_and_loses_nothing() -> None:
    with switch.switch(2, 1500, 2_000.0, 20_000.0) as hosts:
        addresses = [host.address for host in hosts]
        probes = [
            subprocess.Popen(
                [*host.enter, sys.executable, "-c", PROBE, *order],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for host, order in zip(hosts, (addresses, addresses[::-1]), strict=True)
        ]  # fmt: skip
        assert [probe.stdout.readline() for probe in probes if probe.stdout] == ["ready\n"] * 2
        said = []
        for probe in probes:
            assert probe.stdin is not None
            probe.stdin.write("go\n")
            probe.stdin.flush()
        said = [probe.communicate(timeout=20)[0] for probe in probes]
    for text in said:
        rows = [line.split() for line in text.splitlines()]
        for kind in ("10.", "239"):
            numbers = [int(k) for word, k, _, _ in rows if word == kind]
            assert sorted(numbers) == list(range(100)) and numbers != sorted(numbers)
        took = [(int(came) - int(left)) / 1e6 for _, _, left, came in rows]
        assert min(took) >= 2.0 and max(took) - min(took) > 10.0


LAN = """
set -e
ip link set lo up
ip route add 224.0.0.0/4 dev lo
echo 1 > /sys/class/net/lo/queues/rx-0/rps_cpus
exec "$@"
"""


def test_a_lan_without_a_tagger_where_one_processor_takes_in_everything(tmp_path: Path) -> None:
    """Quasi order by what each member's own buffer lost."""
    faults = ("--pause", "2@0.3", "--resume", "2@0.8", "--kill", "3@0.9", "--restart", "3@1.4")
    words = ("--option", "channel=lan", "--members", "3", "--messages", "900", "--rate", "400", "--verify", "plain")
    with namespaces.hosts(1) as (alone,):
        run = (sys.executable, "-m", "ordercast", "run", "--protocol", "dpg", *words, *faults, "--out", "o", "--json")
        done = subprocess.run(
            [*alone.enter, "sh", "-c", LAN, "sh", *run],
            capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=WAIT_SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done
    said = json.loads(done.stdout)
    verdicts = {v["promise"]: v["verdict"] for v in said["verdicts"]}
    assert {verdicts[name] for name in ("S1", "S2", "S3", "L6")} == {"holds"}
    assert verdicts["Q1"] in ("holds", "cannot judge") and said["violations"] == 0, said
