"""What a replica keeps on disk: a log of the steps it took, and snapshots that make the log short.

``calls-k`` holds what followed ``snapshot-k``, or what followed the segment before it: a life that starts begins a new
one, and so does whoever was told that a write failed, so nothing is ever written behind a torn end.  A snapshot has
another name until all of it is written.  Two are kept, with what followed them: if the newer one is damaged, the older
one and its log say the same.

A state that was taken over, or merged, is written as a snapshot; until that is on disk, nothing there is of the present
state, and nobody is told that anything is (`disk_n`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.contract import Action, SetTimer
from ordercast.filing import Append, Remove, Rename, Sync
from ordercast.limits import CHUNK_BYTES_MAX
from ordercast.state.history import Step
from ordercast.state.machine import Mark
from ordercast.state.records import (
    LOG,
    NEW,
    SNAPSHOT,
    Beginning,
    Decided,
    Record,
    Stepped,
    framed,
    numbers,
    snapshot,
)
from ordercast.types import MemberId, Nanoseconds

KEY = "state/log"  # of a Sync
WRITE = "write"
LOG_BYTES = 4 * 2**20  # a log shorter than this needs no snapshot, and what may not be on disk is no more than this


class Log:
    """What is to be written, as actions; `found` are the files of earlier lives, some of them `damaged`, with so many
    bytes of log since the last snapshot."""

    def __init__(self, found: Iterable[str], damaged: Iterable[str] = (), size: int = 0) -> None:
        logs, snapshots = numbers(found, LOG), numbers(found, SNAPSHOT)
        self._files = {*(f"{LOG}{k}" for k in logs), *(f"{SNAPSHOT}{k}" for k in snapshots)}
        self._remove = [name for name in sorted(found) if name.endswith(NEW)]
        self.number = max([0, *logs, *snapshots]) + 1  # of the segment that is written
        self._snapshots = [0, *numbers(set(found) - set(damaged), SNAPSHOT)][-2:]  # on disk; 0: the initial state
        self._remove += self._older()  # what an earlier life had no time for
        self._out: list[bytes] = []  # said, and not handed to the driver
        self._kept: list[bytes] = []  # handed over, and perhaps not on disk
        self._kept_bytes = 0
        self._bytes = size  # of the log since the last snapshot
        self._sync = 0  # number of the last Sync
        self._syncing: tuple[int, int] | None = None  # n as it began, and how much of `_kept` it covers
        self._wanted = False  # another one after it
        self._pieces: Iterator[bytes] | None = None  # what is still to be written of a snapshot
        self._fresh = False  # it has just been begun
        self._ends = 0  # the Sync that ends it
        self.owed = False  # a snapshot failed, and has to be made again
        self.base = False  # what is on disk is of another state, until the snapshot is there
        self._since = 1  # the first Sync that counts for the present view
        self.disk_n = -1  # up to here, and with the decision of this view, all is on disk
        self.why = ""  # the last fault

    # ---------------------------------------------------------------------------------------------------------- records

    def add(self, record: Record) -> None:
        self._out.append(framed(record))

    def stepped(self, step: Step, irregular: bool) -> None:
        assert step.raw is not None
        self.add(Stepped(step.n, step.h, step.caller, step.raw, irregular))

    def decided(self, mark: Mark, members: Iterable[MemberId]) -> None:
        """From now on only what is flushed after this counts."""
        self.add(Decided(mark, tuple(members)))
        self.disk_n, self._since = -1, self._sync + 1

    def write(self, n: int) -> list[Action]:
        """What was said since the last time, to the driver; n calls are applied by now."""
        out: list[Action] = [Remove(name) for name in self._remove]
        self._remove = []
        if self._out:
            file, data = f"{LOG}{self.number}", b"".join(self._out)
            self._out = []
            self._files.add(file)
            self._kept.append(data)
            self._kept_bytes += len(data)
            self._bytes += len(data)
            out.append(Append(file, data))
            if self._kept_bytes > LOG_BYTES and self._syncing is None:
                out += self.sync(n)
        return out

    # --------------------------------------------------------------------------------------------------------- flushing

    def sync(self, n: int) -> list[Action]:
        """All so far, once: while one is under way, another follows it."""
        out = self.write(n)
        self._wanted = self._syncing is not None
        if self._wanted:
            return out
        self._sync += 1
        self._syncing = n, len(self._kept)
        return [*out, Sync(KEY, self._sync)]

    @property
    def awaited(self) -> int:
        """The Sync after which all that was flushed is on disk."""
        return self._sync + self._wanted

    def stored(self, number: int, n: int) -> list[Action]:
        """A Sync was answered."""
        assert self._syncing is not None and number == self._sync, "one at a time"
        upto, covered = self._syncing
        self._syncing, self.why = None, ""
        self._kept_bytes -= sum(map(len, self._kept[:covered]))
        del self._kept[:covered]
        out: list[Action] = []
        if self._ends and number >= self._ends:
            out += self._finish()
        if number >= self._since and not self.base:
            self.disk_n = upto
        return [*out, *(self.sync(n) if self._wanted else ())]

    def failed(self, why: str) -> None:
        """Nobody knows what the files hold: all that is not certain goes to a new one, when it is tried again."""
        self._syncing, self._wanted, self.why = None, False, why
        if self._pieces is not None or self._ends:
            name = f"{SNAPSHOT}{self.number}"
            self._remove.append(name + NEW)
            self._files.add(name)  # perhaps
            self._pieces, self._ends, self.owed = None, 0, True
        self.number += 1
        self._out = [*self._kept, *self._out]
        self._kept, self._kept_bytes = [], 0

    # -------------------------------------------------------------------------------------------------------- snapshots

    def long(self, size: int) -> bool:
        """Whether it is time for a snapshot, of about this size."""
        return self._pieces is None and not self._ends and self._bytes > max(LOG_BYTES, size)

    def snapshot(self, n: int, beginning: Beginning, history: Iterator[bytes], state: Iterator[bytes]) -> list[Action]:
        """Of the state as it is now; it is written by `more`."""
        out = self.write(n)
        if self._pieces is not None or self._ends:
            out.append(Remove(f"{SNAPSHOT}{self.number}{NEW}"))
        self.number += 1
        self._bytes, self._ends, self.owed = 0, 0, False
        self._pieces, self._fresh = snapshot(beginning, history, state), True
        return out

    def rebase(self) -> None:
        """What was said so far belongs to another state: it is no loss."""
        self.base, self.disk_n, self._since = True, -1, self._sync + 1
        self._kept, self._kept_bytes = [], 0
        if self._syncing is not None:
            self._syncing = self._syncing[0], 0

    def starts(self) -> bool:
        """Whether a snapshot was begun since this was last asked."""
        fresh, self._fresh = self._fresh, False
        return fresh

    def more(self, now: Nanoseconds, n: int) -> list[Action]:
        """The next part of a snapshot, in a step of its own; raises what the machine raises."""
        if self._pieces is None:
            return []
        name = f"{SNAPSHOT}{self.number}"
        part: list[bytes] = []
        size = 0
        for piece in self._pieces:
            part.append(piece)
            size += len(piece)
            if size >= CHUNK_BYTES_MAX:
                return [Append(name + NEW, b"".join(part)), SetTimer(WRITE, now)]
        self._pieces = None
        out = [Append(name + NEW, b"".join(part)), Rename(name + NEW, name), *self.sync(n)]
        self._ends = self.awaited
        return out

    def _finish(self) -> list[Action]:
        """It is on disk: what only older ones needed goes."""
        self._ends, self.base = 0, False
        self._snapshots = [self._snapshots[-1], self.number]
        self._files.add(f"{SNAPSHOT}{self.number}")
        return [Remove(file) for file in self._older()]

    def _older(self) -> list[str]:
        """What only older snapshots needed is none of its files any more."""
        old = sorted(file for file in self._files if int(file.rpartition("-")[2]) < self._snapshots[0])
        self._files -= set(old)
        return old
