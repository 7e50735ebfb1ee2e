"""What was ordered in a run: units.

The unit of work is the frame: one deliver row, one number.  Only where deliver rows do not repeat originate rows
exactly (something was invented, cut differently or numbered twice) do units become single messages.  Units of one
sender are numbered in the order of its counters, senders in the order of lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ordercast.trace.schema import Kind

if TYPE_CHECKING:
    from ordercast.verify.columns.model import Run

Array = np.ndarray[Any, Any]


class Units(NamedTuple):
    """What was ordered.  `owner` is a life, or a number above all lives for a sender that left no trace."""

    owner: Array
    counter: Array
    origin: Array  # row that originated it first, or -1
    of_originate: Array  # the unit of each originated one, in the order of rows
    originate_row: Array
    events: Array  # the unit of each event
    event_row: Array
    exact: bool  # units are frames
    sender: Array  # member id


def frames(run: Run) -> Units | None:
    """Frames, if every deliver row repeats an originate row; numbers of one life must ascend."""
    c, rows, delivers = run.columns, run.originates, run.delivers
    counter, count = c["counter"], c["count"]
    cuts, owner = run.cuts(rows), run.life_of(rows)
    first, size = counter[rows], count[rows].astype(np.int64)
    follows = (owner[1:] != owner[:-1]) | (first[1:] >= first[:-1] + size[:-1])
    if not (run.own(rows, owner).all() and follows.all() and (size > 0).all()):
        return None
    unit: Array | None = None
    for rows_of in (run.of(Kind.RECEIVE), delivers):  # both must be of the same frames
        if not len(rows_of):
            unit = rows_of
            continue
        of = run.owners(rows_of)
        if run.strangers:
            return None
        unit = find_frames(owner, first, size, cuts, of, counter[rows_of], count[rows_of])
        if unit is None:
            return None
    assert unit is not None
    sender = c["member"][rows].astype(np.int64)
    return Units(owner, first, rows, np.arange(len(rows)), rows, unit, delivers, True, sender)


def messages(run: Run) -> Units:
    """Single messages."""
    c = run.columns
    both = np.concatenate((run.originates, run.delivers))
    owner = run.owners(both)
    count = c["count"][both].astype(np.int64)
    row, who = np.repeat(both, count), np.repeat(owner, count)
    step = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    number = np.repeat(c["counter"][both], count) + step
    distinct = np.unique(number)  # counters may be anything: number them first
    keys, unit = np.unique(who * (len(distinct) + 1) + np.searchsorted(distinct, number), return_inverse=True)
    split = int(count[: len(run.originates)].sum())
    origin = np.full(len(keys), -1, np.int64)
    origin[unit[:split][::-1]] = row[:split][::-1]
    of = keys // (len(distinct) + 1)
    counters = distinct[keys % (len(distinct) + 1)] if len(keys) else np.empty(0, np.int64)
    senders = np.array([*run.life_member, *(member for member, _ in run.strangers), 0], np.int64)
    return Units(of, counters, origin, unit[:split], row[:split], unit[split:], row[split:], False, senders[of])


def find_frames(
    owner: Array, first: Array, size: Array, cuts: Array, of: Array, wanted: Array, sizes: Array
) -> Array | None:
    """The frame of each delivery, by (owner, counter); None: some delivery is not of just one frame.

    `owner`, `first` and `size` tell the frames, sorted by the first two, those of owner k at cuts[k] .. cuts[k + 1].
    """
    last = len(first) - 1
    if last < 0:
        return None
    if (size == 1).all() and ((owner[1:] != owner[:-1]) | (first[1:] == first[:-1] + 1)).all():
        unit = (cuts[:-1] - first[np.minimum(cuts[:-1], last)]).take(of) + wanted  # without gaps: no search
        good = unit.min() >= 0 and unit.max() <= last and (owner.take(unit) == of).all() and (sizes == 1).all()
        return unit if good else None
    stride = int(max(first.max(), wanted.max())) + 1
    if stride > 2**62 // (len(cuts) + 1):
        return None
    unit = np.minimum(np.searchsorted(owner * stride + first, of * stride + wanted), last)
    match = (first[unit] == wanted) & (owner[unit] == of) & (size[unit] == sizes)
    return unit if match.all() else None
