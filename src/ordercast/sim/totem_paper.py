"""The machines of the Totem paper: Sun workstations on 100 Mbit/s Ethernets, gateways that are faster ones.

"Performance engineering of the Totem group communication system" (1998), sections 3 and 5.  Each constant is *stated*
there, *fitted* to its figures, or *assumed*.  The wire is in it: a sender is busy until its datagram is off the wire,
so the nets of such a scenario have ``mbit = 0`` and no delay, and sizes are those of the paper, whatever our own
headers have.  Closed form without loss, 1000 bytes, w messages a visit: 110 + 156.5 w + 228 us from visit to visit.

What a cost per step cannot say is here as well (`Machine`): blocks of the input buffer, the price of a datagram that
finds no room in it, and stalls of the system.
"""

from __future__ import annotations

import random
from typing import Any

from ordercast.sim.host import Machine
from ordercast.sim.links import Datagram

TOKEN = "Token"  # the name of that packet
TOKEN_NS = 240_000  # stated: a token visit
OVERLAP = 0.05  # fitted: of it, what overlaps with what the next processor receives: passing it on
SEND_NS = 19_300  # stated: 110 us for 1000 bytes, less the wire
WIRE_NS_PER_BYTE = 80  # stated: 100 Mbit/s
HEADER_BYTES, LOWER_BYTES = 68, 46  # stated: of a Totem message, and of UDP, IP and Ethernet
GAP_BYTES = 20  # assumed: preamble, and the gap between two frames of an Ethernet
SEPARATOR_BYTES = 2  # stated: between packed messages
RECEIVE_NS, RECEIVE_NS_PER_BYTE = 130_600, 25.9  # fitted
PACKED_NS = 720  # fitted: of each packed message
HAND_OVER_NS = 175_000  # fitted: from processor to application; latency only, which whoever measures adds
BUFFER_BYTES = 8_192  # assumed: `[hosts] buffer_bytes` of a scenario; held in blocks whose sizes are powers of two
LOST = 0.5  # assumed: a datagram that finds no room costs this part of receiving it
STALL_EVERY_NS, STALL_NS = 400_000_000, 400_000  # fitted to 0.1-1 % of loss: means, per processor
GATEWAY_RECEIVE, GATEWAY_SEND = 0.68, 0.95  # fitted
CARRY_NS = 16_000  # fitted: of a frame from one ring to another, beside receiving and sending it
GATEWAY_TOKEN = 0.8  # assumed
VECTOR_BYTES = 40  # assumed: of a Guarantee Vector message, one at each visit of a gateway

MACHINE, GATEWAY = (1.0, 1.0, 1.0), (GATEWAY_RECEIVE, GATEWAY_SEND, GATEWAY_TOKEN)


def payload_bytes(packet: Any, size: int) -> int:
    """What the paper would count as such a datagram's payload; `size`: of all that is no message."""
    frame = getattr(packet, "frame", None)
    if frame is None:
        return size
    return VECTOR_BYTES if frame.control else len(frame.data) + SEPARATOR_BYTES * (frame.count - 1)


class Sun(Machine):
    """One of them; `gateway`: of those that join rings."""

    def __init__(self, gateway: bool, draw: random.Random) -> None:
        self.receives, self.sends, self.visits = GATEWAY if gateway else MACHINE
        self.draw, self.gateway = draw, gateway
        self.told = False  # a vector was sent at this visit
        self.stall_at, self.stall_ns = 0, 0
        self._next_stall(0)

    def cost(self, what: str, size: int, messages: int, work: int, packet: object) -> tuple[int, int]:
        if what == "receive":
            if type(packet).__name__ == TOKEN:
                return int(TOKEN_NS * (1 - OVERLAP) * self.visits), 0
            return self._receive_ns(size, messages, packet), 0
        if what == "transmit":
            if type(packet).__name__ == TOKEN:
                return self._pass_on()
            frame = getattr(packet, "frame", None)
            control = frame is not None and frame.control
            self.told = self.told or control
            carried = CARRY_NS if self.gateway and frame is not None and not control else 0
            return self._send_ns(payload_bytes(packet, size)) + carried, 0
        return 0, HAND_OVER_NS if what == "deliver" else 0

    def _pass_on(self) -> tuple[int, int]:
        """The token; behind a vector message where ours would have none: its receiver is later by as much."""
        busy, told, self.told = int(TOKEN_NS * OVERLAP * self.visits), self.told, False
        if told or not self.gateway:
            return busy, 0
        return busy + self._send_ns(VECTOR_BYTES), int(RECEIVE_NS + RECEIVE_NS_PER_BYTE * VECTOR_BYTES)

    def _send_ns(self, payload: int) -> int:
        wire = payload + HEADER_BYTES + LOWER_BYTES + GAP_BYTES
        return int((SEND_NS + WIRE_NS_PER_BYTE * wire) * self.sends)

    def _receive_ns(self, size: int, messages: int, packet: object) -> int:
        packed = PACKED_NS * messages if messages > 1 else 0
        return int((RECEIVE_NS + RECEIVE_NS_PER_BYTE * payload_bytes(packet, size) + packed) * self.receives)

    def buffered(self, datagram: Datagram) -> int:
        """Tokens come to a socket of their own."""
        _, _, packet, size, _, multicast = datagram
        return 1 << (payload_bytes(packet, size) + HEADER_BYTES - 1).bit_length() if multicast else 0

    def lost(self, datagram: Datagram) -> int:
        _, _, packet, size, _, _ = datagram
        frame = getattr(packet, "frame", None)
        return int(LOST * self._receive_ns(size, frame.count if frame is not None else 0, packet))

    def stalled(self, time: int, until: int) -> int:
        more = 0
        while self.stall_at <= until + more:
            more += min(self.stall_ns, max(0, self.stall_at + self.stall_ns - time))  # it may have begun while idle
            self._next_stall(self.stall_at)
        return more

    def _next_stall(self, after: int) -> None:
        self.stall_at = after + int(self.draw.expovariate(1 / STALL_EVERY_NS))
        self.stall_ns = int(self.draw.expovariate(1 / STALL_NS))
