"""Real packets of each type of a protocol, as somebody on its net hears them: a forger starts from these."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from tests.fuzz.forger import Forger

from ordercast import registry
from ordercast.contract import Packet
from ordercast.sim.faults import AnyFault, Crash, Loss
from ordercast.sim.links import Copies, Datagram
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import World
from ordercast.wire.codec import Codec

KEPT = 16  # of a type


class Ear:
    """On the net, where faults of links stand; it changes nothing."""

    def __init__(self) -> None:
        self.heard: dict[type[Packet], list[Packet]] = {}

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        return True

    def multicast(self, receivers: list[int]) -> None:
        pass

    def release(self) -> None:
        pass

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        some = self.heard.setdefault(type(datagram[2]), [])
        if len(some) < KEPT:
            some.append(datagram[2])
        out.append((at, datagram))


@cache
def overheard(protocol: str) -> tuple[Packet, ...]:
    """Of a simulated group that loses datagrams, and a member, which comes back."""
    faults: list[AnyFault] = [Loss(p=0.3, until_ms=900.0)]
    if registry.get(protocol).changes_views:
        faults.append(Crash(member=2, at_ms=300.0, down_ms=150.0))
    world = World(
        Scenario(
            protocol=protocol, members=4, messages=400, load=Load(rate=200.0), faults=tuple(faults), heal_ms=900.0,
            timeout_ms=40.0, closing=4, wire=True,
        ),
        level="off",
    )  # fmt: skip
    ear = Ear()
    world.carrier.switch_on(ear)  # type: ignore[arg-type]
    world.run()
    return tuple(packet for some in ear.heard.values() for packet in some)


def forger_of(protocol: str, rng: random.Random) -> Forger:
    """One that has listened to a group of this protocol."""
    forger = Forger(Codec(registry.get(protocol).packets), rng)
    for packet in overheard(protocol):
        forger.see(packet)
    return forger
