"""One attempt at a new view, from the full commit token to its install or its end: the entries, and what they lead to.

It knows who comes from where (plan.py), exchanges what those lack who come from this member's old view (exchange.py),
and when this member is done.  An attempt that lasts longer than 4 T is left; who leaves one after more than 2 T without
being done blames those who owe it something, else the same members would be proposed for ever.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.contract import ALL, Action, CancelTimer, Note, Packet, Receive, SetTimer, Transmit, dropped
from ordercast.errors import WireError
from ordercast.limits import EARLY_PACKETS_MAX
from ordercast.membership import Committed
from ordercast.membership.bitmap import from_bitmap
from ordercast.transis.exchange import Exchange
from ordercast.transis.packets import FlushData, FlushNack, FlushState
from ordercast.transis.plan import LayerEntry, Plan, PlanName, components
from ordercast.transis.traffic import Traffic
from ordercast.types import MemberId, Nanoseconds, Peer, ViewId

FLUSH, FLUSH_NACK = "flush", "flush_nack"  # timers
LONGEST_TIMEOUTS, BLAME_TIMEOUTS = 4, 2
BLAME_TURNS = 6  # rounds of asking, so that a pause of this member accuses nobody
SPARES = 2  # own pauses that the longest flush is given time for

_decoder = msgspec.msgpack.Decoder(LayerEntry)


class BadEntry(WireError):
    """What a member wrote on the commit token cannot be."""

    def __init__(self, member: MemberId, why: str) -> None:
        super().__init__("entry", f"of member {member}: {why}")
        self.member = member


def read_entries(
    committed: Committed, configured: tuple[MemberId, ...]
) -> dict[MemberId, tuple[LayerEntry, PlanName | None]]:
    """The entries by member, plans with their members' ids.  Raises BadEntry."""
    out: dict[MemberId, tuple[LayerEntry, PlanName | None]] = {}
    for member, state in zip(committed.members, committed.entries, strict=True):
        try:
            entry = _decoder.decode(state)
        except msgspec.MsgspecError as why:
            raise BadEntry(member, str(why)) from None
        plan: PlanName | None = None
        if entry.plan is not None:
            together = from_bitmap(entry.plan[1], configured)
            if together is None or member not in together:
                raise BadEntry(member, "a plan of strangers")
            plan = entry.plan[0], together
        if entry.view.seq == 0 and entry.view.rep != member:
            raise BadEntry(member, "the beginning of another member")
        out[member] = entry, plan
    return out


class Early:
    """Packets of the view that is being formed, from those who are ahead of this member."""

    def __init__(self) -> None:
        self._kept: list[tuple[Peer, Packet]] = []

    def keep(self, source: Peer, packet: Packet) -> Note:
        if len(self._kept) >= EARLY_PACKETS_MAX:
            return dropped("too many early packets")
        self._kept.append((source, packet))
        return Note("early packet")

    def take(self) -> list[tuple[Peer, Packet]]:
        kept, self._kept = self._kept, []
        return kept


