"""What the members of one view say to each other: multicasts and unicasts, while the view lasts.

It gives each packet of the view to the part that it is for, and knows when a link is stuck: the same gap, or the same
unacknowledged unicast, stands for 2 T though those concerned are heard.  That ends what heartbeats hide, a path that
passes small packets only, for example.
"""

from __future__ import annotations

from typing import Any

from ordercast.contract import Action, dropped
from ordercast.transis.packets import Data, Nack, Retrans, Status, UAck, Unicast
from ordercast.transis.traffic import HEARTBEAT, NACK, STATUS, Traffic
from ordercast.transis.unicast import UACK, UNICAST, Unicasts
from ordercast.types import Cause, MemberId, Nanoseconds

PACKETS = frozenset((Data, Status, Unicast, Nack, Retrans, UAck))


class Talk:
    """Of one view."""

    def __init__(self, traffic: Traffic, timeout_ns: Nanoseconds) -> None:
        self.traffic, self.id, self.members = traffic, traffic.id, traffic.members
        self.unicasts = Unicasts(traffic.me, traffic.id, traffic.members, timeout_ns)
        self.primary: bool | None = None  # whether the view is, where a policy says

    def packet(self, now: Nanoseconds, source: MemberId, packet: Any, out: list[Action]) -> None:
        traffic, kind = self.traffic, type(packet)
        rank = traffic.rank_of.get(source)
        if rank is None:
            out.append(dropped("not in the view", member=source))
        elif kind is Data:
            traffic.data(now, rank, rank, packet, out)
        elif kind is Status:
            out += traffic.status(now, rank, packet)
            if packet.u_in and len(packet.u_in) == traffic.n:
                out += self.unicasts.acked(now, source, packet.u_in[traffic.rank])
        elif kind is Retrans:
            traffic.again(now, rank, packet, out)
        elif kind is Nack:
            out += traffic.nack(now, source, packet)
        elif kind is Unicast:
            out += self.unicasts.receive(now, source, packet)
            traffic.u_in = self.unicasts.vector()
        elif packet.to == traffic.me:
            out += self.unicasts.acked(now, source, packet.uack)

    def due(self, now: Nanoseconds, name: str) -> list[Action]:
        """A timer of the view."""
        if name == STATUS:
            return self.traffic.status_due(now)
        if name == HEARTBEAT:
            return self.traffic.beat(now)
        if name == NACK:
            return self.traffic.ask(now)
        if name == UNICAST:
            return self.unicasts.repeat(now)
        assert name == UACK
        return self.unicasts.acks(now)

    def stuck(self, now: Nanoseconds) -> tuple[Cause, list[MemberId]] | None:
        """A link that is, and who is to blame."""
        gap = self.traffic.repair.stuck(now)
        if gap is not None:
            (rank, seq), asked = gap
            cause = Cause("stuck link", self.members[rank], "2 T", f"its message {seq} stays away")
            return cause, [self.members[p] for p in asked]
        to = self.unicasts.stuck(now)
        if to is None:
            return None
        return Cause("stuck link", to, "2 T", "a unicast is not acknowledged"), [to]

    def end(self) -> list[Action]:
        return self.traffic.end() + self.unicasts.end()
