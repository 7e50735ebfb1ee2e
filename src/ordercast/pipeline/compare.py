"""compare: one workload through several protocols, side by side.

The runs are those of a sweep (ordercast.pipeline.sweep), the figures those of measure; here they become one table, a
line for each protocol over all seeds, and one page with one plot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ordercast import registry
from ordercast.errors import ConfigError, UsageError
from ordercast.pipeline import plots, report, verify
from ordercast.pipeline.collected import Tables
from ordercast.pipeline.experiment import Experiment, Point
from ordercast.pipeline.render import Content, Plot, Table
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import World
from ordercast.trace.find import find
from ordercast.types import Service
from ordercast.version import __version__

HOUR_MS = 3_600_000.0
LIMIT_S = 300.0  # wall seconds one run may take
# by name, what a scenario file says otherwise; members wait for the first view before they talk
SCENES: dict[str, dict[str, Any]] = {
    "lan": {"load": {"rate": 200.0, "start_ms": 200.0}, "limit_ms": HOUR_MS},
    "wan": {
        "nets": [{"model": "links", "delay": {"law": "exponential", "low_us": 50_000.0, "mean_us": 60_000.0}}],
        "load": {"rate": 8.0, "start_ms": 20_000.0},
        "timeout_ms": 2000.0,
        "settle_ms": 20_000.0,
        "limit_ms": HOUR_MS,
    },
}


class Line(Struct):
    """One protocol.  Times in nanoseconds, from submit to delivery at each member; None: nothing was measured."""

    protocol: str
    service: str
    runs: int
    mean_ns: float | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    datagrams_per_message: float | None = None
    bytes_per_delivery: float | None = None
    holds: int = 0  # promises that held, over all runs
    broken: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()  # of runs that failed

    @property
    def ok(self) -> bool:
        return not self.broken and not self.errors

    @property
    def promises(self) -> str:
        if self.errors:
            return f"{len(self.errors)} of {self.runs} runs failed"
        if self.broken:
            return f"broken: {' '.join(self.broken)}"
        return f"held, but not judged: {' '.join(self.not_judged)}" if self.not_judged else "held"


def ordering() -> list[str]:
    """The protocols with a total order."""
    return [name for name in registry.names() if Service.AGREED in registry.get(name).provides]


def experiment(table: Mapping[str, Any], protocols: Sequence[str], seeds: Iterable[int], place: str) -> Experiment:
    """The runs: every protocol with every seed.  What a protocol cannot be asked for is said before any starts."""
    points: list[Point] = []
    faults: list[str] = []
    for protocol in dict.fromkeys(protocols):
        service = table.get("service") or (Service.AGREED.word if protocol in ordering() else "")
        wanted = {**table, "protocol": protocol, "service": service}
        try:
            World(Scenario.from_dict(wanted, place))
        except ConfigError as bad:
            faults += [fault for fault in bad.faults if fault not in faults]
        except UsageError as bad:
            faults.append(f"{place}: {bad}")
        for repetition, seed in enumerate(seeds):
            run = f"{protocol}-{seed}"
            points.append(Point(len(points), run, {**wanted, "seed": seed}, {}, repetition))
    if faults:
        raise ConfigError(faults)
    return Experiment("compare", tuple(points), LIMIT_S, ())


def lines(results: Sequence[Mapping[str, Any]], tables: Tables) -> list[Line]:
    """The table: rows of a sweep and of measure, by protocol, the quickest first."""
    out: list[Line] = []
    for protocol in dict.fromkeys(row["protocol"] for row in results):
        rows = [row for row in results if row["protocol"] == protocol]
        line = Line(protocol, rows[0]["service"] or "", len(rows), holds=sum(row["holds"] or 0 for row in rows))
        line.broken = _all(rows, "broken")
        line.not_judged = _all(rows, "cannot_judge")
        line.errors = tuple(f"{row['run']}: {row['error']}" for row in rows if not row["ok"])
        for part in tables["latency"]:
            if part["protocol"] == protocol and part["name"] == "submit":
                line.mean_ns, line.p50_ns, line.p99_ns = part["mean"], part["p50"], part["p99"]
        for part in tables["throughput"]:
            if part["protocol"] == protocol:
                line.datagrams_per_message = part["datagrams_per_message"]
                line.bytes_per_delivery = part["bytes_per_delivery"]
        out.append(line)
    return sorted(out, key=lambda line: (line.mean_ns is None, line.mean_ns, line.protocol))


def _all(rows: Iterable[Mapping[str, Any]], column: str) -> tuple[str, ...]:
    return tuple(sorted({promise for row in rows for promise in (row[column] or "").split()}))


# ------------------------------------------------------------------------------------------------------------ the page


def write(path: Path, found: Sequence[Line], *, lead: str, traces: Path) -> Path:
    """One page: the plot and the table; where a promise broke, what broke it."""
    page = Content("Protocols compared", lead)
    page.facts = [("protocols", str(len(found))), ("runs", str(sum(line.runs for line in found)))]
    if plots.available() and any(line.mean_ns is not None for line in found):
        said = "From submit to delivery at each member: a bar reaches from the median to 99 %, its dot is the mean."
        page.plots = [Plot("Latency and traffic", picture(found), said)]
    columns = ["protocol", "service", "mean", "median", "99 %", "datagrams / message", "bytes / delivery", "promises"]
    rows = [
        [line.protocol, line.service, *map(report.span, (line.mean_ns, line.p50_ns, line.p99_ns)),
         line.datagrams_per_message, line.bytes_per_delivery, line.promises]
        for line in found
    ]  # fmt: skip
    page.tables = [Table("In figures", columns, rows, whole=True)]
    if errors := [[line.protocol, error] for line in found for error in line.errors]:
        page.tables.append(Table("Runs that failed", ["protocol", "why"], errors))
    if any(line.broken for line in found):
        report.show_breaks(page, verify.summarise_rows(verify.verify_here([traces])), find([traces]))
    page.foot = f"ordercast {__version__}. This page is one file and loads nothing from outside."
    return report.write_page(path, page)


def picture(found: Sequence[Line]) -> str:
    shown = [line for line in found if line.mean_ns is not None]
    return plots.side_by_side(
        "compare",
        [line.protocol for line in shown],
        [(line.p50_ns or 0, line.mean_ns or 0, line.p99_ns or 0) for line in shown],
        [line.datagrams_per_message or 0 for line in shown],
    )
