"""A member's own directory: its lock, its incarnation, and what its layers stored.

Every write goes to a new file that is flushed and then takes the old one's name, so a crash leaves the old value or the
new one.  Writes of a running member happen in one thread of their own; a driver never blocks on a disk.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import time
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from ordercast.errors import RunError, UsageError
from ordercast.types import MemberId

_SUFFIX = ".state"


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One stored value."""

    key: str
    number: int
    data: bytes


class Storage:
    """The folder `state_dir/member-i`; without one nothing is kept and every store succeeds (no disk)."""

    def __init__(self, folder: Path | None, me: MemberId) -> None:
        self.me = me
        self.dir = folder
        self._lock = -1
        self._thread: ThreadPoolExecutor | None = None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as why:
                raise UsageError(f"state_dir {folder}: cannot be made ({_why(why)})") from None
            self._take_lock(folder)

    def _take_lock(self, folder: Path) -> None:
        try:
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as why:
            if why.errno in (errno.EWOULDBLOCK, errno.EACCES) and self._lock >= 0:
                os.close(self._lock)
                self._lock = -1
                raise UsageError(f"member {self.me} already runs in {folder}: expected one process each") from None
            raise UsageError(f"state_dir {folder}: not writable ({_why(why)})") from None

    # ---------------------------------------------------------------------------------------------- before the start

    def load(self) -> dict[str, tuple[int, bytes]]:
        """Everything stored by earlier lives."""
        stored: dict[str, tuple[int, bytes]] = {}
        for path in sorted(self.dir.glob("*" + _SUFFIX)) if self.dir is not None else ():
            try:
                record = msgspec.msgpack.decode(path.read_bytes(), type=Record)
            except msgspec.MsgspecError:
                raise RunError(f"{path}: is not a stored value of ordercast; remove it to start without it") from None
            stored[record.key] = (record.number, record.data)
        return stored

    def new_incarnation(self) -> int:
        """Larger than every earlier one, with or without a disk; on disk before the member speaks."""
        wall = time.time_ns()
        stored = self.load().get("incarnation", (0, b""))[0]
        incarnation = max(stored + 1, wall)
        if self.dir is not None:
            try:
                self.write("incarnation", incarnation, b"")
            except OSError as why:
                raise RunError(f"{self.dir}: the incarnation cannot be stored ({_why(why)})") from None
        return incarnation

    # --------------------------------------------------------------------------------------------------- afterwards

    def write(self, key: str, number: int, data: bytes) -> None:
        """Durably, at once."""
        if self.dir is None:
            return
        path = self.dir / (urllib.parse.quote(key, safe="") + _SUFFIX)
        fresh = path.with_suffix(".new")
        with open(fresh, "wb") as file:
            file.write(msgspec.msgpack.encode(Record(key, number, data)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
        folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def write_later(self, key: str, number: int, data: bytes, done: Callable[[str, int, str], None]) -> None:
        """In the storing thread, in order; then `done(key, number, why it failed or "")` in the event loop."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"ordercast-store-{self.me}")
        loop = asyncio.get_running_loop()

        def job() -> None:
            why = ""
            try:
                self.write(key, number, data)
            except OSError as fault:
                why = _why(fault)
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, key, number, why)

        self._thread.submit(job)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def ring_seq_now() -> int:
    """The first ring sequence number of a life: wall clock in us, rounded up to a multiple of 4.

    A life that lost its disk has nothing but the clock to stay above its earlier views; they come faster than
    milliseconds, never faster than microseconds.
    """
    return -(-time.time_ns() // 1_000 // 4) * 4


def _why(fault: OSError) -> str:
    return (fault.strerror or type(fault).__name__).lower()
