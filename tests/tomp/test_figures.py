"""Anticipation by figures: what it cuts off t2, the time from the decision on a message to its delivery.

The paper gives 30-40 % and no setup.  The reference has, on a LAN of 1 ms + Exp(0.5 ms), 36 % for five hosts that send
80 messages a second each, and 49 % for ten that send 40: a model without views and repair, which here drives the
queues and votes of the shipped core.  What a host says to itself comes at once.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from statistics import fmean
from typing import Any

import pytest

from ordercast.protocols.tomp.stamps import Book, Votes

MESSAGES, SEEDS = 700, 4


class Lan:
    """Hosts with a queue each; data are FIFO per pair, answers and validations need not be."""

    def __init__(self, n: int, rate: float, seed: int, *, anticipate: bool) -> None:
        self.random, self.n, self.anticipate = random.Random(seed), n, anticipate
        self.books = [Book(host, n) for host in range(1, n + 1)]
        self.votes: dict[tuple[int, int], Votes] = {}
        self.came: dict[tuple[int, int, int], float] = {}  # host, rank, n -> when
        self.decided: dict[tuple[int, int, int], float] = {}
        self.last: dict[tuple[int, int], float] = {}  # arrival of a pair's newest data
        self.times: list[tuple[float, float]] = []  # t1, t2 in the order of deliveries
        self.events: list[tuple[float, int, Callable[..., None], Any]] = []
        self.number = count()
        now, sent = 0.0, [0] * n
        for _ in range(MESSAGES):
            now += self.random.expovariate(n * rate) * 1e3
            rank = self.random.randrange(n)
            sent[rank] += 1
            self.at(now, self.send, rank, sent[rank])
        while self.events:
            now, _, step, given = heapq.heappop(self.events)
            step(now, *given)

    def at(self, time: float, step: Callable[..., None], *given: Any) -> None:
        heapq.heappush(self.events, (time, next(self.number), step, given))

    def delay(self, source: int, to: int) -> float:
        return 1.0 + self.random.expovariate(1 / 0.5) if source != to else 0.0

    def send(self, now: float, rank: int, k: int) -> None:
        self.votes[rank, k] = Votes(range(1, self.n + 1))
        for host in range(self.n):
            arrival = max(now + self.delay(rank, host), self.last.get((rank, host), 0.0) + 1e-6)
            self.last[rank, host] = arrival
            self.at(arrival, self.data, host, rank, k)

    def data(self, now: float, host: int, rank: int, k: int) -> None:
        book = self.books[host]
        number = book.propose(rank)
        self.came[host, rank, k] = now
        self.at(now + self.delay(host, rank), self.answer, host, rank, k, number, tuple(book.next_mid))

    def answer(self, now: float, host: int, rank: int, k: int, number: int, next_mid: tuple[int, ...]) -> None:
        votes = self.votes[rank, k]
        if votes.add(host + 1, number, next_mid):
            for other in range(self.n):
                self.at(now + self.delay(rank, other), self.final, other, rank, k, votes)

    def final(self, now: float, host: int, rank: int, k: int, votes: Votes) -> None:
        book = self.books[host]
        self.decided[host, rank, k] = now
        book.decide(rank, k, votes.final)
        if self.anticipate:
            book.anticipate(votes.min_next_mid, votes.max_next_ts)
        for _, of, j in book.deliverable():
            since = self.decided[host, of, j]
            self.times.append((since - self.came[host, of, j], now - since))


def t1_t2(n: int, rate: float, *, anticipate: bool) -> tuple[float, float]:
    """Means in ms over all hosts and seeds, without the first and the last tenth of each run."""
    kept: list[tuple[float, float]] = []
    for seed in range(SEEDS):
        times = Lan(n, rate, seed, anticipate=anticipate).times
        assert len(times) == n * MESSAGES
        kept += times[len(times) // 10 : -len(times) // 10]
    return fmean(t1 for t1, _ in kept), fmean(t2 for _, t2 in kept)


@pytest.mark.parametrize(
    ("n", "rate", "t1", "t2", "cut", "tolerance"), [(5, 80.0, 3.87, 0.38, 36, 6), (10, 40.0, 4.32, 0.44, 49, 8)]
)
def test_what_anticipation_cuts_off(n: int, rate: float, t1: float, t2: float, cut: int, tolerance: int) -> None:
    plain, early = t1_t2(n, rate, anticipate=False), t1_t2(n, rate, anticipate=True)
    assert plain[0] == pytest.approx(t1, rel=0.05)
    assert plain[0] == pytest.approx(early[0], rel=1e-3)  # the same schedule; other tenths are left out
    assert plain[1] == pytest.approx(t2, rel=0.2)
    assert 100 * (1 - early[1] / plain[1]) == pytest.approx(cut, abs=tolerance)
