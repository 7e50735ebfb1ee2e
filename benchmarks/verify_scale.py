"""How fast traces are judged, beside two analytic engines and the same code without Spark; printed as one JSON table.

    python benchmarks/verify_scale.py --deliveries 1e7 1e8 --messages 1e9 --work /tmp/scale

Generated runs of 8 members (log-normal lengths, crashes, partitions, a few faults of each kind whose places are known)
are judged
  * by all promises through Spark: every fault must be found, none invented;
  * by duplicates, FIFO and order alone (S2, S15, S17, S18): through Spark, and by the same numpy code in two processes;
  * by the order check that tolerates omissions in SQL and in Polars: level(message) = largest position over the
    members, then the level must rise along each member.  It only filters (scattered omissions raise false alarms).
`--messages`: frames of up to 40 messages, all promises of the agreed service.  Memory is of all processes together.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from here import here, need

SUBSET = ["S2", "S15", "S17", "S18"]
FAULTS_EACH = 5
RUN_DELIVERIES = 9_600  # of an average run: 1200 frames at 8 members


# ----------------------------------------------------------------------------------------------------------- the data


def generate(directory: Path, deliveries: int, per_frame: int, processes: int = 2) -> dict[str, Any]:
    """Make the files unless they are there; what they hold."""
    record = directory / "_data.json"
    if record.exists():
        return json.loads(record.read_text())
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    since = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        work = [(str(directory), deliveries, per_frame, k, processes) for k in range(processes)]
        parts = pool.starmap(_generate, work)
    faults = [fault for part in parts for fault in part["faults"]]
    sums = {name: sum(part[name] for part in parts) for name in ("rows", "deliver_rows", "deliveries", "runs")}
    size = sum(path.stat().st_size for path in directory.glob("*.parquet"))
    data = {**sums, "bytes": size, "files": len(list(directory.glob("*.parquet"))), "faults": faults,
            "generated_s": round(time.monotonic() - since, 1)}  # fmt: skip
    record.write_text(json.dumps(data))
    return data


def _generate(directory: str, deliveries: int, per_frame: int, first: int, step: int) -> dict[str, Any]:
    from synthetic import Shape, fault_plan, make_runs, write

    from ordercast.trace.schema import Kind

    mean = (per_frame + 1) / 2
    runs = max(200, int(deliveries / (RUN_DELIVERIES * mean)))
    plan = fault_plan(int(runs * 0.8), FAULTS_EACH, 7)
    sums = {"rows": 0, "deliver_rows": 0, "deliveries": 0, "runs": 0}

    def counted() -> Any:
        for run, fault in make_runs(deliveries // step, 1, Shape(per_frame=per_frame), plan, first, step):
            deliver = run.columns["kind"] == int(Kind.DELIVER)
            sums["rows"] += len(run)
            sums["runs"] += 1
            sums["deliver_rows"] += int(deliver.sum())
            sums["deliveries"] += int(run.columns["count"][deliver].sum())
            yield run, fault

    faults = write(Path(directory), counted(), f"part-{first}")
    return {**sums, "faults": [msgspec.to_builtins(fault) for fault in faults]}


# --------------------------------------------------------------------------------------------------- the competitors


class Memory:
    """The largest sum of memory of this process and all below it (proportional shares) while it watches."""

    def __init__(self) -> None:
        self.peak = 0
        self._over = threading.Event()

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.peak = max(self.peak, sum(map(_pss, _family(os.getpid()))))


def _family(top: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    parents.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
            except OSError:
                continue  # it has ended meanwhile
    out, waiting = [], [top]
    while waiting:
        pid = waiting.pop()
        out.append(pid)
        waiting += parents.get(pid, [])
    return out


def _pss(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            for line in rollup:
                if line.startswith("Pss_Anon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has ended meanwhile
    return 0


def timed(name: str, deliver_rows: int, work: Callable[[], Any]) -> dict[str, Any]:
    with Memory() as memory:
        since = time.monotonic()
        result = work()
        seconds = time.monotonic() - since
    print(f"  {name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return {"name": name, "seconds": round(seconds, 2), "m_deliveries_per_s": round(deliver_rows / seconds / 1e6, 2),
            "memory_mib": round(memory.peak / 2**20), "result": result}  # fmt: skip


SQL = """
with d as (
    select run, member, incarnation, position, sender, counter from read_parquet('{files}') where kind = 'deliver'
), level as (
    select run, sender, counter, max(position) as level from d group by all
), along as (
    select d.run, d.member, d.incarnation,
           level.level <= lag(level.level)
               over (partition by d.run, d.member, d.incarnation order by d.position) as falls
    from d join level using (run, sender, counter)
)
select count(distinct run) from along where falls
"""


def duckdb_order(directory: Path) -> int:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        connection.execute("set memory_limit = '6GiB'")
        connection.execute(f"set temp_directory = '{directory}/_duckdb'")
        found = connection.execute(SQL.format(files=f"{directory}/*.parquet")).fetchone()
    return int(found[0]) if found else 0


def polars_order(directory: Path) -> int:
    import polars as pl

    keys = ["run", "member", "incarnation"]
    message = ["run", "sender", "counter"]
    d = pl.scan_parquet(f"{directory}/*.parquet").filter(pl.col("kind") == "deliver")
    d = d.select(*keys, "position", "sender", "counter")
    level = d.group_by(message).agg(pl.col("position").max().alias("level"))
    along = d.join(level, on=message).sort([*keys, "position"])
    falls = along.filter(pl.col("level") <= pl.col("level").shift(1).over(keys))
    return int(falls.select(pl.col("run").n_unique()).collect(engine="streaming").item())


def _judge_files(paths: list[str]) -> int:
    from ordercast.pipeline.verify import judge_columns
    from ordercast.trace.find import Unit

    broken = set()
    for path in paths:
        rows = judge_columns(Unit("parquet", path, 1), SUBSET)
        broken |= {row["run"] for row in rows if row["state"] != "holds"}
    return len(broken)


def numpy_two_processes(directory: Path) -> int:
    files = sorted(map(str, directory.glob("*.parquet")))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return sum(pool.imap_unordered(_judge_files, [[file] for file in files]))


def spark_subset(spark: Any, directory: Path) -> int:
    from pyspark.sql import functions as F

    from ordercast.pipeline.verify import verify_paths

    verdicts = verify_paths(spark, [directory], SUBSET)
    return int(verdicts.where(F.col("state") == "broken").select("run").distinct().count())


def spark_all(spark: Any, directory: Path, faults: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge by everything, and hold the answer against what was put in."""
    from pyspark.sql import functions as F

    from ordercast.pipeline.verify import verify_paths

    verdicts = verify_paths(spark, [directory])
    rows = verdicts.where(F.col("state") != "holds").select("run", "promise", "state").toArrow().to_pylist()
    broken = {(row["run"], row["promise"]) for row in rows if row["state"] == "broken"}
    runs = {fault["run"] for fault in faults}
    return {
        "faults": len(faults),
        "found": sum((fault["run"], fault["promise"]) in broken for fault in faults),
        "invented": len({run for run, _ in broken} - runs),
        "not_judged": sum(row["state"] == "cannot judge" for row in rows),
    }


