"""What a member keeps from life to life: one format, for a real folder and for a simulated disk.

A key has `VERSIONS` files of its own, each with one whole record: ``magic 4 | checksum 8 | MessagePack of Record``.
A write goes to the file of the oldest version and nowhere else, so whatever becomes of it (torn at any byte, lost,
refused by a full disk), the version before is whole; one that failed is written again to the same place.  A file that
is not exactly what was written there counts as damaged: it is passed over, its name is kept to be told, and the newest
good version counts; if none is left, the key was never written.
An older version is no help where it says less than the one that is damaged: keys that end with ``!`` are newest or
nothing.  If the file that a version after the newest good one would be in is damaged, it may have held it.
"""

from __future__ import annotations

import errno
import urllib.parse
from hashlib import blake2b
from typing import Annotated, Protocol

import msgspec
from msgspec import structs

from ordercast.limits import STORED_NUMBER_MAX
from ordercast.types import U63

VERSIONS = 4
SUFFIX = ".state"
MAGIC = b"ocs\x01"  # the last byte: version of the format
FRESH = "!"  # ends a key that is never read stale
INCARNATION = "incarnation"  # the driver's own key; those of layers have a prefix
_CHECKSUM_BYTES = 8
_HEAD_BYTES = len(MAGIC) + _CHECKSUM_BYTES


class Files(Protocol):
    """Where records lie."""

    def read(self) -> dict[str, bytes]:
        """All there are, by name; one that cannot be read is empty."""

    def write(self, name: str, data: bytes) -> None:
        """On storage when it returns; after an OSError nobody knows what the file holds."""


class Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One stored value."""

    version: U63  # how often this key was written
    key: str
    number: Annotated[int, msgspec.Meta(ge=0, le=STORED_NUMBER_MAX)]
    data: bytes

    @property
    def name(self) -> str:
        return f"{urllib.parse.quote(self.key, safe='')}.{self.version % VERSIONS}{SUFFIX}"


_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    body = msgspec.msgpack.encode(record)
    return MAGIC + _checksum(body) + body


def decode(name: str, data: bytes) -> Record | None:
    """The record in the file of that name; None if it is damaged, unknown, or belongs elsewhere."""
    body = data[_HEAD_BYTES:]
    if data[:_HEAD_BYTES] != MAGIC + _checksum(body):
        return None
    try:
        record = _decoder.decode(body)
    except msgspec.MsgspecError:
        return None
    return record if record.name == name else None


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


class Store:
    """What one life finds, and what it writes."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.damaged: list[str] = []  # files passed over
        newest: dict[str, Record] = {}
        for name, data in sorted(files.read().items()):
            record = decode(name, data)
            if record is None:
                self.damaged.append(name)
            elif record.key not in newest or record.version > newest[record.key].version:
                newest[record.key] = record
        # a whole round ahead of what may be hidden in damaged files: should one be readable again, it is not the newest
        ahead = VERSIONS if self.damaged else 0
        self._versions = {key: record.version + ahead for key, record in newest.items()}
        damaged = set(self.damaged)
        self.stored = {
            key: (record.number, record.data)
            for key, record in newest.items()
            if not (key.endswith(FRESH) and structs.replace(record, version=record.version + 1).name in damaged)
        }
        self._last_life = self.stored.pop(INCARNATION, (0, b""))[0]

    def new_incarnation(self, least: int) -> int:
        """Larger than that of every life before, and at least `least`, the clock's; on storage when it returns."""
        incarnation = max(self._last_life + 1, least)
        self.write(INCARNATION, incarnation, b"")
        self._last_life = incarnation
        return incarnation

    def write(self, key: str, number: int, data: bytes) -> None:
        """The next version, durably; OSError if that cannot be."""
        if not 0 <= number <= STORED_NUMBER_MAX:
            raise OSError(errno.ERANGE, "Number out of range")
        record = self.next(key, number, data)
        self._files.write(record.name, encode(record))
        self._versions[key] = record.version

    def next(self, key: str, number: int, data: bytes) -> Record:
        """What the next write of this key puts down."""
        return Record(self._versions.get(key, 0) + 1, key, number, data)


def why(fault: OSError) -> str:
    """What a disk said, in words."""
    return (fault.strerror or type(fault).__name__).lower()
