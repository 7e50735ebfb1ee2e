"""Network namespaces joined by a switch of our own: every datagram is late by as much as it draws, none is lost.

Each namespace has a TUN device, whose other end a child process holds: it reads what hosts send, packet by packet, and
writes it to whom it is for when its time has come.  What draws less overtakes, as on any network of several ways.
Needs root, iproute2 and /dev/net/tun.  All that is made here is removed at the end of the block, also after a fault.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from ordercast.errors import RunError
from ordercast.lab import namespaces
from ordercast.lab.namespaces import INTERFACE, Host
from ordercast.live import lifeline

TUN = "/dev/net/tun"
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKET_BYTES_MAX = 65_536
QUEUE_PACKETS = 10_000  # of a device: what the switch has not read yet
MULTICAST = range(224, 240)  # first byte of the address


class Plan(Struct, frozen=True):
    """Which hosts are joined; every packet takes from `low_us` to `high_us`, evenly spread, drawn per receiver."""

    hosts: tuple[Host, ...]
    low_us: float
    high_us: float
    seed: int = 1


def why_not() -> str:
    """Why this machine cannot make such a switch, or nothing."""
    return namespaces.why_not() or ("" if os.path.exists(TUN) else f"a switch needs {TUN}")


@contextlib.contextmanager
def switch(count: int, mtu: int, low_us: float, high_us: float) -> Iterator[list[Host]]:
    """`count` hosts with addresses 10.77.0.1, .2, ..., as `namespaces.bridge` makes them."""
    reason = why_not()
    if reason:
        raise RunError(reason)
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(namespaces.hosts(count))
        words = msgspec.json.encode(Plan(tuple(hosts), low_us, high_us)).decode()
        child = subprocess.Popen(
            [sys.executable, "-m", "ordercast.lab.switch", words], stdout=subprocess.PIPE, env=lifeline.environment()
        )
        stack.callback(child.wait)
        stack.callback(child.kill)
        assert child.stdout is not None
        if child.stdout.readline() != b"ready\n":
            raise RunError("the switch did not start: its devices cannot be made here")
        for host in hosts:
            namespaces.connect(host, mtu, QUEUE_PACKETS)
        yield hosts


# ------------------------------------------------------------------------------------------------------ in the child


def _device(host: Host) -> int:
    """The switch's end of a new device inside a host."""
    with open(f"/run/netns/{host.name}") as place:
        if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"cannot enter {host.name}")
    end = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH14x", INTERFACE.encode(), IFF_TUN | IFF_NO_PI))
    return end


class Switch:
    """Packets on their way, the next to arrive first."""

    def __init__(self, plan: Plan) -> None:
        self._ends = {bytes(map(int, host.address.split("."))): _device(host) for host in plan.hosts}
        self._low, self._high = round(plan.low_us * 1_000), round(plan.high_us * 1_000)
        self._draw = random.Random(plan.seed).randint
        self._queue: list[tuple[int, int, int, bytes]] = []  # when, number, to, packet
        self._count = 0

    def run(self) -> None:
        ends, queue = list(self._ends.values()), self._queue
        while True:
            rest = max(0.0, (queue[0][0] - time.monotonic_ns()) / 1e9) if queue else None
            for end in select.select(ends, (), (), rest)[0]:
                self._read(end)
            now = time.monotonic_ns()
            while queue and queue[0][0] <= now:
                _, _, to, packet = heapq.heappop(queue)
                with contextlib.suppress(OSError):  # the host is not up yet, or no longer
                    os.write(to, packet)

    def _read(self, end: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(end, PACKET_BYTES_MAX)
                if packet[0] >> 4 == 4:
                    self._forward(end, packet)

    def _forward(self, source: int, packet: bytes) -> None:
        address = packet[16:20]
        if address[0] in MULTICAST:
            targets = [end for end in self._ends.values() if end != source]
        else:
            targets = [self._ends[address]] if address in self._ends else []
        now = time.monotonic_ns()
        for to in targets:
            self._count += 1
            heapq.heappush(self._queue, (now + self._draw(self._low, self._high), self._count, to, packet))


def main() -> None:
    made = Switch(msgspec.json.decode(sys.argv[1], type=Plan))
    lifeline.hold()
    print("ready", flush=True)
    made.run()


if __name__ == "__main__":
    main()
