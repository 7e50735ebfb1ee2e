"""The tables of `measure` without Spark: the same rows, from what fits into this process.

For a single run's report, for machines without Java, and as the twin that the Spark stage is tested against.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ordercast.pipeline import measure
from ordercast.pipeline.collected import collected
from ordercast.pipeline.measure import BAD, FACTS, KEYS, NOTE, PAIR, PERCENTS, RUN, SAMPLE
from ordercast.trace.find import Unit, find

Row = dict[str, Any]
Group = tuple[Any, ...]


def measure_here(paths: Iterable[Any], bad: list[Row] | None = None) -> dict[str, list[Row]]:
    """All tables of the traces under these paths; files that cannot be read go to `bad`."""
    return tables(find(paths), bad)


def tables(units: Iterable[Unit], bad: list[Row] | None = None) -> dict[str, list[Row]]:
    long: list[Row] = []
    for unit in units:
        for batch in measure.measure_unit(unit):
            long += batch.to_pylist()
    of = {what: [row for row in long if row["what"] == what] for what in (SAMPLE, PAIR, NOTE, RUN, BAD)}
    if bad is not None:
        bad += [{"path": row["path"], "offset": row["value"], "reason": row["name"]} for row in of[BAD]]
    runs = _runs(of[RUN])
    return collected({
        "runs": runs,
        "throughput": _throughput(runs),
        "latency": _percentiles(of[SAMPLE], [*KEYS, "rate", "name"]),
        "histogram": _histogram(of[SAMPLE]),
        "skew_free": _skew_free(of[PAIR]),
        "notes": _percentiles(of[NOTE], [*KEYS, "rate", "name"]),
    })  # fmt: skip


def _by(rows: Iterable[Row], keys: Iterable[str]) -> list[tuple[Group, list[Row]]]:
    """Rows by their keys."""
    names = list(keys)
    groups: dict[Group, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return list(groups.items())


def _percentiles(rows: list[Row], keys: list[str]) -> list[Row]:
    out = []
    for group, members in _by(rows, keys):
        weights: dict[int, int] = {}
        for row in members:
            weights[row["value"]] = weights.get(row["value"], 0) + row["weight"]
        count, total = sum(weights.values()), sum(value * weight for value, weight in weights.items())
        line: Row = dict(zip(keys, group, strict=True)) | {"count": count, "sum": total, "mean": total / count}
        line["min"] = min(weights)
        ordered = sorted(weights.items())
        for percent in PERCENTS:
            line[measure._percent_name(percent)] = _at(ordered, count, round(percent * 10))
        line["max"] = max(weights)
        out.append(line)
    return out


def _at(ordered: list[tuple[int, int]], count: int, thousandths: int) -> int | None:
    upto = 0
    for value, weight in ordered:
        upto += weight
        if upto * 1000 >= count * thousandths:
            return value
    return None


def _histogram(rows: list[Row]) -> list[Row]:
    keys = [*KEYS, "name", "a"]
    out = []
    for group, members in _by(rows, keys):
        line = dict(zip(keys, group, strict=True))
        line["bucket"] = line.pop("a")
        out.append(line | {"messages": sum(row["weight"] for row in members)})
    return out


def _skew_free(rows: list[Row]) -> list[Row]:
    out = []
    for group, members in _by(rows, [*KEYS, "name"]):
        weight = sum(row["weight"] for row in members)
        total = sum(row["value"] * row["weight"] for row in members)
        line = dict(zip([*KEYS, "method"], group, strict=True))
        out.append(line | {"messages": weight, "mean_ns": float(total) / weight / 1000.0})
    return out


def _runs(rows: list[Row]) -> list[Row]:
    out = []
    for row in rows:
        facts = msgspec.json.decode(row["facts"])
        line = {name: row[name] for name in ("path", "run", *KEYS, "rate")}
        out.append(line | {name: facts.get(name) for name in FACTS})
    return out


def _throughput(runs: list[Row]) -> list[Row]:
    out = []
    for group, members in _by(runs, [*KEYS, "rate"]):
        total = {name: _sum(row[name] for row in members) for name in FACTS}
        count = group[2]
        useful = None if total["delivered_bytes"] is None else total["delivered_bytes"] / count
        pairs = [(row["capacity_bits"], row["span_ns"]) for row in members if row["capacity_bits"] is not None]
        capacity = float(sum(bits * span for bits, span in pairs)) if pairs else None
        out.append(
            dict(zip([*KEYS, "rate"], group, strict=True))
            | {
                "runs": len(members),
                "messages": total["originated"],
                "deliveries": total["deliveries"],
                "messages_per_s": _quotient(total["originated"], _quotient(total["span_ns"], 1e9)),
                "messages_per_frame": _quotient(total["originated"], total["frames"]),
                "datagrams_per_message": _quotient(total["transmitted"], total["originated"]),
                "bytes_per_delivery": _quotient(total["transmitted_bytes"], total["deliveries"]),
                "useful_share": _quotient(useful, total["transmitted_bytes"]),
                "utilisation": _quotient(None if useful is None else useful * 8e9, capacity),
                "retransmitted": total["retransmitted"],
                "halted_share": _quotient(total["halted_windows"], total["windows"]),
                "view_changes": total["view_changes"],
                "refused": total["refused"],
            }
        )
    return out


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _quotient(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
