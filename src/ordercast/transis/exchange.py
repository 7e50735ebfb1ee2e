"""The exchange: those who come from one old view get what any of them has, and what each contributes to the flush.

From the entries alone all of T compute the same: up to `low` everybody has everything, up to `cut` somebody has it, and
what lies between is wanted and multicast by the lowest-ranked who has it.  `cut` is the agreed set.  It is causally
closed without a test, as every `have` is, and holds all own messages of T.  A message held back everywhere is in
nobody's `have` and is lost, with its sender departed, also if its predecessors come with the exchange.
Every wanted message is still in the buffers of those who have it: somebody of T had not acknowledged it.

Nothing is inserted here; what came is kept until the install, and dropped if this attempt fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ordercast.limits import FLUSH_PARTS_MAX, NACK_RANGES_MAX
from ordercast.transis.packets import Data, FlushData, FlushNack, FlushState
from ordercast.transis.plan import Plan
from ordercast.transis.repair import Key, ranges_of
from ordercast.types import MemberId, Nanoseconds, ViewId

STATE_BYTES = 64  # of a packet, beside the state in it
SEND_BYTES_MAX = 2**20  # sent in one step; the rest is asked for


class Bounds(Struct, frozen=True):
    """What the entries of T say."""

    low: tuple[int, ...]
    cut: tuple[int, ...]

    def wanted(self) -> list[Key]:
        return [(q, k) for q in range(len(self.cut)) for k in range(self.low[q] + 1, self.cut[q] + 1)]


def bounds(haves: Mapping[MemberId, tuple[int, ...]]) -> Bounds:
    rows = list(haves.values())
    return Bounds(tuple(map(min, zip(*rows, strict=True))), tuple(map(max, zip(*rows, strict=True))))


def first_holder(key: Key, haves: Mapping[MemberId, tuple[int, ...]]) -> MemberId:
    """Who multicasts a wanted message: of those who have it the lowest-ranked."""
    rank, seq = key
    return min(member for member, have in haves.items() if have[rank] >= seq)


class Exchange:
    """Of one attempt, among T; `buffer` is what this member still has of the old view."""

    def __init__(
        self,
        me: MemberId,
        ring_id: ViewId,
        view: ViewId,
        haves: Mapping[MemberId, tuple[int, ...]],
        buffer: Mapping[Key, Data[Any]],
        state: bytes,
        packet_bytes: int,
    ) -> None:
        self.me, self.ring_id, self.view, self.haves, self.buffer = me, ring_id, view, haves, buffer
        self.together = tuple(sorted(haves))
        self.bounds = bounds(haves)
        mine = haves[me]
        self.lacking = {(q, k): first_holder((q, k), haves) for q, k in self.bounds.wanted() if k > mine[q]}
        self.got: dict[Key, Data[Any]] = {}
        self.states: dict[MemberId, bytes] = {me: state}
        self._parts: dict[MemberId, dict[int, bytes]] = {}
        self._sent: dict[Key | MemberId, Nanoseconds] = {}
        step = packet_bytes - STATE_BYTES
        self._step = max(step, -(-len(state) // FLUSH_PARTS_MAX))
        self.turn = 0  # rounds of asking

    # ------------------------------------------------------------------------------------------------------- what comes

    @property
    def complete(self) -> bool:
        return not self.lacking and len(self.states) == len(self.together)

    def doubt(self, packet: FlushData[Any] | FlushState) -> str:
        """Why nobody who comes from my old view can have sent it; empty: somebody can, or it is of another view."""
        cut = self.bounds.cut
        if isinstance(packet, FlushState):
            return "flush state" if packet.view == self.view and packet.member not in self.haves else ""
        if packet.data.view != self.view:
            return ""
        if len(packet.data.vec) != len(cut):
            return "vector"
        return "flush data" if packet.data.seq > cut[packet.rank] else ""

    def take(self, packet: FlushData[Any]) -> bool:
        """An old message, beyond doubt; False if it is not wanted here."""
        key = (packet.rank, packet.data.seq)
        if packet.data.view != self.view or self.lacking.pop(key, None) is None:
            return False
        self.got[key] = packet.data
        return True

    def take_state(self, packet: FlushState) -> bool:
        """A part of a member's contribution, beyond doubt; False if it is not wanted here."""
        member = packet.member
        if packet.view != self.view or member in self.states:
            return False
        parts = self._parts.setdefault(member, {})
        if len(parts) >= packet.parts:
            parts.clear()  # somebody spoke of fewer: begin anew
        parts[packet.part] = packet.data
        if len(parts) == packet.parts and max(parts) == packet.parts - 1:
            self.states[member] = b"".join(parts[k] for k in range(packet.parts))
            del self._parts[member]
        return True

    def plan(self) -> Plan:
        """All is here."""
        states = tuple(self.states[member] for member in self.together)
        return Plan(self.ring_id, self.together, self.bounds.cut, self.got, states)

    # -------------------------------------------------------------------------------------------------------- what goes

    def first(self, now: Nanoseconds) -> list[FlushData[Any] | FlushState]:
        """What this member multicasts without being asked."""
        if len(self.together) == 1:
            return []
        mine = self.haves[self.me]
        own = [key for key in self.bounds.wanted() if key[1] <= mine[key[0]] and self._first(key) == self.me]
        return [*self._state(now, self.me), *self._messages(now, own)]

    def missing(self) -> FlushNack:
        """Ask for what is not here; each time it is another's turn to answer."""
        keys = sorted(self.lacking)
        ranges = ranges_of(keys)[0] if keys else ()
        states = tuple(member for member in self.together if member not in self.states)
        nack = FlushNack(self.ring_id, self.view, ranges[:NACK_RANGES_MAX], states, min(self.turn, 2**16 - 1))
        self.turn += 1
        return nack

    def answer(self, now: Nanoseconds, nack: FlushNack, rest: Nanoseconds) -> list[FlushData[Any] | FlushState]:
        """What it is my turn to send of what one of us lacks, unless I sent it within `rest`."""
        keys: list[Key] = []
        for q, first, last in nack.ranges:
            span = range(max(first, self.bounds.low[q] + 1), min(last, self.bounds.cut[q]) + 1)
            keys += [(q, k) for k in span if self._mine(self._first((q, k)), nack.turn)]
        out: list[FlushData[Any] | FlushState] = []
        for member in nack.states:
            if member in self.states and self._mine(member, nack.turn) and self._rested(now, member, rest):
                out += self._state(now, member)
        return out + self._messages(now, [key for key in keys if self._rested(now, key, rest)])

    def owed_by(self) -> list[MemberId]:
        """Who has not given what it should have: the senders of missing messages, the owners of missing states."""
        owners = {member for member in self.together if member not in self.states}
        return sorted(owners.union(self.lacking.values()) - {self.me})

    def _first(self, key: Key) -> MemberId:
        return first_holder(key, self.haves)

    def _mine(self, first: MemberId, turn: int) -> bool:
        """In the first round whoever should have sent it answers, then the next of T, and so on."""
        at = self.together.index(first)
        return self.together[(at + turn) % len(self.together)] == self.me

    def _rested(self, now: Nanoseconds, what: Key | MemberId, rest: Nanoseconds) -> bool:
        return now - self._sent.get(what, now - rest) >= rest

    def _messages(self, now: Nanoseconds, keys: list[Key]) -> list[FlushData[Any] | FlushState]:
        out: list[FlushData[Any] | FlushState] = []
        budget = SEND_BYTES_MAX
        for key in keys:
            data = self.buffer.get(key) or self.got.get(key)
            if data is None or budget <= 0:
                continue
            frame = getattr(data.body, "frame", None)
            budget -= STATE_BYTES + (len(frame.data) if frame is not None else 0)
            self._sent[key] = now
            out.append(FlushData(self.ring_id, key[0], data))
        return out

    def _state(self, now: Nanoseconds, member: MemberId) -> list[FlushState]:
        state = self.states[member]
        self._sent[member] = now
        pieces = [state[at : at + self._step] for at in range(0, len(state), self._step)] or [b""]
        return [FlushState(self.ring_id, self.view, member, k, len(pieces), p) for k, p in enumerate(pieces)]
