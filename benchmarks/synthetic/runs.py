"""Made-up traces of any size, with faults whose places are known: to measure the verifier and to test it.

A run here is what a correct group on the Totem stack would have written at level `deliver`: a few thousand frames in
one order, members that crash (their log is a prefix), partitions that merge again, views with their transitional views.
Arrays are numpy arrays, so that a hundred million rows take minutes.  A fault changes one run in one way and says
which promise it breaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from ordercast.trace.columns import FIXED, Columns, Sparse
from ordercast.trace.schema import Header, Kind
from ordercast.types import ViewKind

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

PROMISES = (*(f"S{k}" for k in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)),)
INCARNATION = 1
SUBMIT_FRAMES = 8  # frames of one submit call
NONE = np.iinfo(np.int64).min  # stands for null until the table is made
SERVICE_AGREED = 3
DELAY_NS, NOISE_NS = 300_000, 20_000


class View(Struct):
    """A regular view with the frames ordered in it; `prefix`: how many of them each member delivered."""

    seq: int
    rep: int
    members: tuple[int, ...]
    previous: dict[int, tuple[int, int] | None]  # member -> the view it comes from
    trans: dict[int, tuple[int, ...]]
    start_ns: int
    sender: Array
    counter: Array
    count: Array
    digest: Array
    time_ns: Array
    prefix: dict[int, int]


class Shape(Struct, frozen=True):
    """How runs look."""

    members: int = 8
    frames_mean: float = 1200.0  # ordered frames of a run, log-normal
    sigma: float = 0.8
    per_frame: int = 1  # messages in a frame: 1 .. per_frame
    crash_share: float = 0.3  # runs in which one member crashes
    partition_share: float = 0.01  # runs that split in two and merge
    gap_ns: int = 100_000


def mix(values: Array) -> Array:
    """A 64-bit digest of integers (splitmix)."""
    with np.errstate(over="ignore"):
        z = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


# ------------------------------------------------------------------------------------------------ the views of a run


class _Story:
    """The views of one run, drawn from its generator."""

    def __init__(self, rng: np.random.Generator, shape: Shape, frames: int, salt: int) -> None:
        self.rng, self.shape, self.salt = rng, shape, salt
        self.everyone = tuple(range(1, shape.members + 1))
        self.next_counter = np.ones(shape.members + 1, np.int64)
        self.seq = 4
        self.views: list[View] = []
        self.crashed: dict[int, int] = {}  # member -> time
        fate = rng.random()
        if fate < shape.partition_share and shape.members >= 3:
            self._partition(frames)
        elif fate < shape.partition_share + shape.crash_share and shape.members >= 2:
            self._crash(frames)
        else:
            self._view(self.everyone, frames, dict.fromkeys(self.everyone), {}, 0)

    def _view(
        self,
        members: tuple[int, ...],
        frames: int,
        previous: dict[int, tuple[int, int] | None],
        trans: dict[int, tuple[int, ...]],
        start_ns: int,
        silent: tuple[int, int] | None = None,
    ) -> View:
        """`silent`: (member, from which frame on it sends nothing and delivers nothing)."""
        rng, shape = self.rng, self.shape
        sender = rng.choice(np.array(members), frames)
        if silent is not None:
            others = np.array([m for m in members if m != silent[0]])
            tail = sender[silent[1] :]
            tail[tail == silent[0]] = rng.choice(others, int((tail == silent[0]).sum()))
        count = rng.integers(1, shape.per_frame + 1, frames) if shape.per_frame > 1 else np.ones(frames, np.int64)
        counter = np.empty(frames, np.int64)
        for member in members:
            mine = sender == member
            ends = np.cumsum(count[mine])
            counter[mine] = self.next_counter[member] + ends - count[mine]
            self.next_counter[member] += int(ends[-1]) if len(ends) else 0
        digest = mix((sender << 44) + (counter << 8) + count + self.salt)
        times = start_ns + 1_000_000 + np.cumsum(rng.integers(2 * NOISE_NS, 2 * shape.gap_ns, frames))
        prefix = dict.fromkeys(members, frames)
        if silent is not None:
            prefix[silent[0]] = silent[1]
        view = View(
            self.seq, min(members), members, previous, trans, start_ns, sender, counter, count, digest, times, prefix
        )
        self.seq += 4
        self.views.append(view)
        return view

    def _crash(self, frames: int) -> None:
        rng = self.rng
        victim = int(rng.choice(self.everyone))
        before = max(2, int(frames * rng.uniform(0.2, 0.8)))
        stop = int(rng.integers(1, before))
        first = self._view(self.everyone, before, dict.fromkeys(self.everyone), {}, 0, (victim, stop))
        end_ns = int(first.time_ns[-1])
        self.crashed[victim] = int(first.time_ns[stop - 1]) + DELAY_NS + NOISE_NS
        rest = tuple(m for m in self.everyone if m != victim)
        old = (first.seq, first.rep)
        self._view(
            rest, max(1, frames - before), dict.fromkeys(rest, old), dict.fromkeys(rest, rest), end_ns + 40_000_000
        )

    def _partition(self, frames: int) -> None:
        third = max(1, frames // 3)
        first = self._view(self.everyone, third, dict.fromkeys(self.everyone), {}, 0)
        cut = int(self.rng.integers(1, len(self.everyone)))
        sides = self.everyone[:cut], self.everyone[cut:]
        old, end_ns = (first.seq, first.rep), int(first.time_ns[-1]) + 40_000_000
        parts = [self._view(side, third, dict.fromkeys(side, old), dict.fromkeys(side, side), end_ns) for side in sides]
        end_ns = max(int(part.time_ns[-1]) for part in parts) + 40_000_000
        previous = {m: (part.seq, part.rep) for part in parts for m in part.members}
        trans = {m: part.members for part in parts for m in part.members}
        self._view(self.everyone, third, dict(previous), trans, end_ns)


# ------------------------------------------------------------------------------------------------ the rows of a run

_INTEGERS = (
    "member", "incarnation", "index", "time_ns", "now_ns", "kind", "sender", "sender_incarnation", "counter", "count",
    "position", "order_epoch", "order_seq", "ring", "service", "view_seq", "view_rep", "view_kind", "previous_seq",
    "previous_rep",
)  # fmt: skip


class Run:
    """One run's columns, rows of members one after the other; lists and details by row number."""

    def __init__(self, header: Header, columns: Arrays, lists: dict[str, dict[int, Any]]) -> None:
        self.header, self.columns, self.lists = header, columns, lists

    def __len__(self) -> int:
        return len(self.columns["kind"])

    def rows(self, member: int, kind: Kind) -> Array:
        return np.flatnonzero((self.columns["member"] == member) & (self.columns["kind"] == kind))

    def keep(self, chosen: Array) -> None:
        """Take rows by number, in this order; lists and details go along."""
        self.columns = {name: column[chosen] for name, column in self.columns.items()}
        where: dict[int, list[int]] = {}
        listed = {row for rows in self.lists.values() for row in rows}
        for new, old in enumerate(chosen.tolist()):
            if old in listed:
                where.setdefault(old, []).append(new)
        self.lists = {
            name: {new: value for old, value in rows.items() for new in where.get(old, ())}
            for name, rows in self.lists.items()
        }

    def renumber(self) -> None:
        """Index and position as a recorder would have written them."""
        c = self.columns
        starts = np.flatnonzero(np.r_[True, c["member"][1:] != c["member"][:-1]])
        lengths = np.diff(np.r_[starts, len(self)])
        c["index"] = np.arange(len(self)) - np.repeat(starts, lengths) + 1
        delivered = np.where(c["kind"] == Kind.DELIVER, c["count"], 0)
        before = np.cumsum(delivered) - delivered
        positions = before - np.repeat(before[starts], lengths)
        c["position"] = np.where(c["position"] == NONE, NONE, positions)


