"""A simulated disk: the files a real member would have in its folder, and what may become of them."""

from __future__ import annotations

import errno
from random import Random

from ordercast.drivers.store import Store, encode, why
from ordercast.sim.files import Certain, Files

FAILURES = {"full": (errno.ENOSPC, "No space left on device"), "error": (errno.EIO, "Input/output error")}


class Disk:
    """Holds bytes by file name.  `store` is what the process on it reads and writes them by."""

    def __init__(self, write_ns: int, random: Random) -> None:
        self.write_ns, self._random = write_ns, random
        self.times = 1.0  # slow: factor
        self.fails = ""  # full, error
        self.lies = False  # says that it flushed, and did not
        self.torn = False
        self.flip = False
        self.files: dict[str, bytes] = {}
        self._flushed: dict[str, bytes] = {}  # what of it a crash leaves of a disk that lies
        self._writing: dict[int, tuple[str, int, bytes]] = {}  # under way, by ticket
        self._ticket = 0
        self.store = Store(self)
        self.own = Files(random)  # those that grow

    def open(self) -> Store:
        """A process starts."""
        self.store = Store(self)
        return self.store

    # -------------------------------------------------------------------------------------------------------- files

    def read(self) -> dict[str, bytes]:
        return self.files

    def write(self, name: str, data: bytes) -> None:
        if self.fails:
            raise OSError(*FAILURES[self.fails])
        self.files[name] = data
        if not self.lies:
            self._flushed = dict(self.files)

    # ---------------------------------------------------------------------------------------------- what takes time

    def begin(self, key: str, number: int, data: bytes) -> tuple[int, int]:
        """Start a write; returns (ticket, how long it takes)."""
        self._ticket += 1
        self._writing[self._ticket] = (key, number, data)
        return self._ticket, int(self.write_ns * self.times)

    def finish(self, ticket: int) -> tuple[str, int, str] | None:
        """(key, number, why it failed or ""), or None when the process that wrote has died."""
        write = self._writing.pop(ticket, None)
        if write is None:
            return None
        failed = ""
        try:
            self.store.write(*write)
        except OSError as fault:
            failed = why(fault)
        return write[0], write[1], failed

    def fault(self) -> str:
        """Why nothing can be written at present."""
        return FAILURES[self.fails][1].lower() if self.fails else ""

    def flushed(self, covered: Certain) -> str:
        """A flush of the files that grow ends; why it failed.  A disk that lies says it did not."""
        return self.fault() or ("" if self.lies and not self.own.fault else self.own.flushed(covered))

    # ----------------------------------------------------------------------------------------------------- accidents

    def crash(self) -> None:
        """The process died: writes under way vanish or are left torn; a lying disk forgets more, a bad one errs."""
        self.own.crash(torn=self.torn, flip=self.flip)
        if self.lies:
            self.files = dict(self._flushed)
        if self.torn:
            for write in self._writing.values():
                record = self.store.next(*write)
                data = encode(record)
                self.files[record.name] = data[: self._random.randint(0, len(data))]
        self._writing.clear()
        if self.flip:
            for name, data in sorted(self.files.items()):
                if data and self._random.random() < 0.5:
                    place = self._random.randrange(8 * len(data))
                    self.files[name] = flipped(data, place)
        self._flushed = dict(self.files)

    def wipe(self) -> None:
        self.files, self._flushed = {}, {}
        self.own.wipe()


def flipped(data: bytes, place: int) -> bytes:
    """With the bit at `place` turned."""
    return data[: place // 8] + bytes((data[place // 8] ^ 1 << place % 8,)) + data[place // 8 + 1 :]
