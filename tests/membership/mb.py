"""The membership's scenarios on the whole stack: a fault begins in a working view of n; how many views does it cost?

Times inside a scenario count in T.  The load is one message per member and T/2.  A run is judged from its trace alone:
views installed per member from the onset until 4 x L1, and later; the views in force at the end; the longest time
without a delivery at a member of the largest view; every safety promise of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import patterns
from patterns import Pairs

from ordercast import registry
from ordercast.contract import Setup
from ordercast.sim.faults import AnyFault, Crash, Cut, Leaving, Loss, Partition, Pause
from ordercast.sim.law import Delay
from ordercast.sim.scenario import MS, Hosts, Load, Net, Scenario
from ordercast.sim.world import Maker, World
from ordercast.stack import Stack
from ordercast.trace.schema import Kind, Row
from ordercast.types import ViewKind
from ordercast.verify import BROKEN, check

HOP_US = 600.0  # the longest
ONSET = 10.0  # T: by then the group works
_protocol: ContextVar[str] = ContextVar("protocol", default="totem")
_variant: ContextVar[Maker | None] = ContextVar("variant", default=None)


@contextmanager
def variant(maker: Maker) -> Iterator[None]:
    """Runs made within it are of this variant: so a known-bad one is held against the table."""
    token = _variant.set(maker)
    try:
        yield
    finally:
        _variant.reset(token)


@contextmanager
def under(protocol: str) -> Iterator[None]:
    """Runs made within it are of this protocol."""
    token = _protocol.set(protocol)
    try:
        yield
    finally:
        _protocol.reset(token)


def direct() -> bool:
    """Whether the protocol in force stands on the view-synchronous layer, which needs direct links."""
    return "the view-synchronous layer" in registry.get(_protocol.get()).needs


def answering() -> bool:
    """Whether every frame is answered by unicast, which nobody else can repair."""
    return _protocol.get() in ("abcast", "tomp")


def stack(setup: Setup) -> Stack:
    """A member's stack, of the protocol and variant in force."""
    return (_variant.get() or registry.get(_protocol.get()).factory)(setup)