def _member_rows(story: _Story, member: int, lists: dict[str, dict[int, Any]], offset: int) -> Arrays:
    """What one member wrote: for each of its views the view rows, then submits, originates and deliveries."""
    parts: list[Arrays] = []
    at = offset
    rng = story.rng
    for view in story.views:
        if member not in view.members:
            continue
        old = view.previous.get(member)
        opening = 1 if old is None else 2
        upto = view.prefix[member]
        heads = _blank(opening)
        heads["kind"][:] = Kind.VIEW
        heads["view_seq"][:], heads["view_rep"][:] = view.seq, view.rep
        heads["view_kind"][:] = ViewKind.REGULAR
        heads["time_ns"][:] = view.start_ns + member
        if old is not None:
            heads["view_kind"][0] = ViewKind.TRANSITIONAL
            heads["previous_seq"][:], heads["previous_rep"][:] = old
            lists["members"][at], lists["trans"][at] = view.trans[member], view.trans[member]
            lists["members"][at + 1], lists["trans"][at + 1] = view.members, view.trans[member]
            lists["detail"][at] = lists["detail"][at + 1] = {"cause": "silence", "reason": "silence"}
        else:
            lists["members"][at], lists["trans"][at] = view.members, view.members
            lists["detail"][at] = {"cause": "start", "reason": "start"}
        at += opening
        body = _view_body(rng, view, member, upto)
        at += len(body["kind"])
        parts += [heads, body]
    out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    out["member"][:] = member
    out["position"][:] = 0
    out["time_ns"] = np.maximum.accumulate(out["time_ns"])
    out["now_ns"] = out["time_ns"] + 1_000 * member
    return out


