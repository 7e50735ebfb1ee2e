"""The stages on small data, as plain values: the same on any master.

Called in the test's own session, and as a program with another master:  python stages.py MASTER DATA OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from synthetic import Shape, fault_plan, make_runs, write

from ordercast.pipeline import measure
from ordercast.pipeline.experiment import Experiment, from_dict
from ordercast.pipeline.sweep import Options, run_points
from ordercast.pipeline.verify import verify_paths

SHAPE = Shape(members=4, frames_mean=40, crash_share=0.3, partition_share=0.2, per_frame=3)


def make_data(directory: Path) -> None:
    """Made-up runs with a fault of each kind, and simulated ones, in a few files."""
    from ordercast.sim.scenario import Load, Scenario
    from ordercast.sim.world import run
    from ordercast.trace.parquet import write as write_traces

    runs = list(make_runs(12_000, 3, SHAPE, fault_plan(24, 1, 5)))
    for k in range(3):
        write(directory, runs[k::3], f"made-{k}")
    traces = []
    for number, protocol in enumerate(("token_site", "totem")):
        for rate in (300.0, 900.0):
            scenario = Scenario(protocol=protocol, messages=60, members=3, seed=number, load=Load(rate=rate))
            trace = run(scenario, level="full").trace
            trace.header.run = f"{protocol}-{rate:g}"
            traces.append(trace)
    write_traces(directory / "simulated.parquet", traces)


def experiment() -> Experiment:
    return from_dict({
        "name": "small", "seed": 5, "repetitions": 2, "base": {"messages": 20},
        "grid": {"protocol": ["token_site", "totem"], "members": [2, 3]},
        "case": [{"name": "calm"}, {"name": "impossible", "protocol": "no_such_protocol"}],
    })  # fmt: skip


def all_stages(spark: Any, data: Path, tasks: int | None = None) -> dict[str, Any]:
    """Verdicts, measures and a sweep, sorted, without the place of the files."""
    verdicts = verify_paths(spark, [data], tasks=tasks).toArrow().to_pylist()
    tables = measure.collect(measure.measure_paths(spark, [data], tasks))
    results = run_points(spark, experiment().points, Options(limit_s=60.0), tasks).toArrow().to_pylist()
    out = {"verdicts": verdicts, "sweep": results, **tables}
    for rows in out.values():
        for row in rows:
            if "path" in row:
                row["path"] = Path(row["path"]).name
    order = {"verdicts": ("run", "promise"), "sweep": ("number",)}
    for name, keys in order.items():
        out[name].sort(key=lambda row, keys=keys: [row[key] for key in keys])
    return json.loads(json.dumps(out))


def where(batches: Any) -> Any:
    """Which package the executor imports."""
    import pyarrow as pa

    import ordercast

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [ordercast.__file__] * batch.num_rows})


def main(master: str, data: str, out: str) -> None:
    from ordercast.pipeline.session import session

    settings = {"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.sql.shuffle.partitions": "2",
                "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                "spark.sql.codegen.wholeStage": "false"}  # fmt: skip
    spark = session(master, settings)
    files = {row.file for row in spark.range(4, numPartitions=4).mapInArrow(where, "file string").collect()}
    found = all_stages(spark, Path(data))
    Path(out).write_text(json.dumps({"packages": sorted(files), "stages": found}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
