"""A run without its traffic, as the plain checkers take it: what few rows tell need not be told over arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ordercast.trace.schema import Kind
from ordercast.trace.trace import Trace
from ordercast.verify.columns.model import Run
from ordercast.verify.plain import model as plain
from ordercast.verify.verdict import Finding

_BUSY = (Kind.SUBMIT, Kind.ORIGINATE, Kind.RECEIVE, Kind.DECIDE, Kind.DELIVER, Kind.DROP, Kind.NOTE)
_NOTES = frozenset(("t_loss", "probation", "rotation"))


def lifecycle(run: Run) -> plain.Run:
    """The run without its traffic: views, crashes, faults, ends, a few notes; each life's first and last row."""
    if "_lifecycle" not in run.__dict__:
        keep = ~np.isin(run.kind, np.array(_BUSY, run.kind.dtype))
        keep[run.life_start] = keep[run.life_end - 1] = True
        submits = run.of(Kind.SUBMIT)
        if len(run.of(Kind.REFUSE)):
            keep[submits] = True
        else:
            cuts = run.cuts(submits)
            keep[submits[cuts[1:][cuts[1:] > cuts[:-1]] - 1]] = True
        delivers = run.of(Kind.DELIVER)
        ends = run.cuts(delivers)
        keep[delivers[ends[1:][ends[1:] > ends[:-1]] - 1]] = True  # the last of each life
        detail = run.columns.sparse["detail"]
        for row in run.of(Kind.NOTE).tolist():
            if (detail.get(row) or {}).get("name") in _NOTES:
                keep[row] = True
        out = plain.Run(Trace(run.header, run.columns.rows(np.flatnonzero(keep))))
        out.lost = run.lost
        out.end_ns = int(run.columns["time_ns"].max())
        run.__dict__["_lifecycle"] = out
    found: plain.Run = run.__dict__["_lifecycle"]
    return found


def delegated(check: Callable[[plain.Run], Finding]) -> Callable[[Run], Finding]:
    """A plain checker, over that."""
    return lambda run: check(lifecycle(run))
