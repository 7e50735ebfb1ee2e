"""A flood of strangers: what the kernel refuses for a member, and when it begins and ends."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.live import filters, sieve
from ordercast.live.sieve import FLOOD_PER_S, ONE_OF, Sieve
from ordercast.live.sockets import NetAddresses, NetSockets

SENT = 640


def bound(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    return sock


def came(net: NetSockets, since: list[bytes]) -> int:
    before = len(since)
    net.read(net.sockets[-1], lambda datagram, drops: since.append(bytes(datagram)), lambda *_: None, 10 * SENT)
    return len(since) - before


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_sieve_lets_members_through_and_few_others(host: str) -> None:
    member, stranger, free = bound(host), bound(host), bound(host)
    at = free.getsockname()[:2]
    free.close()
    plan = NetAddresses(1, {1: at, 2: member.getsockname()[:2]})
    net, got = NetSockets(plan, bytes(24), lambda _: None), list[bytes]()
    try:
        net.sieve({member.getsockname()[:2]}, ONE_OF)
        for _ in range(SENT):
            stranger.sendto(b"forged", at)
        assert 0 < (few := came(net, got)) < SENT // 4  # 20 on average
        assert net.sieved == SENT - few and net.lost == 0
        for _ in range(SENT):
            member.sendto(b"mine", at)
        assert came(net, got) == SENT
        net.sieve(None, ONE_OF)
        for _ in range(SENT):
            stranger.sendto(b"forged", at)
        assert came(net, got) == SENT
        assert net.sieved == SENT - few and net.lost == 0
    finally:
        net.close()
        member.close()
        stranger.close()


def test_own_datagrams_are_refused_under_a_sieve_too() -> None:
    here, there = bound("127.0.0.1"), bound("127.0.0.1")
    prefix = bytes(range(24))
    places = [there.getsockname()[:2]]
    assert filters.attach(here, filters.own(prefix) + filters.elsewhere(socket.AF_INET, places, ONE_OF))
    here.setblocking(False)
    there.sendto(prefix[:3] + b"k" + prefix[4:] + b"own, under another key", here.getsockname())
    there.sendto(prefix[:23] + b"not own", here.getsockname())
    assert here.recv(100).endswith(b"not own")
    with pytest.raises(BlockingIOError):
        here.recv(100)
    here.close()
    there.close()


class Net:
    def __init__(self) -> None:
        self.told: list[frozenset[Any] | None] = []

    def sieve(self, places: frozenset[Any] | None, one_of: int) -> None:
        self.told.append(places)


def test_a_sieve_is_on_while_a_flood_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LASTS_S", 0.02)
    monkeypatch.setattr(sieve, "FLOOD_PER_S", 1_600)  # more than one that passes in 20 ms is a flood still
    guard = SimpleNamespace(places=frozenset({("a", 1)}), let_in_from=lambda: frozenset({("b", 2)}))
    incoming: Any = SimpleNamespace(refused=0, guard=guard)
    net, now = Net(), [0]

    async def flood() -> None:
        nets: Any = {0: net}
        door = Sieve(nets, incoming, lambda: now[0])
        now[0] += 2_000_000_000
        incoming.refused = FLOOD_PER_S + 1
        door.flooded()  # that was in two seconds
        assert net.told == []
        now[0] += 500_000_000
        incoming.refused = door.beyond + 1
        door.flooded()
        assert net.told == [frozenset({("a", 1), ("b", 2)})]
        incoming.refused += 2
        await asyncio.sleep(0.03)
        assert net.told[1:] == []  # it goes on
        await asyncio.sleep(0.05)
        assert net.told[1:] == [None]

    asyncio.run(flood())
