"""Sets of made-up runs as Parquet files, whole runs per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ordercast.trace.parquet import Writer
from ordercast.trace.schema import Kind
from synthetic.faults import FAULTS, Fault, inject
from synthetic.runs import Run, Shape, columns_of, make_run

FILE_ROWS = 1_250_000


def make_runs(
    deliveries: int, seed: int, shape: Shape, faults: dict[int, str] | None = None, first: int = 0, step: int = 1
) -> Iterator[tuple[Run, Fault | None]]:
    """Runs `first`, `first + step`, … of the endless series until they hold so many message deliveries."""
    done, number = 0, first
    waiting: list[str] = []  # faults for which the runs so far had no place
    while done < deliveries:
        run = make_run(f"run-{number:06d}", seed * 1_000_003 + number, shape)
        if faults and number in faults:
            waiting.append(faults[number])
        fault = None
        for name in list(waiting):
            fault = inject(run, name, number)
            if fault is not None:
                waiting.remove(name)
                break
        done += int(run.columns["count"][run.columns["kind"] == Kind.DELIVER].sum())
        yield run, fault
        number += step


def fault_plan(runs: int, each: int, seed: int) -> dict[int, str]:
    """`each` faults of every kind, spread over the first `runs` runs of a series."""
    rng = np.random.default_rng(seed)
    names = [name for name in FAULTS for _ in range(each)]
    return dict(zip(rng.choice(runs, len(names), replace=False).tolist(), names, strict=True))


def write(directory: Path, runs: Iterable[tuple[Run, Fault | None]], prefix: str = "part") -> list[Fault]:
    """Whole runs into files of a few million rows; the faults that went in."""
    directory.mkdir(parents=True, exist_ok=True)
    faults: list[Fault] = []
    writer: Writer | None = None
    number = 0
    for run, fault in runs:
        if writer is None:
            writer = Writer(directory / f"{prefix}-{number:05d}.parquet")
            number += 1
        writer.add(run.header, columns_of(run))
        if fault is not None:
            faults.append(fault)
        if writer.rows >= FILE_ROWS:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()
    return faults
