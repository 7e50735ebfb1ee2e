"""The share of time a run was halted, views or not: windows in which a present member delivers nothing despite load.

A member is present from its first view, `present` row or delivery of a life to that life's last row, but for the time
between an absence and its end, and while a fault of the scenario holds it still.  There is load in a window if
somebody submits or delivers in it, or if more was submitted before than anybody has delivered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ordercast.trace.columns import Columns
from ordercast.trace.schema import Kind

Array = np.ndarray[Any, Any]
WINDOW_NS = 50_000_000
BEGINS = tuple(map(int, (Kind.VIEW, Kind.PRESENT, Kind.DELIVER)))


def halts(c: Columns, since_ns: int = 0) -> tuple[int, int]:
    """Windows in which a present member was halted, and all windows of present members under load."""
    kind, time, count = c["kind"], c["time_ns"], c["count"]
    deliver, submit = np.flatnonzero(kind == int(Kind.DELIVER)), np.flatnonzero(kind == int(Kind.SUBMIT))
    if not len(deliver) or not len(submit):
        return 0, 0
    start, end = max(since_ns, int(time[submit].min())), int(time[deliver].max())
    windows = (end - start) // WINDOW_NS
    if windows <= 0:
        return 0, 0
    edges = start + WINDOW_NS * np.arange(windows + 1)
    offered = np.histogram(time[submit], edges)[0] > 0
    before = np.cumsum(_amounts(time[submit], count[submit], edges)) + _earlier(c, submit, start)
    per_member = {int(m): deliver[c["member"][deliver] == m] for m in np.unique(c["member"][deliver])}
    most = np.zeros(windows, np.int64)
    busy = np.zeros(windows, bool)
    for rows in per_member.values():
        amounts = _amounts(time[rows], count[rows], edges)
        busy |= amounts > 0
        most = np.maximum(most, np.cumsum(amounts) + _earlier(c, rows, start))
    waiting = np.r_[False, before[:-1] > most[:-1]]
    load = offered | busy | waiting
    halted = whole = 0
    for member, spans in _present(c).items():
        inside = _windows_inside(spans, edges) & load
        rows = per_member.get(member, np.empty(0, np.int64))
        quiet = np.histogram(time[rows], edges)[0] == 0
        whole += int(inside.sum())
        halted += int((inside & quiet).sum())
    return halted, whole


def _earlier(c: Columns, rows: Array, start: int) -> int:
    return int(c["count"][rows[c["time_ns"][rows] < start]].sum(dtype=np.int64))


def _amounts(times: Array, counts: Array, edges: Array) -> Array:
    return np.histogram(times, edges, weights=counts.astype(np.int64))[0].astype(np.int64)


def _windows_inside(spans: list[tuple[int, int]], edges: Array) -> Array:
    inside = np.zeros(len(edges) - 1, bool)
    for begin, end in spans:
        inside |= (edges[:-1] >= begin) & (edges[1:] <= end)
    return inside


def _present(c: Columns) -> dict[int, list[tuple[int, int]]]:
    """When each member was there, span by span."""
    member, life, time, kind = (c[name] for name in ("member", "incarnation", "time_ns", "kind"))
    held = _held_still(c)
    out: dict[int, list[tuple[int, int]]] = {}
    cuts = np.flatnonzero((np.diff(member.astype(np.int64)) != 0) | (np.diff(life.astype(np.int64)) != 0)) + 1
    for rows in np.split(np.arange(len(kind)), cuts):
        begins = rows[np.isin(kind[rows], BEGINS)] if len(rows) else rows
        if not len(begins):
            continue
        who = int(member[rows[0]])
        span = (int(time[begins[0]]), int(time[rows].max()))
        out.setdefault(who, []).extend(_without(span, [*_absences(c, rows, span[1]), *held.get(who, [])]))
    return out


def _absences(c: Columns, rows: Array, end: int) -> list[tuple[int, int]]:
    """From `since` of each absence to the `present` after it."""
    out = []
    time, kind, details = c["time_ns"], c["kind"], c.sparse["detail"]
    back = rows[kind[rows] == int(Kind.PRESENT)]
    for row in rows[kind[rows] == int(Kind.ABSENT)].tolist():
        since = (details.get(row) or {}).get("since_ns")
        away = int(c["now_ns"][row]) - int(since) if isinstance(since, int) else 0
        later = back[back > row]
        out.append((int(time[row]) - away, int(time[later[0]]) if len(later) else end))
    return out


def _held_still(c: Columns) -> dict[int, list[tuple[int, int]]]:
    """Pauses that a scenario names."""
    out: dict[int, list[tuple[int, int]]] = {}
    on: dict[Any, tuple[int, int]] = {}
    details, end = c.sparse["detail"], int(c["time_ns"].max())
    for row in np.flatnonzero(c["kind"] == int(Kind.FAULT)).tolist():
        detail = details.get(row) or {}
        if detail.get("class") != "pause" or not isinstance(detail.get("member"), int):
            continue
        if detail.get("state") == "on":
            on[detail.get("number")] = (detail["member"], int(c["time_ns"][row]))
        elif detail.get("number") in on:
            who, begin = on.pop(detail["number"])
            out.setdefault(who, []).append((begin, int(c["time_ns"][row])))
    for who, begin in on.values():
        out.setdefault(who, []).append((begin, end))
    return out


def _without(span: tuple[int, int], away: list[tuple[int, int]]) -> list[tuple[int, int]]:
    begin, end = span
    out = []
    for start, stop in sorted(away):
        if start > begin:
            out.append((begin, min(start, end)))
        begin = max(begin, stop)
    return [*out, (begin, end)] if begin < end else out
