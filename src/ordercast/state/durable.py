"""What is told of disks: each member says up to where it has the present state there, and durable calls wait for all.

A member says so only after its own decision in this view, about what was flushed after that, and only if it is not
behind: else who comes back with a longer dead history would vouch for calls that it has not.
One flush serves many calls: the next begins when the one before is done.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.contract import Action
from ordercast.state.log import Log
from ordercast.state.packets import Synced, say
from ordercast.state.replica import Replica
from ordercast.types import MemberId, ViewId


class Durable:
    """Of one view; `log` is None where this member has no disk."""

    def __init__(self, view: ViewId, replica: Replica, log: Log | None) -> None:
        self.view, self.replica, self.log = view, replica, log
        self.told: dict[MemberId, int] = {}  # up to where each has it on disk
        self.settled = -1  # up to where all have
        self._asked = -1  # a flush is under way, or done, for calls up to here
        self._said = -1

    def flush(self) -> list[Action]:
        """Where a durable call waits for it."""
        log, replica = self.log, self.replica
        if log is None or replica.durable_n <= max(self._asked, self.settled):
            return []
        self._asked = replica.history.n
        return log.sync(replica.history.n)

    def say(self) -> list[Action]:
        """What is new on disk, if somebody waits for it."""
        log = self.log
        if log is None or log.disk_n <= self._said or self.replica.durable_n <= self.settled:
            return []
        self._said = log.disk_n
        return [say(Synced(self.view, log.disk_n))]

    def heard(self, member: MemberId, n: int, replicas: Iterable[MemberId]) -> list[Action]:
        """A member has it up to there; who was waiting for that is answered."""
        self.told[member] = max(n, self.told.get(member, -1))
        return self.weigh(replicas)

    def weigh(self, replicas: Iterable[MemberId]) -> list[Action]:
        """Up to where do all of these have it?"""
        self.settled = min((self.told.get(each, -1) for each in replicas), default=-1)
        return self.replica.answers.synced(self.settled)
