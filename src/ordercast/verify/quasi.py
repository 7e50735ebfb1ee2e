"""Quasi order: what both forms of Q1 share, once violating messages are counted: bounds of the rate, and the verdict.

A message counts once however many members it violates at; what one frame carried stands or falls together and counts
as one.  Bounds are those of Clopper and Pearson, one-sided, 95 %.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, lgamma, log

from msgspec import Struct

from ordercast.trace.schema import Header, Kind, Row
from ordercast.verify.verdict import BROKEN, CANNOT_JUDGE, HOLDS, Finding, broken

RATE = 1 / 2000  # declared, unless the run's option `rate` says another
LEAST = 3  # runs with fewer messages than that over the rate say nothing
DOUBT = 0.05


class Tally(Struct):
    """What was counted in one run, or in several."""

    messages: int = 0
    violating: int = 0
    order: int = 0
    atomicity: int = 0
    late: int = 0
    expired: int = 0
    dummies: int = 0
    conflicts: int = 0
    example: tuple[Row, ...] = ()
    duplicate: tuple[Row, ...] = ()

    def text(self, rate: float) -> str:
        low, high = bounds(self.violating, self.messages)
        return (
            f"{self.violating} of {self.messages} messages violate it "
            f"({self.order} order, {self.atomicity} atomicity), "
            f"the rate is {low:.2g} to {high:.2g}, declared {rate:.2g}; late {self.late}, expired {self.expired}, "
            f"dummies {self.dummies}"
        )


def declared(header: Header) -> float:
    rate = header.options.get("rate", RATE)
    return rate if isinstance(rate, float) and 0 < rate < 1 else RATE


def judge(tally: Tally, header: Header) -> Finding:
    """The verdict: broken or held only where chance hardly explains it."""
    if tally.duplicate:
        return broken("a member delivered a message twice", tally.duplicate, tally.messages)
    rate, text = declared(header), tally.text(declared(header))
    if not tally.messages:
        return Finding(HOLDS, "", (), 0)
    if tally.conflicts:
        text = f"the network broke its one order: marks contradicted each other {tally.conflicts} times; {text}"
        return Finding(CANNOT_JUDGE, text, (), tally.messages)
    low, high = bounds(tally.violating, tally.messages)
    if low > rate and tally.messages * rate >= LEAST:
        return Finding(BROKEN, text, tally.example, tally.messages)
    if high < rate and tally.messages * rate >= LEAST:
        return Finding(HOLDS, text, (), tally.messages)
    return Finding(CANNOT_JUDGE, f"too few messages to tell: {text}", (), tally.messages)


def bounds(hits: int, trials: int) -> tuple[float, float]:
    """Between which rates this many hits are not surprising, each side alone with 95 %."""
    if not trials:
        return 0.0, 1.0
    low = 0.0 if not hits else _solve(lambda p: _beta(hits, trials - hits + 1, p), DOUBT)
    high = 1.0 if hits == trials else _solve(lambda p: _beta(hits + 1, trials - hits, p), 1 - DOUBT)
    return low, high


def _solve(grows: Callable[[float], float], target: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) < target else (low, middle)
    return (low + high) / 2


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    value = d
    for m in range(1, 10_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / ((1 + step * d) or tiny), (1 + step / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * value


class Return(Struct, frozen=True):
    """A member is back: its life, the row that says so, when this spell ended, when it first delivered in it."""

    life: tuple[int, int]
    row: Row
    end_ns: int
    first_ns: int | None


def resumes(
    header: Header, returns: Iterable[Return], delivered: Mapping[tuple[int, int], Sequence[int]], world: Sequence[Row]
) -> Finding:
    """L11: by the time another delivered what Deliv_Cycle and ten Report_Cycles count, who returned delivers, too.

    delivered: when each life delivered, ascending.  A fault of links meanwhile excuses.
    """
    judged, counts = 0, _cycles(header)
    for back in returns:
        due: list[int] = []
        for life, times in delivered.items():
            at = bisect_right(times, back.row.time_ns) + counts
            if life[0] != back.life[0] and at < len(times) and times[at] <= back.end_ns:
                due.append(times[at])
        if not due or _disturbed(world, back.row.time_ns, min(due)):
            continue
        judged += 1
        if back.first_ns is None or back.first_ns > min(due):
            what = f"member {back.life[0]} returned, and delivered nothing while another delivered {counts} times"
            return broken(what, [back.row], judged)
    return Finding(HOLDS, "", (), judged)


def _cycles(header: Header) -> int:
    options = header.options
    report, deliv = options.get("report_cycle"), options.get("deliv_cycle")
    report = report if isinstance(report, int) and report > 0 else 5
    deliv = deliv if isinstance(deliv, int) and deliv > 0 else max(60, 6 * len(header.members))
    return 10 * report + deliv


def _disturbed(world: Sequence[Row], start: int, end: int) -> bool:
    """Whether anything but pauses, crashes and leaves was at work between."""
    on: dict[object, int] = {}
    for row in world:
        detail = row.detail or {}
        if row.kind != Kind.FAULT or detail.get("class") in ("pause", "crash", "leave"):
            continue
        if detail.get("state") == "on":
            on[detail.get("number")] = row.time_ns
        elif on.pop(detail.get("number"), end) < end and row.time_ns > start:
            return True
    return any(begin < end for begin in on.values())


def outside(ranks: Sequence[int]) -> list[int]:
    """Places of a sequence outside its longest increasing part (of several the one that ends lowest)."""
    tails: list[int] = []  # the last rank of the best of each length
    at: list[int] = []  # its place
    before: list[int] = []
    for place, rank in enumerate(ranks):
        k = bisect_left(tails, rank)
        before.append(at[k - 1] if k else -1)
        tails[k:k + 1], at[k:k + 1] = [rank], [place]  # fmt: skip
    kept: set[int] = set()
    place = at[-1] if at else -1
    while place >= 0:
        kept.add(place)
        place = before[place]
    return [place for place in range(len(ranks)) if place not in kept]
