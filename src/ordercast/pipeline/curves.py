"""The plots of a report, made of the tables of `measure`: every load and every parameter of a sweep has its curve.

More curves than one plot can show go into several plots, in the tables' order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ordercast.pipeline import plots
from ordercast.pipeline.collected import Tables, axes
from ordercast.pipeline.render import Plot
from ordercast.trace.find import Unit
from ordercast.trace.load import runs_of

CURVES_MAX = 8  # in one plot
BUCKETS = 80  # of the delivery rate over a run
PICTURE_BYTES = 64 << 20  # a trace up to this size is looked at for pictures
Curve = tuple[list[float], list[float]]


def of_tables(tables: Tables, units: Sequence[Unit]) -> list[Plot]:
    """All plots; none without matplotlib."""
    if not plots.available():
        return []
    out: list[Plot] = []
    curves: dict[str, Curve] = {}
    for row in tables.get("histogram", []):
        if row["name"] == "submit":
            x, y = curves.setdefault(f"{_whose(row)}, {row['load']}", ([], []))
            x.append(row["bucket"])
            y.append(row["messages"])
    said = "From submit to delivery at each member, weighted by messages."
    if len(curves) == 1:
        curves = {"": next(iter(curves.values()))}
    out += _several("Latency", curves, plots.distribution, said)
    out += _by_load(tables)
    rate = _rate_plot(tables, units)
    return [*out, rate] if rate else out


def parameters(row: Mapping[str, Any], without: str = "") -> list[str]:
    """The axes of a sweep and this row's values, in words."""
    return [f"{axis} {row[axis]}" for axis in axes([row]) if row[axis] is not None and axis != without]


def _whose(row: Mapping[str, Any], without: str = "") -> str:
    return ", ".join([f"{row['protocol']} {row['service']}", f"{row['members']} members", *parameters(row, without)])


def _several(title: str, curves: dict[str, Curve], draw: Callable[[str, Any], str], said: str = "") -> Iterator[Plot]:
    """As many plots as the curves need."""
    names = list(curves)
    parts = [names[k : k + CURVES_MAX] for k in range(0, len(names), CURVES_MAX)]
    for k, part in enumerate(parts, 1):
        of = f"{title}, {k} of {len(parts)}" if len(parts) > 1 else title
        yield Plot(of, draw(of, {name: curves[name] for name in part}), said)


def _by_load(tables: Tables) -> list[Plot]:
    """Curves over the offered rate, where the same was run at several."""
    out: list[Plot] = []
    mean = [row for row in tables.get("latency", []) if row["name"] == "submit"]
    for title, rows, column, factor, label in (
        ("Mean latency by load", mean, "mean", 1e-6, "mean latency (ms)"),
        ("Throughput by load", tables.get("throughput", []), "messages_per_s", 1.0, "ordered messages / s"),
    ):
        found: dict[str, dict[float, float]] = {}
        for row in rows:
            if row["rate"] and row[column]:
                kind = row["load"].replace(f" {row['rate']:g}/s", "").replace(f"{row['rate']:g}/s, ", "")
                found.setdefault(f"{_whose(row, 'load.rate')}, {kind}", {})[row["rate"]] = row[column] * factor
        curves = {word: (sorted(at), [at[x] for x in sorted(at)]) for word, at in found.items() if len(at) > 1}

        def draw(name: str, some: Any, label: str = label) -> str:
            return plots.lines(name, some, "offered messages / s", label)

        out += _several(title, curves, draw)
    return out


def _rate_plot(tables: Tables, units: Sequence[Unit]) -> Plot | None:
    """Deliveries over time of a single run."""
    if len(tables.get("runs", [])) != 1 or len(units) != 1 or units[0].bytes > PICTURE_BYTES:
        return None
    from ordercast.pipeline import numbers

    for _, columns in runs_of(units[0], []):
        found = numbers.rates(columns, BUCKETS)
        if found.curves:
            named = {f"member {member}": curve for member, curve in found.curves.items()}
            shown = dict(list(named.items())[:CURVES_MAX])
            said = "Messages delivered at each member; lines mark views and crashes."
            return Plot("Deliveries over time", plots.rate_over_time("rate", shown, found.marks), said)
    return None
