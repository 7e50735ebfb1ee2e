"""How large a frame may be, so that its packet fits: one rule for live groups and for scenarios."""

from __future__ import annotations

PACKET_BYTES = 288  # what a datagram's header, its seal and the packet around a frame take at most, without vectors
VECTOR_BYTES = 10  # per member: one number of a vector
FRAME_BYTES_MIN = 64


def frame_bytes(packet_bytes: int, members: int) -> int:
    """The largest frame whose packet has at most `packet_bytes`."""
    return packet_bytes - PACKET_BYTES - VECTOR_BYTES * members


def least_packet(members: int) -> int:
    """The smallest `packet_bytes` that leave room for a frame."""
    return PACKET_BYTES + VECTOR_BYTES * members + FRAME_BYTES_MIN
