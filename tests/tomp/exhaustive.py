"""Every execution of small groups of ABCAST and TOMP hosts, and of known-bad ones: `make exhaustive` walks all of them.

Run as a script it prints one line per set; exit code 1 if a count is not the known one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from executions import Found, Variant, Walk

from ordercast.protocols.tomp.stamps import Book, Stamp, Votes

BOTH, TOMP = (False, True), (True,)


class NoJump(Book):
    """E1: the clock counts receptions only."""

    def decide(self, rank: int, n: int, final: Stamp) -> None:
        clock = self.clock
        super().decide(rank, n, final)
        self.clock = clock


class OverAll(Votes):
    """E2: the greatest stamp that anybody gives next, whoever has received what."""

    __slots__ = ()
    choose = staticmethod(max)

    def add(self, host: int, number: int, next_mid: Sequence[int]) -> bool:
        told = [*self.max_next_ts[:1], (number + 1, host)]
        done = super().add(host, number, next_mid)
        self.max_next_ts = [self.choose(told)] * len(next_mid)
        return done


class LeastOfAll(OverAll):
    """E2, "the lesser timestamp": sound, and weaker."""

    __slots__ = ()
    choose = staticmethod(min)


class Counts(NamedTuple):
    """Executions; by variant those in which hosts disagree, with bounds above a final, in which a host does not deliver
    by final stamps; those in which TOMP is later than ABCAST."""

    feasible: int
    disagree: tuple[int, ...]
    unsound: tuple[int, ...]
    astray: tuple[int, ...]
    late: int = 0
    other_finals: int = 0


class Case(NamedTuple):
    name: str
    clocks: tuple[int, ...]
    messages: int
    expected: Counts
    book: type[Book] = Book
    votes: type[Votes] = Votes
    variants: tuple[bool, ...] = BOTH
    quick: bool = False

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("2 hosts, 1 message", (0, 0), 1, Counts(34, (0, 0), (0, 0), (0, 0)), quick=True),
    Case("2 hosts, 2 messages", (0, 0), 2, Counts(351_206, (0, 0), (0, 0), (0, 0))),
    Case("2 hosts, 2 messages, clocks 0 and 3", (0, 3), 2, Counts(351_206, (0, 0), (0, 0), (0, 0))),
    Case("3 hosts, 1 message, the paper's clocks", (14, 15, 16), 1, Counts(494_262, (0, 0), (0, 0), (0, 0))),
]
CONTROLS = [
    Case("E1 2 hosts, 1 message", (0, 0), 1, Counts(34, (4, 4), (0, 0), (4, 4)), book=NoJump, quick=True),
    Case(
        "E1 2 hosts, 2 messages",
        (0, 0),
        2,
        Counts(351_206, (41_944, 43_064), (0, 0), (41_944, 43_064), late=422),
        book=NoJump,
    ),
    Case("E2 over all", (0, 0), 2, Counts(351_206, (182_566,), (271_212,), (207_382,)), votes=OverAll, variants=TOMP),
    Case("E2 least of all", (0, 0), 2, Counts(351_206, (0,), (0,), (0,)), votes=LeastOfAll, variants=TOMP),
]


def count(case: Case) -> Counts:
    variants = [Variant(case.clocks, anticipate, case.book, case.votes) for anticipate in case.variants]
    found: Found = Walk(case.messages, *variants).run()
    which = range(len(variants))
    by_variant = (tuple(counts[k] for k in which) for counts in (found.disagree, found.unsound, found.astray))
    return Counts(found.feasible, *by_variant, found.late, found.other_finals)


def main() -> int:
    wrong = 0
    for case in CASES + CONTROLS:
        got = count(case)
        wrong += got != case.expected
        print(f"{case}: {got}{'' if got == case.expected else f', expected {case.expected}'}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
