"""The table of scenarios: what each must show, as functions (n, T, seed) -> Figures with a list of what went wrong.

It holds for any protocol with views (`mb.under`).  What stands on the view-synchronous layer needs direct links, where
a ring does without some: there MB3, MB8 and MB16 cost a view, and MB17 costs none until a view is needed.
Tests run a part of it, `benchmarks/membership_figures.py` all of it.  SHORT holds the same rows, the long ones cut
down to seconds; known-bad variants are held against those.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import permutations
from typing import Any

import patterns as p
from mb import ONSET, Run, answering, both, crash, cut, direct, flap, halves, leave, loss, pause, split, stack
from msgspec import Struct

from ordercast.contract import Setup
from ordercast.sim.faults import AnyFault, Crash, Cut, Loss, Pause
from ordercast.stack import Stack

TOKENS = ("Token", "CommitToken")
LAYER_TOKENS = ("FlushToken", "CommitToken")
CLIQUES = {3: (3,), 4: (2, 2), 5: (2, 2, 1), 7: (3, 3, 1), 9: (3, 3, 3)}  # of MB8


class Figures(Struct):
    """What one scenario showed."""

    id: str
    pattern: str
    n: int
    timeout_ms: float
    on: int = 0  # most views of a member at the onset
    after: int = 0  # later on
    views: str = ""  # in force at the end
    silence: float | None = None  # in T
    more: str = ""
    wrong: list[str] = []

    def expect(self, holds: bool, text: str) -> None:
        if not holds:
            self.wrong.append(text)


def shape(partition: list[tuple[int, ...]]) -> str:
    return " ".join("".join(map(str, members)) for members in partition)


def safe(figures: Figures, run: Run) -> None:
    for text in run.broken():
        figures.wrong.append(text)


def settled(
    id: str, pattern: str, run: Run, *, on: int, after: int = 0, late: float | None = None, silence: float = 2.5
) -> Figures:
    """The common part: views at the onset and after, one partition from then on, no silence, safety."""
    late = 4 * run.l1 if late is None else late
    figures = Figures(id, pattern, run.n, run.timeout_ms)
    safe(figures, run)
    try:
        partition = run.partition()
        figures.views = shape(partition)
        figures.expect(after > 0 or run.partition(late) == partition, f"views still changed after {late:.1f} T")
        figures.silence = round(run.silence(late), 2)
        figures.expect(figures.silence <= silence, f"silent for {figures.silence} T, at most {silence} expected")
    except AssertionError as why:
        figures.wrong.append(str(why))
    figures.on, figures.after = run.count(0, late), run.count(late)
    figures.expect(figures.on <= on, f"{figures.on} views at the onset, at most {on} expected")
    figures.expect(figures.after <= after, f"{figures.after} views later, at most {after} expected")
    if figures.wrong:
        figures.wrong += run.causes()
    return figures


def largest(figures: Figures, run: Run, *wanted: tuple[int, ...]) -> Figures:
    found = run.partition()[0] if not figures.wrong else ()
    figures.expect(not found or found in wanted, f"largest view {found}, expected one of {wanted}")
    return figures


def size(figures: Figures, run: Run, *sizes: int) -> Figures:
    found = [len(members) for members in run.partition()] if not figures.wrong else []
    figures.expect(not found or found == list(sizes), f"views of sizes {found}, expected {list(sizes)}")
    return figures


def without(n: int, *gone: int) -> tuple[int, ...]:
    return tuple(q for q in range(1, n + 1) if q not in gone)


# -------------------------------------------------------------------------------------------------- permanent patterns


def mb1(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.one_way_next(n)), until=60, seed=seed)
    return largest(settled("MB1", "1>2", run, on=1), run, without(n, 1), without(n, 2))


def mb2(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.one_way_wrap(n)), until=60, seed=seed)
    return largest(settled("MB2", "n>1", run, on=1), run, without(n, 1), without(n, n))


def mb3(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.one_way_far(n) if n > 3 else frozenset()), until=60, seed=seed)
    if direct() and n > 3:
        return largest(settled("MB3", "1>3", run, on=1), run, without(n, 1), without(n, 3))
    return largest(settled("MB3", "1>3", run, on=0), run, without(n))


def mb4(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.pair(n)), until=60, seed=seed)
    return largest(settled("MB4", "1-n", run, on=1), run, without(n, 1), without(n, n))


def mb5(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.two_pairs(n)), until=60, seed=seed)
    return largest(settled("MB5", "1-2, 1-n", run, on=1), run, without(n, 1))


def mb6(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.bridge(n)), until=60, seed=seed)
    return size(settled("MB6", "bridge", run, on=1), run, n // 2 + 1, n // 2)


def mb7(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.weak_bridge(n)), until=60, seed=seed)
    h = n // 2
    return size(settled("MB7", "weak bridge", run, on=1), run, max(n - h, 2), min(h, n - 2))


def mb8(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.majorities(n)), until=60, seed=seed)
    if direct():
        return size(settled("MB8", "majorities", run, on=2), run, *CLIQUES[n])
    return largest(settled("MB8", "majorities", run, on=0), run, without(n))


def mb9(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.one_way_majorities(n)), until=60, seed=seed)
    return size(settled("MB9", "one-way majorities", run, on=1), run, *[1] * n)


def mb10(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.deaf(n)), until=60, seed=seed)
    return largest(settled("MB10", "1 deaf", run, on=1), run, without(n, 1))


def mb11(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.mute(n)), until=60, seed=seed)
    return largest(settled("MB11", "1 mute", run, on=1), run, without(n, 1))


def mb12(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.half_deaf(n)), until=60, seed=seed)
    figures = settled("MB12", "1 hears only 2", run, on=1)
    return size(figures, run, 2, 1) if n == 3 else largest(figures, run, without(n, 1))


def mb13(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.star(n)), until=60, seed=seed)
    return size(settled("MB13", "star", run, on=1), run, 2, *[1] * (n - 2))


def mb14(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut(p.path(n)), until=60, seed=seed)
    return size(settled("MB14", "path", run, on=1), run, *[2] * (n // 2), *[1] * (n % 2))


def mb15(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut({(1, 2)}, cast="unicast"), until=60, seed=seed)
    return largest(settled("MB15", "unicasts 1>2", run, on=0), run, without(n))


def mb16(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, cut({(1, 2)}, cast="multicast"), until=60, seed=seed)
    if direct():
        return largest(settled("MB16", "multicasts 1>2", run, on=1), run, without(n, 1), without(n, 2))
    return largest(settled("MB16", "multicasts 1>2", run, on=0), run, without(n))


def mb17(n: int, t: float, seed: int = 1, until: float = 800) -> Figures:
    if direct():
        run = Run(n, t, cut({(1, 2)}, packets=LAYER_TOKENS), until=60, seed=seed)
        return largest(settled("MB17", "tokens 1>2", run, on=0), run, without(n))
    run = Run(n, t, cut({(1, 2)}, packets=TOKENS), until=until, seed=seed)
    figures = settled("MB17", "tokens 1>2", run, on=2, after=11, silence=4)
    figures.more = f"{run.count(0)} views in {until:.0f} T"
    figures.expect(run.count(0) <= 11, figures.more)
    return size(figures, run, n - 1, 1)


def mb18(n: int, t: float, seed: int = 1) -> Figures:
    pattern = p.random_cuts(n)
    run = Run(n, t, cut(pattern), until=60, seed=seed)
    figures = settled("MB18", "each ordered pair cut with 0.2", run, on=1)
    found = len(run.partition()[0]) if not figures.wrong else 0
    figures.expect(not found or found in (p.clique_number(n, pattern), n), f"largest view has {found} members")
    return figures


FROM_THE_START: dict[str, Callable[[int], p.Pairs]] = {
    "MB4": p.pair, "MB6": p.bridge, "MB8": p.majorities, "MB10": p.deaf, "MB13": p.star, "MB18": p.random_cuts,
}  # fmt: skip


def mb19(n: int, t: float, seed: int = 1, which: str = "MB4") -> Figures:
    pattern = FROM_THE_START[which](n)
    run = Run(n, t, cut(pattern, onset=0), until=50, onset=0, seed=seed)
    figures = settled("MB19", f"{which} from the start", run, on=3)
    found = len(run.partition()[0]) if not figures.wrong else 0
    figures.expect(not found or found == p.clique_number(n, pattern), f"largest view has {found} members")
    return figures


# ------------------------------------------------------------------------------------------------------ flapping links

KINDS = {"link 1-2": ("1-2",), "1>2": ("1>2",), "all links of 1": ("1-*",)}


def mb20(n: int, t: float, seed: int = 1, kind: str = "link 1-2") -> Figures:
    run = Run(n, t, flap(KINDS[kind], 0.5, 0.5), until=120, seed=seed)
    return largest(settled("MB20", f"{kind}: 0.5 T down, 0.5 T up", run, on=0), run, without(n))


def mb21(n: int, t: float, seed: int = 1, kind: str = "link 1-2", phase: float = 1.5, until: float = 450) -> Figures:
    run = Run(n, t, flap(KINDS[kind], phase, phase), until=until, seed=seed)
    figures = settled("MB21", f"{kind}: {phase} T down, {phase} T up", run, on=6, late=until / 2)
    return size(figures, run, n - 1, 1)


def mb22(n: int, t: float, seed: int = 1, kind: str = "link 1-2", until: float = 800) -> Figures:
    run = Run(n, t, flap(KINDS[kind], 3, 20), until=until, seed=seed)
    figures = settled("MB22", f"{kind}: 3 T down, 20 T up", run, on=10, after=10, late=until / 2)
    figures.more = f"{run.count(0)} views in {until:.0f} T"
    figures.expect(run.count(0) <= 10, figures.more)
    return figures


def mb23(n: int, t: float, seed: int = 1, until: float = 800) -> Figures:
    run = Run(n, t, loss(["1>2"], 0.7), until=until, seed=seed)
    figures = settled("MB23", "1>2 loses 70 %", run, on=10, after=10, late=until / 2)
    figures.more = f"{run.count(0)} views in {until:.0f} T"
    figures.expect(run.count(0) <= 10, figures.more)
    found = len(run.partition()[0]) if not figures.wrong else n
    figures.expect(found >= n - 1, f"largest view has {found} members")
    return figures


# ----------------------------------------------------------------------------------------- crashes, splits, restarts


def within(figures: Figures, what: str, found: float | None, bound: float) -> None:
    text = "never" if found is None else f"{found:.2f} T"
    figures.more = f"{figures.more}, {what} {text}".strip(", ")
    figures.expect(found is not None and found <= bound, f"{what}: {text}, at most {bound:.2f} T expected")


def mb24(n: int, t: float, seed: int = 1, member: int = 2) -> Figures:
    at = 0.13 * member
    run = Run(n, t, crash(member, at), until=30, seed=seed)
    figures = settled("MB24", f"crash of {member}", run, on=1)
    within(figures, "view", run.reached(without(n, member), at), 2)
    return figures


def mb25(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, split(n, (0, 6)), until=40, seed=seed)
    figures = settled("MB25", "split, merge 6 T later", run, on=2)
    figures.expect(run.count(0, 6) == 1 and run.count(6) == 1, f"{run.count(0, 6)} and {run.count(6)} views")
    for half in halves(n):
        within(figures, "split", run.joined(half, 0), 2)
    within(figures, "merge", run.joined(without(n), 6), 1)
    return figures


def mb26(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, split(n, (0, 5), (10, 15)), until=50, seed=seed)
    figures = settled("MB26", "two splits and merges in 20 T", run, on=4, late=15 + 2 * 3)
    for merge in (5, 15):
        within(figures, "merge", run.joined(without(n), merge), 2 * run.l1)
    return figures


def mb27(n: int, t: float, seed: int = 1, down: float = 6.0) -> Figures:
    run = Run(n, t, crash(2, 0, down=down), until=down + 30, seed=seed)
    figures = settled("MB27", f"restart after {down} T", run, on=2, late=down + 4 * run.l1)
    within(figures, "back", run.joined(without(n), down), 1)
    return figures


def mb27_six(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, crash(2, *[12.0 * k for k in range(6)], down=6), until=90, seed=seed)
    figures = settled("MB27", "six restarts 6 T apart", run, on=12, late=72)
    for k in range(6):
        within(figures, "back", run.joined(without(n), 12 * k + 6), 2 * run.l1)
    return figures


def mb28(n: int, t: float, seed: int = 1, length: float = 3.0, everybody: bool = False) -> Figures:
    run = Run(n, t, pause(without(n) if everybody else [2], length), until=length + 30, seed=seed)
    who = "all" if everybody else "2"
    costs = 0 if everybody or length < 1 else 2
    figures = settled("MB28", f"pause of {who} for {length} T", run, on=costs, late=length + 4 * run.l1)
    if costs:
        within(figures, "back", run.joined(without(n), length), 1)
    return largest(figures, run, without(n))


def mb29(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, leave(2), until=30, seed=seed)
    figures = settled("MB29", "leave", run, on=1)
    found = run.reached(without(n, 2), run.left_at(2))
    within(figures, "view after the Leave", found, 0.4)
    return figures


def mb29_hint(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, crash(2, 0), until=30, unreachable=True, seed=seed)
    figures = settled("MB29", "crash, port unreachable", run, on=1)
    bound = 0.6 + (0.3 if direct() else 0)  # the layer knocks at a silent one that owes something: a message and T/5
    within(figures, "view", run.reached(without(n, 2), 0), bound)
    return figures


def mb30(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, until=30, false_hint=(2, min(4, n)), seed=seed)
    figures = settled("MB30", "false hint", run, on=2)
    within(figures, "back", run.joined(without(n), 0), 2 * run.l1)
    return largest(figures, run, without(n))


def mb31(n: int, t: float, seed: int = 1, calm: float = 3200, cap: float = 400) -> Figures:
    stretches = [(8.0 * k, 8.0 * k + 4) for k in range(6)]
    last = 48 + calm
    run = Run(
        n, t, split(n, *stretches, (last, last + 4)), until=last + 40, seed=seed, maker=capped(cap * t),
        rate=0.1,
    )  # fmt: skip
    figures = Figures("MB31", f"six splits, {calm:.0f} T calm, one split", n, t)
    safe(figures, run)
    figures.on, figures.views = run.count(0, 60), shape(run.partition())
    within(figures, "merge", run.joined(without(n), last + 4), 2 * run.l1)
    return figures


def capped(cap_ms: float) -> Callable[[Setup], Stack]:
    """The ring with a shorter longest probation, so that strikes are forgotten within a test."""

    def maker(setup: Setup) -> Stack:
        made = stack(setup)
        ring: Any = made.nodes[-1].layer
        ring.membership.sight.evidence.cap_ns = round(cap_ms * 1_000_000)
        return made

    return maker


def mb32(n: int, t: float, seed: int = 1) -> Figures:
    run = Run(n, t, both(cut(p.pair(n)), leave(1, at=20, away=20)), until=80, seed=seed)
    figures = Figures("MB32", "MB4, the one inside leaves and returns", n, t)
    safe(figures, run)
    before, after = run.cells(39), run.cells()
    figures.views = shape(run.partition())
    figures.expect(1 in run.cells(19)[2], "1 was not in the large view")
    figures.expect(before[n] == without(n, 1), f"{n} is in {before[n]}")
    figures.expect(after[n] == without(n, 1) and after[1] == (1,), f"views at the end: {after}")
    figures.on = run.count(40, among=without(n, 1))
    figures.expect(figures.on == 0, f"{figures.on} views at its return")
    return figures


def mb34(n: int, t: float, seed: int = 1, until: float = 400) -> Figures:
    """Of the layer alone: what carries messages or answers from 1 to 2 is lost; heartbeats and repair pass."""
    return _unheard("MB34", "data, answers 1>2", n, t, seed, until)


def mb34_unrepaired(n: int, t: float, seed: int = 1, until: float = 400) -> Figures:
    """MB34, and what repairs is lost on this link as well."""
    return _unheard("MB34 repair", "data, answers, repair 1>2", n, t, seed, until, "Retrans")


def _unheard(name: str, words: str, n: int, t: float, seed: int, until: float, *lost: str) -> Figures:
    """With a third member whatever 2 lacks is repaired by others, and nobody minds.  Who needs answers strikes the link
    every 2.5 T, and the third strike parts the two (decision 0140)."""
    run = Run(n, t, cut({(1, 2)}, packets=("Data", "Unicast", "FlushData", *lost)), until=until, seed=seed)
    figures = settled(name, words, run, on=4 if answering() else 0, after=15, silence=8)
    figures.more = f"{run.count(0)} views in {until:.0f} T"
    figures.expect(run.count(0) <= 15, figures.more)
    return largest(figures, run, *((without(n, 1), without(n, 2)) if answering() else (without(n),)))


# --------------------------------------------------------------------------------------------------------- random ones


def mb33(seed: int) -> Figures:
    """Random lopsided faults that come and go; then all heals, and one view of all must come."""
    rng = random.Random(seed)
    n, t = rng.randint(3, 7), rng.choice([40.0, 200.0])
    faults: list[AnyFault] = []
    heal = ONSET + rng.uniform(20, 60)
    for _ in range(rng.randint(1, 6)):
        faults.append(_random_fault(rng, n, t, heal))
    run = Run(n, t, lambda _: faults, until=heal - ONSET + 60 + 1600, seed=seed, heal=heal - ONSET)
    figures = Figures("MB33", "random, then all heals", n, t)
    safe(figures, run)
    healed = heal - ONSET
    found = run.reached(without(n), healed)
    until = (run.probation_until() - run.ns(healed)) / (t * 1_000_000)
    within(figures, "one view", None if found is None else max(0.0, found), 2 * run.l1 + max(0.0, until))
    if figures.wrong:
        figures.wrong += run.causes()
    return figures


def _random_fault(rng: random.Random, n: int, t: float, heal: float) -> AnyFault:
    at = rng.uniform(ONSET, heal - 5)
    until = min(heal, at + rng.uniform(1, 25))
    when = {"at_ms": at * t, "until_ms": until * t}
    share = rng.uniform(0.1, 0.5)
    pairs = tuple(f"{a}>{b}" for a, b in permutations(range(1, n + 1), 2) if rng.random() < share) or ("1>2",)
    kind = rng.choice(["cut", "cut", "unicast", "multicast", "tokens", "pause", "crash", "restart", "loss"])
    member = rng.randint(1, n)
    match kind:
        case "unicast" | "multicast":
            return Cut(pairs=pairs, cast=kind, **when)
        case "tokens":
            return Cut(pairs=pairs, packets=LAYER_TOKENS if direct() else TOKENS, **when)
        case "pause":
            return Pause(at_ms=at * t, member=member, for_ms=rng.uniform(0.3, 6) * t)
        case "crash" | "restart":
            down = rng.uniform(0.1, 10) if kind == "restart" else max(0.1, heal - at - 1)
            return Crash(at_ms=at * t, member=member, down_ms=down * t)
        case "loss":
            return Loss(pairs=pairs, p=rng.uniform(0.1, 0.7), **when)
        case _:
            return Cut(pairs=pairs, **when)


# ----------------------------------------------------------------------------------------------------------- the table

Scenario = Callable[[int, float, int], Figures]


def _with(function: Callable[..., Figures], **options: Any) -> Scenario:
    return lambda n, t, seed=1: function(n, t, seed, **options)


ROWS: dict[str, Scenario] = {
    "MB1": mb1, "MB2": mb2, "MB3": mb3, "MB4": mb4, "MB5": mb5, "MB6": mb6, "MB7": mb7, "MB8": mb8, "MB9": mb9,
    "MB10": mb10, "MB11": mb11, "MB12": mb12, "MB13": mb13, "MB14": mb14, "MB15": mb15, "MB16": mb16, "MB17": mb17,
    "MB18": mb18,
    **{f"MB19 {which}": _with(mb19, which=which) for which in FROM_THE_START},
    **{f"MB20 {kind}": _with(mb20, kind=kind) for kind in KINDS},
    **{f"MB21 {kind} {phase}": _with(mb21, kind=kind, phase=phase) for kind in KINDS for phase in (1.5, 3.0)},
    **{f"MB22 {kind}": _with(mb22, kind=kind) for kind in KINDS},
    "MB23": mb23,
    "MB24 first": _with(mb24, member=1), "MB24": mb24,
    "MB25": mb25, "MB26": mb26,
    "MB27 slow": mb27, "MB27 quick": _with(mb27, down=0.2), "MB27 six": mb27_six,
    "MB28 short": _with(mb28, length=0.5), "MB28 long": mb28, "MB28 all": _with(mb28, everybody=True),
    "MB29 leave": mb29, "MB29 hint": mb29_hint, "MB30": mb30, "MB31": mb31, "MB32": mb32,
}  # fmt: skip
SHORT = ROWS | {
    "MB17": _with(mb17, until=120),
    **{
        f"MB21 {kind} {phase}": _with(mb21, kind=kind, phase=phase, until=100) for kind in KINDS for phase in (1.5, 3.0)
    },
    **{f"MB22 {kind}": _with(mb22, kind=kind, until=120) for kind in KINDS},
    "MB23": _with(mb23, until=100),
    "MB31": _with(mb31, calm=400, cap=40),
}  # fmt: skip
LAYER_ONLY = {"MB34": mb34, "MB34 repair": mb34_unrepaired}
NEEDS_FOUR = ("MB3", "MB5", "MB30")  # meaningless for three members
