"""Network namespaces joined by a bridge: several hosts on one machine, with a wire of a chosen MTU between them.

Needs root and iproute2.  All that is made here is removed at the end of the block, also after a fault.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

from msgspec import Struct

from ordercast.errors import RunError

SUBNET = "10.77.0"
INTERFACE = "eth0"  # of every host


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
            host = Host(f"oc{os.getpid()}-{k}", f"{SUBNET}.{k}")
            _ip("netns", "add", host.name)
            made.append(host)
        yield made
    finally:
        for host in reversed(made):
            subprocess.run(["ip", "netns", "del", host.name], capture_output=True, check=False)


@contextlib.contextmanager
def bridge(count: int, mtu: int) -> Iterator[list[Host]]:
    """Hosts on one bridge inside a namespace of its own."""
    with hosts(count + 1) as (*joined, middle):
        inside = ("-n", middle.name)
        _ip(*inside, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        _ip(*inside, "link", "set", "br0", "mtu", str(mtu), "up")
        for k, host in enumerate(joined, 1):
            _ip(*inside, "link", "add", f"p{k}", "mtu", str(mtu), "type", "veth",
                "peer", "name", INTERFACE, "mtu", str(mtu), "netns", host.name)  # fmt: skip
            _ip(*inside, "link", "set", f"p{k}", "master", "br0", "up")
            connect(host, mtu)
        yield joined


def connect(host: Host, mtu: int, queue_packets: int = 1_000) -> None:
    """The interface that is there gets the host's address and goes up."""
    own = ("-n", host.name)
    _ip(*own, "link", "set", INTERFACE, "mtu", str(mtu), "txqueuelen", str(queue_packets))
    _ip(*own, "address", "add", f"{host.address}/24", "dev", INTERFACE)
    _ip(*own, "link", "set", INTERFACE, "up")
    _ip(*own, "link", "set", "lo", "up")
    _ip(*own, "route", "add", "224.0.0.0/4", "dev", INTERFACE)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"ip {' '.join(words)}: {done.stderr.strip() or 'failed'}")
