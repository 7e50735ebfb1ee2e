"""Measures of one run over numpy columns: latencies, skew-free latencies, views and standstills, traffic.

All in whole nanoseconds (or picoseconds where a mean is meant), so that sums over runs do not depend on their order.
Only rows that have a column's value are looked at, so how a null is written does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import Struct

from ordercast.trace.columns import Columns
from ordercast.trace.schema import Header, Kind
from ordercast.types import ViewKind

Array = np.ndarray[Any, Any]

COUNTER_BITS = 40
HOLD_MAX_NS = 1_000_000_000  # an echo held longer says more of the clocks' drift than of the latency
COLUMNS = (
    "member", "incarnation", "time_ns", "now_ns", "kind", "sender", "sender_incarnation", "counter", "count",
    "view_seq", "view_rep", "view_kind",
)  # fmt: skip


class Samples(Struct):
    """Values and how many messages (or events) each stands for."""

    values: Array
    weights: Array

    def merged(self) -> Samples:
        """Each value once, ascending."""
        values, where = np.unique(self.values, return_inverse=True)
        weights = np.zeros(len(values), np.int64)
        np.add.at(weights, where, self.weights)
        return Samples(values, weights)


def together(parts: list[Samples]) -> Samples:
    """Several as one, each value once."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([part.values for part in parts])
    return Samples(values, np.concatenate([part.weights for part in parts])).merged()


class Waits(Struct):
    """Deliveries beside what they waited since, row by row: a frame counts in parts, one for each of its submits."""

    message: Array  # the first message of the part, by its key
    deliver: Array  # row numbers
    since: Array  # row numbers: of submits, or of originations
    count: Array  # messages of the part

    def chosen(self, which: Array) -> Waits:
        return Waits(self.message[which], self.deliver[which], self.since[which], self.count[which])

    def samples(self, time: Array) -> Samples:
        return Samples(time[self.deliver] - time[self.since], self.count)

    def last(self, time: Array) -> Waits:
        """Of each message only the delivery that came last."""
        order = np.lexsort((time[self.deliver], self.message))
        ends = np.flatnonzero(np.r_[np.diff(self.message[order]) != 0, np.ones(min(1, len(order)), bool)])
        return self.chosen(order[ends])


class Matched(Struct):
    """The rows that tell of messages, joined: every delivery with its origination."""

    deliver: Array  # row numbers
    originate: Array  # row numbers, one per delivery that has one
    message: Array  # the first message of each, by its key
    submit: Waits  # since submit

    def since_originate(self, c: Columns) -> Waits:
        return Waits(self.message, self.deliver, self.originate, c["count"][self.deliver].astype(np.int64))


def by_receiver(c: Columns, waits: Waits) -> dict[str, Samples]:
    """Latencies at the sender itself, at the others, and at whoever delivers a message last."""
    time, own = c["time_ns"], c["member"][waits.deliver] == c["sender"][waits.deliver]
    parts = {"sender": waits.chosen(own), "others": waits.chosen(~own), "last": waits.last(time)}
    return {name: part.samples(time).merged() for name, part in parts.items()}


class _Messages:
    """Keys of messages: the sender's life and the counter in one integer."""

    def __init__(self, c: Columns) -> None:
        self.c = c
        self.incarnations = np.unique(c["incarnation"])

    def keys(self, rows: Array, member: str, incarnation: str) -> Array:
        """-1 where the sender's incarnation wrote no row here."""
        found = np.searchsorted(self.incarnations, self.c[incarnation][rows])
        found = np.minimum(found, len(self.incarnations) - 1)
        known = self.incarnations[found] == self.c[incarnation][rows]
        life = self.c[member][rows].astype(np.int64) * len(self.incarnations) + found
        counter = self.c["counter"][rows].astype(np.int64)
        known &= (counter >= 0) & (counter < 1 << COUNTER_BITS)
        return np.where(known, life << COUNTER_BITS | counter, -1)


def rows_of(c: Columns, kind: Kind) -> Array:
    return np.flatnonzero(c["kind"] == int(kind))


def match(c: Columns) -> Matched:
    """Join deliveries to originations and submits; a delivery without them (a broken run) is left out."""
    messages = _Messages(c)
    deliver, originate, submit = (rows_of(c, kind) for kind in (Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT))
    wanted = messages.keys(deliver, "sender", "sender_incarnation")
    given = messages.keys(originate, "member", "incarnation")
    order = np.argsort(given, kind="stable")
    given, originate = given[order], originate[order]
    at = np.minimum(np.searchsorted(given, wanted), max(0, len(given) - 1))
    found = (given[at] == wanted) & (wanted >= 0) if len(given) else np.zeros(len(wanted), bool)
    calls = messages.keys(submit, "member", "incarnation")
    order = np.argsort(calls, kind="stable")
    latency = _from_submit(c, deliver, wanted, submit[order], calls[order])
    return Matched(deliver[found], originate[at[found]], wanted[found], latency)


