"""The swarm inside Spark tasks: each starts one child and gives it one seed after the other, as on one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ordercast.pipeline.scatter import batch, scatter
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
    for row in scatter(spark, tasks, _run, SCHEMA, partitions).toLocalIterator():
        value = None if row["value"] is None else msgspec.json.decode(row["value"])
        yield Result(row["seed"], value, row["error"], row["seconds"])


def _run(tasks: list[Task]) -> Iterable[pa.RecordBatch]:
    for result in run_here(tasks, jobs=1):
        value = None if result.value is None else msgspec.json.encode(result.value).decode()
        row = {"seed": result.key, "value": value, "error": result.error, "seconds": result.seconds}
        yield batch([row], SCHEMA)
