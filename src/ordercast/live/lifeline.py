"""A process that must not outlive the one that started it.

The starter puts its process id into the child's environment; the child asks the kernel to be killed when that process
dies, however it dies, and checks that it has not died already.
"""

from __future__ import annotations

import ctypes
import os
import signal

VARIABLE = "ORDERCAST_STARTED_BY"  # not a configuration key: taken out of the environment before that is read
_PR_SET_PDEATHSIG = 1


def environment() -> dict[str, str]:
    """For a child of this process."""
    return os.environ | {VARIABLE: str(os.getpid())}


def hold() -> int | None:
    """Tie this process to its starter, if it has one; returns the starter's process id."""
    starter = os.environ.pop(VARIABLE, "")
    if not starter.isdecimal():
        return None
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(starter):
        os._exit(1)
    return int(starter)
