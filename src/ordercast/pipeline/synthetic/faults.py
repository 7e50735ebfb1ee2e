"""Faults for made-up runs: each changes one run in one way and names the promise that must be found broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from ordercast.pipeline.synthetic.runs import NONE, Array, Run
from ordercast.trace.schema import Kind
from ordercast.types import ViewKind


class Fault(Struct, frozen=True):
    """What was put into which run, and the promise it must break."""

    run: str
    name: str
    promise: str
    member: int


def _pick(run: Run, rng: np.random.Generator) -> tuple[int, Array]:
    """A member that ended well, and its deliveries in its last regular view."""
    ended = np.unique(run.columns["member"][run.columns["kind"] == Kind.END])
    member = int(rng.choice(ended))
    rows = run.rows(member, Kind.DELIVER)
    last = run.columns["view_seq"][rows[-1]]
    return member, rows[run.columns["view_seq"][rows] == last]


def _duplicate(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    row = int(rng.choice(rows[:-1]))
    run.keep(np.insert(np.arange(len(run)), rows[-1] + 1, row))
    return member


def _swap(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    sender = run.columns["sender"][rows]
    pairs = np.flatnonzero((sender[1:] != sender[:-1]) & (sender[1:] != member) & (sender[:-1] != member))
    k = int(rng.choice(pairs))
    order = np.arange(len(run))
    order[[rows[k], rows[k + 1]]] = rows[k + 1], rows[k]
    times = run.columns["time_ns"].copy(), run.columns["now_ns"].copy()
    run.keep(order)
    run.columns["time_ns"], run.columns["now_ns"] = times
    return member


def _lose(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    foreign = rows[:-1][run.columns["sender"][rows[:-1]] != member]
    run.keep(np.delete(np.arange(len(run)), int(rng.choice(foreign))))
    return member


def _invent(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    row = int(rows[-1])
    run.keep(np.insert(np.arange(len(run)), row + 1, row))
    run.columns["counter"][row + 1] += 1_000_000_000
    run.columns["digest"][row + 1] ^= np.uint64(1)
    return member


def _alter(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    run.columns["digest"][int(rng.choice(rows))] ^= np.uint64(0xFF)
    return member


def _unfifo(run: Run, rng: np.random.Generator) -> int:
    """Everybody delivers two frames of one sender in the wrong order."""
    _, rows = _pick(run, rng)
    c = run.columns
    sender = int(rng.choice(c["sender"][rows]))
    own = rows[c["sender"][rows] == sender]
    if len(own) < 2:
        return 0
    k = int(rng.integers(0, len(own) - 1))
    first, second = (int(c["counter"][own[k + j]]) for j in (0, 1))
    is_frame = (c["kind"] == Kind.DELIVER) & (c["sender"] == sender)
    a, b = np.flatnonzero(is_frame & (c["counter"] == first)), np.flatnonzero(is_frame & (c["counter"] == second))
    if len(a) != len(b):
        return 0
    order = np.arange(len(run))
    order[a], order[b] = b, a
    times = c["time_ns"].copy(), c["now_ns"].copy()
    run.keep(order)
    run.columns["time_ns"], run.columns["now_ns"] = times
    return sender


def _gap(run: Run, rng: np.random.Generator) -> int:
    """A sender's accepted counters have a gap: one submit call says one message more."""
    submits = np.flatnonzero(run.columns["kind"] == Kind.SUBMIT)
    member = run.columns["member"][submits]
    places = submits[:-1][member[:-1] == member[1:]]
    if not len(places):
        return 0
    row = int(rng.choice(places))
    run.columns["count"][row] += 1
    return int(run.columns["member"][row])


def _views_of(run: Run, rng: np.random.Generator) -> tuple[int, int]:
    rows = np.flatnonzero((run.columns["kind"] == Kind.VIEW) & (run.columns["view_kind"] == ViewKind.REGULAR))
    row = int(rng.choice(rows))
    return int(run.columns["member"][row]), row


def _no_self(run: Run, rng: np.random.Generator) -> int:
    member, row = _views_of(run, rng)
    run.lists["members"][row] = tuple(m for m in run.lists["members"][row] if m != member)
    return member


def _view_differs(run: Run, rng: np.random.Generator) -> int:
    member, row = _views_of(run, rng)
    run.lists["members"][row] = (*run.lists["members"][row], 60)
    return member


def _early(run: Run, rng: np.random.Generator) -> int:
    """A delivery before the first view."""
    member, _ = _pick(run, rng)
    first = int(run.rows(member, Kind.DELIVER)[0])
    view = int(run.rows(member, Kind.VIEW)[0])
    order = np.delete(np.arange(len(run)), first)
    run.keep(np.insert(order, view, first))
    for column in ("view_seq", "view_rep", "view_kind"):
        run.columns[column][view] = NONE
    run.columns["time_ns"][view] = run.columns["time_ns"][view + 1]
    return member


# name -> (how, the promise that must be found broken)
FAULTS: dict[str, tuple[Callable[[Run, np.random.Generator], int], str]] = {
    "delivers twice": (_duplicate, "S2"),
    "swaps two": (_swap, "S18"),
    "loses one": (_lose, "S19"),
    "invents one": (_invent, "S1"),
    "alters a payload": (_alter, "S1"),
    "breaks FIFO": (_unfifo, "S15"),
    "skips a counter": (_gap, "S3"),
    "view without self": (_no_self, "S4"),
    "views differ": (_view_differs, "S5"),
    "delivers before a view": (_early, "S7"),
}


def inject(run: Run, name: str, seed: int) -> Fault | None:
    """Put a fault into a run; None when this run has no place for it."""
    how, promise = FAULTS[name]
    member = how(run, np.random.default_rng(seed))
    run.renumber()
    return Fault(run.header.run, name, promise, member) if member else None
