"""Runs the membership's table of scenarios on the whole stack and writes docs/protocols/membership-figures.md.

`make membership`.  All rows for 3, 5 and 9 members and two timeouts take a while (more than an hour on two idle
cores); results are kept line by line in a cache file, so that an interrupted run goes on where it stopped.
`--protocol toto`: only the section of a protocol on the view-synchronous layer; the rest of the page stays as it is.
Exit code 1 if a row did not show what it must.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "membership")]

import mb  # noqa: E402
import mb_table  # noqa: E402
from mb_table import LAYER_ONLY, NEEDS_FOUR, ROWS, Figures, without  # noqa: E402

from ordercast import registry  # noqa: E402
from ordercast.contract import Setup  # noqa: E402
from ordercast.membership.tuning import Tuning  # noqa: E402
from ordercast.sim.faults import AnyFault, Pause  # noqa: E402
from ordercast.stack import Stack  # noqa: E402

Table = dict[str, list[Figures]]
PAGE = ROOT / "docs" / "protocols" / "membership-figures.md"

HEAD = """\
# Membership: figures

What broken links, crashes, splits and pauses cost, measured on the whole stack (process groups, framing, token ring,
membership) in the simulator: hops of 0.05 to 0.6 ms, one message per member and T/2, virtual time.
Written by `make membership`; the scenarios are in `tests/membership/mb_table.py`, and a part of them runs in every
`make test`. How the membership works: [the design page](../design/membership.md).
"""

PATTERNS = """\
## Views that a fault costs

*on*: the most views any member installs from the onset until 4 x L1 (some ten T). *after*: the most later on.
*views*: the sets in force at the end. *silence*: the longest time without a delivery at a member of the largest view,
in T. Every row was also judged by all safety promises of the ring; a row that broke one, or showed other than it must,
would say so in the last column.
"""

LAYER = """\
## On the view-synchronous layer: `{protocol}`

{date}.

Suspicion by silence of any member instead of token loss, and direct links are needed, so that MB3, MB8 and MB16 cost a
view where a ring does without the link. MB34 is of the layer alone. {rows} rows, {wrong} of them wrong.

| event, ms until the view, T = 40 ms | {sizes} |
|---{bars}|
"""
LAYERED = {"causal": (3, 5, 9), "toto": (3, 5), "hybrid": (3, 5)}  # what is on the page, with how many members

CLASSICAL = """\
## Beside the classical rule

The classical rule gathers at every Join and lets two sets, known and failed processors, grow until all agree. Under
lopsided connectivity it never comes to rest: each Join of somebody outside breaks the ring of those inside. Figures of
the classical rule are from a prototype of it under the same conditions (same hops and load).

| permanent patterns, 200 ms, 3 to 9 members | this rule | classical |
|---|---|---|
| views at the onset, per member | {on} | 5 to 41 |
| views per member and minute later on | {after} | 38 to 1288, except where the ring does without the link |
| longest silence in the largest view | {silence} T | from 1.6 T to for ever |
| links that pass all but tokens, views in 800 T | {tokens} | 38 to 482 per minute |
"""

TIMES_HEAD = """\
## Time until the view

Milliseconds from the event to the view at the last member, T = 40 ms, mean (worst) of {runs} runs. A crash is noticed
after T; merge, restart, leave and a hinted crash wait for no timeout at all.

