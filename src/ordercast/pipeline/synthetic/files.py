"""Sets of made-up runs as Parquet files, whole runs per file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ordercast.pipeline.synthetic.faults import FAULTS, Fault, inject
from ordercast.pipeline.synthetic.runs import Run, Shape, make_run
from ordercast.trace.schema import Kind


def make_runs(
    deliveries: int, seed: int, shape: Shape, faults: dict[int, str] | None = None, first: int = 0, step: int = 1
) -> Iterator[tuple[Run, Fault | None]]:
    """Runs `first`, `first + step`, … of the endless series until they hold so many message deliveries."""
    done, number = 0, first
    while done < deliveries:
        run = make_run(f"run-{number:06d}", seed * 1_000_003 + number, shape)
        fault = inject(run, faults[number], number) if faults and number in faults else None
        done += int(run.columns["count"][run.columns["kind"] == Kind.DELIVER].sum())
        yield run, fault
        number += step


def fault_plan(runs: int, each: int, seed: int) -> dict[int, str]:
    """`each` faults of every kind, spread over the first `runs` runs of a series."""
    rng = np.random.default_rng(seed)
    names = [name for name in FAULTS for _ in range(each)]
    return dict(zip(rng.choice(runs, len(names), replace=False).tolist(), names, strict=True))