def _view_body(rng: np.random.Generator, view: View, member: int, upto: int) -> Arrays:
    """Submit, originate and deliver rows of one member in one view, in the order it wrote them."""
    own = np.flatnonzero(view.sender[:upto] == member)
    lag = np.maximum(own - rng.integers(1, 6), 0)  # a frame is originated a few deliveries before its own
    lag = np.minimum.accumulate(lag[::-1])[::-1]
    calls = own[::SUBMIT_FRAMES]
    kind = np.concatenate(
        [np.full(len(calls), Kind.SUBMIT), np.full(len(own), Kind.ORIGINATE), np.full(upto, Kind.DELIVER)]
    )
    frame = np.concatenate([calls, own, np.arange(upto)])
    place = np.concatenate([lag[::SUBMIT_FRAMES], lag, np.arange(upto)])
    order = np.argsort(
        place * 4 + np.where(kind == Kind.SUBMIT, 0, np.where(kind == Kind.ORIGINATE, 1, 2)), kind="stable"
    )
    kind, frame, place = kind[order], frame[order], place[order]
    out = _blank(len(kind))
    out["kind"], out["sender"], out["counter"] = kind, view.sender[frame], view.counter[frame]
    out["sender_incarnation"][:] = INCARNATION
    out["count"] = view.count[frame]
    submits = np.flatnonzero(kind == Kind.SUBMIT)
    totals = np.add.reduceat(view.count[own], np.arange(0, len(own), SUBMIT_FRAMES)) if len(own) else np.zeros(0, int)
    out["count"][submits] = totals
    delivered = kind == Kind.DELIVER
    out["digest"] = np.where(kind == Kind.SUBMIT, np.uint64(0), view.digest[frame])
    out["order_epoch"] = np.where(delivered, view.seq, NONE)
    out["order_seq"] = np.where(delivered, frame + 1, NONE)
    out["ring"] = np.where(delivered, 0, NONE)
    out["service"][:] = SERVICE_AGREED
    out["view_seq"][:], out["view_rep"][:], out["view_kind"][:] = view.seq, view.rep, ViewKind.REGULAR
    noise = rng.integers(
        0, NOISE_NS, len(kind)
    )  # less than between two frames: nothing is delivered before it was sent
    out["time_ns"] = view.time_ns[place] + np.where(delivered, DELAY_NS + noise, DELAY_NS - NOISE_NS)
    return out


def _blank(rows: int) -> Arrays:
    out = {name: np.full(rows, NONE, np.int64) for name in _INTEGERS}
    out["digest"] = np.zeros(rows, np.uint64)
    out["incarnation"][:] = INCARNATION
    return out


def make_run(name: str, seed: int, shape: Shape) -> Run:
    """One correct run; everything follows from the seed."""
    rng = np.random.default_rng(seed)
    sigma = shape.sigma
    frames = max(20, int(rng.lognormal(np.log(shape.frames_mean) - sigma * sigma / 2, sigma)))
    story = _Story(rng, shape, frames, salt=seed)
    lists: dict[str, dict[int, Any]] = {"members": {}, "trans": {}, "detail": {}}
    parts: list[Arrays] = []
    first = _blank(len(story.everyone) + len(story.crashed))
    first["member"][:], first["incarnation"][:] = 0, 1
    first["kind"][:] = [Kind.START] * len(story.everyone) + [Kind.CRASH] * len(story.crashed)
    first["sender"][:] = [*story.everyone, *story.crashed]
    first["sender_incarnation"][:] = INCARNATION
    first["time_ns"][:] = [0] * len(story.everyone) + list(story.crashed.values())
    first["now_ns"] = first["time_ns"]
    parts.append(first)
    at = len(first["kind"])
    for member in story.everyone:
        rows = _member_rows(story, member, lists, at)
        parts.append(rows)
        at += len(rows["kind"])
        if member not in story.crashed:
            parts.append(_end_row(rows))
            lists["detail"][at] = {"queues": {}}
            at += 1
    columns = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
    header = Header(
        name, "synthetic", "agreed", story.everyone, PROMISES, seed=seed, options={}, versions={"generator": "1"}
    )
    run = Run(header, columns, lists)
    run.renumber()
    return run


def _end_row(rows: Arrays) -> Arrays:
    end = _blank(1)
    for column in ("member", "incarnation", "time_ns", "now_ns", "view_seq", "view_rep", "view_kind"):
        end[column][0] = rows[column][-1]
    end["kind"][0], end["position"][0] = Kind.END, 0
    return end


def columns_of(run: Run) -> Columns:
    """The run as the rest of the system knows it."""
    fixed: dict[str, Array] = {}
    for name, (kind, null) in FIXED.items():
        values = run.columns[name]
        if name != "digest" and null is not None:
            values = np.where(values == NONE, null, values)
        fixed[name] = values.astype(kind)
    sparse = {}
    for name in ("members", "trans", "detail"):
        rows = sorted(run.lists[name])
        sparse[name] = Sparse(np.array(rows, np.int64), [run.lists[name][row] for row in rows])
    old = np.flatnonzero(run.columns["previous_seq"] != NONE)
    for name in ("previous_seq", "previous_rep"):
        sparse[name] = Sparse(old, run.columns[name][old].tolist())
    return Columns(fixed, None, None, sparse)
