"""The tables of `measure` once they are rows: the axes of a sweep as columns, in an order a person expects.

Axes stand between `members` and `load`; an axis that is called as a column of ours gets the word "parameter" before it.
Rows are sorted by their keys, numbers as numbers, also inside words: 300/s comes before 1000/s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

Row = dict[str, Any]
Tables = dict[str, list[Row]]
_AFTER = {  # what a table is sorted by after its keys
    "runs": ("run", "path"), "throughput": (), "latency": ("name",), "histogram": ("name", "bucket"),
    "skew_free": ("method",), "notes": ("name",),
}  # fmt: skip


def collected(tables: Tables) -> Tables:
    """Every table with a column for every axis of any run, sorted."""
    named = {text for rows in tables.values() for row in rows for text in (row["parameters"],)}
    known = {text: msgspec.json.decode(text) for text in named}
    ours = {column for rows in tables.values() for row in rows[:1] for column in row} - {"parameters"}
    found = sorted({axis for parameters in known.values() for axis in parameters}, key=_last_loads)
    columns = {axis: f"parameter {axis}" if axis in ours else axis for axis in found}
    return {name: _finished(rows, known, columns, _AFTER[name]) for name, rows in tables.items()}


def axes(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of a collected table that are axes of a sweep."""
    for row in rows:
        names = list(row)
        return names[names.index("members") + 1 : names.index("load")]
    return []


def _finished(rows: list[Row], known: dict[str, Row], columns: dict[str, str], after: tuple[str, ...]) -> list[Row]:
    out = []
    for row in rows:
        line: Row = {}
        for name, value in row.items():
            if name == "parameters":
                line |= {column: known[value].get(axis) for axis, column in columns.items()}
            else:  # whole numbers too wide for 64 bits come as decimals
                line[name] = int(value) if isinstance(value, Decimal) else value
        out.append(line)
    keys = ("protocol", "service", "members", *columns.values(), "rate", "load", *after)
    if after[:1] == ("run",):
        keys = after
    return sorted(out, key=lambda line: [natural(line.get(key)) for key in keys])


def _last_loads(axis: str) -> tuple[Any, ...]:
    """What a load is offered to before the load itself: its rates stand together."""
    return axis.startswith("load."), natural(axis)


def natural(value: Any) -> tuple[Any, ...]:
    """For sorting: nothing, numbers, words; numbers inside words count as numbers."""
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    parts = re.split(r"(\d+(?:\.\d+)?)", str(value))
    return (2, [float(part) if k % 2 else part for k, part in enumerate(parts)])
