"""The sockets of all nets of a member, watched by a poll of our own, which the event loop watches.

There are loops (uvloop) that give a socket up when it has an error to tell, such as a dead port's answer; this poll is
never given up.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ordercast.drivers.incoming import Incoming
from ordercast.limits import DRAIN_DATAGRAMS_MAX
from ordercast.live.sieve import Sieve
from ordercast.live.sockets import NetSockets, One, Several
from ordercast.types import NetId

Reader = tuple[NetId, NetSockets, One, Several]


class Sources:
    """What there is to read, and from which net."""

    def __init__(self, nets: Mapping[NetId, NetSockets], incoming: Incoming, sieve: Sieve | None = None) -> None:
        self._poll = select.epoll()
        self._incoming, self._sieve = incoming, sieve
        self._sockets: dict[int, tuple[Reader, socket.socket]] = {}
        self._readers: list[Reader] = [(n, net, *_into(incoming, n, net)) for n, net in nets.items()]

    def open(self, loop: asyncio.AbstractEventLoop, readable: Callable[[], None]) -> None:
        self._loop = loop
        for reader in self._readers:
            for sock in reader[1].sockets:
                self._sockets[sock.fileno()] = (reader, sock)
                self._poll.register(sock, select.EPOLLIN)
        loop.add_reader(self._poll.fileno(), readable)

    def close(self) -> None:
        if self._sieve is not None:
            self._sieve.stop()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def read(self) -> Iterator[NetId]:
        """Read every socket that has something to tell; the net of each that gave datagrams of members."""
        for number, _ in self._poll.poll(0):
            (net_id, net, one, several), upto = self._sockets[number]
            used = self._incoming.datagrams
            if not net.read(upto, one, several, DRAIN_DATAGRAMS_MAX):
                net.read_errors(upto)
            elif self._incoming.guard is None or self._incoming.datagrams != used:
                yield net_id  # else strangers spoke, of whom no core is to hear
        if self._sieve is not None and self._incoming.refused > self._sieve.beyond:
            self._sieve.flooded()

    def read_all(self) -> Iterator[NetId]:
        """Read every net, whether the poll tells of it or not; the net of each that gave datagrams."""
        for number, net, one, several in self._readers:
            if net.read(net.sockets[-1], one, several, DRAIN_DATAGRAMS_MAX):
                yield number


def _into(incoming: Incoming, number: NetId, net: NetSockets) -> tuple[One, Several]:
    """What is called with datagrams of a net; only a guard asks where they came from."""
    if incoming.guard is None:
        return partial(incoming.one, number), partial(incoming.several, number)

    def one(datagram: memoryview, drops: int) -> None:
        incoming.one(number, datagram, drops, net.source)

    def several(datagrams: memoryview, segment: int, drops: int) -> None:
        incoming.several(number, datagrams, segment, drops, net.source)

    return one, several
