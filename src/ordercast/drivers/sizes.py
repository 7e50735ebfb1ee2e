"""How large a frame may be, so that its packet fits: one rule for live groups and for scenarios."""

from __future__ import annotations

from ordercast.limits import AROUND_FRAME_BYTES, VECTOR_BYTES

FRAME_BYTES_MIN = 64


def frame_bytes(packet_bytes: int, members: int) -> int:
    """The largest frame whose packet has at most `packet_bytes`."""
    return packet_bytes - AROUND_FRAME_BYTES - VECTOR_BYTES * members


def least_packet(members: int) -> int:
    """The smallest `packet_bytes` that leave room for a frame."""
    return AROUND_FRAME_BYTES + VECTOR_BYTES * members + FRAME_BYTES_MIN
