"""Delivery space: what waits for the application, and how much the stack is told it may still deliver."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.types import Nanoseconds

UNREAD_FRAMES_MAX = 1_024  # delivery space of an application that has read everything
UNREAD_BYTES_MAX = 64 * 2**20


class Room:
    """Counts frames and bytes handed over and not yet read."""

    def __init__(self, frame_bytes: int) -> None:
        self.frame_bytes = frame_bytes
        self.frames = self.bytes = 0  # that wait for the application
        self._step = max(1, min(UNREAD_FRAMES_MAX, UNREAD_BYTES_MAX // frame_bytes) // 8)
        self._step_bytes = (self._step - 1) * frame_bytes
        self.full_ns: Nanoseconds | None = None  # since when there is none left
        self._told = -UNREAD_FRAMES_MAX  # free frames last told to the stack
        self._all_told = False  # that was all there is

    @property
    def unread(self) -> tuple[int, int]:
        """Frames and bytes that wait for the application."""
        return self.frames, self.bytes

    @property
    def full(self) -> bool:
        return self.frames >= UNREAD_FRAMES_MAX or self.bytes >= UNREAD_BYTES_MAX

    def news(self, clock: Callable[[], Nanoseconds]) -> int | None:
        """Free frames, when that changed by an eighth since it was last told, or to or from nothing."""
        if self._all_told and self.frames < self._step and self.bytes < self._step_bytes:
            return None
        by_bytes = (UNREAD_BYTES_MAX - self.bytes) // self.frame_bytes
        free = max(0, min(UNREAD_FRAMES_MAX - self.frames, by_bytes))
        if abs(free - self._told) < self._step and (free == 0) == (self._told == 0):
            return None
        if (free == 0) != (self._told == 0):
            self.full_ns = clock() if free == 0 else None
        self._told = free
        self._all_told = self.frames == self.bytes == 0
        return free
