"""Sealing: published vectors of what it is made from, and our own of whole datagrams."""

import json
import pickle
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from ordercast.types import Peer
from ordercast.wire import header, seal
from ordercast.wire.seal import GroupKey, InvalidTag, Sealer, aead, sub_key

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "wire" / "sealed.json").read_text())
SECRET = bytes(range(32))


def test_hkdf_of_rfc_5869() -> None:
    """Appendix A.1."""
    salt, info = bytes.fromhex("000102030405060708090a0b0c"), bytes.fromhex("f0f1f2f3f4f5f6f7f8f9")
    expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"  # 42 bytes
    assert seal._hkdf(b"\x0b" * 22, salt, info, 42).hex() == expected


def test_aes_256_gcm_of_its_authors() -> None:
    """McGrew and Viega, The Galois/Counter Mode of Operation, test case 16."""
    key = bytes.fromhex("feffe9928665731c6d6a8f9467308308" * 2)
    plain = bytes.fromhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    )
    sealed = (
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" + "76fc6ece0f4e1768cddf8853bb2d551b"
    )
    about = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    assert aead(5) is AESGCM
    assert aead(5)(key).encrypt(bytes.fromhex("cafebabefacedbaddecaf888"), plain, about).hex() == sealed


def test_chacha20_poly1305_of_rfc_8439() -> None:
    """Section 2.8.2."""
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    about, nonce = bytes.fromhex("50515253c0c1c2c3c4c5c6c7"), bytes.fromhex("070000004041424344454647")
    assert aead(5 | seal.CHACHA) is ChaCha20Poly1305
    sealed = ChaCha20Poly1305(bytes(range(0x80, 0xA0))).encrypt(nonce, plain, about)
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691" and sealed[:8].hex() == "d31a8d34648e60db"


@pytest.mark.parametrize("vector", GOLDEN["datagrams"], ids=lambda v: v["what"])
def test_whole_datagrams(vector: dict) -> None:
    key = GroupKey(bytes.fromhex(vector["key"]))
    life = Peer(vector["sender"], vector["incarnation"])
    body, counter, net = bytes.fromhex(vector["body"]), vector["counter"], vector["net"]
    assert (key.name, key.id) == (vector["key_name"], vector["key_id"] & 0x7F)
    chacha = bool(vector["key_id"] & seal.CHACHA)
    assert key.sub_key(vector["group"], vector["key_id"], life, net, counter >> 32).hex() == vector["sub_key"]
    datagram = Sealer(key, vector["group"], life, chacha).seal(net, counter, body)
    assert datagram.hex() == vector["datagram"]
    opens = sub_key(key, vector["group"], vector["key_id"], life, net, counter >> 32)
    head = datagram[: header.HEADER_BYTES]
    assert opens.decrypt(bytes(4) + head[24:], datagram[header.HEADER_BYTES :], head) == body


def test_every_byte_counts() -> None:
    """A datagram of another key, group, life, net or counter is none; nor is one with any byte changed."""
    key, life = GroupKey(SECRET), Peer(1, 7)
    datagram = Sealer(key, "g", life).seal(0, 9, b"packet")
    head, rest = datagram[:32], datagram[32:]
    good = sub_key(key, "g", key.id, life, 0, 0)
    assert good.decrypt(bytes(4) + head[24:], rest, head) == b"packet"
    others = [
        sub_key(GroupKey(bytes(32)), "g", key.id, life, 0, 0), sub_key(key, "h", key.id, life, 0, 0),
        sub_key(key, "g", key.id ^ 1, life, 0, 0), sub_key(key, "g", key.id, Peer(2, 7), 0, 0),
        sub_key(key, "g", key.id, Peer(1, 8), 0, 0), sub_key(key, "g", key.id, life, 1, 0),
        sub_key(key, "g", key.id, life, 0, 1), sub_key(key, "g", key.id | seal.CHACHA, life, 0, 0),
    ]  # fmt: skip
    for other in others:
        with pytest.raises(InvalidTag):
            other.decrypt(bytes(4) + head[24:], rest, head)
    for k in range(len(datagram)):
        changed = bytearray(datagram)
        changed[k] ^= 1
        with pytest.raises(InvalidTag):
            good.decrypt(bytes(4) + bytes(changed[24:32]), bytes(changed[32:]), bytes(changed[:32]))


def test_a_sub_key_ends_after_2_to_the_32_datagrams() -> None:
    key, life = GroupKey(SECRET), Peer(1, 7)
    sealer = Sealer(key, "g", life)
    last, next_one = sealer.seal(0, 2**32 - 1, b"a"), sealer.seal(0, 2**32, b"b")
    for datagram, epoch, body in ((last, 0, b"a"), (next_one, 1, b"b")):
        opens = sub_key(key, "g", key.id, life, 0, epoch)
        assert opens.decrypt(bytes(4) + datagram[24:32], datagram[32:], datagram[:32]) == body
        with pytest.raises(InvalidTag):
            sub_key(key, "g", key.id, life, 0, 1 - epoch).decrypt(
                bytes(4) + datagram[24:32], datagram[32:], datagram[:32]
            )


def test_a_key_is_not_shown_and_not_copied() -> None:
    key = GroupKey(SECRET)
    assert repr(key) == str(key) == f"<key {key.name}>" and not hasattr(key, "__dict__")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not to be copied"):
            pickle.dumps(key, protocol)
