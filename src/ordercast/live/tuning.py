"""What a process that is nothing but a member does for its speed.

Frames are buffers of some 60 kB that come and go thousands of times a second.  The C library would give their memory
back to the kernel and fetch it again each time, page by page (a third of all processor time with messages of 10 kB),
and the collector would look through objects that reference counts free anyway.  An application that uses the library
keeps its own settings; the environment (MALLOC_TRIM_THRESHOLD_ and its like) does the same for it.
"""

from __future__ import annotations

import ctypes
import gc

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # of mallopt
_KEPT_BYTES = 256 * 2**20
_STEP_BYTES = 16 * 2**20
_GC_THRESHOLD = (100_000, 50, 50)


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