# ------------------------------------------------------------------------------------------------------------- main


def compare(spark: Any, directory: Path, deliveries: int, only: set[str]) -> dict[str, Any]:
    data = generate(directory, deliveries, 1)
    print(f"{deliveries:.0e} deliveries: {data['rows']} rows, {data['runs']} runs", file=sys.stderr)
    rows, faults = data["deliver_rows"], data["faults"]
    lines = []
    for name, work in (
        ("spark, all promises", lambda: spark_all(spark, directory, faults)),
        ("spark, duplicates FIFO order", lambda: spark_subset(spark, directory)),
        ("numpy in two processes", lambda: numpy_two_processes(directory)),
        ("duckdb order", lambda: duckdb_order(directory)),
        ("polars order", lambda: polars_order(directory)),
    ):
        if not only or name.split()[0].rstrip(",") in only:
            lines.append(timed(name, rows, work))
    by_name = {line["name"]: line["seconds"] for line in lines}
    ours = by_name.get("spark, duplicates FIFO order")
    ratios = {}
    for other in ("numpy in two processes", "duckdb order", "polars order"):
        if ours and other in by_name:
            ratios[f"spark against {other}"] = round(by_name[other] / ours, 2)
    data = {name: value for name, value in data.items() if name != "faults"} | {"faults": len(faults)}
    return {"data": data, "lines": lines, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=float, nargs="*", default=[1e7, 1e8])
    parser.add_argument("--messages", type=float, default=0, help="deliveries of messages in frames of up to 40")
    parser.add_argument("--work", type=Path, default=Path("/tmp/ordercast-scale"))
    parser.add_argument("--only", nargs="*", default=[], help="spark numpy duckdb polars")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    need(*(name for name in ("duckdb", "polars") if name in (options.only or ("duckdb", "polars"))))
    from ordercast.pipeline.session import session

    since = time.monotonic()
    spark = session(options.master)
    spark.range(2).count()
    started = round(time.monotonic() - since, 1)
    out: dict[str, Any] = {"benchmark": "verify_scale", **here(), "spark_start_s": started, "scales": {}}
    for deliveries in options.deliveries:
        directory = options.work / f"deliveries-{deliveries:.0e}"
        out["scales"][f"{deliveries:.0e}"] = compare(spark, directory, int(deliveries), set(options.only))
    times = {name: {line["name"]: line["seconds"] for line in scale["lines"]} for name, scale in out["scales"].items()}
    if {"1e+07", "1e+08"} <= times.keys():
        both = times["1e+07"].keys() & times["1e+08"].keys()
        out["growth_1e7_to_1e8"] = {
            name: round(times["1e+08"][name] / times["1e+07"][name], 2) for name in sorted(both)
        }
    if options.messages:
        directory = options.work / f"messages-{options.messages:.0e}"
        data = generate(directory, int(options.messages), 40)
        faults = data.pop("faults")
        line = timed("spark, all promises, frames", data["deliveries"], lambda: spark_all(spark, directory, faults))
        out["messages"] = {"data": data, "lines": [line]}
    print(json.dumps(out))
    spark.stop()


if __name__ == "__main__":
    main()