class Run:
    """One run and its figures.  Faults take times in T after the onset."""

    def __init__(
        self,
        n: int,
        timeout_ms: float,
        faults: Callable[[float], Iterable[AnyFault]] | None = None,
        *,
        until: float,
        seed: int = 1,
        onset: float = ONSET,
        unreachable: bool = False,
        maker: Maker | None = None,
        false_hint: tuple[int, int] | None = None,
        heal: float | None = None,
        rate: float = 2.0,
    ) -> None:
        self.n, self.timeout_ms, self.onset = n, timeout_ms, onset
        end_ms = (onset + until) * timeout_ms
        rate = rate * 1000.0 / timeout_ms  # messages per member and T, now per second
        self.scenario = Scenario(
            protocol=_protocol.get(),
            members=n,
            seed=seed,
            timeout_ms=timeout_ms,
            messages=int(n * rate * ((end_ms if heal is None else (onset + heal) * timeout_ms) - timeout_ms) / 1000),
            load=Load(regime="periodic", rate=rate, start_ms=timeout_ms),
            nets=(Net(model="links", delay=Delay("uniform", low_us=50.0, high_us=HOP_US), mbit=0.0),),
            hosts=Hosts(disk_us=100.0, unreachable=unreachable),
            faults=tuple(faults(timeout_ms)) if faults is not None else (),
            limit_ms=end_ms,
            heal_ms=None if heal is None else (onset + heal) * timeout_ms,
            settle_ms=20 * timeout_ms,
        )
        world = World(self.scenario, maker=maker or stack, level="full" if heal is not None else "deliver")
        if false_hint is not None:  # the first is told that the second's port is closed, which is not true
            told, about = false_hint
            hint = ("unreachable", 0, about)
            world.schedule.later(self.ns(0.0), world.driver.give, world.hosts[told], hint)
        self.outcome = world.run()
        self.end_ns = round(end_ms * MS)

    # ---------------------------------------------------------------------------------------------------------- time

    def ns(self, timeouts: float) -> int:
        """A time in T after the onset, in nanoseconds of the run."""
        return round((self.onset + timeouts) * self.timeout_ms * MS)

    @property
    def l1(self) -> float:
        """The bound for one view, in T."""
        return 2.2 + 10 * self.n * HOP_US / 1000 / self.timeout_ms

    # --------------------------------------------------------------------------------------------------------- views

    @cached_property
    def views(self) -> list[Row]:
        """Regular views installed, in the order of time."""
        rows = [r for r in self.outcome.trace.rows if r.kind == Kind.VIEW and r.view_kind == ViewKind.REGULAR]
        return sorted(rows, key=lambda row: row.time_ns)

    def count(self, since: float, until: float | None = None, among: Iterable[int] | None = None) -> int:
        """The most views any member installs in a stretch of time, in T after the onset."""
        end = self.end_ns if until is None else self.ns(until)
        counts = dict.fromkeys(among or range(1, self.n + 1), 0)
        for row in self.views:
            if row.member in counts and self.ns(since) < row.time_ns <= end:
                counts[row.member] += 1
        return max(counts.values())

    def cells(self, at: float | None = None) -> dict[int, tuple[int, ...]]:
        """The last view of each member that is up, at a time."""
        end = self.end_ns if at is None else self.ns(at)
        last: dict[int, tuple[int, ...]] = {}
        rows = sorted(self.outcome.trace.rows, key=lambda row: row.time_ns)
        for row in rows:
            if row.time_ns > end:
                break
            if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR:
                last[row.member] = row.members or ()
            elif row.kind in (Kind.CRASH, Kind.LEAVE):
                last.pop(_victim(row), None)
        return last

    def partition(self, at: float | None = None) -> list[tuple[int, ...]]:
        """The views in force, largest first; fails unless they are disjoint and complete."""
        cells = self.cells(at)
        for members in cells.values():
            assert all(cells.get(r) == members for r in members), f"views at {at}: {cells}"
        return sorted(set(cells.values()), key=lambda members: (-len(members), members))

    def reached(self, members: Iterable[int], since: float) -> float | None:
        """How long after `since`, in T, until the last of `members` is in a view of exactly these, for good."""
        wanted = tuple(sorted(members))
        last = {row.member: row for row in self.views}
        if any(q not in last or last[q].members != wanted for q in wanted):
            return None
        return max(last[q].time_ns for q in wanted) / (self.timeout_ms * MS) - self.onset - since

    def joined(self, members: Iterable[int], since: float) -> float | None:
        """How long after `since`, in T, until all of `members` are first in one view of exactly these."""
        wanted = tuple(sorted(members))
        first: dict[tuple[int | None, int | None], dict[int, int]] = {}
        for row in self.views:
            if row.time_ns >= self.ns(since) and row.members == wanted:
                done = first.setdefault((row.view_seq, row.view_rep), {})
                done[row.member] = row.time_ns
                if len(done) == len(wanted):
                    return max(done.values()) / (self.timeout_ms * MS) - self.onset - since
        return None

    def left_at(self, member: int) -> float:
        """When a member had said its first Leave, in T after the onset: T_gap before it was gone."""
        rows = [row for row in self.outcome.trace.rows if row.kind == Kind.LEAVE and row.member == member]
        return rows[0].time_ns / (self.timeout_ms * MS) - self.onset - 0.05

    def probation_until(self) -> int:
        """The end of the last probation that any member noted, in nanoseconds of the run."""
        ends = [0]
        for row in self.outcome.trace.rows:
            if row.kind == Kind.NOTE and row.detail and row.detail.get("name") == "probation":
                ends.append(row.time_ns + row.detail["until"] - row.now_ns)
        return max(ends)

    # ---------------------------------------------------------------------------------------------------- deliveries

    def silence(self, since: float) -> float:
        """The longest time without a delivery at a member of the largest view at the end, in T."""
        members = set(self.partition()[0])
        start = self.ns(since)
        last = dict.fromkeys(members, start)
        longest = 0
        for row in self.outcome.trace.rows:
            if row.kind == Kind.DELIVER and row.member in members and row.time_ns >= start:
                longest = max(longest, row.time_ns - last[row.member])
                last[row.member] = row.time_ns
        longest = max(longest, *(self.end_ns - when for when in last.values()))
        return longest / (self.timeout_ms * MS)

    def broken(self) -> list[str]:
        """Safety promises the run broke, in words."""
        safety = [p for p in self.outcome.trace.header.promises if p.startswith("S")]
        return [f"{v.promise}: {v.text}" for v in check(self.outcome.trace, safety) if v.state == BROKEN]

    def causes(self) -> list[str]:
        """Why views came, for a reader of a failing test."""
        return [
            f"{row.time_ns / MS:.2f} ms: {row.member} installs {row.members}: {(row.detail or {}).get('cause')}"
            for row in self.views
        ]


