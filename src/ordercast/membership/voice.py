"""What a member says of itself: its row, in a Hello outside Gather, in a Join inside, not closer together than T_gap.

At once when the own row or proposal changed, in each tick, and when it got news of a row that somebody else does not
hear for itself (rows are relayed; where all hear each other, nothing is repeated).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ordercast.contract import ALL, Packet, Transmit
from ordercast.membership.automaton import State
from ordercast.membership.ballot import Ballot
from ordercast.membership.cause import ToldCause, tell
from ordercast.membership.events import Outdone
from ordercast.membership.packets import Hello, Join, PackedRows
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.step import NEVER, Step
from ordercast.membership.table import HELLO_BYTES, NOBODY, number_bytes, pack
from ordercast.membership.timers import PART, TICK
from ordercast.types import MemberId, Nanoseconds, NetId, Peer

LONG_AGO: Nanoseconds = -(2**62)
JOIN_BYTES = 68  # of a Join, beside its rows, the members it proposes and the words of its cause: at most


def join_bytes(proposal: Sequence[MemberId], told: ToldCause) -> int:
    words = sum(len(text.encode()) for text in (told.reason, told.timer, told.evidence))
    return JOIN_BYTES + sum(map(number_bytes, proposal)) + words


class Voice:
    def __init__(
        self, step: Step, standing: Standing, sight: Sight, number: RingNumber, ballot: Ballot, net: NetId, size: int
    ) -> None:
        self._step, self._standing, self._sight, self._number, self._ballot = step, standing, sight, number, ballot
        self._net, self._bytes = net, size
        self.last: Nanoseconds = LONG_AGO  # when it last spoke
        self.announce = False  # own row or proposal changed, or a tick
        self.joins = 0  # said in this life
        self.relay = False  # another's row changed that some do not hear themselves

    # ------------------------------------------------------------------------------------------------------------ rows

    def recompute(self, now: Nanoseconds) -> bool:
        """Bring the own row up to date.  True if it changed."""
        standing = self._standing
        ill = standing.gathers and self._number.ill
        changed = self._sight.recompute(now, standing.installed.id, standing.works, ill)
        self.announce |= changed
        return changed

    def absorb(self, now: Nanoseconds, peer: Peer, rows: PackedRows) -> bool:
        """Take the rows of a packet.  True if the table changed."""
        sight = self._sight
        news = sight.absorb(now, peer, rows)
        for row in news:
            self.announce |= row.id == sight.me
            self.relay |= sight.table.worth_relaying(row.id)
        return bool(news)

    # ---------------------------------------------------------------------------------------------------------- speech

    def speak(self, now: Nanoseconds) -> None:
        """At the end of a step: say once what changed in it, or at the next tick if that would be too soon."""
        if not (self.announce or self.relay) or self._standing.state is State.PARTED:
            return
        gathers, earliest = self._standing.gathers, self.last + self._step.times.gap
        if now >= earliest or (gathers and self.announce):
            if gathers:
                self.join(now)
            if not gathers or self._sight.rivals.name(now) is not None:
                self.hello(now)
            return
        self.announce = self.relay = False
        if self._step.deadlines.due.get(TICK, NEVER) > earliest:
            self._step.tick_at(earliest)

    def part(self, now: Nanoseconds) -> None:
        """Say that I am gone; once more after T_gap."""
        self._step.deadlines.clear(*self._step.deadlines.due)
        self._sight.table.write(now, self._standing.installed.id, False, NOBODY)
        self.hello(now)
        self._step.set(PART, now + self._step.times.gap)

    def give_way(self, now: Nanoseconds, why: str) -> None:
        """Another life of my id stays: say that I am gone, and end."""
        self._step.deadlines.clear(*self._step.deadlines.due)
        self._sight.table.write(now, self._standing.installed.id, False, NOBODY)
        self.hello(now)
        self._step.say(Outdone(why))

    def hello(self, now: Nanoseconds) -> None:
        for rows in self._rows(now, HELLO_BYTES):
            self._say(Hello(self._standing.installed.id, rows, self._sight.rivals.name(now)))

    def join(self, now: Nanoseconds) -> None:
        used, proposal, got = self._number.used, self._ballot.proposal, self._standing.got
        timeout, told = self._step.times.timeout, tell(self._standing.cause)
        for rows in self._rows(now, join_bytes(proposal, told)):
            self.joins += 1
            self._say(Join(self.joins, used, proposal, got, rows, timeout, told))

    def _say(self, packet: Packet) -> None:
        self._step.say(Transmit(self._net, ALL, packet))

    def _rows(self, now: Nanoseconds, head_bytes: int) -> Iterator[PackedRows]:
        self.last = now
        self.announce = self.relay = False
        return pack(self._sight.table.relayed(now, self._sight.evidence.cap_ns), self._bytes, head_bytes)
