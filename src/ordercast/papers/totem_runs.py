"""What is kept of a run of Totem's paper: rates and latencies over whole rotations, repeats, errors of measurement.

A message of a full window is taken to have been originated at any time since its sender's visit before.  Latency is
taken at the other processors, with the time of the hand-over to the application.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ordercast.papers.figures import Run, summary
from ordercast.pipeline import numbers
from ordercast.sim.totem_paper import HAND_OVER_NS
from ordercast.trace.schema import Kind

MS = 1e6  # nanoseconds
SETTLED_NS = 100 * 1_000_000  # from then on an idle ring only turns
BUCKET_MS = 0.5


def ring(run: Run) -> dict[str, float]:
    """Messages a second, rotation time, and mean latency at the others, over whole rotations of each sender."""
    c = run.columns
    time, member = c["time_ns"], c["member"]
    rows = numbers.rows_of(c, Kind.ORIGINATE)
    rate, turns, since = 0.0, [], np.zeros(len(time), np.int64)
    for sender in np.unique(member[rows]).tolist():
        own = rows[member[rows] == sender]
        visits, at = np.unique(time[own], return_inverse=True)
        since[own] = np.where(at > 0, visits[at] - visits[np.maximum(at - 1, 0)], -1)
        inside = np.flatnonzero(visits >= run.window[0])
        if len(inside) < 2:
            continue
        begin, end = visits[inside[0]], visits[-1]
        sent = c["count"][own[(time[own] >= begin) & (time[own] < end)]].sum(dtype=np.int64)
        rate += float(sent) * 1e9 / float(end - begin)
        turns.append(float(end - begin) / (len(inside) - 1) / MS)
    return {"rate": rate, "rotation": sum(turns) / len(turns), "latency": _latency(run, since)}


def _latency(run: Run, since: Any) -> float:
    """Of a message originated at any time in the rotation before its visit."""
    c, matched = run.columns, run.matched
    others = c["member"][matched.deliver] != c["sender"][matched.deliver]
    first, last = matched.originate[others], matched.deliver[others]
    counts = (c["time_ns"][first] >= run.window[0]) & (since[first] >= 0)
    first, last = first[counts], last[counts]
    waited = (c["time_ns"][last] - c["time_ns"][first]) + since[first] / 2
    weight = c["count"][last].astype(np.int64)
    return (float((waited * weight).sum()) / float(weight.sum()) + HAND_OVER_NS) / MS


def resent(run: Run) -> float:
    """Messages that had to be sent again, as a share of all; needs a full trace."""
    c = run.columns
    rows = numbers.rows_of(c, Kind.ORIGINATE)
    again = sum(int(note["frames"]) for note in run.notes("retransmit"))
    return again / int(c["count"][rows[run.counts(rows)]].sum(dtype=np.int64))


def idle_rotation(run: Run) -> float:
    """Of a token that finds nothing to do, in microseconds; needs a full trace."""
    c = run.columns
    rows = numbers.rows_of(c, Kind.NOTE)
    details = (c.sparse["detail"].get(row) for row in rows[c["time_ns"][rows] > SETTLED_NS].tolist())
    noted = [int(each["ns"]) for each in details if isinstance(each, dict) and each.get("name") == "rotation"]
    return sum(noted) / len(noted) / 1e3


def waits(run: Run) -> dict[str, Any]:
    """Latency at the others from submit: mean, deviation, and how many in each half millisecond."""
    samples = numbers.by_receiver(run.columns, run.waits())["others"]
    samples = numbers.Samples(samples.values + HAND_OVER_NS, samples.weights)
    buckets = (samples.values // int(BUCKET_MS * MS)).astype(np.int64)
    shares = np.bincount(buckets, weights=samples.weights) / samples.weights.sum()
    return {**summary(samples), "shares": shares.tolist()}


def methods(run: Run) -> dict[str, float]:
    """By how many microseconds the two methods of section 4 are off the truth, which only the simulator knows."""
    time, found = run.columns["time_ns"], dict[int, list[int]]()
    for pair in numbers.pair_latencies(run.columns):
        sums = found.setdefault(pair.method, [0, 0])
        sums[0] += pair.mean_ps * pair.messages
        sums[1] += pair.messages
    since = run.matched.since_originate(run.columns)
    others = numbers.by_receiver(run.columns, since)["others"]
    truth = float((others.values * others.weights).sum()) / float(others.weights.sum()) / 1e3
    now = run.columns["now_ns"]
    raw = np.abs((now[since.deliver] - now[since.since]) - (time[since.deliver] - time[since.since]))
    off = {f"method {method}": abs(total / count / 1e6 - truth) for method, (total, count) in sorted(found.items())}
    return {**off, "raw": float(raw.max()) / 1e3, "mean": truth}


def shape(run: Run) -> dict[str, Any]:
    """The rings of a run's scenario, and who joins them."""
    scenario = run.header.scenario or {}
    members = list(run.header.members)
    return {"rings": [net.get("members", members) for net in scenario["nets"]], "pure": scenario.get("pure", [])}


FIGURES = {each.__name__: each for each in (ring, resent, idle_rotation, waits, methods, shape)}