def _from_submit(c: Columns, deliver: Array, wanted: Array, submit: Array, calls: Array) -> Waits:
    """A frame may hold messages of several submit calls: each part counts with its own latency."""
    none = np.zeros(0, np.int64)
    if not len(calls) or not len(wanted):
        return Waits(none, none, none, none)
    ends = calls + c["count"][submit].astype(np.int64)
    parts: list[tuple[Array, ...]] = []
    live = np.flatnonzero(wanted >= 0)
    at, end, rows = wanted[live], wanted[live] + c["count"][deliver[live]].astype(np.int64), deliver[live]
    while len(at):
        call = np.searchsorted(calls, at, "right") - 1
        upto = np.minimum(end, ends[call])
        inside = (call >= 0) & (upto > at)
        at, end, rows, call, upto = at[inside], end[inside], rows[inside], call[inside], upto[inside]
        parts.append((at, rows, submit[call], upto - at))
        more = upto < end
        at, end, rows = upto[more], end[more], rows[more]
    return Waits(*map(np.concatenate, zip(*parts, strict=True))) if parts else Waits(none, none, none, none)


def samples(c: Columns) -> dict[str, Samples]:
    """Latencies of this run by what they begin with: `submit` or `originate`; from submit also by who delivers; and
    `standstill` of view changes."""
    matched = match(c)
    time = c["time_ns"]
    gaps = standstills(c)
    return {
        "submit": matched.submit.samples(time).merged(),
        "originate": matched.since_originate(c).samples(time).merged(),
        **{f"submit to {who}": found for who, found in by_receiver(c, matched.submit).items()},
        "standstill": Samples(gaps, np.ones(len(gaps), np.int64)).merged(),
    }


# ------------------------------------------------------------------------------------------- latency free of skew


class PairLatency(Struct, frozen=True):
    """Mean latency between two members, from clocks that were never compared."""

    method: int
    a: int
    b: int
    messages: int
    mean_ps: int


def pair_latencies(c: Columns, hold_max_ns: int = HOLD_MAX_NS) -> list[PairLatency]:
    """Both methods of the Totem paper (section 4), from the members' own clocks."""
    matched = match(c)
    sender, receiver = c["member"][matched.originate].astype(np.int64), c["member"][matched.deliver].astype(np.int64)
    return [*_differences(c, matched, sender, receiver), *_echoes(c, matched, sender, receiver, hold_max_ns)]


def _differences(c: Columns, matched: Matched, sender: Array, receiver: Array) -> Iterator[PairLatency]:
    """Method 1, constant skew: the mean of the two directions' mean clock differences."""
    now, weight = c["now_ns"], c["count"][matched.deliver].astype(np.int64)
    difference = now[matched.deliver] - now[matched.originate]
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for i, j, rows in _pairs(sender, receiver):
        base = int(difference[rows[0]])  # a clock's offset may be days: keep sums small
        n = int(weight[rows].sum())
        sums[i, j] = n, base * n + int(((difference[rows] - base) * weight[rows]).sum())
    for (i, j), (n, total) in sums.items():
        if i < j and (j, i) in sums:
            back, back_total = sums[j, i]
            mean = (Fraction(total, n) + Fraction(back_total, back)) / 2
            yield PairLatency(1, i, j, n + back, round(mean * 1000))


def _echoes(c: Columns, matched: Matched, sender: Array, receiver: Array, hold_max_ns: int) -> Iterator[PairLatency]:
    """Method 2, varying skew: each message answers the last one its sender had from the receiver."""
    now = c["now_ns"]
    by_pair = {(i, j): rows for i, j, rows in _pairs(sender, receiver)}
    for (i, j), rows in by_pair.items():
        heard = by_pair.get((j, i))  # what i delivered of j, in the order of i's rows
        if heard is None:
            continue
        last = np.searchsorted(matched.deliver[heard], matched.originate[rows]) - 1
        rows, last = rows[last >= 0], last[last >= 0]
        echo = heard[last]
        t1, t2 = now[matched.originate[echo]], now[matched.deliver[echo]]
        t3, t4 = now[matched.originate[rows]], now[matched.deliver[rows]]
        good = t3 - t2 <= hold_max_ns
        twice = ((t4 - t1) - (t3 - t2))[good]
        weight = c["count"][matched.deliver[rows]].astype(np.int64)[good]
        n = int(weight.sum())
        if n:
            yield PairLatency(2, i, j, n, round(Fraction(int((twice * weight).sum()), 2 * n) * 1000))