| event | 3 members | 5 members | 9 members | classical, 3 / 5 / 9 |
|---|---|---|---|---|
"""

OLD_TIMES = {
    "crash": "84 / 89 / 98",
    "split": "86 / 90 / 93",
    "merge": "11 / 26 / 33",
    "restart": "18 / 21 / 28",
    "return after a pause of 3 T": "22 / 36 / 270",
    "crash with port unreachable": "-",
    "leave": "-",
}


# -------------------------------------------------------------------------------------------------------------- running


class Cache:
    """One JSON line per result."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Any] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                key, value = json.loads(line)
                self.known[key] = value

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.known:
            begun = time.monotonic()
            self.known[key] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as out:
                out.write(json.dumps([key, self.known[key]]) + "\n")
            print(f"{key}: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
        return self.known[key]


def row_figures(cache: Cache, protocol: str, name: str, n: int, t: float) -> Figures:
    def make() -> Any:
        with mb.under(protocol):
            return msgspec.to_builtins((ROWS | LAYER_ONLY)[name](n, t, 1))

    return msgspec.convert(cache.get(f"{_mark(protocol)}{name}, {n} members, {t:g} ms", make), Figures)


def _mark(protocol: str) -> str:
    return "" if protocol == "totem" else f"{protocol}, "


Timed = Callable[[int, int], float | None]


def _ms(timeouts: float | None) -> float | None:
    return None if timeouts is None else timeouts * 40.0


def timed_crash(n: int, seed: int) -> float | None:
    at = 0.17 * seed
    run = mb.Run(n, 40.0, mb.crash(2, at), until=6, seed=seed)
    return _ms(run.reached(without(n, 2), at))


def timed_split(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.split(n, (0, 6)), until=8, seed=seed)
    found = [run.joined(half, 0) for half in mb.halves(n)]
    return _ms(None if None in found else max(found))  # type: ignore[type-var]


def timed_merge(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.split(n, (0, 6)), until=12, seed=seed)
    return _ms(run.joined(without(n), 6))


def timed_restart(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.crash(2, 0, down=6), until=12, seed=seed)
    return _ms(run.joined(without(n), 6))


def timed_return(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.pause([2], 3), until=10, seed=seed)
    return _ms(run.joined(without(n), 3))


def timed_hint(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.crash(2, 0.17 * seed), until=6, seed=seed, unreachable=True)
    return _ms(run.reached(without(n, 2), 0.17 * seed))


def timed_leave(n: int, seed: int) -> float | None:
    run = mb.Run(n, 40.0, mb.leave(2), until=6, seed=seed)
    return _ms(run.reached(without(n, 2), run.left_at(2)))


TIMES: dict[str, Timed] = {
    "crash": timed_crash,
    "split": timed_split,
    "merge": timed_merge,
    "restart": timed_restart,
    "return after a pause of 3 T": timed_return,
    "crash with port unreachable": timed_hint,
    "leave": timed_leave,
}


def times_cells(cache: Cache, protocol: str, name: str, sizes: Iterable[int], runs: int) -> str:
    cells = []
    for n in sizes:
        key = f"{_mark(protocol)}time, {name}, {n} members"
        with mb.under(protocol):
            found = [cache.get(f"{key}, {k}", partial(TIMES[name], n, k)) for k in range(runs)]
        got = [ms for ms in found if ms is not None]
        cells.append(f"{statistics.mean(got):.0f} ({max(got):.0f})" if len(got) == runs else "not always")
    return " | ".join(cells)


def times_table(cache: Cache, sizes: list[int], runs: int) -> str:
    lines = [TIMES_HEAD.format(runs=runs)]
    lines += [f"| {name} | {times_cells(cache, 'totem', name, sizes, runs)} | {OLD_TIMES[name]} |\n" for name in TIMES]
    return "".join(lines)


def layer_section(cache: Cache, protocol: str, rows: Table, sizes: list[int], runs: int) -> str:
    head = LAYER.format(
        protocol=protocol, date=_today(), rows=sum(map(len, rows.values())), wrong=len(complaints(protocol, rows)),
        sizes=" | ".join(f"{n} members" for n in sizes), bars="|---" * len(sizes),
    )  # fmt: skip
    times = [f"| {name} | {times_cells(cache, protocol, name, sizes, runs)} |\n" for name in TIMES]
    return head + "".join(times) + "\n" + figures_table(rows)


def replaced(page: str, section: str) -> str:
    """The page with this section in the place of the one of its head, or at the end."""
    head = section.splitlines()[0]
    parts = [part for part in re.split(r"(?m)^(?=## )", page) if not part.startswith(head + "\n")]
    return "\n".join([part.rstrip("\n") + "\n" for part in parts] + [section])


def _today() -> str:
    return f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}"


STALLS = """\
## Stalls, and what T_loss does about them

Five members, T = 40 ms; each of them stands still about every 20 T for up to so long. Views per 100 T, counted after
the first 64 T, with T_loss fixed at T, and as it is: twice the longest rotation of the last 64 to 128 T, between T and
8 T. (A stall longer than T_loss costs its view before anything can be learnt from it; hence the first 64 T.)

| stalls up to | T_loss fixed | T_loss tunes itself |
|---|---|---|
"""


def stalls(length: float, fixed: bool, seed: int, until: float = 264.0) -> float:
    """Views per 100 T and member."""

    def faults(t: float) -> list[AnyFault]:
        rng = random.Random(seed)
        out: list[AnyFault] = []
        for member in range(1, 6):
            at = mb.ONSET
            while (at := at + rng.expovariate(1 / 20)) < mb.ONSET + until:
                out.append(Pause(at_ms=at * t, member=member, for_ms=rng.uniform(0, length) * t))
        return out

    run = mb.Run(5, 40.0, faults, until=until, seed=seed, maker=fixed_loss if fixed else None)
    return run.count(64) / (until - 64) * 100


class Fixed(Tuning):
    """T_loss stays T."""

    def observe(self, now: int, rotation_ns: int) -> bool:
        return False


def fixed_loss(setup: Setup) -> Stack:
    stack = registry.get("totem").factory(setup)
    ring: Any = stack.nodes[-1].layer
    ring.membership.sight.tuning = Fixed(setup.timeout_ns)
    return stack


def stalls_table(cache: Cache, runs: int) -> str:
    lines = [STALLS]
    for length in (0.9, 1.2, 2.0):
        cells = []
        for fixed in (True, False):
            found = []
            for k in range(runs):
                found.append(cache.get(f"stalls, {length}, {fixed}, {k}", partial(stalls, length, fixed, k)))
            cells.append(f"{statistics.mean(found):.1f}")
        lines.append(f"| {length} T | {' | '.join(cells)} |\n")
    return "".join(lines)


