"""Sealed datagrams: whoever has no key of the group can neither read nor write one.

    header 32 (wire/header.py) | AEAD(sub-key, nonce, rest, associated data = header) | tag 16

AES-256-GCM (NIST SP 800-38D), or ChaCha20-Poly1305 (RFC 8439) where a sender's processor lacks AES: bit 7 of the
header's key id says which; bits 0-6 are the key's own id, from 1 on.  Each datagram has a (sub-key, nonce) of its own:

    sub-key = HKDF-SHA256 (RFC 5869), 32 bytes; key = the group's, salt = the group's name in UTF-8,
              info = key id 1 | sender 4 | incarnation 8 | net 2 | counter >> 32, 4    (little endian, as all numbers)
    nonce   = 4 bytes of 0 | counter 8

so a sub-key sees no more than 2**32 datagrams, of one life on one net.  A key's name, which people and members call it
by, is HKDF-SHA256 of it too (no salt, info "ordercast key name", 8 bytes in hex); its id is 1 + the first byte % 127.
"""

from __future__ import annotations

import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ordercast.limits import KEY_BYTES
from ordercast.types import NetId, Peer
from ordercast.wire import header

__all__ = ["TAG_BYTES", "Aead", "GroupKey", "InvalidTag", "Sealer", "aead", "nonce", "sub_key"]

Bytes = bytes | bytearray | memoryview
Aead = AESGCM | ChaCha20Poly1305
TAG_BYTES = 16
IDS = 127
CHACHA = 0x80  # of a header's key id
EPOCH_BITS = 32
LARGE_BYTES = 4_096  # from here on it pays to seal and open in place, without a buffer made for it
_INFO = struct.Struct("<BIQHI")
_head = struct.Struct(f"<{header.PREFIX_BYTES}sQ")
nonce = struct.Struct("<4xQ").pack  # of a datagram's counter
_room = memoryview(bytes(2**16 + TAG_BYTES))


def _hkdf(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


class GroupKey:
    """A group's key.  Its bytes are neither shown nor copied: not by repr, not by pickle."""

    __slots__ = ("__secret", "id", "name")

    def __init__(self, secret: bytes) -> None:
        assert len(secret) == KEY_BYTES
        self.__secret = secret
        name = _hkdf(secret, b"", b"ordercast key name", 8)
        self.name = name.hex()
        self.id = 1 + name[0] % IDS

    def sub_key(self, group: str, key_id: int, life: Peer, net: NetId, epoch: int) -> bytes:
        info = _INFO.pack(key_id, life.id, life.incarnation, net, epoch)
        return _hkdf(self.__secret, group.encode(), info, KEY_BYTES)

    def __repr__(self) -> str:
        return f"<key {self.name}>"

    def __reduce__(self) -> str:
        raise TypeError("a group's key is not to be copied")


def sub_key(key: GroupKey, group: str, key_id: int, life: Peer, net: NetId, epoch: int) -> Aead:
    """What seals and opens the datagrams of a life on one net while their counter >> 32 is `epoch`."""
    return aead(key_id)(key.sub_key(group, key_id, life, net, epoch))


def aead(key_id: int) -> type[AESGCM] | type[ChaCha20Poly1305]:
    """The cipher that a header names."""
    return ChaCha20Poly1305 if key_id & CHACHA else AESGCM


class Sealer:
    """Seals the datagrams of one life with one key."""

    def __init__(self, key: GroupKey, group: str, life: Peer, chacha: bool = False) -> None:
        self.key, self._group, self._life = key, group, life
        self._key_id = key.id | (CHACHA if chacha else 0)
        self.prefix = header.pack(header.group_id(group), life.id, life.incarnation, 0, self._key_id)
        self.prefix = self.prefix[: header.PREFIX_BYTES]
        self._epoch = 0
        self._codes: dict[NetId, Aead] = {}  # what seals in it on each net

    def seal(self, net: NetId, counter: int, body: Bytes) -> bytes:
        """The whole datagram.  No counter may be used twice in a life, whatever the net."""
        out = bytearray()
        self.seal_into(out, net, counter, body)
        return bytes(out)

    def seal_into(self, out: bytearray, net: NetId, counter: int, body: Bytes) -> None:
        """The same at the end of a buffer."""
        code = self._codes.get(net)
        if code is None or counter >> EPOCH_BITS != self._epoch:
            code = self._turn(net, counter >> EPOCH_BITS)
        head = _head.pack(self.prefix, counter)
        out += head
        size = len(body)
        if size < LARGE_BYTES:
            out += code.encrypt(nonce(counter), body, head)
            return
        start = len(out)
        out += _room[: size + TAG_BYTES]
        with memoryview(out) as whole, whole[start:] as part:
            code.encrypt_into(nonce(counter), body, head, part)

    def _turn(self, net: NetId, epoch: int) -> Aead:
        if epoch != self._epoch:
            self._epoch, self._codes = epoch, {}
        code = self._codes[net] = sub_key(self.key, self._group, self._key_id, self._life, net, epoch)
        return code
