"""What the live driver itself costs: processor time per token hop and per frame, with a protocol that does nothing.

    python benchmarks/driver_cost.py [--members 4] [--seconds 2] [--size 60000] [--frames 8]

A token goes around; each holder multicasts some frames of the given size first.  Nobody orders anything, so what is
measured is reading, decoding, carrying out actions, encoding and sending, in all members together.  Prints one JSON
object: hops and frames per second, and processor time of all members per hop without frames and per frame.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from typing import Any

from ordercast.contract import ALL, Action, Layer, Packet, SetTimer, Transmit
from ordercast.lab.bench import free_ports
from ordercast.live.node import Node
from ordercast.live.sockets import NetAddresses
from ordercast.live.storage import Storage
from ordercast.registry import ProtocolInfo
from ordercast.stack import chain
from ordercast.types import Identity, Peer, Service


class Token(Packet, frozen=True, gc=False, tag=1):
    hops: int


class Load(Packet, frozen=True, gc=False, tag=2):
    data: bytes


class Around(Layer):
    """Sends its frames and passes the token on."""

    name = "around"

    def __init__(self, me: int, members: int, size: int, frames: int) -> None:
        self.next, self.frames = me % members + 1, frames
        self.payload = bytes(size)
        self.token: Token | None = None
        self.hops = 0

    def receive(self, now: int, net: int, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if type(packet) is Token:
            self.token = packet
        return []

    def drained(self, now: int, net: int) -> list[Action]:
        token, self.token = self.token, None
        if token is None:
            return []
        self.hops += 1
        frames: list[Action] = [Transmit(0, ALL, Load(self.payload)) for _ in range(self.frames)]
        return [*frames, SetTimer("loss", now + 10**9), Transmit(0, self.next, Token(token.hops + 1))]


async def member(me: int, addresses: dict[int, tuple[str, int]], port: int, asked: Any, frames: int) -> dict[str, Any]:
    core = Around(me, len(addresses), asked.size, frames)
    info = ProtocolInfo(
        name="around", summary="", paper="", factory=lambda setup: chain(core), packets=(Token, Load),
        provides=(Service.FIFO,), promises={},
    )  # fmt: skip

    def failed(why: BaseException) -> None:
        raise SystemExit(repr(why))

    node = Node(
        info, chain(core), Identity(me, 1, tuple(addresses), "cost"),
        {0: NetAddresses(me, addresses, ("239.192.74.9", port))}, Storage(None, me),
        on_events=lambda events: None, on_failure=failed,
    )  # fmt: skip
    node.start()
    await asyncio.sleep(0.5)
    begin = time.process_time()
    if me == 1:
        node._do(0, [Transmit(0, 2, Token(0))])
    await asyncio.sleep(asked.seconds)
    return {"hops": core.hops, "cpu": time.process_time() - begin}


def measure(asked: Any, frames: int) -> tuple[int, float]:
    """Hops, and processor seconds of all members."""
    port, *ports = free_ports(asked.members + 1)
    addresses = {k: ("127.0.0.1", at) for k, at in enumerate(ports, 1)}
    pipes = []
    for me in addresses:
        reader, writer = os.pipe()
        if os.fork() == 0:
            result = asyncio.run(member(me, addresses, port, asked, frames))
            os.write(writer, json.dumps(result).encode())
            os._exit(0)
        os.close(writer)
        pipes.append(reader)
    results = []
    for pipe in pipes:
        with os.fdopen(pipe) as file:
            results.append(json.load(file))
    for _ in pipes:
        os.wait()
    return sum(r["hops"] for r in results), sum(r["cpu"] for r in results)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--members", type=int, default=4)
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--size", type=int, default=60_000)
    options.add_argument("--frames", type=int, default=8)
    asked = options.parse_args()
    bare_hops, bare_cpu = measure(asked, 0)
    hops, cpu = measure(asked, asked.frames)
    per_hop = bare_cpu / max(1, bare_hops)
    per_frame = (cpu - hops * per_hop) / max(1, hops * asked.frames)
    print(
        json.dumps(
            {
                "members": asked.members,
                "frame_bytes": asked.size,
                "hops_s": round(bare_hops / asked.seconds),
                "cpu_us_per_hop": round(1e6 * per_hop, 1),
                "frames_s": round(hops * asked.frames / asked.seconds),
                "mb_s": round(hops * asked.frames * asked.size / asked.seconds / 1e6, 1),
                "cpu_us_per_frame": round(1e6 * per_frame, 1),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
