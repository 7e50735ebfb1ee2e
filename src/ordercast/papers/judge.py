"""One row of an item: what was published, what is expected, what came out, and what that means."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ordercast.papers.book import Item, Row
from ordercast.papers.book import Value as Plain
from ordercast.papers.points import Value

WITHIN, EXPLAINED, OUTSIDE, NOT_JUDGED = "within", "explained", "outside", "not judged"
SHOWN = "shown"  # a prediction that nothing is known to compare with, or of which only the shape is asked for


class Line(Struct):
    """A row as it is shown and written."""

    name: str
    unit: str
    published: Plain | None
    expected: Plain | None
    tolerance: str
    status: str
    ours: Plain | None
    low: float | None
    high: float | None
    seeds: int
    difference: float | None  # from what was published, as a share
    verdict: str
    why: str
    see: str


def judged(item: Item, rows: dict[str, Value], quick: bool) -> list[Line]:
    """Every row of the item; of a value that nobody asked for the function is to blame."""
    names = {row.name for row in item.row}
    if unknown := sorted(set(rows) - names):
        raise LookupError(f"{item.words}: no row of the data is named {unknown[0]!r}")
    return [_line(row, rows.get(row.name), quick) for row in item.row]


def _line(row: Row, value: Value | None, quick: bool) -> Line:
    ours = None if value is None else value.mean
    verdict = _verdict(row, ours, quick)
    return Line(
        row.name,
        row.unit,
        row.published,
        row.expected,
        tolerance(row),
        row.status,
        ours,
        None if value is None else value.low,
        None if value is None else value.high,
        0 if value is None else value.seeds,
        _difference(row.published, ours),
        verdict,
        row.why if verdict in (EXPLAINED, OUTSIDE) else "",
        row.see if verdict in (EXPLAINED, OUTSIDE) else "",
    )


def _verdict(row: Row, ours: Plain | None, quick: bool) -> str:
    if ours is None:
        return NOT_JUDGED if quick else OUTSIDE
    predicted = row.status == "predicted" and row.expected is None
    if row.shape or (not _loose(row) and (row.target is None or predicted)):
        return SHOWN
    if quick and _loose(row) and row.quick is None:
        return NOT_JUDGED
    if not agrees(row, row.target, ours, quick):
        known = row.found is not None and bool(row.why) and agrees(row, row.found, ours, quick)
        return EXPLAINED if known else OUTSIDE
    if row.expected is None or not _comparable(row.published, ours) or agrees(row, row.published, ours, quick):
        return WITHIN
    return EXPLAINED if row.why or quick else OUTSIDE


def agrees(row: Row, target: Plain | None, ours: Plain, quick: bool = False) -> bool:
    """Whether a value is what it should be, as far as the row allows."""
    if target is None and row.low is None and row.high is None:
        return True
    if not _is_number(ours):
        return ours == target
    if row.low is not None or row.high is not None:
        return (row.low is None or ours >= row.low) and (row.high is None or ours <= row.high)  # type: ignore[operator]
    if not _is_number(target):
        least, most = _span(target) or (ours, ours)  # published in words: nothing to compare
        return isinstance(target, str) and least <= ours <= most  # type: ignore[operator]
    relative = row.quick if quick and row.quick is not None else row.relative
    room = max(0.0 if relative is None else relative * abs(target), row.absolute or 0.0)  # type: ignore[arg-type]
    return abs(ours - target) <= room + 1e-12 * abs(target)  # type: ignore[operator, arg-type]


def tolerance(row: Row) -> str:
    """In words."""
    if row.shape:
        return "shape"
    if row.low is not None or row.high is not None:
        if row.low is None or row.high is None:
            return f"at least {row.low:g}" if row.low is not None else f"at most {row.high:g}"
        return f"{row.low:g} to {row.high:g}"
    said = [f"{100 * row.relative:g} %"] if row.relative is not None else []
    said += [f"{row.absolute:g}"] if row.absolute is not None else []
    return "±" + " or ".join(said) if said else ("exact" if row.target is not None else "")


def _loose(row: Row) -> bool:
    return any(bound is not None for bound in (row.relative, row.absolute, row.low, row.high))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(published: Plain | None, ours: Plain) -> bool:
    """Numbers with numbers and spans, words with words; other words of a number, or of a yes, are only shown."""
    if _is_number(ours):
        return _is_number(published) or _span(published) is not None
    return published is not None and type(published) is type(ours)


def _span(value: Any) -> tuple[float, float] | None:
    """Of "30-40"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", value) if isinstance(value, str) else None
    return (float(found[1]), float(found[2])) if found else None


def _difference(published: Plain | None, ours: Plain | None) -> float | None:
    if not _is_number(published) or not _is_number(ours) or not published:
        return None
    return (ours - published) / abs(published)  # type: ignore[operator, arg-type]
