"""Payloads as a function of (sender, incarnation, counter): a delivery can be judged without the bytes that were sent.

At least 8 bytes: the counter (u64, little endian), then 8 bytes mixed from all three numbers, repeated.  Shorter ones
are cut from the mixed bytes, so that a payload that was swapped, shifted or damaged shows at almost every size.
"""

from __future__ import annotations

_MASK = 2**64 - 1


def _mix(sender: int, incarnation: int, counter: int) -> bytes:
    """Eight bytes in which every bit depends on all three numbers (the finish of the splitmix64 generator)."""
    x = (sender * 0x9E3779B97F4A7C15 + incarnation * 0xC2B2AE3D27D4EB4F + counter * 0xD6E8FEB86659FD93) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)).to_bytes(8, "little")


def payload(sender: int, incarnation: int, counter: int, size: int) -> bytes:
    """The bytes of message `counter` of this life of `sender`, when it has `size` bytes."""
    mixed = _mix(sender, incarnation, counter)
    if size < 8:
        return mixed[:size]
    rest = size - 8
    body = mixed[:rest] if rest <= 8 else (mixed * (rest // 8 + 1))[:rest]
    return counter.to_bytes(8, "little") + body


def matches(sender: int, incarnation: int, counter: int, data: bytes) -> bool:
    """Whether these are the bytes that message `counter` of this life of `sender` must have."""
    return payload(sender, incarnation, counter, len(data)) == data
