"""What a figure was measured on: goes into every result that is kept."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ordercast


def need(*packages: str) -> None:
    """End with one sentence where a package that a benchmark compares with is missing."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        sys.exit(f"{Path(sys.argv[0]).name} needs {' and '.join(missing)}, missing here: run `make bench-setup`")


def here() -> dict[str, Any]:
    """Date, version and machine; `load` tells what else ran."""
    models = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]  # fmt: skip
    machine = {
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }
    return {"date": datetime.date.today().isoformat(), "version": ordercast.__version__, "machine": machine}


def calibration() -> float:
    """Microseconds of a fixed loop: how fast the machine is just now."""
    begun = time.process_time_ns()
    total = 0
    for k in range(100_000):
        total += k % 7
    return round((time.process_time_ns() - begun) / 1e3, 1)
