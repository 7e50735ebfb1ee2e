"""Faults for made-up runs: each changes one run in one way and names the promise that must be found broken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from ordercast.trace.schema import Kind
from ordercast.types import ViewKind
from synthetic.runs import NONE, Array, Run


class Fault(Struct, frozen=True):
    """What was put into which run, and the promise it must break."""

    run: str
    name: str
    promise: str
    member: int


class NoPlace(Exception):
    """This run has no place for the fault."""


def _one(rng: np.random.Generator, places: Array) -> int:
    if not len(places):
        raise NoPlace
    return int(rng.choice(places))


def _pick(run: Run, rng: np.random.Generator) -> tuple[int, Array]:
    """A member that ended well, and its deliveries in its last regular view."""
    ended = np.unique(run.columns["member"][run.columns["kind"] == Kind.END])
    member = int(rng.choice(ended))
    rows = run.rows(member, Kind.DELIVER)
    last = run.columns["view_seq"][rows[-1]]
    return member, rows[run.columns["view_seq"][rows] == last]


def _duplicate(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    row = _one(rng, rows[:-1])
    last = int(rows[-1])
    run.keep(np.insert(np.arange(len(run)), last + 1, row))
    for column in ("time_ns", "now_ns"):
        run.columns[column][last + 1] = run.columns[column][last]
    return member


def _swap(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    sender = run.columns["sender"][rows]
    pairs = np.flatnonzero((sender[1:] != sender[:-1]) & (sender[1:] != member) & (sender[:-1] != member))
    k = _one(rng, pairs)
    order = np.arange(len(run))
    order[[rows[k], rows[k + 1]]] = rows[k + 1], rows[k]
    times = run.columns["time_ns"].copy(), run.columns["now_ns"].copy()
    run.keep(order)
    run.columns["time_ns"], run.columns["now_ns"] = times
    return member


def _lose(run: Run, rng: np.random.Generator) -> int:
    member, rows = _pick(run, rng)
    foreign = rows[:-1][run.columns["sender"][rows[:-1]] != member]
    run.keep(np.delete(np.arange(len(run)), _one(rng, foreign)))
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
    run.columns["digest"][_one(rng, rows)] ^= np.uint64(0xFF)
    return member


def _unfifo(run: Run, rng: np.random.Generator) -> int:
    """Everybody delivers two frames of one sender in the wrong order."""
    _, rows = _pick(run, rng)
    c = run.columns
    sender = int(rng.choice(c["sender"][rows]))
    own = rows[c["sender"][rows] == sender]
    if len(own) < 2:
        raise NoPlace
    k = int(rng.integers(0, len(own) - 1))
    first, second = (int(c["counter"][own[k + j]]) for j in (0, 1))
    is_frame = (c["kind"] == Kind.DELIVER) & (c["sender"] == sender)
    a, b = np.flatnonzero(is_frame & (c["counter"] == first)), np.flatnonzero(is_frame & (c["counter"] == second))
    if len(a) != len(b):
        raise NoPlace
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
    row = _one(rng, submits[:-1][member[:-1] == member[1:]])
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


def _changes(run: Run) -> Array:
    """Rows of regular views that follow another one in the same life."""
    c = run.columns
    return np.flatnonzero((c["kind"] == Kind.VIEW) & (c["view_kind"] == ViewKind.REGULAR) & (c["previous_seq"] != NONE))


def _skips_before_view(run: Run, rng: np.random.Generator) -> int:
    """The last delivery of a view is missing at one that went on with the others."""
    row = _one(rng, _changes(run))
    member = int(run.columns["member"][row])
    before = run.rows(member, Kind.DELIVER)
    before = before[before < row]
    sender = run.columns["sender"][before]
    if not len(before) or sender[-1] == member:
        raise NoPlace
    if len(run.lists["trans"][row]) < 2:  # nobody went the same way
        raise NoPlace
    run.keep(np.delete(np.arange(len(run)), int(before[-1])))
    return member


def _own_not_delivered(run: Run, rng: np.random.Generator) -> int:
    """A member goes on to the next view without its own last frame, which the others have."""
    row = _one(rng, _changes(run))
    member = int(run.columns["member"][row])
    before = run.rows(member, Kind.DELIVER)
    own = before[(before < row) & (run.columns["sender"][before] == member)]
    run.keep(np.delete(np.arange(len(run)), _one(rng, own[-1:])))
    return member


def _wrong_transition(run: Run, rng: np.random.Generator) -> int:
    """A transitional set leaves out somebody who went the same way."""
    row = _one(rng, _changes(run))
    member = int(run.columns["member"][row])
    along = tuple(m for m in run.lists["trans"][row] if m != member)
    if not along:
        raise NoPlace
    left = tuple(m for m in run.lists["trans"][row] if m != along[0])
    run.lists["trans"][row] = run.lists["trans"][row - 1] = run.lists["members"][row - 1] = left
    return member


def _view_goes_back(run: Run, rng: np.random.Generator) -> int:
    """A view with a number below the one before, everywhere alike."""
    row = _one(rng, _changes(run))
    c = run.columns
    old, new = int(c["view_seq"][row]), int(c["previous_seq"][row]) - 2
    c["view_seq"][c["view_seq"] == old] = new
    c["previous_seq"][c["previous_seq"] == old] = new
    return int(c["member"][row])


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
    "skips the last before a view": (_skips_before_view, "S11"),
    "goes on without its own": (_own_not_delivered, "S14"),
    "wrong transitional set": (_wrong_transition, "S12"),
    "a view goes back": (_view_goes_back, "S6"),
}


def inject(run: Run, name: str, seed: int) -> Fault | None:
    """Put a fault into a run; None when this run has no place for it, which leaves it as it was."""
    how, promise = FAULTS[name]
    try:
        member = how(run, np.random.default_rng(seed))
    except NoPlace:
        return None
    run.renumber()
    return Fault(run.header.run, name, promise, member)