def _pairs(sender: Array, receiver: Array) -> Iterator[tuple[int, int, Array]]:
    """(sender, receiver, places in the arrays, ascending), own deliveries left out."""
    if not len(sender):
        return
    code = sender << 32 | receiver
    order = np.argsort(code, kind="stable")
    sorted_code = code[order]
    starts = np.flatnonzero(np.r_[True, sorted_code[1:] != sorted_code[:-1]])
    for start, end in zip(starts, np.r_[starts[1:], len(code)], strict=True):
        i, j = int(sorted_code[start] >> 32), int(sorted_code[start] & 0xFFFFFFFF)
        if i != j:
            yield i, j, order[start:end]


# ------------------------------------------------------------------------------------------- views, facts, traffic


def standstills(c: Columns) -> Array:
    """For each regular view after a life's first: from its last delivery before to its first delivery after."""
    life = np.cumsum(
        np.r_[True, (np.diff(c["member"].astype(np.int64)) != 0) | (np.diff(c["incarnation"].astype(np.int64)) != 0)]
    )
    views = np.flatnonzero((c["kind"] == int(Kind.VIEW)) & (c["view_kind"] == int(ViewKind.REGULAR)))
    deliver = rows_of(c, Kind.DELIVER)
    after = np.searchsorted(deliver, views)
    inside = (after > 0) & (after < len(deliver))
    views, after = views[inside], after[inside]
    before_row, after_row = deliver[after - 1], deliver[after]
    whole = (life[before_row] == life[views]) & (life[after_row] == life[views])
    gaps = np.unique(np.stack([before_row[whole], after_row[whole]]), axis=1)  # two views in a row: one standstill
    return c["time_ns"][gaps[1]] - c["time_ns"][gaps[0]]


def facts(c: Columns) -> dict[str, int]:
    """Whole numbers of one run that tables are made of."""
    kind, count, time = c["kind"], c["count"], c["time_ns"]
    deliver, originate, submit = (rows_of(c, k) for k in (Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT))
    views = (kind == int(Kind.VIEW)) & (c["view_kind"] == int(ViewKind.REGULAR))
    per_member = {int(m): 0 for m in np.unique(c["member"][kind == int(Kind.VIEW)])}
    members = c["member"][deliver]
    for member in np.unique(members):
        per_member[int(member)] = int(count[deliver[members == member]].sum(dtype=np.int64))
    begin = int(time[np.concatenate([submit, originate])].min()) if len(submit) + len(originate) else 0
    end = int(time[deliver].max()) if len(deliver) else begin
    return {
        "rows": len(kind),
        "submitted": int(count[submit].sum(dtype=np.int64)),
        "originated": int(count[originate].sum(dtype=np.int64)),
        "frames": len(originate),
        "deliveries": int(count[deliver].sum(dtype=np.int64)),
        "slowest": min(per_member.values(), default=0),
        "span_ns": max(0, end - begin),
        "view_changes": int(views.sum()) - len(np.unique(c["member"][views])),
        "crashes": int((kind == int(Kind.CRASH)).sum()),
        "refused": int((kind == int(Kind.REFUSE)).sum()),
    }


TRAFFIC = ("transmitted", "transmitted_bytes", "received", "received_bytes", "delivered_bytes")


def traffic(header: Header, facts: dict[str, int], ends: list[dict[str, Any]]) -> dict[str, int | None]:
    """Sums of what the drivers counted, from the details of end rows; None where some driver did not count it."""
    found = [end["traffic"] for end in ends if isinstance(end.get("traffic"), dict)]
    out: dict[str, int | None] = {}
    for name in TRAFFIC:
        known = found and all(name in part for part in found)
        out[name] = sum(int(part[name]) for part in found) if known else None
    sizes = (header.scenario or {}).get("sizes", [64])
    if out["delivered_bytes"] is None and header.scenario is not None and len(sizes) == 1:
        out["delivered_bytes"] = facts["deliveries"] * int(sizes[0])
    return out


def noted(notes: list[dict[str, Any]], wanted: frozenset[str]) -> list[tuple[str, int]]:
    """(name.field, value in millionths) of every number a protocol notes for itself."""
    out: list[tuple[str, int]] = []
    for note in notes:
        name = note.get("name")
        if name in wanted:
            for field, value in note.items():
                if field != "name" and isinstance(value, (int, float)) and not isinstance(value, bool):
                    out.append((f"{name}.{field}", round(value * 1_000_000)))
    return out