def _victim(row: Row) -> int | None:
    """Whose end a row tells: crashes are written by the simulator itself."""
    return row.sender if row.member == 0 else row.member


# ------------------------------------------------------------------------------------------------------------ faults


def cut(pairs: Pairs, at: float = 0.0, until: float | None = None, onset: float = ONSET, **how: object) -> Callable:
    """Links that carry nothing, from a time on."""
    names = tuple(f"{a}>{b}" for a, b in sorted(pairs))
    return lambda t: [_timed(Cut, t, onset, at, until, pairs=names, lasting=True, **how)] if names else []


def _timed(fault: type, t: float, onset: float, at: float, until: float | None, **fields: object) -> AnyFault:
    ends = {} if until is None else {"until_ms": (onset + until) * t}
    return fault(at_ms=(onset + at) * t, **ends, **fields)


def flap(pairs: Iterable[str], down: float, up: float) -> Callable:
    names = tuple(pairs)
    return lambda t: [_timed(Cut, t, ONSET, 0.0, None, pairs=names, lasting=True, down_ms=down * t, up_ms=up * t)]


def halves(n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(range(1, n // 2 + 1)), tuple(range(n // 2 + 1, n + 1))


def split(n: int, *stretches: tuple[float, float]) -> Callable:
    return lambda t: [_timed(Partition, t, ONSET, a, b, shape="halves", groups=halves(n)) for a, b in stretches]


def crash(member: int, *times: float, down: float | None = None) -> Callable:
    down_ms = {} if down is None else {"down_ms": down}
    return lambda t: [
        _timed(Crash, t, ONSET, at, None, member=member, **{k: v * t for k, v in down_ms.items()}) for at in times
    ]


def pause(members: Iterable[int], length: float) -> Callable:
    chosen = tuple(members)
    return lambda t: [_timed(Pause, t, ONSET, 0.0, None, member=q, for_ms=length * t) for q in chosen]


def leave(member: int, at: float = 0.0, away: float | None = None) -> Callable:
    return lambda t: [
        _timed(Leaving, t, ONSET, at, None, member=member, **({} if away is None else {"away_ms": away * t}))
    ]


def loss(pairs: Iterable[str], p: float) -> Callable:
    names = tuple(pairs)
    return lambda t: [_timed(Loss, t, ONSET, 0.0, None, pairs=names, p=p, lasting=True)]


def both(*makers: Callable) -> Callable:
    return lambda t: [fault for make in makers for fault in make(t)]


__all__ = [
    "Run",
    "both",
    "crash",
    "cut",
    "direct",
    "flap",
    "halves",
    "leave",
    "loss",
    "patterns",
    "pause",
    "split",
    "stack",
    "under",
    "variant",
]
