"""What a member says of itself: Hello outside Gather, Join inside; when it must, and not closer together than T_gap.

At once when the own row or proposal changed, in each tick, and when it got news of a row that somebody else does not
hear for itself (rows are relayed; where all hear each other, nothing is repeated).
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.contract import ALL, Action, Transmit
from ordercast.membership.cause import tell
from ordercast.membership.packets import Got, Hello, Join, PackedRows
from ordercast.membership.sight import Sight
from ordercast.membership.table import pack
from ordercast.types import Cause, MemberId, Nanoseconds, NetId, ViewId

LONG_AGO: Nanoseconds = -(2**62)


class Voice:
    __slots__ = ("_bytes", "_net", "_sight", "announce", "joins", "last", "relay")

    def __init__(self, sight: Sight, net: NetId, packet_bytes: int) -> None:
        self._sight, self._net, self._bytes = sight, net, packet_bytes
        self.last: Nanoseconds = LONG_AGO  # when it last spoke
        self.announce = False  # own row or proposal changed, or a tick
        self.joins = 0  # said in this life
        self.relay = False  # another's row changed that some do not hear themselves

    @property
    def asked(self) -> bool:
        return self.announce or self.relay

    def hello(self, now: Nanoseconds, view: ViewId) -> list[Action]:
        return [Transmit(self._net, ALL, Hello(view, rows)) for rows in self._rows(now)]

    def join(
        self, now: Nanoseconds, ring_seq: int, proposal: tuple[MemberId, ...], got: Got | None, cause: Cause
    ) -> list[Action]:
        timeout, told = self._sight.tuning.timeout_ns, tell(cause)
        out: list[Action] = []
        for rows in self._rows(now):
            self.joins += 1
            out.append(Transmit(self._net, ALL, Join(self.joins, ring_seq, proposal, got, rows, timeout, told)))
        return out

    def _rows(self, now: Nanoseconds) -> Iterator[PackedRows]:
        self.last = now
        self.announce = self.relay = False
        return pack(self._sight.table.relayed(now, self._sight.evidence.cap_ns), self._bytes)