def retransmissions(notes: list[dict[str, Any]]) -> int:
    return sum(int(note.get("frames", 1)) for note in notes if note.get("name") == "retransmit")


def bucket(values: Array) -> Array:
    """The lower bound of each value's bucket: sixteen to an octave, exact integers."""
    values = np.maximum(values, 0)
    exponent = np.frexp(values.astype(np.float64))[1] - 1
    shift = np.maximum(exponent - 4, 0).astype(np.int64)
    return values >> shift << shift


# ------------------------------------------------------------------------------------------------------- the load


def load(header: Header) -> tuple[str, float | None]:
    """What was offered, in words, and in messages a second over all senders where it is a rate."""
    scenario = header.scenario
    if scenario is not None:
        table = {"regime": "poisson", "rate": 1000.0, "batch": 1, **scenario.get("load", {})}
        senders = len(scenario.get("senders", ())) or len(header.members)
        sizes = "/".join(map(str, scenario.get("sizes", [64])))
        regime = table["regime"]
        if regime in ("saturate", "one_by_one", "idle", "sharing"):
            return f"{regime}, {senders} senders, {sizes} B", None
        times = int(table["batch"]) * (int(table.get("burst", 50)) if regime == "bursts" else 1)
        rate = float(table["rate"]) * times * senders
        return f"{regime} {rate:g}/s, {senders} senders, {sizes} B", rate
    work = header.workload
    rate_live = work.get("rate")
    words = [f"{rate_live:g}/s" if rate_live else "as fast as it goes"]
    if "senders" in work:
        senders_live = work["senders"]
        words.append(f"{len(senders_live) if isinstance(senders_live, list) else senders_live} senders")
    sizes_live = work.get("sizes") or ([work["size"]] if "size" in work else [])
    if sizes_live:
        words.append(f"{'/'.join(map(str, sizes_live))} B")
    return ", ".join(words), float(rate_live) if rate_live else None


def capacity_bits(header: Header) -> int | None:
    """Bits a second of the network, where it is known (simulations)."""
    if header.scenario is None:
        return None
    nets = header.scenario.get("nets") or [{}]
    rates = [float(net.get("mbit", 1000.0)) for net in nets]
    return round(sum(rates) * 1_000_000) if all(rates) else None


class Rates(Struct):
    """Deliveries over a run's time: member -> (seconds, messages a second); moments worth a mark."""

    curves: dict[int, tuple[list[float], list[float]]]
    marks: list[tuple[float, str]]


def rates(c: Columns, buckets: int) -> Rates:
    """How fast each member was delivered messages, in equal pieces of the run's time."""
    deliver = rows_of(c, Kind.DELIVER)
    if not len(deliver):
        return Rates({}, [])
    time = c["time_ns"]
    begin, end = int(time[deliver].min()), int(time[deliver].max())
    width = max(1, -(-(end - begin + 1) // buckets))
    place = (time[deliver] - begin) // width
    used = int(place.max()) + 1
    seconds = [float(width * (k + 0.5) / 1e9) for k in range(used)]
    curves: dict[int, tuple[list[float], list[float]]] = {}
    for member in np.unique(c["member"][deliver]):
        mine = c["member"][deliver] == member
        counts = np.bincount(place[mine], c["count"][deliver[mine]].astype(np.float64), used)
        curves[int(member)] = (seconds, (counts / (width / 1e9)).tolist())
    marks: dict[tuple[str, int, int], float] = {}
    for row in np.flatnonzero((c["kind"] == int(Kind.VIEW)) & (c["view_kind"] == int(ViewKind.REGULAR))):
        members = columns_members(c, int(row))
        word = f"view of {members}" if members else "view"
        marks.setdefault((word, int(c["view_seq"][row]), int(c["view_rep"][row])), (int(time[row]) - begin) / 1e9)
    for row in rows_of(c, Kind.CRASH):
        who = int(c["sender"][row] if c["member"][row] == 0 else c["member"][row])
        marks.setdefault((f"crash of {who}", who, 0), (int(time[row]) - begin) / 1e9)
    return Rates(curves, sorted((at, word) for (word, _, _), at in marks.items() if at > 0)[:12])


def columns_members(c: Columns, row: int) -> str:
    """The members of a view row, in few words."""
    members = c.sparse["members"].get(row) or ()
    return ",".join(map(str, members)) if len(members) <= 4 else f"{len(members)} members"
