"""From an old ring to a new one without losing what was promised: extended virtual synchrony.

After the commit token everybody knows what its companions of the same old ring hold.  They exchange those frames,
carried on the new ring; when all have them, each delivers the rest of the old ring, first what is still known to hold
for the whole old view, then, in a transitional view, what holds for those who come along.

Literature: Moser, Amir, Melliar-Smith, Agarwal, "Extended virtual synchrony" (1994), and the 1995 single-ring paper.

Differs:
  D1  An entry on the commit token also says up to where frames are known safe, and to whom its writer is already
      obliged: after a failed recovery the earlier obligations still count.
  D2  A frame whose copy another member has already sent is not sent again.
  D3  A further exchange makes the earlier one void until it is finished (it may have added frames here and not there),
      but the obligations of the earlier one stay: somebody may have installed on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ordercast.protocols.totem.packets import Data, RingEntry, Token
from ordercast.protocols.totem.ring import SAFE, Ring
from ordercast.types import MemberId, ViewId


class RecoveryPlan(Struct, frozen=True):
    """What the entries of the commit token say about my old ring."""

    transitional: tuple[MemberId, ...]  # who comes from my old ring
    low_ring_aru: int  # everybody of them has everything up to here
    high_ring_delivered: int
    high_ring_safe: int
    obligation: tuple[MemberId, ...]  # whose frames must go up even behind a hole
    exchange: bool
    rebroadcast: tuple[int, ...]

    @property
    def known_safe(self) -> int:
        return max(self.high_ring_delivered, self.high_ring_safe)


def recovery_plan(
    my_ring: ViewId, entries: Mapping[MemberId, RingEntry], held: Iterable[int], high_seq: int
) -> RecoveryPlan:
    mine = {member: entry for member, entry in entries.items() if entry.ring == my_ring}
    obligation = set(mine)
    for entry in mine.values():
        obligation |= set(entry.obligation)  # D3
    exchange = not all(entry.received and set(entry.obligation) == obligation for entry in mine.values())
    low = min(entry.aru for entry in mine.values())
    return RecoveryPlan(
        tuple(sorted(mine)),
        low,
        max(entry.high_delivered for entry in mine.values()),
        max(entry.safe_upto for entry in mine.values()),
        tuple(sorted(obligation)),
        exchange,
        tuple(sorted(seq for seq in held if low < seq <= high_seq)) if exchange else (),
    )


class Install(Struct, frozen=True):
    """What goes up at the install, by number."""

    regular: list[int]
    transitional: list[int]
    discarded: list[int]


def install_plan(
    frames: Mapping[int, tuple[MemberId, bool]],
    high_seq: int,
    delivered: int,
    known_safe: int,
    obligation: Iterable[MemberId],
) -> Install:
    """`frames`: number -> (sender, asks for safe).  See the module's head."""
    obliged = set(obligation)
    plan = Install([], [], [])
    seq = delivered + 1
    while seq in frames and not (frames[seq][1] and seq > known_safe):
        plan.regular.append(seq)
        seq += 1
    while seq in frames:
        plan.transitional.append(seq)
        seq += 1
    for seq in sorted(n for n in frames if seq < n <= high_seq):
        (plan.transitional if frames[seq][0] in obliged else plan.discarded).append(seq)
    return plan


class Exchange:
    """The exchange of old-ring frames on the new ring, and when it is over."""

    def __init__(self, old: Ring | None, plan: RecoveryPlan | None) -> None:
        self.old, self.plan = old, plan
        self.pending: dict[int, Data] = {}  # ascending
        if old is not None and plan is not None:
            for seq in plan.rebroadcast:
                held = old.store[seq]
                if type(held) is Data:  # what the old ring itself had carried over is below every honest aru
                    self.pending[seq] = held
        self.set_by_me = False
        self.clear_visits = 0  # flg_count
        self.install_seq = 0
        self.sent = self.spared = self.got = 0

    # ----------------------------------------------------------------------------------------------- as a ring's source

    def waiting(self) -> int:
        return len(self.pending)

    def take(self, n: int) -> list[Data]:
        out: list[Data] = []
        while self.pending and len(out) < n:
            out.append(self.pending.pop(next(iter(self.pending))))
        self.sent += len(out)
        return out

    def flag(self, retrans_flg: bool) -> bool:
        """retrans_flg to forward: who has frames left sets it, and only the setter clears it."""
        if self.pending:
            self.set_by_me = self.set_by_me or not retrans_flg
            return True
        if self.set_by_me:
            self.set_by_me = False
            return False
        return retrans_flg

    # ----------------------------------------------------------------------------------------------------------- inputs

    def received(self, data: Data) -> bool:
        """A frame of some old ring came: keep it at once if it is of mine.  True if it was missing."""
        old = self.old
        if old is None or data.ring != old.id or old.doubt(data.seq, data.frame):
            return False
        if self.pending.pop(data.seq, None) is not None:
            self.spared += 1  # D2
        if old.receive(data):
            self.got += 1
            return True
        return False

    def visited(self, ring: Ring, token: Token, last_aru: int) -> tuple[bool, bool]:
        """After a visit that forwarded `token`: (this exchange is finished here, install now)."""
        self.clear_visits = 0 if token.retrans_flg else self.clear_visits + 1
        if self.clear_visits == 2:
            self.install_seq = token.seq
        done = self.clear_visits >= 2 and ring.my_aru >= self.install_seq
        install = self.clear_visits >= 3 and min(token.aru, last_aru) >= self.install_seq
        return done, install

    def install(self) -> tuple[list[Data], list[Data], int]:
        """The old ring's last frames: (regular, transitional, number discarded)."""
        if self.old is None or self.plan is None:
            return [], [], 0
        frames: dict[int, tuple[MemberId, bool]] = {}
        held: dict[int, Data] = {}
        for seq, data in self.old.store.items():
            if type(data) is Data and seq > self.old.delivered:
                frames[seq] = (data.frame.sender, data.frame.service == SAFE and self.old.hold_safe)
                held[seq] = data
        plan = install_plan(frames, self.old.high, self.old.delivered, self.plan.known_safe, self.plan.obligation)
        return [held[s] for s in plan.regular], [held[s] for s in plan.transitional], len(plan.discarded)
