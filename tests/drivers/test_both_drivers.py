"""What both drivers do besides time and bytes, through one table: live, simulated as objects, simulated as bytes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast import registry
from ordercast.contract import Action, Layer, Packet, Setup, Transmit
from ordercast.drivers.trains import cars, couple
from ordercast.lab.bench import free_ports
from ordercast.live.node import Node
from ordercast.live.sockets import NetAddresses
from ordercast.live.storage import Storage
from ordercast.registry import ProtocolInfo
from ordercast.sim.scenario import GROUP, Scenario, Start
from ordercast.sim.world import World
from ordercast.stack import chain
from ordercast.types import Identity, Peer, Service
from ordercast.wire import header

LIFE = 1_000  # of member 1, which all tests are about
MEMBERS = (1, 2, 3)


class Said(Packet, frozen=True, gc=False, tag=1):
    text: bytes


class Ear(Layer):
    """Writes down what reaches a core."""

    name = "ear"

    def __init__(self) -> None:
        self.heard: list[tuple[Peer, bytes, int]] = []

    def receive(self, now: int, net: int, source: Peer, packet: Packet, drops: int) -> list[Action]:
        assert isinstance(packet, Said)
        self.heard.append((source, packet.text, drops))
        return []


INFO = ProtocolInfo(
    name="ear", summary="", paper="", factory=lambda setup: chain(Ear()), packets=(Said,),
    provides=(Service.FIFO,), promises={},
)  # fmt: skip
JUDGE = replace(INFO, name="judge", judges_lives=True)


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Any:
    for info in (INFO, JUDGE):
        registry.register(info)
    yield
    for info in (INFO, JUDGE):
        registry.unregister(info.name)


class Live:
    """Member 1 on real sockets, which nothing else writes to."""

    def __init__(self, info: ProtocolInfo) -> None:
        identity = Identity(1, LIFE, MEMBERS, GROUP)
        setup = Setup(identity, 40_000_000, info.options(), 1_000, random.Random(1))
        addresses = dict(zip(MEMBERS, (("127.0.0.1", port) for port in free_ports(3)), strict=True))
        self.storage = Storage(None, 1)
        self.node = Node(
            info, info.factory(setup), identity, {0: NetAddresses(1, addresses, None)}, self.storage,
            on_events=lambda events: None, on_failure=lambda why: pytest.fail(str(why)),
        )  # fmt: skip
        self.stack, self.count = self.node.stack, 0
        self.node.start()

    def give(self, peer: Peer, packet: Packet, drops: int = 0) -> None:
        self.give_body(peer, self.node.codec.encode(packet), drops)

    def give_body(self, peer: Peer, body: bytes, drops: int = 0) -> None:
        self.count += 1
        self.give_bytes(header.pack(header.group_id(GROUP), peer.id, peer.incarnation, self.count) + body, drops)

    def give_bytes(self, datagram: bytes, drops: int = 0) -> None:
        self.node.incoming.one(0, memoryview(datagram), drops)

    def counted(self) -> Counter[str]:
        return self.node.incoming.drops

    def close(self) -> None:
        self.node.stop()
        self.storage.close()


class Simulated:
    """Member 1 of a simulated group of which nobody else is up; what it is given are packets as objects."""

    def __init__(self, info: ProtocolInfo) -> None:
        self.world = World(Scenario(protocol=info.name, members=3, start=Start(incarnation=LIFE)))
        self.host, self.count = self.world.hosts[1], 0
        self.world.lives.start(self.host)
        assert self.host.stack is not None
        self.stack = self.host.stack

    def give(self, peer: Peer, packet: Packet, drops: int = 0) -> None:
        self._arrive(peer, packet, None, drops)

    def _arrive(self, peer: Peer, packet: Any, data: bytes | None, drops: int) -> None:
        if drops:  # as when its buffer was full
            self.host.drops[0] = drops
            self.host.refresh()
        datagram = (0, peer, packet, 50, data, True)
        if data is None:
            self.world.driver.arrive_all((self.host,), datagram)
        else:
            self.world.driver.arrive(self.host, datagram)

    def counted(self) -> Counter[str]:
        assert self.host.incoming is not None and self.host.incoming.drops == self.world.journal.drops
        return self.host.incoming.drops

    def close(self) -> None:
        pass


class SimulatedBytes(Simulated):
    """The same through the wire."""

    def give(self, peer: Peer, packet: Packet, drops: int = 0) -> None:
        self.give_body(peer, self.world.carrier.codec.encode(packet), drops)

    def give_body(self, peer: Peer, body: bytes, drops: int = 0) -> None:
        self.count += 1
        self.give_bytes(header.pack(header.group_id(GROUP), peer.id, peer.incarnation, self.count) + body, drops)

    def give_bytes(self, datagram: bytes, drops: int = 0) -> None:
        self._arrive(Peer(2, 5), None, datagram, drops)


def play(driver: type[Any], work: Callable[[Any], None], info: ProtocolInfo = INFO) -> None:
    async def bounded() -> None:
        member = driver(info)
        try:
            work(member)
        finally:
            member.close()

    asyncio.run(bounded())


def heard(member: Any) -> list[tuple[Peer, bytes, int]]:
    return member.stack.top.layer.heard


def found(key: str, said: Any) -> Iterator[Any]:
    """What a status says under this key, at any depth."""
    for name, value in said.items() if isinstance(said, dict) else ():
        if name == key:
            yield value
        yield from found(key, value)


BOTH = pytest.mark.parametrize("driver", [Live, Simulated, SimulatedBytes])
ON_THE_WIRE = pytest.mark.parametrize("driver", [Live, SimulatedBytes])

LIVES = {  # whose packets come, in this order; how many are shown to the core; what is counted
    "members": ([(2, 5), (3, 7), (2, 5)], [0, 1, 2], {}),
    "nobody of this group": ([(9, 5), (0, 5), (4, 5)], [], {"sender": 3}),
    "own, looped back": ([(1, LIFE)], [], {"own": 1}),
    "an earlier life of mine": ([(1, LIFE - 1)], [], {"earlier incarnation": 1}),
    "a number no clock gives": ([(2, 2**63), (1, 2**63)], [], {"incarnation": 2}),
    "a member's next life ends the one before": (
        [(2, 5), (2, 6), (2, 5), (3, 5), (2, 6)], [0, 1, 3, 4], {"earlier incarnation": 1},
    ),
    "a second claimant is shown and counted, each time": (
        [(1, LIFE + 1), (2, 5), (1, LIFE + 1), (1, LIFE + 2)], [0, 1, 2, 3], {"second claimant": 3},
    ),
}  # fmt: skip


ALL_LIVES = {  # of a protocol whose core judges them
    "members": ([(2, 5), (2, 6), (2, 5), (3, 5), (2, 2**63 - 1), (2, 6), (2, 5)], {}),
    "any number of them": ([(2, life) for life in (*range(1, 20), *range(1, 20))], {}),
    "of mine, too": ([(1, LIFE - 1), (1, LIFE + 1)], {"earlier incarnation": 1, "second claimant": 1}),
}


@BOTH
@pytest.mark.parametrize("case", ALL_LIVES)
def test_a_core_that_judges_lives_is_shown_all(driver: type[Any], case: str) -> None:
    given, counted = ALL_LIVES[case]

    def work(member: Any) -> None:
        for k, life in enumerate(given):
            member.give(Peer(*life), Said(b"%d" % k))
        assert heard(member) == [(Peer(*life), b"%d" % k, 0) for k, life in enumerate(given)]
        assert member.counted() == counted

    play(driver, work, JUDGE)


@BOTH
@pytest.mark.parametrize("case", LIVES)
def test_who_is_admitted(driver: type[Any], case: str) -> None:
    given, shown, counted = LIVES[case]

    def work(member: Any) -> None:
        for k, life in enumerate(given):
            member.give(Peer(*life), Said(b"%d" % k))
        assert heard(member) == [(Peer(*given[k]), b"%d" % k, 0) for k in shown]
        assert member.counted() == counted

    play(driver, work)


@BOTH
def test_the_membership_hears_of_a_rival(driver: type[Any]) -> None:
    info = registry.get("totem")
    other = Setup(Identity(1, LIFE + 5, MEMBERS, GROUP), 40_000_000, info.options(), 1_000, random.Random(2))
    said = [a.packet for a in info.factory(other).start(0, other.identity, {}) if type(a) is Transmit]

    def work(member: Any) -> None:
        member.give(Peer(1, LIFE + 5), said[0])
        assert list(found("rival", member.stack.status())) == [LIFE + 5] and member.counted() == {"second claimant": 1}

    play(driver, work, info)


@BOTH
def test_losses_told_with_a_refused_datagram_are_told_with_the_next_packet(driver: type[Any]) -> None:
    def work(member: Any) -> None:
        member.give(Peer(9, 5), Said(b"refused"), drops=3)
        member.give(Peer(9, 5), Said(b"refused"), drops=1)
        member.give(Peer(2, 5), Said(b"a"), drops=2)
        member.give(Peer(2, 5), Said(b"b"))
        member.give(Peer(2, 5), Said(b"c"), drops=1)
        assert [(text, drops) for _, text, drops in heard(member)] == [(b"a", 6), (b"b", 0), (b"c", 1)]

    play(driver, work)


@ON_THE_WIRE
def test_losses_told_with_damaged_datagrams_and_parts_of_trains_are_told_with_the_next_packet(
    driver: type[Any],
) -> None:
    prefix = header.pack(header.group_id(GROUP), 2, 5, 0)[:24]
    body = b"\x92\x01\xc5" + (2_000).to_bytes(2, "big") + bytes(2_000)

    def work(member: Any) -> None:
        member.give_body(Peer(2, 5), b"\xc4", drops=4)
        first, second = cars(couple(prefix, 100, body, 1_200), 1_200)
        member.give_bytes(first, drops=2)
        assert heard(member) == [] and member.counted() == {"packet": 1}
        member.give_bytes(second, drops=1)
        member.give(Peer(2, 5), Said(b"after"))
        assert [(len(text), drops) for _, text, drops in heard(member)] == [(2_000, 8), (5, 0)]

    play(driver, work)
