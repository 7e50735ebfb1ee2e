"""ordercast measure: latency, throughput and traffic of recorded runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import emit, output_directory, progress
from ordercast.cli.spark_options import Reading, trace_options
from ordercast.errors import TraceError

if TYPE_CHECKING:
    from ordercast.cli.common import Progress
    from ordercast.pipeline.collected import Tables

SMALL_BYTES = 64 << 20  # of traces whose samples are few
SHOWN = ("submit", "submit to sender", "submit to others", "submit to last", "originate", "standstill")


def collect(reading: Reading, shown: Progress) -> tuple[Tables, list[dict[str, Any]]]:
    """All tables of the traces that were named, on Spark or here; what could not be read."""
    from ordercast.trace.find import find

    units = find(reading.paths)  # what a person got wrong is said before Spark starts
    bad: list[dict[str, Any]] = []
    if reading.plain:
        from ordercast.pipeline import here

        tables = here.tables(units, bad)
    else:
        from ordercast.pipeline import measure

        spark = reading.session(shown, small=sum(unit.bytes for unit in units) < SMALL_BYTES)
        shown.say(f"measuring {len(units)} files ...")
        measures = measure.tables_of(measure.samples(spark, units, reading.tasks))
        tables = measure.collect(measures, bad=bad)
    if bad and not reading.skip_bad:
        raise TraceError(bad[0]["path"], bad[0]["offset"], bad[0]["reason"])
    return tables, bad


@click.command("measure")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory for the tables as CSV and JSON.")
@trace_options
def command(reading: Reading, out: Path | None, as_json: bool) -> int:
    """Measure the traces at PATH...: latency per protocol and load, throughput, traffic, view changes."""
    if out is not None:
        output_directory(out, reading.force)
    since = time.monotonic()
    with progress("measuring") as shown:
        tables, bad = collect(reading, shown)
    if out is not None:
        from ordercast.pipeline.report import write_tables

        write_tables(out, tables)
    result: dict[str, Any] = {"engine": reading.engine, "runs": len(tables["runs"])}
    result |= {name: rows for name, rows in tables.items() if name not in ("runs", "histogram")}
    result |= {"skipped": bad, "wall_seconds": round(time.monotonic() - since, 3)}
    emit(result, as_json, lambda: words(tables, bad))
    return 0


def words(tables: Tables, bad: list[dict[str, Any]]) -> str:
    from ordercast.pipeline.collected import axes
    from ordercast.pipeline.curves import parameters
    from ordercast.pipeline.report import span

    count = len(tables["runs"])
    lines = [f"{count} run{'' if count == 1 else 's'}"]
    for row in tables["throughput"]:
        rate = f"{row['messages_per_s']:,.0f} messages/s" if row["messages_per_s"] else "no messages"
        told = ", ".join([f"{row['members']} members", *parameters(row), row["load"]])
        lines.append(f"\n{row['protocol']} {row['service']}, {told}: {rate}")
        more = [
            f"{row['messages_per_frame']:.3g} messages a frame" if row["messages_per_frame"] else "",
            f"{row['datagrams_per_message']:.3g} datagrams a message" if row["datagrams_per_message"] else "",
            f"{row['bytes_per_delivery']:.4g} bytes a delivery" if row["bytes_per_delivery"] else "",
            f"{100 * row['utilisation']:.1f} % of the network useful" if row["utilisation"] else "",
            f"{row['retransmitted']} retransmitted" if row["retransmitted"] else "",
            f"{row['view_changes']} view changes" if row["view_changes"] else "",
            f"halted {100 * row['halted_share']:.2g} % of the time" if row["halted_share"] else "",
        ]
        lines += [f"  {', '.join(filter(None, more))}"] if any(more) else []
        keys = ("protocol", "service", "members", *axes([row]), "load")
        mine = [part for part in tables["latency"] if all(part[key] == row[key] for key in keys)]
        for part in sorted(mine, key=lambda part: SHOWN.index(part["name"])):
            what = f"latency from {part['name']}" if part["name"] != "standstill" else "delivery stood still"
            figures = " ".join(f"{name} {span(part[name])}" for name in ("mean", "p50", "p99", "max"))
            lines.append(f"  {what}: {figures} ({part['count']})")
        for part in tables["skew_free"]:
            if all(part[key] == row[key] for key in keys):
                lines.append(f"  latency free of clock skew, {part['method']}: mean {span(part['mean_ns'])}")
    if bad:
        lines.append(f"\nleft out: {len(bad)} files, the first: {bad[0]['path']}: {bad[0]['reason']}")
    return "\n".join(lines)
