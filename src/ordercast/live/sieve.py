"""In a flood of strangers' datagrams the kernel refuses most of them, so that they cost a member next to nothing.

A datagram that the guard refuses has been woken up for, read and counted: ten microseconds, a tenth of a core at ten
thousand a second.  When a thousand a second are refused, what does not come from where a member is, or was let in
from, passes one time in `ONE_OF` only, until fewer come.  Who speaks from a new place is heard by and by; that of a
member is always open, and whoever forges it costs a tag each, as before.
The kernel counts what it refuses together with what found no room, so both are told as `sieved` meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from ordercast.drivers.incoming import Incoming
from ordercast.drivers.rates import SECOND
from ordercast.live.sockets import NetSockets
from ordercast.types import Nanoseconds, NetId

FLOOD_PER_S = 1_000  # refused datagrams that are a flood
ONE_OF = 32
LASTS_S = 5.0
_logger = logging.getLogger("ordercast")


class Sieve:
    """Of one member.  To be called, `flooded`, when the guard has refused more than `beyond` datagrams."""

    def __init__(self, nets: Mapping[NetId, NetSockets], incoming: Incoming, clock: Callable[[], Nanoseconds]) -> None:
        self._nets, self._incoming, self._clock = nets, incoming, clock
        self._since = clock()
        self._timer: asyncio.TimerHandle | None = None  # it is on
        self.beyond = FLOOD_PER_S

    def flooded(self) -> None:
        """So many were refused: were they within a second?"""
        now = self._clock()
        if now - self._since < SECOND and self._timer is None:
            self._set(True)
            self._wait()
            _logger.warning("ordercast: a flood of strangers' datagrams: the kernel refuses most of them for now")
        self._count(now)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        loop, before = asyncio.get_running_loop(), self._incoming.refused
        self._timer = loop.call_later(LASTS_S, self._look, before)

    def _look(self, before: int) -> None:
        """Is it over?  Of those that come now one in `ONE_OF` is seen."""
        if self._incoming.refused - before > LASTS_S * FLOOD_PER_S / ONE_OF:
            self._wait()
            return
        self._timer = None
        self._set(False)
        self._count(self._clock())
        _logger.warning("ordercast: the flood of strangers' datagrams is over")

    def _count(self, now: Nanoseconds) -> None:
        self._since, self.beyond = now, self._incoming.refused + FLOOD_PER_S

    def _set(self, on: bool) -> None:
        guard = self._incoming.guard
        assert guard is not None
        for net in self._nets.values():
            net.sieve(guard.places | guard.let_in_from() if on else None, ONE_OF)
