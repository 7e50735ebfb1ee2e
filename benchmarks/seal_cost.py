"""What sealing adds to a datagram on its way through the driver, out and in, without sockets.

    python benchmarks/seal_cost.py [--rounds 25]

Sealed and plain in turns, in processor time with warm caches; told is the least of all rounds.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from ordercast.contract import Packet
from ordercast.drivers.admission import Admission
from ordercast.drivers.guard import Guard
from ordercast.drivers.incoming import Incoming
from ordercast.drivers.keyring import KeyRing
from ordercast.errors import WireError
from ordercast.limits import KEY_BYTES
from ordercast.live.outgoing import Outgoing
from ordercast.live.sockets import NetAddresses
from ordercast.types import Identity, Peer
from ordercast.wire import header
from ordercast.wire.codec import Codec
from ordercast.wire.seal import GroupKey, Sealer

SIZES = (60, 1_000)
COUNT = 5_000
HERE = ("127.0.0.1", 7401)
GROUP = "cost"


class Load(Packet, frozen=True, gc=False, tag=1):
    data: bytes


class Net:
    """Keeps what is sent."""

    plan = NetAddresses(1, {})
    targets = (HERE,)

    def __init__(self) -> None:
        self.sent: list[memoryview] = []

    def address(self, member: int) -> Any:
        return self.targets

    def send(self, datagrams: bytearray, segment: int, to: Any) -> None:
        self.sent.append(memoryview(bytearray(datagrams)))


class Way:
    """From one member to another; `seconds` out and in."""

    def __init__(self, sealed: bool) -> None:
        key, sender, receiver = GroupKey(b"k" * KEY_BYTES), Peer(1, 5), Identity(2, 7, (1, 2), GROUP)
        prefix = header.pack(header.group_id(GROUP), sender.id, sender.incarnation, 0)[: header.PREFIX_BYTES]
        self.outgoing = Outgoing(prefix, 65_000, Sealer(key, GROUP, sender) if sealed else None)
        self.incoming = Incoming(
            Codec((Load,)), Admission(receiver, False, False, sealed), 4, time.monotonic_ns, self._receive,
            self._dropped, guard=Guard(KeyRing([key], key.name), receiver, False, {}) if sealed else None,
        )  # fmt: skip
        self.received = 0

    def _receive(self, *args: Any) -> None:
        self.received += 1

    def _dropped(self, now: int, why: WireError) -> None:
        raise why

    def seconds(self, packet: Packet) -> tuple[float, float]:
        net: Any = Net()
        self.received, begin = 0, time.process_time()
        for _ in range(COUNT):
            self.outgoing.to_one(net, 2, packet)
        middle = time.process_time()
        for datagram in net.sent:
            self.incoming.one(0, datagram, 0, HERE)
        end = time.process_time()
        assert self.received == COUNT
        return middle - begin, end - middle


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    ways = {"plain": Way(False), "sealed": Way(True)}
    for size in SIZES:
        each: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                each[name].append(way.seconds(Load(bytes(size))))
        for k, word in enumerate(("out", "in")):
            plain, sealed = (1e6 * min(times[k] for times in each[name]) / COUNT for name in ("plain", "sealed"))
            print(f"{size:5} bytes {word:3}: {plain:.2f} us plain, {sealed:.2f} sealed: {sealed - plain:.2f} more")


if __name__ == "__main__":
    main()
