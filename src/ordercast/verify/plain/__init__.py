"""One plain checker per promise, named by its id: short loops over rows, meant to be read and trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ordercast.trace.trace import Trace
from ordercast.verify.catalogue import chosen
from ordercast.verify.plain import (
    groups,
    identity,
    leaving,
    liveness,
    order,
    quasi,
    settling,
    state,
    synchrony,
    views,
)
from ordercast.verify.plain.model import Run
from ordercast.verify.verdict import Finding, Verdict, cannot_judge, missing, unless_lost, verdicts, without_end

CHECKS: dict[str, Callable[[Run], Finding]] = {
    name.upper(): check
    for module in (identity, views, synchrony, order, groups, settling, liveness, leaving, quasi, state)
    for name, check in vars(module).items()
    if name[0] in "aslq" and name[1:].isdigit()
}


def check(trace: Trace, promises: Sequence[str] | None = None) -> list[Verdict]:
    """Judge a run by the promises named, or by all that its header says apply."""
    wanted = chosen(tuple(trace.header.promises if promises is None else promises))
    run = Run(trace)
    note = without_end(life.member for life in run.lives if not life.ended)
    out = []
    for promise in wanted:
        why = missing(promise, trace.header) or run.gap
        if not why and not run.lives:
            why = "no member wrote a row"
        out.append((promise, cannot_judge(why) if why else unless_lost(CHECKS[promise.id](run), run.lost)))
    return verdicts(out, note)
