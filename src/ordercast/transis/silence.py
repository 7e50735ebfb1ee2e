"""Who has been silent for long, where the view cannot change: the application is told, and told when all are back."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.contract import Absent, Action, Note, Up
from ordercast.types import MemberId

SILENT_BEATS = 20  # own heartbeats, T/5 apart, without a word of a member until it counts as absent


class Silence:
    """Of one member's view; an own pause counts as one heartbeat, whatever its length."""

    __slots__ = ("_beats", "_members", "_rank", "absent")

    def __init__(self, members: Sequence[MemberId], rank: int) -> None:
        self._members, self._rank = members, rank
        self._beats = [0] * len(members)  # own heartbeats since each was last heard
        self.absent: tuple[MemberId, ...] = ()

    def heard(self, rank: int) -> None:
        self._beats[rank] = 0

    def beat(self) -> list[Action]:
        """An own heartbeat: tell who is silent for long, when that changes."""
        self._beats = [beats + 1 for beats in self._beats]
        self._beats[self._rank] = 0
        silent = zip(self._members, self._beats, strict=True)
        absent = tuple(member for member, beats in silent if beats > SILENT_BEATS)
        if absent == self.absent:
            return []
        self.absent = absent
        return [Note("absent", {"members": list(absent)}), Up(Absent(absent))]
