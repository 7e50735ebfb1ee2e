"""What of a page is told in words by the trace itself: the history of its views, with the time of day."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ordercast.errors import TraceError
from ordercast.pipeline.render import Table
from ordercast.trace.find import Unit
from ordercast.trace.history import Change, history


def views_told(units: Sequence[Unit]) -> list[Table]:
    """The views of the only run in these units, as they came."""
    changes: list[Change] = []
    with contextlib.suppress(TraceError):  # the page names what cannot be read in a table of its own
        changes = history(units)
    rows = [
        [change.when(), change.id, ", ".join(map(str, change.members)), change.cause, _ms(change.standstill_ns)]
        for change in changes
    ]
    note = "When the first member installed each; standstill: how long delivery paused around it, the longest of any."
    return [Table("Views", ["when", "view", "members", "cause", "standstill"], rows, note)] if rows else []


def _ms(ns: int | None) -> str:
    return "" if ns is None else f"{ns / 1e6:.3g} ms"
