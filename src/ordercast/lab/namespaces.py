"""Network namespaces joined by bridges: several hosts on one machine, with wires of a chosen MTU between them.

Needs root and iproute2.  All that is made here is removed at the end of the block, also after a fault.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ordercast.errors import RunError

SUBNET = "10.77"
INTERFACE = "eth0"  # of every host; on several bridges it is eth1 on the first, and so on


class Host(Struct, frozen=True):
    """One namespace: enter it with `ip netns exec`."""

    name: str
    address: str

    @property
    def enter(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)


def why_not() -> str:
    """Why this machine cannot make namespaces, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (Debian: apt-get install iproute2)"
    probe = f"oc-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not allowed here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return ""


@contextlib.contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """`count` hosts with addresses 10.77.0.1, .2, ..., which nothing joins yet."""
    reason = why_not()
    if reason:
        raise RunError(reason)
    made: list[Host] = []
    try:
        for k in range(1, count + 1):
            host = Host(f"oc{os.getpid()}-{k}", on_bridge(0, k))
            _ip("netns", "add", host.name)
            made.append(host)
        yield made
    finally:
        for host in reversed(made):
            subprocess.run(["ip", "netns", "del", host.name], capture_output=True, check=False)


def on_bridge(number: int, host: int) -> str:
    """The address of a host there; 0: the only one."""
    return f"{SUBNET}.{number}.{host}"


@contextlib.contextmanager
def bridge(count: int, mtu: int) -> Iterator[list[Host]]:
    """Hosts on one bridge inside a namespace of its own."""
    with hosts(count + 1) as (*joined, middle):
        _join(middle, 0, dict(enumerate(joined, 1)), mtu)
        yield joined


@contextlib.contextmanager
def bridges(rings: Sequence[Sequence[int]], mtu: int) -> Iterator[list[Host]]:
    """Hosts 1, 2, ... each on the bridges that name it: eth1 and 10.77.1.host on the first, and so on."""
    with hosts(max(map(max, rings)) + 1) as (*joined, middle):
        for number, ring in enumerate(rings, 1):
            _join(middle, number, {member: joined[member - 1] for member in ring}, mtu)
        yield joined


def _join(middle: Host, number: int, joined: dict[int, Host], mtu: int) -> None:
    inside, name, interface = ("-n", middle.name), f"br{number}", f"eth{number}"
    _ip(*inside, "link", "add", name, "type", "bridge", "mcast_snooping", "0")
    _ip(*inside, "link", "set", name, "mtu", str(mtu), "up")
    for k, host in joined.items():
        port = f"p{number}-{k}"
        _ip(*inside, "link", "add", port, "mtu", str(mtu), "type", "veth",
            "peer", "name", interface, "mtu", str(mtu), "netns", host.name)  # fmt: skip
        _ip(*inside, "link", "set", port, "master", name, "up")
        connect(host, mtu, interface=interface, address=on_bridge(number, k))


def connect(
    host: Host, mtu: int, queue_packets: int = 1_000, interface: str = INTERFACE, address: str | None = None
) -> None:
    """The interface that is there gets the host's address and goes up."""
    own = ("-n", host.name)
    _ip(*own, "link", "set", interface, "mtu", str(mtu), "txqueuelen", str(queue_packets))
    _ip(*own, "address", "add", f"{address or host.address}/24", "dev", interface)
    _ip(*own, "link", "set", interface, "up")
    _ip(*own, "link", "set", "lo", "up")
    _ip(*own, "route", "append", "224.0.0.0/4", "dev", interface)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"ip {' '.join(words)}: {done.stderr.strip() or 'failed'}")
