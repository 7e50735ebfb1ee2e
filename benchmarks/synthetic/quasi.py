"""Made-up runs of a quasi order: members that come and go, and violators whose number is known.

A run of the other kind without its views, in which one member has some frames a few places late and some not at all,
and another is away for a while, which violates nothing.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from ordercast.trace.schema import Kind
from synthetic.runs import NONE, Run, Shape, make_run

SERVICE_QUASI = 5
MOVED, LOST = 20, 20  # violators of each run
APART = 12  # frames between two of them, at least
_OF_A_MESSAGE = (
    "sender", "sender_incarnation", "counter", "count", "position", "order_epoch", "order_seq", "ring", "service",
)  # fmt: skip


def quasi_run(name: str, seed: int, shape: Shape) -> Run:
    """Everything follows from the seed."""
    run = make_run(name, seed, replace(shape, crash_share=0.0, partition_share=0.0))
    rng = np.random.default_rng(seed + 1)
    run.keep(np.flatnonzero(run.columns["kind"] != Kind.VIEW))
    c = run.columns
    for column in ("view_seq", "view_rep", "view_kind", "previous_seq", "previous_rep"):
        c[column][:] = NONE
    c["service"] = np.where(c["service"] == NONE, NONE, SERVICE_QUASI)
    delivered = c["kind"] == Kind.DELIVER
    c["order_seq"] = np.where(delivered, c["counter"], NONE)
    c["order_epoch"] = np.where(delivered, 0, NONE)
    bad, away = (int(member) for member in rng.choice(range(1, shape.members + 1), 2, replace=False))
    run.keep(_violating(run, bad, rng))
    mine = np.flatnonzero(run.columns["member"] == bad)
    for column in ("time_ns", "now_ns"):
        run.columns[column][mine] = np.sort(run.columns[column][mine])
    run.keep(_absent(run, away, rng))
    run.renumber()
    run.header = replace(run.header, protocol="dpg", service="quasi", promises=("Q1",), options={"rate": 0.0005})
    return run


def _violating(run: Run, member: int, rng: np.random.Generator) -> np.ndarray:
    rows = run.rows(member, Kind.DELIVER)
    places = rng.permutation(np.arange(APART, len(rows) - APART, APART))[: MOVED + LOST].tolist()
    order = list(range(len(run)))
    for place in places[:MOVED]:
        at, to = int(rows[place]), int(rows[place + int(rng.integers(2, 5))])
        order[at : to + 1] = [*order[at + 1 : to + 1], order[at]]
    lost = {int(rows[place]) for place in places[MOVED:]}
    return np.array([row for row in order if row not in lost])


def _absent(run: Run, member: int, rng: np.random.Generator) -> np.ndarray:
    """Two rows of the gap say when it went and came."""
    rows = run.rows(member, Kind.DELIVER)
    first = int(rng.integers(len(rows) // 4, len(rows) // 2))
    last = first + len(rows) // 5
    gone, back = rows[first], rows[last]
    for column in _OF_A_MESSAGE:
        run.columns[column][[gone, back]] = NONE
    run.columns["digest"][[gone, back]] = 0
    run.columns["kind"][gone], run.columns["kind"][back] = Kind.ABSENT, Kind.PRESENT
    return np.setdiff1d(np.arange(len(run)), rows[first + 1 : last])
