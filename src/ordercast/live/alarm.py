"""One wake-up call at a time, with the precision of the kernel's timers.

asyncio rounds waits up to whole milliseconds; a timer descriptor (timerfd, Linux) is good to some tens of microseconds.
Where there is none, `loop.call_at` serves.  Arming costs some microseconds, so an alarm is mostly moved *earlier* only;
one that fires before anything is due is simply set again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from collections.abc import Callable

from ordercast.types import Nanoseconds

_CLOCK_MONOTONIC = 1
_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_ABSOLUTE = 1


class Alarm:
    """Calls `ring()` once, at or after the time it was set to (CLOCK_MONOTONIC, nanoseconds)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop, self._ring = loop, ring
        self.at: Nanoseconds | None = None  # when it will ring
        self._handle: asyncio.TimerHandle | None = None
        self._fd = -1
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self._settime = libc.timerfd_settime
            self._settime.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
            self._fd = libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_CLOEXEC)
        except (OSError, AttributeError):
            self._fd = -1
        if self._fd >= 0:
            self._spec = (ctypes.c_long * 4)()
            self._spec_at = ctypes.addressof(self._spec)
            loop.add_reader(self._fd, self._readable)

    def set(self, at: Nanoseconds) -> None:
        """Ring at `at`, or earlier if it was set to an earlier time before."""
        if self.at is None or at < self.at:
            self.move(at)

    def move(self, at: Nanoseconds) -> None:
        """Ring at `at`, whatever was set before."""
        if at == self.at:
            return
        self.at = at
        if self._fd >= 0:
            self._spec[2], self._spec[3] = divmod(max(at, 1), 1_000_000_000)
            self._settime(self._fd, _ABSOLUTE, self._spec_at, None)
        else:
            if self._handle is not None:
                self._handle.cancel()
            delay = max(0, at - time.monotonic_ns()) / 1e9
            self._handle = self._loop.call_later(delay, self._fire)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _readable(self) -> None:
        if self.at is not None and time.monotonic_ns() >= self.at:  # else it was moved after it became readable
            self._fire()
        if self.at is None and self._fd >= 0:  # to set it anew has the same effect as to read it
            with contextlib.suppress(BlockingIOError):
                os.read(self._fd, 8)

    def _fire(self) -> None:
        self.at = None
        self._ring()
