"""A failing run made small: fewer members, then faults, then messages, then an earlier end, while it fails.

Each step is tried with the run's own seed and a few others, because what is left out shifts what is drawn.  What cannot
be left out is made plain: one size, one delay, no cost, every number its default, so that what remains is what matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.nets import apart
from ordercast.sim import faults as f
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Hosts, Load, Net, Scenario, Start
from ordercast.swarm.judge import DISAGREE, RAISES, Judgement, Maker, judge
from ordercast.swarm.shapes import gateways

SEEDS = 4  # other seeds that a step is tried with
PLAIN_NETS = ((Net(),), (Net(model="links", delay=Delay("uniform", low_us=50.0, high_us=500.0)),))
PLAIN_LOADS = (Load(), Load(regime="bursts", rate=100.0, burst=3), Load(regime="saturate", window=4))
MESSAGES = (1, 2, 3, 4, 5, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128, 181, 256)


class Shrunk(Struct, frozen=True):
    """The smallest run found that still breaks the promise."""

    scenario: Scenario
    promise: str
    steps: tuple[str, ...]  # what was left out, in order
    runs: int
    messages: int


def shrink(
    scenario: Scenario,
    promise: str,
    *,
    maker: Maker | None = None,
    budget_s: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Shrunk:
    """Raise UsageError when the scenario does not fail the promise to begin with."""
    shrinker = _Shrinker(scenario, promise, maker, clock() + budget_s, clock)
    if not shrinker.fails(scenario):
        raise UsageError(f"the run to be shrunk does not break {promise}")
    shrinker.run()
    return Shrunk(shrinker.best, promise, tuple(shrinker.steps), shrinker.runs, shrinker.messages)


class _Shrinker:
    def __init__(
        self, scenario: Scenario, promise: str, maker: Maker | None, deadline: float, clock: Callable[[], float]
    ) -> None:
        self.best, self.promise, self.maker = scenario, promise, maker
        self.deadline, self.clock = deadline, clock
        self.steps: list[str] = []
        self.runs = 0
        self.messages = 0
        self.place = ""  # where it raised
        self.tried: set[bytes] = set()

    def run(self) -> None:
        """Round after round until nothing gets smaller or the time is over."""
        while self.clock() < self.deadline:
            before = self.best
            for stage in (
                self.fewer_members, self.fewer_faults, self.plainer, self.fewer_messages, self.earlier_end,
            ):  # fmt: skip
                stage()
            if self.best == before:
                return

    # ---------------------------------------------------------------------------------------------------- one step

    def fails(self, candidate: Scenario) -> bool:
        """Whether it still breaks the same promise."""
        self.runs += 1
        judgement = judge(candidate, maker=self.maker, **self._what())
        found = next((b for b in judgement.breaks if b.promise == self.promise), None)
        if found is None or (self.promise == RAISES and not self._same_place(found.text)):
            return False
        self.messages = messages_of(judgement, candidate)
        return True

    def _same_place(self, text: str) -> bool:
        """An error counts as the same when it was raised at the same line."""
        place = text.rpartition("(")[2]
        self.place = self.place or place
        return place == self.place

    def _what(self) -> dict[str, Any]:
        if self.promise == RAISES:
            return {"promises": ()}
        return {"plain": True} if self.promise == DISAGREE else {"promises": (self.promise,)}

    def attempt(self, candidate: Scenario | None, step: str, seeds: int = SEEDS) -> bool:
        """Take it if it fails too, with its own seed or another."""
        if candidate is None or candidate == self.best:
            return False
        try:
            candidate.check()
        except UsageError:
            return False
        others = [s for s in range(1, seeds + 1) if s != candidate.seed]
        for seed in (candidate.seed, *others):
            if self.clock() >= self.deadline:
                return False
            one = candidate.changed(seed=seed)
            key = msgspec.json.encode(one)
            if key in self.tried:
                continue
            self.tried.add(key)
            if self.fails(one):
                self.best = one
                self.steps.append(step)
                return True
        return False

    def first_of(self, candidates: Iterable[tuple[Scenario | None, str]], seeds: int = SEEDS) -> bool:
        return any(self.attempt(candidate, step, seeds) for candidate, step in candidates)

    # ------------------------------------------------------------------------------------------------------ stages

    def fewer_members(self) -> None:
        n = self.best.members
        for count in range(1, n):
            ids = self.best.ids
            choices = dict.fromkeys((ids[:count], ids[-count:], (ids[0], *ids[n - count + 1 :])))
            if self.first_of((keep_members(self.best, keep), f"{count} members") for keep in choices if keep):
                return

    def fewer_faults(self) -> None:
        """None at all, then halves, then one by one; what stays acts from the beginning and strongly."""
        if not self.best.faults or self.attempt(self.best.changed(faults=()), "no faults"):
            return
        size = max(1, len(self.best.faults) // 2)
        while size >= 1:
            k = 0
            while k < len(self.best.faults):
                faults = self.best.faults
                if not self.attempt(
                    self.best.changed(faults=faults[:k] + faults[k + size :]), f"{len(faults) - size} faults", 2
                ):
                    k += size
            size //= 2
        for k, fault in enumerate(self.best.faults):
            for stronger in _stronger(fault):
                faults = self.best.faults
                self.attempt(self.best.changed(faults=(*faults[:k], stronger, *faults[k + 1 :])), "a plainer fault", 2)

    def plainer(self) -> None:
        """Everything that is not its default, made the default."""
        for name, value in (
            ("hosts", Hosts()), ("clocks", Clocks()), ("start", Start()), ("options", {}), ("wire", False),
            ("sizes", (64,)), ("pack", True), ("packet_bytes", 0), ("datagram_bytes", 1472),
            ("timeout_ms", 40.0), ("core", ()), ("senders", ()),
        ):  # fmt: skip
            if getattr(self.best, name) != value:
                self.attempt(self.best.changed(**{name: value}), f"plain {name}", 2)
        self.simpler("nets", PLAIN_NETS, "a plain net")
        if len(self.best.sizes) > 1:
            self.first_of((self.best.changed(sizes=(size,)), "one size") for size in self.best.sizes)
        if self.best.load.rates:
            plain = msgspec.structs.replace(self.best.load, rates=())
            self.attempt(self.best.changed(load=plain), "one rate for all", 2)
        self.simpler("load", PLAIN_LOADS, "a plain load")

    def simpler(self, name: str, values: Sequence[Any], step: str) -> None:
        """The first of these values that still fails; what is one of them already only becomes an earlier one."""
        for value in values:
            if getattr(self.best, name) == value or self.attempt(self.best.changed(**{name: value}), step, 2):
                return

    def fewer_messages(self) -> None:
        best = self.best
        self.first_of(
            ((best.changed(messages=0), "only closing messages"), (best.changed(closing=0), "no closing ones"))
        )
        for closing in (1, 2, 3, 4):
            if closing < self.best.closing and self.attempt(
                self.best.changed(closing=closing), "fewer closing ones", 2
            ):
                break
        for k, fault in enumerate(best.faults):
            if isinstance(fault, f.Burst):
                for messages in (1, 2, 3, 4):
                    less = msgspec.structs.replace(fault, messages=messages)
                    faults = (*self.best.faults[:k], less, *self.best.faults[k + 1 :])
                    if messages < fault.messages and self.attempt(self.best.changed(faults=faults), "smaller burst", 2):
                        break
        for messages in MESSAGES:
            if messages >= self.best.messages:
                return
            wanted = (self.best.changed(messages=messages, load=load) for load in _loads(self.best.load))
            if self.first_of(((one, f"{messages} messages") for one in wanted), 3 * SEEDS):
                return

    def earlier_end(self) -> None:
        best = self.best
        if best.heal_ms is not None:
            self.attempt(best.changed(heal_ms=None, core=(), closing=0), "no heal point", 1)
            for share in (0.05, 0.25, 0.5, 0.75):
                if self.best.heal_ms is None or self.attempt(_sooner(self.best, share), "an earlier heal", 2):
                    break
        for share in (0.02, 0.1, 0.3, 0.6):
            limit = float(f"{self.best.limit_ms * share:.3g}")
            if self.attempt(self.best.changed(limit_ms=limit), "an earlier end", 1):
                break


# ------------------------------------------------------------------------------------------------------------ changes


def messages_of(judgement: Judgement, scenario: Scenario) -> int:
    if judgement.outcome is not None:
        return judgement.outcome.messages
    return (
        scenario.messages
        + scenario.closing
        + sum(fault.messages for fault in scenario.faults if isinstance(fault, f.Burst))
    )


def _loads(load: Load) -> Iterator[Load]:
    yield load
    yield Load()
    yield Load(regime="bursts", rate=200.0, burst=2)


def _stronger(fault: f.AnyFault) -> Iterator[f.AnyFault]:
    """The same fault, acting all the time, on every pair, often."""
    changes: list[dict[str, Any]] = []
    if isinstance(fault, f.LinkFault):
        changes += [{"at_ms": 0.0, "until_ms": None}, {"pairs": ()}, {"packets": ()}, {"down_ms": 0.0, "up_ms": 0.0}]
    if hasattr(fault, "p"):
        changes += [{"p": 0.3}]
    for change in changes:
        stronger = msgspec.structs.replace(fault, **change)
        if stronger != fault:
            yield stronger
    if len(changes) > 1:
        yield msgspec.structs.replace(fault, **{key: value for change in changes for key, value in change.items()})


def _sooner(scenario: Scenario, share: float) -> Scenario | None:
    """Everything planned happens at `share` of its time."""
    if scenario.heal_ms is None:
        return None

    def less(value: float) -> float:
        return round(value * share, 2)

    faults = tuple(
        msgspec.structs.replace(
            fault, at_ms=less(fault.at_ms), until_ms=None if fault.until_ms is None else less(fault.until_ms)
        )
        for fault in scenario.faults
    )
    rates = tuple(msgspec.structs.replace(pace, at_ms=less(pace.at_ms)) for pace in scenario.load.rates)
    load = msgspec.structs.replace(scenario.load, start_ms=less(scenario.load.start_ms), rates=rates)
    return scenario.changed(heal_ms=less(scenario.heal_ms), faults=faults, load=load)


def keep_members(scenario: Scenario, keep: Sequence[int]) -> Scenario | None:
    """The scenario of these members alone, renumbered from 1; faults that named others are gone or name nobody."""
    new = {old: k for k, old in enumerate(sorted(keep), 1)}
    n = len(new)

    def those(ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(new[m] for m in ids if m in new)

    if scenario.senders and not those(scenario.senders):
        return None
    core = those(scenario.core)
    if scenario.core and not core:
        return None
    if any(net.members and not those(net.members) for net in scenario.nets):
        return None  # a net of nobody would be one of all
    nets = tuple(
        msgspec.structs.replace(net, members=those(net.members), edges=())
        if net.model != "graph"
        else Net(members=those(net.members))
        for net in scenario.nets
    )
    if apart([net.members or range(1, n + 1) for net in nets]):
        return None  # rings without a gateway
    gates = gateways(nets)
    faults = tuple(kept for fault in scenario.faults if (kept := _renumbered(fault, new, n)) is not None)
    rates = tuple(
        msgspec.structs.replace(pace, members=those(pace.members))
        for pace in scenario.load.rates
        if not pace.members or those(pace.members)
    )
    load = msgspec.structs.replace(scenario.load, rates=rates)
    return scenario.changed(
        members=n, senders=those(scenario.senders), core=core if len(core) < n else (), nets=nets, faults=faults,
        load=load, pure=tuple(id for id in those(scenario.pure) if id in gates),
    )  # fmt: skip


def _renumbered(fault: f.AnyFault, new: dict[int, int], n: int) -> f.AnyFault | None:
    change: dict[str, Any] = {}
    if isinstance(fault, f.LinkFault) and fault.pairs:
        pairs = tuple(kept for pair in fault.pairs if (kept := _renumbered_pair(pair, new)))
        if not pairs:
            return None
        change["pairs"] = pairs
    if isinstance(fault, f.Partition) and fault.groups:
        change["groups"] = tuple(tuple(new[m] for m in group if m in new) for group in fault.groups)
    member = getattr(fault, "member", None)
    if member is not None:
        if member not in new:
            return None
        change["member"] = new[member]
    if isinstance(fault, f.Swizzle) and fault.members:
        change["members"] = tuple(new[m] for m in fault.members if m in new)
    if n < 2 and isinstance(fault, f.Partition):
        return None
    return msgspec.structs.replace(fault, **change) if change else fault


def _renumbered_pair(pair: str, new: dict[int, int]) -> str:
    left, right, both = f.split_pair(pair)
    ends = [end if end == "*" else str(new.get(int(end), 0)) for end in (left, right)]
    return "" if "0" in ends else f"{ends[0]}{'-' if both else '>'}{ends[1]}"
