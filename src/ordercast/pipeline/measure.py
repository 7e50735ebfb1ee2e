"""measure: what runs cost and how fast they were, as tables.

Tasks read whole runs and turn each into few rows (numpy, ordercast.pipeline.numbers); everything over several runs is
native DataFrame aggregation.  Sums are whole nanoseconds, percentiles exact (nearest rank), so the same rows come out
on any master.

    runs        one row per run: load, messages, span, traffic, views, retransmissions
    latency     per protocol, service, members, parameters and load: count, mean, percentiles of each kind of latency
    histogram   the distribution behind it, in buckets of a sixteenth of an octave
    skew_free   mean latency by the two methods of the Totem paper, from clocks that were never compared
    notes       what protocols note for themselves (ProtocolInfo.measures)
    throughput  likewise: messages a second, utilisation, datagrams and bytes per message

Every axis of a sweep is a key: in the frames as one column of JSON, `parameters`; in the collected tables as columns of
their own between `members` and `load`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.collected import collected
from ordercast.pipeline.scatter import arrow_schema, scatter
from ordercast.pipeline.verify import Paths
from ordercast.trace.find import Unit, find
from ordercast.trace.load import runs_of
from ordercast.trace.schema import Header, Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.trace.columns import Columns

PERCENTS = (50, 90, 99, 99.9)
KEYS = ("protocol", "service", "members", "parameters", "load")
# one long table leaves the tasks: `what` says which of the tables a row belongs to
SCHEMA = (
    "what string, path string, run string, protocol string, service string, members bigint, "
    "parameters string, load string, rate double, name string, a bigint, b bigint, value bigint, weight bigint, "
    "facts string"
)
SAMPLE, PAIR, NOTE, RUN, BAD = "sample", "pair", "note", "run", "unreadable"


class Measures(msgspec.Struct):
    """The tables; each a DataFrame, computed when used.  `samples` is what they are made from."""

    samples: Any
    runs: Any
    latency: Any
    histogram: Any
    skew_free: Any
    notes: Any
    throughput: Any
    unreadable: Any

    def tables(self) -> dict[str, Any]:
        names = ("runs", "throughput", "latency", "histogram", "skew_free", "notes")
        return {name: getattr(self, name) for name in names}


def measure_paths(spark: SparkSession, paths: Paths, tasks: int | None = None) -> Measures:
    """All tables of the traces under these paths."""
    return tables_of(samples(spark, find(paths), tasks))


def samples(spark: SparkSession, units: Sequence[Unit], tasks: int | None = None) -> DataFrame:
    """The long table (SCHEMA) that all others are made from."""
    return scatter(spark, units, _measure, SCHEMA, tasks)


def tables_of(long: DataFrame) -> Measures:
    """Aggregate the long table.  Cache it before if more than one table is wanted."""
    from pyspark.sql import functions as F

    of = {what: long.where(F.col("what") == what) for what in (SAMPLE, PAIR, NOTE, RUN, BAD)}
    runs = _runs(of[RUN])
    return Measures(
        samples=long,
        runs=runs,
        latency=percentiles(of[SAMPLE], [*KEYS, "rate", "name"]),
        histogram=_histogram(of[SAMPLE]),
        skew_free=_skew_free(of[PAIR]),
        notes=percentiles(of[NOTE], [*KEYS, "rate", "name"]),
        throughput=_throughput(runs),
        unreadable=of[BAD].select("path", F.col("value").alias("offset"), F.col("name").alias("reason")),
    )


# ------------------------------------------------------------------------------------------------- over several runs


def percentiles(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Count, sum, mean and exact percentiles of `value` with `weight`, per keys.

    The values of a group are put in order once and their weights summed up along it, so that no group has to fit into
    memory; the value at a percentile is the smallest that at least so many are not above.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    wide = "decimal(38,0)"
    each = frame.groupBy(*keys, "value").agg(F.sum("weight").alias("weight"))
    along = Window.partitionBy(*keys).orderBy("value").rowsBetween(Window.unboundedPreceding, 0)
    whole = Window.partitionBy(*keys)
    ranked = each.withColumns({"upto": F.sum("weight").over(along), "count": F.sum("weight").over(whole)})
    total = F.sum(F.col("value").cast(wide) * F.col("weight").cast(wide)).cast(wide)
    aggregated = ranked.groupBy(*keys).agg(
        F.max("count").alias("count"),
        total.alias("sum"),
        F.min("value").alias("min"),
        *[_at_percent(percent).alias(_percent_name(percent)) for percent in PERCENTS],
        F.max("value").alias("max"),
    )
    mean = (F.col("sum").cast("double") / F.col("count")).alias("mean")
    names = ["min", *map(_percent_name, PERCENTS), "max"]
    return aggregated.select(*keys, "count", "sum", mean, *names)


def _at_percent(percent: float) -> Any:
    from pyspark.sql import functions as F

    thousandths = round(percent * 10)
    return F.min(F.when(F.col("upto") * 1000 >= F.col("count") * thousandths, F.col("value")))


def _percent_name(percent: float) -> str:
    return "p" + f"{percent:g}".replace(".", "_")


def _histogram(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    keys = [*KEYS, "name", "a"]
    return frame.groupBy(*keys).agg(F.sum("weight").alias("messages")).withColumnRenamed("a", "bucket")


def _skew_free(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    wide = "decimal(38,0)"
    total = F.sum(F.col("value").cast(wide) * F.col("weight").cast(wide)).cast("double")
    return (
        frame.groupBy(*KEYS, "name")
        .agg(F.sum("weight").alias("messages"), (total / F.sum("weight") / 1000.0).alias("mean_ns"))
        .withColumnRenamed("name", "method")
    )


FACTS: tuple[str, ...] = (
    "rows", "submitted", "originated", "frames", "deliveries", "slowest", "span_ns", "view_changes", "crashes",
    "refused", "retransmitted", "capacity_bits", "transmitted", "transmitted_bytes", "received", "received_bytes",
    "delivered_bytes", "halted_windows", "windows",
)  # fmt: skip


def _runs(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    schema = ", ".join(f"{name} bigint" for name in FACTS)
    parsed = frame.withColumn("parsed", F.from_json("facts", schema))
    names = [F.col(f"parsed.{name}").alias(name) for name in FACTS]
    return parsed.select("path", "run", *KEYS, "rate", *names)


def _throughput(runs: DataFrame) -> DataFrame:
    """Per protocol and load; every sum is of whole numbers, every quotient of two sums."""
    from pyspark.sql import functions as F

    total = {name: F.sum(name) for name in FACTS}
    seconds = total["span_ns"] / 1e9
    per_member = total["delivered_bytes"] / F.col("members")
    wide = "decimal(38,0)"
    capacity = F.sum(F.col("capacity_bits").cast(wide) * F.col("span_ns").cast(wide)).cast("double")
    return runs.groupBy(*KEYS, "rate").agg(
        F.count("*").alias("runs"),
        total["originated"].alias("messages"),
        total["deliveries"].alias("deliveries"),
        (total["originated"] / F.nullif(seconds, F.lit(0.0))).alias("messages_per_s"),
        (total["originated"] / F.nullif(total["frames"], F.lit(0))).alias("messages_per_frame"),
        (total["transmitted"] / F.nullif(total["originated"], F.lit(0))).alias("datagrams_per_message"),
        (total["transmitted_bytes"] / F.nullif(total["deliveries"], F.lit(0))).alias("bytes_per_delivery"),
        (per_member / F.nullif(total["transmitted_bytes"], F.lit(0))).alias("useful_share"),
        (per_member * 8e9 / F.nullif(capacity, F.lit(0.0))).alias("utilisation"),
        total["retransmitted"].alias("retransmitted"),
        (total["halted_windows"] / F.nullif(total["windows"], F.lit(0))).alias("halted_share"),
        total["view_changes"].alias("view_changes"),
        total["refused"].alias("refused"),
    )


# --------------------------------------------------------------------------------------------------- inside a task


def _measure(units: list[Unit]) -> Iterator[pa.RecordBatch]:
    for unit in units:
        yield from measure_unit(unit)


def measure_unit(unit: Unit) -> Iterator[pa.RecordBatch]:
    """The long rows of every run of a unit; samples of runs of one kind are put together."""
    from ordercast.pipeline import numbers

    bad: list[TraceError] = []
    gathered: dict[tuple[Any, ...], list[numbers.Samples]] = {}
    try:
        for header, columns in runs_of(unit, bad):
            kind = _kind(header)
            yield from _run_batches(unit.path, header, columns, kind)
            for name, found in numbers.samples(columns).items():
                if len(found.values):
                    gathered.setdefault((*kind.values(), name), []).append(found)
    except TraceError as why:
        bad.append(why)
    for (*values, name), parts in gathered.items():
        found = numbers.together(parts)
        kind = dict(zip((*KEYS, "rate"), values, strict=True))
        columns_ = {"a": numbers.bucket(found.values), "value": found.values, "weight": found.weights}
        yield _batch({**kind, "what": SAMPLE, "name": name, **columns_}, len(found.values))
    if bad:
        rows = [{"what": BAD, "path": entry.path, "value": entry.offset, "name": entry.why} for entry in bad]
        yield _batch({name: [row.get(name) for row in rows] for name in ("what", "path", "value", "name")}, len(rows))


def _kind(header: Header) -> dict[str, Any]:
    """What runs are grouped by."""
    from ordercast.pipeline import numbers

    words, rate = numbers.load(header)
    own = {axis: value for axis, value in header.parameters.items() if axis not in KEYS}
    parameters = msgspec.json.encode(own, order="sorted").decode()
    return {"protocol": header.protocol, "service": header.service, "members": len(header.members),
            "parameters": parameters, "load": words, "rate": rate}  # fmt: skip


def _run_batches(path: str, header: Header, columns: Columns, kind: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    from ordercast.pipeline import numbers
    from ordercast.pipeline.halts import halts

    head = {"path": path, "run": header.run, **kind}
    notes = _details(columns, Kind.NOTE)
    facts: dict[str, Any] = numbers.facts(columns)
    facts |= numbers.traffic(header, facts, _details(columns, Kind.END))
    facts["retransmitted"] = numbers.retransmissions(notes) if header.level != "deliver" else None
    facts["capacity_bits"] = numbers.capacity_bits(header)
    facts["halted_windows"], facts["windows"] = halts(columns)
    yield _batch({**head, "what": RUN, "facts": msgspec.json.encode(facts).decode()}, 1)
    pairs = numbers.pair_latencies(columns)
    if pairs:
        yield _batch(
            {**head, "what": PAIR, "name": [f"method {pair.method}" for pair in pairs],
             "a": [pair.a for pair in pairs], "b": [pair.b for pair in pairs],
             "value": [pair.mean_ps for pair in pairs], "weight": [pair.messages for pair in pairs]}, len(pairs),
        )  # fmt: skip
    said = numbers.noted(notes, _measures(header.protocol))
    if said:
        names, values = [name for name, _ in said], [value for _, value in said]
        yield _batch({**head, "what": NOTE, "name": names, "value": values, "weight": [1] * len(said)}, len(said))


def _details(columns: Columns, kind: Kind) -> list[dict[str, Any]]:
    """The details of all rows of a kind."""
    sparse, kinds = columns.sparse["detail"], columns["kind"]
    rows = sparse.rows[kinds[sparse.rows] == int(kind)] if len(sparse) else []
    return [detail for detail in (sparse.get(int(row)) for row in rows) if isinstance(detail, dict)]


def _measures(protocol: str) -> frozenset[str]:
    """What the protocol notes for itself; a trace of a protocol unknown here has none."""
    from ordercast import registry
    from ordercast.errors import UsageError

    try:
        return frozenset(registry.get(protocol).measures)
    except UsageError:
        return frozenset()


def _batch(columns: dict[str, Any], rows: int) -> pa.RecordBatch:
    """Rows of the long table: lists and arrays as they are, single values repeated, the rest null."""
    import numpy as np
    import pyarrow as pa

    out = []
    schema = arrow_schema(SCHEMA)
    for field in schema:
        value = columns.get(field.name)
        if value is None:
            out.append(pa.nulls(rows, field.type))
        elif isinstance(value, (list, np.ndarray)):
            out.append(pa.array(value, field.type))
        else:
            out.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.RecordBatch.from_arrays(out, schema=schema)


def collect(measures: Measures, bad: list[dict[str, Any]] | None = None) -> dict[str, list[dict[str, Any]]]:
    """The tables as rows, sorted, ready for a report; they are small whatever the traces' size.

    What could not be read goes to `bad`.
    """
    measures.samples.persist()
    try:
        if bad is not None:
            bad += sorted(measures.unreadable.toArrow().to_pylist(), key=lambda row: (row["path"], row["offset"]))
        return collected({name: frame.toArrow().to_pylist() for name, frame in measures.tables().items()})
    finally:
        measures.samples.unpersist()
