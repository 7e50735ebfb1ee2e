"""What is kept of a simulated run: figures over the columns of its trace, computed where it ran.

Each is a function of a Run that gives a number, or a table of numbers.  Times are milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ordercast.pipeline import numbers
from ordercast.pipeline.halts import halts as halted
from ordercast.sim.outcome import Outcome
from ordercast.trace.columns import Columns, from_rows
from ordercast.trace.schema import Header, Kind

MS = 1e6  # nanoseconds
Array = np.ndarray[Any, Any]


class Run:
    """One run, and which of its messages count: those submitted in the middle, without `cut` at both ends."""

    def __init__(self, outcome: Outcome, cut: tuple[float, float] = (0.0, 0.0)) -> None:
        self.outcome, self.cut = outcome, cut
        self.header: Header = outcome.trace.header

    @cached_property
    def columns(self) -> Columns:
        return from_rows(self.outcome.trace.rows)

    @cached_property
    def matched(self) -> numbers.Matched:
        return numbers.match(self.columns)

    @cached_property
    def window(self) -> tuple[int, int]:
        """Times of submission that count, both included."""
        times = self.columns["time_ns"][numbers.rows_of(self.columns, Kind.SUBMIT)]
        if not len(times):
            return 0, 0
        first, last = int(times.min()), int(times.max())
        begin, end = self.cut
        return first + round((last - first) * begin), last - round((last - first) * end)

    def counts(self, rows: Array) -> Array:
        """Which of these rows lie in the window."""
        time, (begin, end) = self.columns["time_ns"][rows], self.window
        return (time >= begin) & (time <= end)

    def waits(self, since: str = "submit") -> numbers.Waits:
        """Deliveries of the messages that count."""
        waits = self.matched.submit if since == "submit" else self.matched.since_originate(self.columns)
        return waits.chosen(self.counts(waits.since))

    def notes(self, name: str) -> list[dict[str, Any]]:
        """What was noted in the window under a name; needs a full trace."""
        rows = numbers.rows_of(self.columns, Kind.NOTE)
        details = self.columns.sparse["detail"]
        found = (details.get(row) for row in rows[self.counts(rows)].tolist())
        return [detail for detail in found if isinstance(detail, dict) and detail.get("name") == name]


def summary(samples: numbers.Samples) -> dict[str, float]:
    """Mean, deviation and percentiles in milliseconds."""
    values, weights = samples.values.astype(np.float64) / MS, samples.weights.astype(np.float64)
    total = float(weights.sum())
    if not total:
        return {"count": 0}
    mean = float((values * weights).sum()) / total
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    at = [float(values[order][np.searchsorted(upto, share * total)]) for share in (0.5, 0.99)]
    return {
        "count": int(total),
        "mean": mean,
        "sd": float(np.sqrt((weights * (values - mean) ** 2).sum() / total)),
        "p50": at[0],
        "p99": at[1],
        "max": float(values.max()),
    }


def latency(run: Run) -> dict[str, dict[str, float]]:
    """From submit to delivery, at all members, at the sender, at the others, at whoever is last."""
    waits = run.waits()
    found = {"all": waits.samples(run.columns["time_ns"])} | numbers.by_receiver(run.columns, waits)
    return {name: summary(samples) for name, samples in found.items()}


def latency_originate(run: Run) -> dict[str, dict[str, float]]:
    """The same from origination."""
    waits = run.waits("originate")
    found = {"all": waits.samples(run.columns["time_ns"])} | numbers.by_receiver(run.columns, waits)
    return {name: summary(samples) for name, samples in found.items()}


def index(run: Run) -> dict[str, Any]:
    """ToTo's tau and omega: means, and the share of each pair of them."""
    pairs = Counter((int(note["tau"]), int(note["omega"])) for note in run.notes("index"))
    total = pairs.total()
    return {
        "count": total,
        "tau": sum(tau * count for (tau, _), count in pairs.items()) / total,
        "omega": sum(omega * count for (_, omega), count in pairs.items()) / total,
        "joint": {f"{tau},{omega}": pairs[tau, omega] / total for tau, omega in sorted(pairs)},
    }


def noted(run: Run) -> dict[str, dict[str, float]]:
    """Every number that the protocol notes, as name.field; needs a full trace."""
    from ordercast import registry

    measures, found = frozenset(registry.get(run.header.protocol).measures), dict[str, list[float]]()
    for name in sorted(measures):
        for key, value in numbers.noted(run.notes(name), measures):
            found.setdefault(key, []).append(value / 1e6)
    return {
        key: {"count": len(each), "mean": sum(each) / len(each), "max": max(each)}
        for key, each in sorted(found.items())
    }


def events(run: Run) -> dict[str, int]:
    """How often each thing was noted, in the whole run."""
    return dict(sorted(run.outcome.notes.items()))


def throughput(run: Run) -> dict[str, float]:
    """Messages delivered a second in the window, at the mean member and at the slowest."""
    c, (begin, end) = run.columns, run.window
    rows = numbers.rows_of(c, Kind.DELIVER)
    rows = rows[run.counts(rows)]
    seconds = max(end - begin, 1) / 1e9
    each = [int(c["count"][rows[c["member"][rows] == member]].sum(dtype=np.int64)) for member in run.header.members]
    return {"mean": sum(each) / len(each) / seconds, "least": min(each) / seconds, "seconds": seconds}


def traffic(run: Run) -> dict[str, float | None]:
    """Datagrams and bytes of the whole run beside what was delivered."""
    c = run.columns
    facts = numbers.facts(c)
    details = c.sparse["detail"]
    ends = [details.get(row) or {} for row in numbers.rows_of(c, Kind.END).tolist()]
    found: dict[str, float | None] = dict(facts)
    found |= numbers.traffic(run.header, facts, ends)
    capacity, useful = numbers.capacity_bits(run.header), found["delivered_bytes"]
    members = len(run.header.members)
    if useful is not None and capacity and facts["span_ns"]:
        found["utilisation"] = useful / members * 8e9 / (capacity * facts["span_ns"])
    found["datagrams_per_message"] = run.outcome.transmitted / max(1, facts["originated"])
    return found


def halts(run: Run) -> dict[str, float]:
    """The share of 50 ms in which a member that is there delivers nothing in spite of load."""
    still, all_of_them = halted(run.columns, run.window[0])
    return {"share": still / all_of_them if all_of_them else 0.0, "windows": all_of_them}


def skew_free(run: Run) -> dict[str, float]:
    """Mean latency by both methods of Totem's paper, section 4."""
    sums: dict[int, list[int]] = {}
    for pair in numbers.pair_latencies(run.columns):
        one = sums.setdefault(pair.method, [0, 0])
        one[0] += pair.mean_ps * pair.messages
        one[1] += pair.messages
    return {f"method {method}": total / count / 1e9 for method, (total, count) in sorted(sums.items())}


FIGURES: dict[str, Callable[[Run], Any]] = {
    function.__name__: function
    for function in (
        latency, latency_originate, index, noted, events, throughput, traffic, halts, skew_free,
    )
}  # fmt: skip
