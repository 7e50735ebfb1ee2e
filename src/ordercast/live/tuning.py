"""What a process that is nothing but a member does for its speed.

Frames are buffers of some 60 kB that come and go thousands of times a second.  The C library would give their memory
back to the kernel and fetch it again each time, page by page (a third of all processor time with messages of 10 kB),
and the collector would look through objects that reference counts free anyway.  And a member mostly sleeps, to be woken
for some tens of microseconds; with a short time slice the scheduler lets it run at once instead of after whoever runs.
An application that uses the library keeps its own settings; it may call these functions as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import os
import struct
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of mallopt
_KEPT_BYTES = 256 * 2**20
_STEP_BYTES = 16 * 2**20
_GC_THRESHOLD = (100_000, 50, 50)
_SLICE_NS = 100_000  # the shortest that Linux grants
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # system calls that the C library has no name for
_SCHED_ATTR = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice, priority, slice, deadline, period
_SCHED_OTHER = 0


def keep_memory() -> None:
    """Before much was allocated.  A C library without mallopt is left as it is."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_TOP_PAD, _STEP_BYTES)
    mallopt(_MMAP_THRESHOLD, 2 * _STEP_BYTES)  # the largest that glibc takes


def rarely_collect() -> None:
    """After the start: what exists now stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLD)


def short_turns() -> None:
    """Of the calling thread: short time slices, and so short waits for one (Linux 6.12 and later; else nothing)."""
    call = _SCHED_SETATTR.get(os.uname().machine)
    if call is None or os.sched_getscheduler(0) != _SCHED_OTHER:
        return  # somebody has chosen another policy for us
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _SCHED_ATTR.pack(_SCHED_ATTR.size, _SCHED_OTHER, 0, nice, 0, _SLICE_NS, 0, 0)
    ctypes.CDLL(None).syscall(call, 0, attributes, 0)


def run(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, on uvloop where it is installed: it costs less for each time a member is woken."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ImportError):  # the extra `fast` is not installed
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
