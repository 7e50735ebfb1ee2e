"""The same promises over numpy arrays of one run: linear in its rows, for millions of them.

The plain checkers are the twin: both give the same state for every promise on every trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ordercast.trace.columns import Columns, from_rows
from ordercast.trace.schema import Header
from ordercast.trace.trace import Trace
from ordercast.verify.catalogue import chosen
from ordercast.verify.columns import groups, identity, leaving, liveness, order, quasi, state, synchrony, views
from ordercast.verify.columns.model import Run
from ordercast.verify.verdict import Finding, Verdict, cannot_judge, missing, unless_lost, verdicts, without_end

CHECKS: dict[str, Callable[[Run], Finding]] = {
    name.upper(): check
    for module in (identity, views, synchrony, order, groups, liveness, leaving, quasi, state)
    for name, check in vars(module).items()
    if name[0] in "aslq" and name[1:].isdigit()
}

# what must be read of a file to judge a promise; lists and details come with every view
_BASE = (
    "member",
    "incarnation",
    "index",
    "time_ns",
    "kind",
    "sender",
    "sender_incarnation",
    "counter",
    "count",
    "groups",
)
_VIEWS = ("view_seq", "view_rep", "view_kind", "members")
_MORE: dict[str, tuple[str, ...]] = {
    "S1": ("digest", "service", "detail"),
    "S5": ("previous_seq", "previous_rep", "detail"),
    "S8": ("detail",),
    "S12": ("previous_seq", "previous_rep", "trans"),
    "S20": ("service",),
    "Q1": ("order_seq", "certainty", "detail"),
    "S23": ("ring", "order_epoch", "order_seq", "detail"),
}


def columns_for(promises: Sequence[str]) -> list[str]:
    """The columns that judging these promises needs."""
    out = dict.fromkeys((*_BASE, *_VIEWS))
    for id in promises:
        more = _MORE.get(id, ()) if id[0] in "SQ" else ("now_ns", "service", "detail")
        out |= dict.fromkeys(more)
    return list(out)


def check(columns: Columns, header: Header, promises: Sequence[str] | None = None) -> list[Verdict]:
    """Judge a run by the promises named, or by all that its header says apply."""
    wanted = chosen(tuple(header.promises if promises is None else promises))
    run = Run(columns, header)
    note = without_end(run.life_member[life] for life in range(run.lives) if not run.ended[life])
    out = []
    for promise in wanted:
        why = missing(promise, header) or run.gap
        if not why and not run.lives:
            why = "no member wrote a row"
        out.append((promise, cannot_judge(why) if why else unless_lost(CHECKS[promise.id](run), run.lost)))
    return verdicts(out, note)


def check_many(
    columns: Columns, cuts: Sequence[int], headers: Sequence[Header], promises: Sequence[str] | None = None
) -> list[list[Verdict]]:
    """Judge several runs, one after the other in `columns`: run k has rows cuts[k] .. cuts[k + 1] - 1."""
    return [check(columns.slice(cuts[k], cuts[k + 1]), header, promises) for k, header in enumerate(headers)]


def check_trace(trace: Trace, promises: Sequence[str] | None = None) -> list[Verdict]:
    """The same of a trace in memory."""
    return check(from_rows(trace.rows), trace.header, promises)
