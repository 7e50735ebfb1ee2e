"""What the kernel refuses for us before it costs us anything: classic packet filters on our own sockets.

A program is a list of lines (code, jump if true, jump if false, constant).  A part of one goes on behind its end with
whatever it did not refuse.  The data of a filter on a UDP socket begins with the UDP header.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
NETWORK_HEADER = 0xFFF0_0000  # where the kernel shows the header below
RANDOM = 0xFFFF_F038  # where it shows a random word
_WORD, _HALF, _AND, _EQUAL, _RETURN = 0x20, 0x28, 0x54, 0x15, 0x06
_SOURCE = {socket.AF_INET: NETWORK_HEADER + 12, socket.AF_INET6: NETWORK_HEADER + 8}
UDP_HEADER_BYTES = 8

Line = tuple[int, int, int, int]
ACCEPT: Line = (_RETURN, 0, 0, 0xFFFF_FFFF)
REFUSE: Line = (_RETURN, 0, 0, 0)


def own(prefix: bytes) -> list[Line]:
    """Refuse datagrams that begin as our own do, but for the key's id (byte 3), which changes while a member runs."""
    assert len(prefix) % 4 == 0
    words = [int.from_bytes(prefix[k : k + 4], "big") for k in range(0, len(prefix), 4)]
    words[0] &= ~0xFF
    code: list[Line] = []
    for k, word in enumerate(words):
        left = 3 * (len(words) - k - 1)
        mask = 0xFFFF_FF00 if k == 0 else 0xFFFF_FFFF
        code += [(_WORD, 0, 0, UDP_HEADER_BYTES + 4 * k), (_AND, 0, 0, mask), (_EQUAL, 0, left + 1, word)]
    return [*code, REFUSE]


def elsewhere(family: int, places: Iterable[tuple[str, int]], one_of: int) -> list[Line]:
    """Refuse what comes from none of these places (host, port), but one of so many (a power of two)."""
    code: list[Line] = []
    for host, port in sorted(places):
        address = socket.inet_pton(family, host)
        words = [int.from_bytes(address[k : k + 4], "big") for k in range(0, len(address), 4)]
        left = 2 * len(words) + 1
        code += [(_HALF, 0, 0, 0), (_EQUAL, 0, left, port)]
        for k, word in enumerate(words):
            left -= 2
            code += [(_WORD, 0, 0, _SOURCE[socket.AddressFamily(family)] + 4 * k), (_EQUAL, 0, left, word)]
        code.append(ACCEPT)
    return [*code, (_WORD, 0, 0, RANDOM), (_AND, 0, 0, one_of - 1), (_EQUAL, 1, 0, 0), REFUSE]


def attach(sock: socket.socket, code: list[Line]) -> bool:
    """Filter what this socket receives, by nothing else from now on; false: this kernel does not."""
    if not code:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        except OSError:
            return False
        return True
    code = [*code, ACCEPT]
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(code), ctypes.addressof(buffer)))
    except OSError:
        return False
    return True
