"""The datagram header: in the clear, and the associated data of the sealed rest (seal.py).

``magic 2 | version 1 | key id 1 | group id 8 | sender 4 | incarnation 8 | counter 8``, little endian, 32 bytes; then
the packet, sealed and with a 16-byte tag when the key id is not 0.  `counter` numbers a sender's datagrams (the nonce).
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

from ordercast.errors import WireError
from ordercast.limits import DATAGRAM_BYTES_MAX

MAGIC = b"oc"
VERSION = 1
_HEADER = struct.Struct("<2sBBQIQQ")
HEADER_BYTES = _HEADER.size
PREFIX_BYTES = 24  # magic .. incarnation, which name a sender's life and its key; the datagram's counter follows
NO_KEY = 0


class Header(NamedTuple):
    magic: bytes
    version: int
    key_id: int
    group_id: int
    sender: int
    incarnation: int
    counter: int


def group_id(name: str) -> int:
    """Keeps two groups on one port apart."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def pack(group: int, sender: int, incarnation: int, counter: int, key_id: int = NO_KEY) -> bytes:
    return _HEADER.pack(MAGIC, VERSION, key_id, group, sender, incarnation, counter)


def key_of(prefix: bytes) -> int:
    """The key's own id in the beginning of a datagram, without the bit that names the cipher."""
    return prefix[3] & 0x7F


def unpack(datagram: bytes | memoryview, group: int) -> Header:
    """Of one that is not sealed.  Check size, magic, version, key, group; raise WireError with the reason to count."""
    header = begin(datagram)
    if header.key_id != NO_KEY:
        raise WireError("key", str(header.key_id))
    if header.group_id != group:
        raise WireError("group")
    return header


def begin(datagram: bytes | memoryview) -> Header:
    """What is checked first, sealed or not: size, magic, version."""
    size = len(datagram)
    if size <= HEADER_BYTES:
        raise WireError("short", f"{size} bytes")
    if size > DATAGRAM_BYTES_MAX:
        raise WireError("long", f"{size} bytes")
    header = Header._make(_HEADER.unpack_from(datagram))
    if header.magic != MAGIC:
        raise WireError("magic")
    if header.version != VERSION:
        raise WireError("version", str(header.version))
    return header