# ------------------------------------------------------------------------------------------------------------ the page


def figures_table(rows: Table) -> str:
    lines = ["| id | pattern | members, T | on | after | views | silence | remark |", "|---" * 8 + "|"]
    for figures in rows.values():
        for f in figures:
            remark = "; ".join(f.wrong[:1]) or f.more
            silence = "-" if f.silence is None else f"{f.silence:.2f}"
            size = f"{f.n}, {f.timeout_ms:g} ms"
            lines.append(f"| {f.id} | {f.pattern} | {size} | {f.on} | {f.after} | {f.views} | {silence} | {remark} |")
    return "\n".join(lines) + "\n"


def classical_table(rows: Table) -> str:
    permanent = [f for k in (*range(1, 17), 18) for f in rows.get(f"MB{k}", [])]
    silences = [f.silence for f in permanent if f.silence is not None]
    return CLASSICAL.format(
        on=_span([f.on for f in permanent]),
        after=_span([f.after for f in permanent]),
        silence=f"{min(silences):.1f} to {max(silences):.1f}" if silences else "-",
        tokens=_span([f.on + f.after for f in rows.get("MB17", [])]),
    )


def _span(numbers: list[int]) -> str:
    low, high = min(numbers, default="-"), max(numbers, default="-")
    return str(low) if low == high else f"{low} to {high}"


def random_table(cache: Cache, seeds: int) -> tuple[str, list[str]]:
    found = [
        msgspec.convert(cache.get(f"MB33, {k}", lambda k=k: msgspec.to_builtins(mb_table.mb33(k))), Figures)
        for k in range(seeds)
    ]
    wrong = [f"MB33 seed {k}: {f.wrong[0]}" for k, f in enumerate(found) if f.wrong]
    took = sorted(float(f.more.rpartition("one view ")[2].removesuffix(" T")) for f in found if "never" not in f.more)
    text = (
        "## Random lopsided faults (MB33)\n\n"
        "Ordered cuts of 10 to 50 % of all pairs that come and go, cuts of unicasts, multicasts or tokens alone, "
        "pauses, crashes, restarts, loss up to 70 %; then everything heals.\n"
        f"{seeds} scenarios, {len(wrong)} of them wrong. Time from the heal point to one view of all, in T: "
        f"median {took[len(took) // 2]:.2f}, 90 % within {took[len(took) * 9 // 10]:.2f}, worst {took[-1]:.2f} "
        "(a link that broke more than twice waits out its probation).\n"
    )
    return text, wrong


def table(cache: Cache, protocol: str, sizes: list[int], timeouts: list[float], only: tuple[str, ...]) -> Table:
    out: Table = {}
    for t in timeouts:
        for n in sizes:
            for name in ROWS if protocol == "totem" else ROWS | LAYER_ONLY:
                if (not only or name.startswith(only)) and (n > 3 or name not in NEEDS_FOUR):
                    out.setdefault(name, []).append(row_figures(cache, protocol, name, n, t))
    return out


def complaints(protocol: str, rows: Table) -> list[str]:
    return [
        f"{protocol}: {f.id} ({f.pattern}), {f.n}, {f.timeout_ms:g} ms: {f.wrong[0]}"
        for figures in rows.values() for f in figures if f.wrong
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--protocol", choices=LAYERED, action="append", help="only the section of this one")
    parser.add_argument("--rows", default="", help="only rows that begin with one of these, comma-separated; no page")
    parser.add_argument("--members", help="comma-separated (default: those of the page)")
    parser.add_argument("--timeouts", default="40,200", help="ms")
    parser.add_argument("--runs", type=int, default=6, help="for times and stalls")
    parser.add_argument("--seeds", type=int, default=100, help="random scenarios")
    parser.add_argument("--cache", type=Path, default=ROOT / "out" / "membership.jsonl")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    given = [int(n) for n in options.members.split(",")] if options.members else None
    timeouts = [float(t) for t in options.timeouts.split(",")]
    only = tuple(word for word in options.rows.split(",") if word)
    cache = Cache(options.cache)
    wrong: list[str] = []
    if not options.protocol:
        sizes = given or [3, 5, 9]
        rows = table(cache, "totem", sizes, timeouts, only)
        wrong += complaints("totem", rows)
        if not only:
            random_text, bad = random_table(cache, options.seeds)
            wrong += bad
            parts = [
                HEAD, f"{_today()}.\n", classical_table(rows), times_table(cache, sizes, options.runs),
                stalls_table(cache, options.runs), random_text, PATTERNS + "\n" + figures_table(rows),
            ]  # fmt: skip
            options.page.write_text("\n".join(parts))
    for protocol in options.protocol or LAYERED:
        sizes = given or list(LAYERED[protocol])
        rows = table(cache, protocol, sizes, timeouts, only)
        wrong += complaints(protocol, rows)
        if not only:
            section = layer_section(cache, protocol, rows, sizes, options.runs)
            options.page.write_text(replaced(options.page.read_text(), section))
    for text in wrong:
        print(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
