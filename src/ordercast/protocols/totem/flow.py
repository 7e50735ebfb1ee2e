"""How much a member may send at one token visit: the two windows, its fair share, and the slowest reader's room.

Paper: section 2.1 (two limits) and section 5 (loss at the receivers' buffers decides the throughput).

Differs from the paper:
  D1  A member's own last contribution is taken off the count of the last rotation first, else a lone sender alternates
      between full and empty visits.
  D2  The fair share of a congested ring never rounds down to nothing, else a short queue starves beside a long one.
  D3  The token names the least free delivery space of any member: who does not read slows the senders, not the ring.
"""

from __future__ import annotations

from msgspec import Struct

from ordercast.limits import DATAGRAM_BYTES_MAX


class Limits(Struct, frozen=True):
    """The windows, in frames."""

    max_messages: int  # per visit
    window_size: int  # per rotation, by all
    rtr_max: int = 30  # requests on the token
    fair: bool = True
    buffer_frames: int = 16_384  # no new frames while so many are not yet safe
    frame_bytes: int = DATAGRAM_BYTES_MAX  # of those it sends itself


def allowance(limits: Limits, window: int, fcc: int, my_trc: int, backlog: int, my_backlog: int, my_pbl: int) -> int:
    """Transmissions of this visit; `window` is window_size, or what the slowest reader's room leaves of it."""
    allowed = min(limits.max_messages, max(0, window - (fcc - my_trc)))  # D1
    if limits.fair and allowed > 0 and my_backlog > 0:
        total = backlog + my_backlog - my_pbl
        if total > 0:
            allowed = min(allowed, max(1, window * my_backlog // total))  # D2
    return allowed


def least_room(
    room: int | None, room_id: int | None, me: int, mine: int | None, window: int
) -> tuple[int | None, int | None]:
    """The token's room and its owner after my visit: anybody lowers it, only its owner raises it or takes it off."""
    if mine is None or mine > window:
        return (None, None) if room_id == me else (room, room_id)
    if room_id == me or room is None or mine < room:
        return mine, me
    return room, room_id
