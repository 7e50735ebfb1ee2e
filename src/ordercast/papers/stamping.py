"""Hosts that stamp, over ways of any law: the queues and votes of the shipped core, with and without anticipation.

Both protocols see the same schedule, because anticipation touches no packet: data and validations go to all, answers to
the source, each host says to itself at once what it says to others.  t1 is the time from the data to the validation, t2
from there to the delivery.  Beside them stands who knows all final stamps and waits for smaller ones only.

`queue`: what an undecided message holds up in ABCAST.  "letter": everything above its stamp (2.1.2), as shipped.
"lines": nothing that its own sender sent before it, for final stamps ascend along a sender.
`causal`: multicasts are held until those that came before them are there, as the layer below ours does.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import fmean
from typing import Any

from msgspec import Struct

from ordercast.papers.ways import MS, Law, Schedule, Ways
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes

Mid = tuple[int, int]  # rank of the sender, number


class Lines(Book):
    """Only the first undelivered message of each sender counts."""

    def deliverable(self) -> list[tuple[Stamp, int, int]]:
        out: list[tuple[Stamp, int, int]] = []
        self.ready.sort()  # a sorted list is a heap
        while self.ready:
            final = self.ready[0][0]
            before = {rank for _, rank, n in self.ready if n < self.lines[rank].first}
            if any(head < final for rank, head in enumerate(self.heads) if rank not in before):
                break
            out.append(self.ready.pop(0))
        return out


BOOKS: dict[str, Callable[[int, int], Book]] = {"letter": Book, "lines": Lines}


class Times(Struct):
    """Of one message at one host."""

    sent: int
    came: int
    decided: int = 0
    delivered: int = 0


class Hosts:
    """Ranks 0..n-1, and what each has received."""

    def __init__(self, n: int, book: Callable[[int, int], Book], *, anticipate: bool) -> None:
        self.n, self.anticipate = n, anticipate
        self.books = [book(rank + 1, n) for rank in range(n)]
        self.votes: dict[Mid, Votes] = {}
        self.sent: dict[Mid, int] = {}
        self.times: dict[tuple[int, int, int], Times] = {}  # host, message
        self.counts = [0] * n

    def send(self, now: int, source: int) -> Mid:
        self.counts[source] += 1
        mid = (source, self.counts[source])
        self.votes[mid] = Votes(range(1, self.n + 1))
        self.sent[mid] = now
        return mid

    def data(self, now: int, host: int, mid: Mid) -> tuple[int, tuple[int, ...]]:
        """The answer: the number given, and what is expected next."""
        book = self.books[host]
        number = book.propose(mid[0])
        self.times[host, *mid] = Times(self.sent[mid], now)
        return number, tuple(book.next_mid)

    def answer(self, host: int, mid: Mid, answer: tuple[int, tuple[int, ...]]) -> bool:
        """Whether the source can decide now."""
        return self.votes[mid].add(host + 1, *answer)

    def final(self, now: int, host: int, mid: Mid) -> list[Mid]:
        """What is delivered now."""
        book, votes = self.books[host], self.votes[mid]
        self.times[host, *mid].decided = now
        book.decide(*mid, votes.final)
        if self.anticipate:
            book.anticipate(votes.min_next_mid, votes.max_next_ts)
        out = [(rank, n) for _, rank, n in book.deliverable()]
        for each in out:
            self.times[host, *each].delivered = now
        return out

    def clairvoyant(self) -> dict[tuple[int, int, int], int]:
        """When each message could go up if all final stamps were known, except those that have not come."""
        order = sorted(self.votes, key=lambda mid: self.votes[mid].final)
        out = {}
        for host in range(self.n):
            latest = 0
            for mid in order:
                latest = max(latest, self.times[host, *mid].decided)
                out[host, *mid] = latest
        return out


class Timed:
    """Hosts over ways; every host sends at times of its own."""

    def __init__(self, hosts: Hosts, law: Law, rate: float, messages: int, seed: int, **how: bool) -> None:
        self.hosts, self.schedule, chance = hosts, Schedule(), random.Random(seed)
        self.ways = Ways(self.schedule, law, chance, fifo=how.get("fifo", True))
        self.causal = how.get("causal", False)
        n = hosts.n
        self.have = [[0] * n for _ in range(n)]  # of each host: multicasts received, by source
        self.held: list[list[tuple[int, list[int], Callable[..., None], tuple[Any, ...]]]] = [[] for _ in range(n)]
        now = 0.0
        for _ in range(messages):
            now += chance.expovariate(n * rate) * 1e9
            self.schedule.at(round(now), self._send, chance.randrange(n))
        while self.schedule.step():
            pass

    def _multicast(self, source: int, step: Callable[..., None], *given: Any, in_order: bool) -> None:
        have = self.have[source]
        said = [*have[:source], have[source] + 1, *have[source + 1 :]]
        for host in (source, *(host for host in range(self.hosts.n) if host != source)):
            if not self.causal:
                self.ways.send(source, host, step, host, *given, in_order=in_order)
            elif host == source:
                self._take(source, source, said, step, given)
            else:
                self.ways.send(source, host, self._take, host, source, said, step, given)

    def _take(self, host: int, source: int, said: list[int], step: Callable[..., None], given: tuple[Any, ...]) -> None:
        """Causal order: what its source had received must be here."""
        held, have = self.held[host], self.have[host]
        held.append((source, said, step, given))
        moved = True
        while moved:
            moved = False
            for each in held:
                of, vector, what, about = each
                if all(have[k] >= v - (k == of) for k, v in enumerate(vector)) and have[of] == vector[of] - 1:
                    held.remove(each)
                    have[of] += 1
                    what(host, *about)
                    moved = True
                    break

    def _send(self, source: int) -> None:
        self._multicast(source, self._data, self.hosts.send(self.schedule.now, source), in_order=True)

    def _data(self, host: int, mid: Mid) -> None:
        answer = self.hosts.data(self.schedule.now, host, mid)
        self.ways.send(host, mid[0], self._answer, host, mid, answer, in_order=False)

    def _answer(self, host: int, mid: Mid, answer: tuple[int, tuple[int, ...]]) -> None:
        if self.hosts.answer(host, mid, answer):
            self._multicast(mid[0], self._final, mid, in_order=False)

    def _final(self, host: int, mid: Mid) -> None:
        self.hosts.final(self.schedule.now, host, mid)


class Steps:
    """Hosts under a scheduler for which every event that can happen next is equally likely: the next data of a sender
    at a host, an answer, a validation.  `open` messages are on their way until all have their validations."""

    def __init__(self, hosts: Hosts, many: int, messages: int, seed: int) -> None:
        self.hosts, self.chance, self.now = hosts, random.Random(seed), 0
        self.lines: dict[tuple[int, int], list[Mid]] = {}  # source, host -> data on the way, in order
        self.events: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.missing: dict[Mid, int] = {}  # validations that have not come
        left = messages
        while left or self.events:
            while left and len(self.missing) < many:
                left -= 1
                self._send(self.chance.randrange(hosts.n))
            self.now += 1
            k = self.chance.randrange(len(self.events))
            self.events[k], self.events[-1] = self.events[-1], self.events[k]
            step, given = self.events.pop()
            step(*given)

    def _send(self, source: int) -> None:
        mid = self.hosts.send(self.now, source)
        self.missing[mid] = self.hosts.n
        self._data(source, mid)
        for host in range(self.hosts.n):
            if host != source:
                line = self.lines.setdefault((source, host), [])
                line.append(mid)
                if len(line) == 1:
                    self.events.append((self._next, (source, host)))

    def _next(self, source: int, host: int) -> None:
        line = self.lines[source, host]
        self._data(host, line.pop(0))
        if line:
            self.events.append((self._next, (source, host)))

    def _data(self, host: int, mid: Mid) -> None:
        answer = self.hosts.data(self.now, host, mid)
        if host == mid[0]:
            self._answer(host, mid, answer)
        else:
            self.events.append((self._answer, (host, mid, answer)))

    def _answer(self, host: int, mid: Mid, answer: tuple[int, tuple[int, ...]]) -> None:
        if self.hosts.answer(host, mid, answer):
            self.events += [(self._final, (to, mid)) for to in range(self.hosts.n) if to != mid[0]]
            self._final(mid[0], mid)

    def _final(self, host: int, mid: Mid) -> None:
        self.hosts.final(self.now, host, mid)
        self.missing[mid] -= 1
        if not self.missing[mid]:
            del self.missing[mid]


def means(hosts: Hosts) -> dict[str, float]:
    """t1 and t2 over all hosts, t2 of who knows all, without the first and the last tenth."""
    clairvoyant = hosts.clairvoyant()
    order = sorted(hosts.times, key=lambda key: (hosts.times[key].sent, key))
    kept = order[len(order) // 10 : len(order) - len(order) // 10]
    times = [hosts.times[key] for key in kept]
    return {
        "t1": fmean(each.decided - each.came for each in times) / MS,
        "t2": fmean(each.delivered - each.decided for each in times) / MS,
        "least": fmean(clairvoyant[key] - hosts.times[key].decided for key in kept) / MS,
    }
