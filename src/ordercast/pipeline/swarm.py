"""The swarm inside Spark tasks: each starts one child and gives it one seed after the other, as on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.pipeline.scatter import scatter
from ordercast.swarm.campaign import run_here
from ordercast.swarm.runner import Result
from ordercast.swarm.task import Task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SCHEMA = "seed bigint, value string, error string, seconds double"


def run_on(spark: SparkSession, tasks: Sequence[Task], partitions: int | None = None) -> Iterator[Result]:
    """Results as partitions finish; the rows are those that `run_here` gives."""
    if not tasks:
        return
    pieces = [msgspec.json.encode(task).decode() for task in tasks]
    frame = scatter(spark, pieces, [1.0] * len(pieces), _run, SCHEMA, partitions)
    for row in frame.toLocalIterator():
        value = None if row["value"] is None else msgspec.json.decode(row["value"])
        yield Result(row["seed"], value, row["error"], row["seconds"])


def _run(pieces: list[str]) -> Iterable[pa.RecordBatch]:
    tasks = [msgspec.json.decode(piece, type=Task) for piece in pieces]
    for result in run_here(tasks, jobs=1):
        yield _batch(result)


def _batch(result: Result) -> Any:
    import pyarrow as pa

    value = None if result.value is None else msgspec.json.encode(result.value).decode()
    return pa.RecordBatch.from_pydict(
        {"seed": [result.key], "value": [value], "error": [result.error], "seconds": [result.seconds]},
        schema=pa.schema(
            [("seed", pa.int64()), ("value", pa.string()), ("error", pa.string()), ("seconds", pa.float64())]
        ),
    )
