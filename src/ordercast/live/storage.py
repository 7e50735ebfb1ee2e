"""A member's own folder: its lock, and the files of what it stores (`drivers/store.py` knows what is in them).

A file is flushed before a write counts as done, and a new one's name too.  Writes of a running member happen in one
thread of their own; a driver never blocks on a disk.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ordercast import contract
from ordercast.contract import Action
from ordercast.drivers.store import SUFFIX, Store, why
from ordercast.errors import RunError, UsageError
from ordercast.filing import Append, Remove, Rename, Sync
from ordercast.live.filing import Filing, Found
from ordercast.types import MemberId

KEPT = frozenset((contract.Store, Append, Rename, Remove, Sync))  # actions that are for the disk


class Storage:
    """The folder `state_dir/member-i`; without one nothing is kept and every store succeeds (no disk)."""

    def __init__(self, folder: Path | None, me: MemberId) -> None:
        self.me = me
        self.dir = folder
        self._lock = -1
        self._thread: ThreadPoolExecutor | None = None
        self._named: set[str] = set()  # files whose names are on storage for certain
        self.filing = Filing(folder / "state") if folder is not None else None
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as fault:
                raise UsageError(f"state_dir {folder}: cannot be made ({why(fault)})") from None
            self._take_lock(folder)
        self.store = Store(self)
        if self.store.damaged:
            text = "ordercast: %s: damaged or unknown, and passed over: %s"
            logging.getLogger("ordercast").warning(text, folder, ", ".join(self.store.damaged))

    def _take_lock(self, folder: Path) -> None:
        try:
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno in (errno.EWOULDBLOCK, errno.EACCES) and self._lock >= 0:
                os.close(self._lock)
                self._lock = -1
                raise UsageError(f"member {self.me} already runs in {folder}: expected one process each") from None
            raise UsageError(f"state_dir {folder}: not writable ({why(fault)})") from None

    def new_incarnation(self) -> int:
        """Larger than every earlier one, with or without a disk; on disk before the member speaks."""
        try:
            return self.store.new_incarnation(time.time_ns())
        except OSError as fault:
            raise RunError(f"{self.dir}: the incarnation cannot be stored ({why(fault)})") from None

    # -------------------------------------------------------------------------------------------------------- files

    def read(self) -> dict[str, bytes]:
        return {path.name: _bytes(path) for path in self.dir.glob("*" + SUFFIX)} if self.dir is not None else {}

    def write(self, name: str, data: bytes) -> None:
        if self.dir is None:
            return
        with open(os.open(self.dir / name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644), "wb") as file:
            file.write(data)
            file.truncate()
            os.fsync(file.fileno())
        if name not in self._named:
            folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            self._named.add(name)

    def does(self, action: Action, done: Callable[[str, int, str], None]) -> None:
        """Any of `KEPT`, in the storing thread, in order; `done` as of `write_later`."""
        if isinstance(action, contract.Store):
            self.write_later(action.key, action.number, action.data, done)
            return
        if self.filing is None:
            return
        if not isinstance(action, Sync):
            self._later(partial(self.filing.do, action))
            return
        loop, sync, key, number = asyncio.get_running_loop(), self.filing.sync, action.key, action.number

        def job() -> None:
            failed = sync()
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, key, number, failed)

        self._later(job)

    def found(self) -> Mapping[str, bytes] | None:
        """The files that grow, of earlier lives; None: nothing is kept."""
        return Found(self.filing.folder) if self.filing is not None else None

    def _later(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"ordercast-store-{self.me}")
        self._thread.submit(job)

    def write_later(self, key: str, number: int, data: bytes, done: Callable[[str, int, str], None]) -> None:
        """In the storing thread, in order; then `done(key, number, why it failed or "")` in the event loop."""
        loop = asyncio.get_running_loop()

        def job() -> None:
            failed = ""
            try:
                self.store.write(key, number, data)
            except OSError as fault:
                failed = why(fault)
            if not loop.is_closed():
                loop.call_soon_threadsafe(done, key, number, failed)

        self._later(job)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)
            self._thread = None
        if self.filing is not None:
            self.filing.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def ring_seq_now() -> int:
    """The first ring sequence number of a life: wall clock in us, rounded up to a multiple of 4.

    A life that lost its disk has nothing but the clock to stay above its earlier views; they come faster than
    milliseconds, never faster than microseconds.
    """
    return -(-time.time_ns() // 1_000 // 4) * 4


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
