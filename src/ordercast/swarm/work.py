"""What a child of the runner does for a sweep: one simulation, judged, as a row of plain values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace

PLAIN_ROWS = 20_000  # up to this many rows loops are as fast as arrays
_SUBMIT, _DELIVER, _VIEW = int(Kind.SUBMIT), int(Kind.DELIVER), int(Kind.VIEW)


def simulate(argument: dict[str, Any]) -> dict[str, Any]:
    """argument: run (its name), scenario, parameters, level of the trace, trace (where to keep it, or None)."""
    scenario = Scenario.from_dict(argument["scenario"], argument["run"])
    outcome = run(scenario, level=argument["level"])
    trace = outcome.trace
    trace.header.run, trace.header.parameters = argument["run"], argument["parameters"]
    out: dict[str, Any] = {
        "service": trace.header.service,
        "messages": outcome.messages,
        "delivered": outcome.delivered,
        "deliveries": outcome.deliveries,
        "events": outcome.events,
        "datagrams": outcome.datagrams,
        "transmitted": outcome.transmitted,
        "sim_ns": outcome.sim_ns,
        "ended": outcome.ended,
        "views": sum(row.kind == _VIEW for row in trace.rows),
        "notes": _json(dict(outcome.notes)),
        "faults": _json(dict(outcome.faults)),
        "digest": outcome.digest,
        **latency_figures(latencies(trace.rows)),
        **judge(trace),
    }
    if argument["trace"]:
        from ordercast.trace.parquet import write

        path = Path(argument["trace"])
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        write(half, [trace])
        half.rename(path)
    return out


def judge(trace: Trace) -> dict[str, Any]:
    """How many promises hold, and which are broken or cannot be judged."""
    from ordercast.verify import BROKEN, CANNOT_JUDGE, HOLDS, check

    if len(trace) > PLAIN_ROWS and find_spec("numpy") is not None:
        from ordercast.verify.columns import check_trace as check  # the same verdicts, sooner
    verdicts = check(trace)
    return {
        "holds": sum(verdict.state == HOLDS for verdict in verdicts),
        "broken": " ".join(verdict.promise for verdict in verdicts if verdict.state == BROKEN),
        "cannot_judge": " ".join(verdict.promise for verdict in verdicts if verdict.state == CANNOT_JUDGE),
    }


def latencies(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """(from submit to delivery in ns, how many messages) of every delivery whose submit is in the trace."""
    calls: dict[tuple[int, int], list[tuple[int, int, int]]] = {}  # life -> (first counter, count, time)
    for row in rows:
        if row.kind == _SUBMIT and row.counter is not None and row.count:
            calls.setdefault((row.member, row.incarnation), []).append((row.counter, row.count, row.time_ns))
    for life in calls.values():
        life.sort()
    out: list[tuple[int, int]] = []
    for row in rows:
        if row.kind != _DELIVER or row.counter is None or row.sender is None or row.sender_incarnation is None:
            continue
        life = calls.get((row.sender, row.sender_incarnation), [])
        at, end = row.counter, row.counter + (row.count or 1)
        k = max(0, bisect_right(life, (at, 1 << 63, 0)) - 1)
        while at < end and k < len(life):
            first, count, time_ns = life[k]
            upto = min(end, first + count)
            if first <= at < upto:
                out.append((row.time_ns - time_ns, upto - at))
                at = upto
            k += 1
    return out


def latency_figures(weighted: list[tuple[int, int]]) -> dict[str, int | None]:
    """Count, sum and nearest-rank percentiles, all in whole nanoseconds."""
    weighted.sort()
    count = sum(weight for _, weight in weighted)
    return {
        "latency_count": count,
        "latency_sum_ns": sum(value * weight for value, weight in weighted),
        "latency_p50_ns": percentile(weighted, count, 50),
        "latency_p99_ns": percentile(weighted, count, 99),
        "latency_max_ns": weighted[-1][0] if weighted else None,
    }


def percentile(weighted: list[tuple[int, int]], count: int, percent: int) -> int | None:
    """The smallest value that at least `percent` of all are not above."""
    rank, seen = -(-percent * count // 100), 0
    for value, weight in weighted:
        seen += weight
        if seen >= rank:
            return value
    return None


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