class Flush:
    """Of one member.  `plan`: the one it has kept, if any; `state`: what its protocol contributes."""

    def __init__(
        self,
        now: Nanoseconds,
        committed: Committed,
        configured: tuple[MemberId, ...],
        old: Traffic,
        plan: Plan | None,
        state: bytes,
        timeout_ns: Nanoseconds,
        packet_bytes: int,
    ) -> None:
        entries = read_entries(committed, configured)
        self.me, self.old, self.committed, self.began, self.timeout_ns = old.me, old, committed, now, timeout_ns
        self.components = components(committed.ring_id, {m: (entry.view, kept) for m, (entry, kept) in entries.items()})
        self.mine = next(component for component in self.components if self.me in component.members)
        self.plan = plan if plan is not None and plan.name == self.mine.plan else None
        self.nack_ns, self.rest_ns = old.repair.first_ns, old.repair.nack_ns
        self.pause = old.repair.nack_ns
        self.spares = 0
        self.exchange: Exchange | None = None
        if self.plan is None:
            haves = {member: entries[member][0].have for member in self.mine.members}
            _check(haves, old)
            self.exchange = Exchange(
                self.me, committed.ring_id, old.id, haves, old.stability.buffer, state, packet_bytes
            )

    @property
    def ring_id(self) -> ViewId:
        return self.committed.ring_id

    @property
    def done(self) -> bool:
        """This member holds all that its plan needs."""
        return self.plan is not None

    # -------------------------------------------------------------------------------------------------------- exchange

    def begin(self, now: Nanoseconds) -> list[Action]:
        out: list[Action] = [SetTimer(FLUSH, now + LONGEST_TIMEOUTS * self.timeout_ns)]
        if self.exchange is None:
            return [*out, Note("plan kept", {"ring": str(self.mine.plan[0]) if self.mine.plan else ""})]
        out += _to_all(self.exchange.first(now))
        if not self._finish():
            out.append(SetTimer(FLUSH_NACK, now + self.nack_ns))
        return out

    def _finish(self) -> bool:
        if self.plan is None and self.exchange is not None and self.exchange.complete:
            self.plan = self.exchange.plan()
        return self.plan is not None

    def came(self, now: Nanoseconds, packet: FlushData[Any] | FlushState | FlushNack) -> list[Action]:
        """A message, or a part of a state, of those who exchange; or what one of them lacks."""
        exchange = self.exchange
        if exchange is None:
            return []
        if isinstance(packet, FlushNack):
            return self.nack(now, packet)
        why = exchange.doubt(packet)
        if why:
            return [dropped(why)]
        if isinstance(packet, FlushData):
            wanted, out = exchange.take(packet), self._received(packet)
        else:
            wanted, out = exchange.take_state(packet), []
        return [*out, CancelTimer(FLUSH_NACK)] if wanted and self._finish() else out

    def _received(self, packet: FlushData[Any]) -> list[Action]:
        """A frame counts as received when it came, once, not when it is inserted: who installs first relies on it."""
        key, frame, old = (packet.rank, packet.data.seq), getattr(packet.data.body, "frame", None), self.old
        taken = self.exchange is not None and self.exchange.got.get(key) is packet.data
        if not taken or frame is None or frame.sender != old.members[packet.rank] or key in old.flushed:
            return []
        old.flushed.add(key)
        return [Receive(frame)]

    def nack(self, now: Nanoseconds, packet: FlushNack) -> list[Action]:
        exchange = self.exchange
        if exchange is None or packet.view != exchange.view:
            return []
        if packet.ranges and packet.ranges[-1][0] >= len(exchange.bounds.cut):  # ranges ascend
            return [dropped("range")]
        return _to_all(exchange.answer(now, packet, self.rest_ns))

    def ask(self, now: Nanoseconds) -> list[Action]:
        """The timer: something is still missing."""
        if self.exchange is None or self.done:
            return []
        nack = self.exchange.missing()
        self.pause = min(2 * self.pause, self.timeout_ns // 4)
        note = Note("flush nack", {"ranges": len(nack.ranges), "states": len(nack.states), "turn": nack.turn})
        return [note, Transmit(0, ALL, nack), SetTimer(FLUSH_NACK, now + self.pause)]

    def waits(self) -> str:
        """For what, in words."""
        if self.exchange is None or self.done:
            return "others to be done with the flush"
        return f"members {self.exchange.owed_by()}, who owe the flush something"

    # --------------------------------------------------------------------------------------------------------- its end

    def spare(self, now: Nanoseconds) -> list[Action]:
        """After an own pause: the attempt is given a little more time, but not for ever."""
        self.spares += 1
        return [] if self.spares > SPARES else [SetTimer(FLUSH, now + self.timeout_ns // 2)]

    def blamed(self, now: Nanoseconds) -> list[MemberId]:
        """Whom to blame if the attempt is left now."""
        exchange = self.exchange
        if self.done or exchange is None or exchange.turn < BLAME_TURNS:
            return []
        return exchange.owed_by() if now - self.began > BLAME_TIMEOUTS * self.timeout_ns else []

    def end(self) -> list[Action]:
        return [CancelTimer(FLUSH), CancelTimer(FLUSH_NACK)]


def _check(haves: dict[MemberId, tuple[int, ...]], old: Traffic) -> None:
    """What those of my old view say they have must be possible: nobody lacks what is stable, nothing is far ahead."""
    stable = old.stability.stable
    for member, have in haves.items():
        if member not in old.rank_of or len(have) != old.n:
            raise BadEntry(member, "a vector of another view")
        if any(mine > theirs for mine, theirs in zip(stable, have, strict=True)):
            raise BadEntry(member, "lacks what it acknowledged")
        if old.reception.beyond(have):
            raise BadEntry(member, "has more than can exist")


def _to_all(packets: list[Any]) -> list[Action]:
    return [Transmit(0, ALL, packet) for packet in packets]
