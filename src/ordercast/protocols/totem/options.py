"""Options of the token ring, and the windows that follow from the size of a frame."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ordercast.limits import PENDING_BYTES_MAX, RTR_MAX
from ordercast.protocols.totem.flow import Limits
from ordercast.protocols.totem.packets import REQUESTS_MAX, SEQ_MAX
from ordercast.registry import Draw

VISIT_BYTES = 1_920_000  # what a visit may send when the windows are left to us: a lone sender lives on it
VISIT_FRAMES = (16, 256)
SENDERS = 16  # a rotation has room for three visits up to so many frames: a window of one visit starves all but one
REQUEST_BYTES = 9  # one number on the token
BUFFER_FRAMES = (256, 16_384)

WRAPS = Draw(2**31 - 9, 2**32 - 9, 2**48 - 9)  # numbers that soon need another bit
Count = Annotated[int, Meta(ge=0, le=100_000)]


class TotemOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers count frames."""

    max_messages: Annotated[Count, Draw(1, 3)] = 0  # most frames of one visit; 0: by the size of a frame
    window_size: Annotated[Count, Draw(2, 7)] = 0  # most of one rotation; 0: a visit and a half, to fit the buffers
    fair: bool = True  # a congested ring is shared by queue length
    rtr_max: Annotated[int, Meta(ge=0, le=REQUESTS_MAX), Draw(1, 5)] = 0  # requests on a token; 0: what a visit repairs
    accelerated: Annotated[Count, Draw(1, 5)] = 0  # frames sent after the token (Babay and Amir 2016); 0: all before it
    request_lag: Annotated[int, Meta(ge=0, le=64), Draw(1, 3)] = 0  # visits a hole must be old before it is asked for
    hold_after: Annotated[Count, Draw(0, 1, 30)] = 3  # rotations without a new frame until the token is held; 0: never
    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells
    first_seq: Annotated[int, Meta(ge=0, le=SEQ_MAX), WRAPS] = 0  # where every ring's numbers begin (tests of wraps)

    def limits(self, frame_bytes: int) -> Limits:
        low, high = VISIT_FRAMES
        visit = self.max_messages or min(high, max(low, VISIT_BYTES // frame_bytes))
        window = self.window_size or max(visit + visit // 2, min(3 * visit, SENDERS))
        requests = self.rtr_max or max(1, min(max(RTR_MAX, visit), (frame_bytes - 200) // REQUEST_BYTES))
        low, high = BUFFER_FRAMES
        buffer = max(2 * window, min(high, max(low, PENDING_BYTES_MAX // frame_bytes)))
        return Limits(visit, window, requests, self.fair, buffer, frame_bytes)

    @property
    def lag(self) -> int:
        return max(self.request_lag, 1 if self.accelerated else 0)
