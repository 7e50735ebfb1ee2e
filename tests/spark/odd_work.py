"""Work for a sweep in which three runs misbehave, each in its own way."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


def work(argument: dict[str, Any]) -> dict[str, Any]:
    seed = argument["scenario"]["seed"]
    if seed == 501:
        raise ArithmeticError("seed 501 is not liked")
    if seed == 1000:
        time.sleep(3600)
    if seed == 1500:
        os.kill(os.getpid(), signal.SIGKILL)
    return {
        "service": "agreed",
        "messages": seed % 7,
        "digest": f"{seed * 2654435761 % 2**32:08x}",
        "ended": "delivered",
    }
