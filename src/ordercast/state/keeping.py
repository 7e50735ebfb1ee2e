"""A replica and its disk: what each input brought is written, and what waits for the disk is said when it is there.

An Offer waits for the log before it, and for the snapshot of a state that was taken over: a state that is offered is
one that its member has, also if it stops in the next moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.contract import Action, SetTimer
from ordercast.state.durable import Durable
from ordercast.state.log import WRITE, Log
from ordercast.state.packets import Holds, Offer, Synced, say
from ordercast.state.recovery import Recovered, recover
from ordercast.state.replica import Replica
from ordercast.types import MemberId, Nanoseconds, ViewId

RETRY = "retry"
NO_DISK = "no disk"


class Keeping:
    """`files`: what earlier lives left, by name; None: this member has no disk."""

    def __init__(self, replica: Replica, files: Mapping[str, bytes] | None, retry_ns: Nanoseconds) -> None:
        self.replica, self._files, self.retry_ns = replica, files, retry_ns
        self.log: Log | None = None
        self.durable: Durable | None = None  # since the decision of this view
        self._disks: dict[MemberId, bool] = {}  # who of this view has one
        self._offer: tuple[ViewId, int] | None = None  # the view, and the flush that the Offer in it waits for

    def start(self) -> Recovered | None:
        """Take up the state that is there; raises `Failed` where the machine cannot."""
        files, self._files = self._files, None
        if files is None:
            return None
        found = recover(self.replica, files)
        self.replica.log = self.log = Log(files, found.damaged, found.bytes)
        return found

    def enter(self, view: ViewId) -> list[Action]:
        """A view begins: the Offer, at once or when all before it is on disk."""
        self.leave()
        self.replica.enter(view)
        if self.log is None:
            return [say(self.replica.offer(view), ahead=True)]
        out = self.log.sync(self.replica.history.n)
        self._offer = view, self.log.awaited
        return out

    def leave(self) -> None:
        """A view ends."""
        self.durable = self._offer = None
        self._disks = {}

    def decided(self, view: ViewId) -> list[Action]:
        self.durable = Durable(view, self.replica, self.log)
        return self.replica.answers.beside(self.lacks)

    # ------------------------------------------------------------------------------------------- who has no disk at all

    def offered(self, member: MemberId, said: Offer | Holds) -> None:
        if isinstance(said, Offer):
            self._disks[member] = said.disk

    def without(self, member: MemberId, replicas: Iterable[MemberId]) -> list[Action]:
        """It is no replica any more, these are: nobody waits for its disk."""
        self._disks.pop(member, None)
        out = self.replica.answers.beside(self.lacks)
        return out + self.durable.weigh(replicas) if self.durable is not None else out

    @property
    def lacks(self) -> str:
        """Why no call can be durable in this view, or nothing."""
        who = ", ".join(str(member) for member, disk in sorted(self._disks.items()) if not disk)
        return NO_DISK if self.log is None else f"{NO_DISK} at member {who}" if who else ""

    # --------------------------------------------------------------------------------------------------- after an input

    def write(self, now: Nanoseconds, complete: bool) -> list[Action]:
        """What it brought; a complete replica also flushes what is durable, and keeps its log short."""
        log, replica = self.log, self.replica
        if log is None:
            return []
        out = log.write(replica.history.n)
        if complete and self.durable is not None:
            out += self.durable.flush()
            if log.long(replica.machine.size()):
                out += replica.save()
        return [*out, SetTimer(WRITE, now)] if log.starts() else out

    def more(self, now: Nanoseconds) -> list[Action]:
        """Of a snapshot."""
        return self.log.more(now, self.replica.history.n) if self.log is not None else []

    # ------------------------------------------------------------------------------------------------ the disk's answer

    def stored(self, now: Nanoseconds, number: int) -> list[Action]:
        assert self.log is not None
        out = self.log.stored(number, self.replica.history.n)
        if self._offer is not None and number >= self._offer[1] and not self.log.base:
            view, self._offer = self._offer[0], None
            out.append(say(self.replica.offer(view), ahead=True))
        return out

    def failed(self, now: Nanoseconds, why: str) -> list[Action]:
        assert self.log is not None
        self.log.failed(why)
        return [SetTimer(RETRY, now + self.retry_ns)]

    def retry(self, now: Nanoseconds) -> list[Action]:
        """Once more, with all that is not certain."""
        assert self.log is not None
        out = self.replica.save() if self.log.owed else []
        out += self.log.sync(self.replica.history.n)
        if self._offer is not None:
            self._offer = self._offer[0], self.log.awaited
        return out

    def vouch(self) -> list[Action]:
        return self.durable.say() if self.durable is not None else []

    def synced(self, member: MemberId, said: Synced, replicas: Iterable[MemberId]) -> list[Action]:
        return self.durable.heard(member, said.n, replicas) if self.durable is not None else []
