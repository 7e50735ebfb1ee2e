"""One table of damage, acted out on a real folder and on the simulated disk: the same bytes, the same outcome.

Before each row two lives (incarnations 1000 and 1001) have been; the second stored ring 1 to 6, the newer the shorter.
Then the row's accident happens, the member dies, and the next one starts.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ordercast.drivers import store as format
from ordercast.drivers.store import INCARNATION, VERSIONS, Record, Store, encode
from ordercast.limits import STORED_NUMBER_MAX
from ordercast.live.storage import Storage
from ordercast.sim.disk import Disk

RING = "totem/ring"
FILES = [f"totem%2Fring.{k}.state" for k in range(VERSIONS)]  # ring 4, 5, 6, 3
LIVES = [f"incarnation.{k}.state" for k in range(VERSIONS)]  # none, 1000, 1001, none
FULL, ERROR = "no space left on device", "input/output error"


def data(number: int) -> bytes:
    return b"x" * (9 - number)


# ------------------------------------------------------------------------------------------------------ two places


class Real:
    """The shipped storage on a folder.  What a power cut leaves there is put there by hand."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture) -> None:
        self.folder, self.patch, self.log = folder, patch, log
        self.answers: list[tuple[int, str]] = []
        self.storage = Storage(folder, 1)

    @property
    def store(self) -> Store:
        return self.storage.store

    def restart(self) -> None:
        self.storage.close()
        self.log.clear()
        self.storage = Storage(self.folder, 1)
        told = [record.getMessage() for record in self.log.records if record.levelno == logging.WARNING]
        names = ", ".join(self.store.damaged)
        assert told == ([f"ordercast: {self.folder}: damaged or unknown, and passed over: {names}"] if names else [])

    def get(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def put(self, name: str, content: bytes) -> None:
        (self.folder / name).write_bytes(content)

    def files(self) -> dict[str, bytes]:
        return self.storage.read()

    def write(self, *numbers: int) -> None:
        async def work() -> None:
            for number in numbers:
                self.storage.write_later(RING, number, data(number), self._answered)
            await self._answer(len(self.answers) + len(numbers))

        asyncio.run(work())

    def _answered(self, key: str, number: int, why: str) -> None:
        assert key == RING
        self.answers.append((number, why))

    async def _answer(self, count: int) -> None:
        while len(self.answers) < count:
            await asyncio.sleep(0.001)

    def tear(self, key: str, number: int, content: bytes, at: int) -> None:
        record = self.store.next(key, number, content)
        self.put(record.name, encode(record)[:at])

    def flip(self, places: dict[str, int]) -> None:
        for name, place in places.items():
            content = bytearray(self.get(name))
            content[place // 8] ^= 1 << place % 8
            self.put(name, content)

    def lose(self, *numbers: int) -> None:
        before = self.files()
        self.write(*numbers)
        for name, content in before.items():
            self.put(name, content)

    def wipe(self) -> None:
        for name in self.files():
            (self.folder / name).unlink()

    def refuse(self, why: str, *numbers: int) -> None:
        name = self.store.next(RING, numbers[0], b"").name
        kept = self.get(name)
        with self.patch.context() as patch:
            if why == FULL:  # the kernel's own answer
                (self.folder / name).unlink()
                (self.folder / name).symlink_to("/dev/full")
            else:
                patch.setattr(os, "open", _broken)
            self.write(*numbers)
        (self.folder / name).unlink()
        self.put(name, kept)

    def slowly(self, number: int) -> None:
        go, sync, flushed = threading.Event(), os.fsync, []

        def slow(file: int) -> None:
            go.wait()
            sync(file)
            flushed.append(Path(os.readlink(f"/proc/self/fd/{file}")))

        async def work() -> None:
            self.storage.write_later(RING, number, data(number), self._answered)
            await asyncio.sleep(0.01)
            assert not self.answers, "told before it was flushed"
            go.set()
            await self._answer(1)

        with self.patch.context() as patch:
            patch.setattr(os, "fsync", slow)
            asyncio.run(work())
        assert flushed == [self.folder / FILES[3], self.folder], "the bytes, then the name"


def _broken(*_: Any, **__: Any) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


class Chosen:
    """Stands for a generator: what is drawn is what the row says."""

    def __init__(self) -> None:
        self.next: deque[float] = deque()

    def random(self) -> float:
        return self.next.popleft()

    def randint(self, low: int, high: int) -> int:
        assert low <= self.next[0] <= high
        return int(self.next.popleft())

    def randrange(self, high: int) -> int:
        return self.randint(0, high - 1)


class Simulated:
    """The simulator's disk, hurt by its own faults."""

    def __init__(self) -> None:
        self.random = Chosen()
        self.disk = Disk(100, self.random)  # type: ignore[arg-type]
        self.answers: list[tuple[int, str]] = []

    @property
    def store(self) -> Store:
        return self.disk.store

    def restart(self) -> None:
        self.disk.crash()
        self.disk.open()

    def get(self, name: str) -> bytes:
        return self.disk.files[name]

    def put(self, name: str, content: bytes) -> None:
        self.disk.files[name] = content

    def files(self) -> dict[str, bytes]:
        return self.disk.files

    def write(self, *numbers: int) -> None:
        for number in numbers:
            self._finish(self.disk.begin(RING, number, data(number))[0])

    def _finish(self, ticket: int) -> None:
        told = self.disk.finish(ticket)
        assert told is not None and told[0] == RING
        self.answers.append(told[1:])

    def tear(self, key: str, number: int, content: bytes, at: int) -> None:
        self.disk.torn = True
        self.disk.begin(key, number, content)
        self.random.next.append(at)
        self.disk.crash()

    def flip(self, places: dict[str, int]) -> None:
        for name in sorted(self.disk.files):
            self.random.next += [0.0, places[name]] if name in places else [1.0]
        self.disk.flip = True
        self.disk.crash()
        self.disk.flip = False

    def lose(self, *numbers: int) -> None:
        self.disk.lies = True
        self.write(*numbers)
        self.disk.crash()

    def wipe(self) -> None:
        self.disk.wipe()

    def refuse(self, why: str, *numbers: int) -> None:
        self.disk.fails = "full" if why == FULL else "error"
        self.write(*numbers)
        self.disk.fails = ""

    def slowly(self, number: int) -> None:
        self.disk.times = 100.0
        ticket, takes = self.disk.begin(RING, number, data(number))
        assert takes == 100 * 100 and Store(self.disk).stored[RING][0] == 6, "nothing is there before it is flushed"
        self._finish(ticket)


Place = Real | Simulated

# -------------------------------------------------------------------------------------------------------- the table


class Row(NamedTuple):
    what: str
    happens: Callable[[Place], None]
    ring: int | None = 6  # what the next member finds
    life: int = 1002  # its incarnation, were the clock at 0
    damaged: tuple[str, ...] = ()  # what is passed over, and told
    answers: tuple[tuple[int, str], ...] = ()  # to the writes of the life before


def size(key: str, number: int, content: bytes) -> int:
    return len(encode(Record(7, key, number, content)))


def torn(key: str, number: int, content: bytes, at: int) -> Callable[[Place], None]:
    return lambda place: place.tear(key, number, content, at)


def flipped(*names: str, byte: int = 20) -> Callable[[Place], None]:
    return lambda place: place.flip({name: 8 * byte + byte % 8 for name in names})


def put(name: str, content: bytes) -> Callable[[Place], None]:
    return lambda place: place.put(name, content)


def copied(place: Place) -> None:
    place.put(LIVES[0], place.get(FILES[0]))
    place.put(FILES[1], place.get(FILES[2]))


def readable_again(place: Place) -> None:
    """Two versions turn bad; the next life writes another; then one of them can be read again."""
    flipped(FILES[1], FILES[2])(place)
    place.restart()
    assert place.store.stored[RING][0] == 4
    place.write(7)
    flipped(FILES[2])(place)


def next_version(place: Place) -> None:
    body = encode(place.store.next(RING, 7, b""))
    place.put(FILES[3], b"ocs\x02" + body[4:])


def beyond(place: Place) -> None:
    """A whole record, whose number cannot be true."""
    place.put(FILES[3], encode(Record(7, RING, STORED_NUMBER_MAX + 1, b"")))
    place.put(LIVES[3], encode(Record(3, INCARNATION, 2**63 - 1, b"")))


def ways() -> list[Row]:
    old = msgspec.msgpack.encode([INCARNATION, 2**62, b""])
    rows = [Row("nothing", lambda place: None)]
    whole = size(RING, 7, data(7))
    rows += [Row(f"torn at {k}", torn(RING, 7, data(7), k), damaged=(FILES[3],)) for k in range(whole)]
    rows.append(Row("torn after the last byte", torn(RING, 7, data(7), whole), ring=7))
    whole = size(INCARNATION, 1002, b"")
    rows += [Row(f"life torn at {k}", torn(INCARNATION, 1002, b"", k), damaged=(LIVES[3],)) for k in range(whole)]
    rows.append(Row("life torn after the last byte", torn(INCARNATION, 1002, b"", whole), life=1003))
    for k in range(size(RING, 6, data(6))):
        rows.append(Row(f"byte {k} flipped", flipped(FILES[2], byte=k), ring=5, damaged=(FILES[2],)))
    for k in range(size(INCARNATION, 1001, b"")):
        rows.append(Row(f"life's byte {k} flipped", flipped(LIVES[2], byte=k), life=1001, damaged=(LIVES[2],)))
    rows += [
        Row("an old byte flipped", flipped(FILES[3]), damaged=(FILES[3],)),
        Row("two versions back", flipped(FILES[1], FILES[2]), ring=4, damaged=(FILES[1], FILES[2])),
        Row("no version left", flipped(*FILES), ring=None, damaged=tuple(FILES)),
        Row("no life left", flipped(*LIVES[1:3]), life=1, damaged=tuple(LIVES[1:3])),
        Row("readable again", readable_again, ring=7, answers=((7, ""),)),
        Row("one lost", lambda place: place.lose(7), answers=((7, ""),)),
        Row("three lost", lambda place: place.lose(7, 8, 9), answers=((7, ""), (8, ""), (9, ""))),
        Row("a round lost", lambda place: place.lose(7, 8, 9, 8, 7), answers=tuple((n, "") for n in (7, 8, 9, 8, 7))),
        Row("everything lost", lambda place: place.wipe(), ring=None, life=1),
        Row("full", lambda place: place.refuse(FULL, 7), answers=((7, FULL),)),
        Row("write error", lambda place: place.refuse(ERROR, 7), answers=((7, ERROR),)),
        Row("full for long", lambda place: place.refuse(FULL, 7, 7, 7, 7, 8), answers=(*[(7, FULL)] * 4, (8, FULL))),
        Row(
            "full, then room",
            lambda place: (place.refuse(FULL, 7), place.write(8)),  # type: ignore[arg-type,return-value]
            ring=8, answers=((7, FULL), (8, "")),
        ),
        Row("slow", lambda place: place.slowly(7), ring=7, answers=((7, ""),)),
        Row("the former format", put("incarnation.state", old), damaged=("incarnation.state",)),
        Row("not ours", put("x.state", b"\xc1"), damaged=("x.state",)),
        Row("empty", put(FILES[2], b""), ring=5, damaged=(FILES[2],)),
        Row("a byte too many", lambda p: p.put(FILES[2], p.get(FILES[2]) + b"\0"), ring=5, damaged=(FILES[2],)),
        Row("a later format", next_version, damaged=(FILES[3],)),
        Row("under another's name", copied, damaged=(LIVES[0], FILES[1])),
        Row("beyond what may be true", beyond, damaged=(LIVES[3], FILES[3])),
    ]  # fmt: skip
    return rows


TABLE = ways()


def prepare(place: Place) -> Place:
    for life in (1000, 1001):
        place.restart()
        assert place.store.new_incarnation(life) == life
    place.write(*range(1, 7))
    place.answers.clear()
    return place


@pytest.fixture(params=["real", "simulated"])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any, caplog: Any) -> Callable[[int], Place]:
    if request.param == "simulated":
        return lambda number: prepare(Simulated())
    first = prepare(Real(tmp_path / "first", monkeypatch, caplog))
    assert isinstance(first, Real)
    first.storage.close()

    def copy(number: int) -> Place:
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in first.files().items():
            (folder / name).write_bytes(content)
        return Real(folder, monkeypatch, caplog)

    return copy


def test_every_row_has_the_outcome_of_the_table(make: Callable[[int], Place]) -> None:
    wrong = []
    for number, row in enumerate(TABLE):
        place = make(number)
        row.happens(place)
        place.restart()
        store = place.store
        ring, answers = store.stored.get(RING), tuple(place.answers)
        assert set(store.stored) <= {RING} and ring in (None, (row.ring, data(row.ring or 0)))
        found = Row(row.what, row.happens, ring and ring[0], store.new_incarnation(0), tuple(store.damaged), answers)
        if found != row:
            wrong.append(found)
        if isinstance(place, Real):
            place.storage.close()
    assert wrong == []
    assert len(TABLE) > 140 and len({row.what for row in TABLE}) == len(TABLE)


def test_both_hold_the_same_bytes(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    real, simulated = prepare(Real(tmp_path, monkeypatch, caplog)), prepare(Simulated())
    assert real.files() == simulated.files() and sorted(real.files()) == sorted(LIVES[1:3] + FILES)


# --------------------------------------------------------------------------------------------------------- the parts


class Leaky(dict[str, bytes]):
    """Files that take half of what is written, then fail."""

    ill = False

    def read(self) -> dict[str, bytes]:
        return self

    def write(self, name: str, content: bytes) -> None:
        self[name] = content[: len(content) // 2] if self.ill else content
        if self.ill:
            raise OSError(errno.EIO, "Input/output error")


def test_writes_that_fail_half_way_spoil_one_version_only() -> None:
    files = Leaky()
    store = Store(files)
    for number in (1, 2, 3, 4, 5):
        store.write(RING, number, b"")
    files.ill = True
    for number in range(6, 20):
        with pytest.raises(OSError, match="Input/output error"):
            store.write(RING, number, b"")
    after = Store(files)
    assert after.stored == {RING: (5, b"")} and after.damaged == [FILES[6 % VERSIONS]]


def test_a_number_that_would_not_be_believed_is_not_written() -> None:
    store = Store(Leaky())
    store.write(RING, STORED_NUMBER_MAX, b"")
    for number in (-1, STORED_NUMBER_MAX + 1, 2**64):
        with pytest.raises(OSError, match="Number out of range") as caught:
            store.write(RING, number, b"")
        assert format.why(caught.value) == "number out of range"
    assert store.new_incarnation(5) == 5 and store.new_incarnation(0) == 6
    with pytest.raises(OSError, match="Number out of range"):
        store.new_incarnation(STORED_NUMBER_MAX + 1)


def test_a_key_that_must_not_be_stale_is_newest_or_nothing() -> None:
    """Whatever may have held a later version than the newest good one makes it as never written; nothing else does."""
    disk = Disk(0, random.Random(1))
    for number in range(1, 7):
        disk.store.write("link/record!", number, b"")
        disk.store.write("link/ring_seq", number, b"")
    whole = dict(disk.files)
    records = {name: format.decode(name, data) for name, data in whole.items()}
    names = {record.number: name for name, record in records.items() if record is not None and "!" in record.key}
    for damaged, left in (
        ((), 6),
        ((3,), None),
        ((4,), 6),
        ((5,), 6),
        ((6,), None),
        ((5, 6), None),
        ((3, 4, 5, 6), None),
    ):
        disk.files = {name: b"" if name in [names[k] for k in damaged] else data for name, data in whole.items()}
        stored = disk.open().stored
        assert stored["link/ring_seq"][0] == 6
        assert stored.get("link/record!", (None,))[0] == left, damaged
    disk.files = dict(whole)
    disk.open().write("link/record!", 7, b"")  # in the place of the oldest
    assert disk.open().stored["link/record!"][0] == 7
