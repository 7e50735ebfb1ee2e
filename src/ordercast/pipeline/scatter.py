"""Handing work to tasks: structs that name the work go out, one task gets whole ones, results come back as rows."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ordercast.pipeline.session import cores

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Piece = TypeVar("Piece", bound=msgspec.Struct)
TASKS_PER_CORE = 4  # so that a slow task at the end leaves little idle


def spread(weights: Sequence[float], tasks: int) -> list[int]:
    """The task of each piece: heaviest first, each to the task with least so far.  Follows from the weights alone."""
    loads = [(0.0, task) for task in range(tasks)]
    out = [0] * len(weights)
    for piece in sorted(range(len(weights)), key=lambda k: (-weights[k], k)):
        load, task = heapq.heappop(loads)
        out[piece] = task
        heapq.heappush(loads, (load + weights[piece], task))
    return out


def task_count(spark: SparkSession, pieces: int, tasks: int | None = None) -> int:
    return max(1, min(pieces, tasks or TASKS_PER_CORE * cores(spark)))


def scatter(
    spark: SparkSession,
    pieces: Sequence[Piece],
    work: Callable[[list[Piece]], Iterable[pa.RecordBatch]],
    schema: str,
    tasks: int | None = None,
) -> DataFrame:
    """`work(pieces of one task)` in each task; its batches are the rows of the result.

    A piece weighs what its `weight` or `bytes` say, if it has any; else all weigh the same.
    """
    import pyarrow as pa
    from pyspark.sql import functions as F

    count = task_count(spark, len(pieces), tasks)
    share = spread([getattr(piece, "weight", getattr(piece, "bytes", 1.0)) for piece in pieces], count)
    texts = [msgspec.json.encode(piece).decode() for piece in pieces]
    table = pa.table(
        {"task": pa.array(share, pa.int32()), "number": range(len(pieces)), "piece": texts},
        schema=pa.schema([("task", pa.int32()), ("number", pa.int64()), ("piece", pa.string())]),
    )
    frame = spark.createDataFrame(table).repartitionById(count, F.col("task"))
    return frame.mapInArrow(_Task(work, type(pieces[0]) if pieces else msgspec.Struct), schema)


class _Task:
    """What one task does with the rows it is given: all of them at once, in the order of the pieces."""

    def __init__(self, work: Callable[[list[Any]], Iterable[pa.RecordBatch]], kind: type[msgspec.Struct]) -> None:
        self.work, self.kind = work, kind

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        named: list[tuple[int, str]] = []
        for batch in batches:
            named += zip(batch.column("number").to_pylist(), batch.column("piece").to_pylist(), strict=True)
        if named:
            yield from self.work([msgspec.json.decode(piece, type=self.kind) for _, piece in sorted(named)])


def arrow_schema(ddl: str) -> pa.Schema:
    """Spark's "name type, name type" as Arrow writes it."""
    import pyarrow as pa

    kinds = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "double": pa.float64()}
    return pa.schema([(name, kinds[kind]) for name, kind in (part.split() for part in ddl.split(", "))])


def batch(rows: list[dict[str, Any]], ddl: str) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(ddl))
