"""The dumb twin of the Book: the reception queue as the paper has it, every entry raised at every validation."""

from __future__ import annotations

from typing import Any

from ordercast.protocols.tomp.stamps import Stamp


class Queue:
    """Of one host; the interface of `Book`."""

    def __init__(self, me: int, n: int, clock: int = 0) -> None:
        self.me, self.clock, self.next_mid = me, clock, [1] * n
        self.entries: dict[tuple[int, int], tuple[Stamp, bool]] = {}  # (rank, n) -> stamp, whether it is undecided

    def propose(self, rank: int) -> int:
        self.clock += 1
        self.entries[rank, self.next_mid[rank]] = (self.clock, self.me), True
        self.next_mid[rank] += 1
        return self.clock

    def stamp(self, rank: int, n: int) -> Stamp | None:
        stamp, undecided = self.entries.get((rank, n), ((0, 0), False))
        return stamp if undecided else None

    def decide(self, rank: int, n: int, final: Stamp) -> None:
        self.entries[rank, n] = final, False
        self.clock = max(self.clock, final[0])

    def anticipate(self, min_next_mid: Any, max_next_ts: Any) -> None:
        for (rank, n), (stamp, undecided) in self.entries.items():
            ahead = n - min_next_mid[rank]
            if undecided and ahead >= 0:
                number, host = max_next_ts[rank]
                self.entries[rank, n] = max(stamp, (number + ahead, host)), True

    def deliverable(self) -> list[tuple[Stamp, int, int]]:
        out = []
        while self.entries:
            mid = min(self.entries, key=lambda mid: (*self.entries[mid], mid))
            stamp, undecided = self.entries[mid]
            if undecided:
                break
            out.append((stamp, *mid))
            del self.entries[mid]
        return out

    def listed(self) -> list[tuple[int, int, Stamp]]:
        return [(*mid, stamp) for mid, (stamp, undecided) in self.entries.items() if undecided]

    @property
    def ready(self) -> list[tuple[Stamp, int, int]]:
        return [(stamp, *mid) for mid, (stamp, undecided) in self.entries.items() if not undecided]
