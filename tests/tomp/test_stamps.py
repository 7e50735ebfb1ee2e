"""Stamps and votes: against the dumb twin, by the words of the paper, and where the words of the paper break."""

from __future__ import annotations

import random

import pytest
from twin import Queue

from ordercast.protocols.tomp.stamps import Book, Votes


class Schedule:
    """Hosts that send some messages; what arrives where, in any order that FIFO data allows."""

    def __init__(self, rng: random.Random) -> None:
        self.n, count = rng.randint(2, 5), rng.randint(1, 5)
        self.clocks = [rng.randint(0, 6) for _ in range(self.n)]
        self.mids = [(rank, k) for rank in range(self.n) for k in range(1, count + 1)]
        self.rng = rng

    def run(self, anticipate: bool) -> None:
        """Books and queues do the same, event by event; both variants may be fed the same schedule."""
        hosts = range(self.n)
        books = [Book(h + 1, self.n, clock) for h, clock in enumerate(self.clocks)]
        queues = [Queue(h + 1, self.n, clock) for h, clock in enumerate(self.clocks)]
        votes = {mid: Votes([h + 1 for h in hosts]) for mid in self.mids}
        todo = [(h, "data", mid) for h in hosts for mid in self.mids]
        acks: dict[tuple[int, tuple[int, int]], tuple[int, tuple[int, ...]]] = {}
        orders: list[list[tuple[int, int]]] = [[] for _ in hosts]
        while todo:
            h, what, mid = self.rng.choice(todo)
            book, queue, rank = books[h], queues[h], mid[0]
            if what == "data":
                if book.next_mid[rank] != mid[1]:
                    continue
                number = book.propose(rank)
                assert number == queue.propose(rank)
                acks[h, mid] = number, tuple(book.next_mid)
                todo.append((rank, "ack", mid)) if all((g, mid) in acks for g in hosts) else None
            elif what == "ack":
                done = [votes[mid].add(g + 1, *acks[g, mid]) for g in self.rng.sample(hosts, self.n)]
                assert done == [False] * (self.n - 1) + [True]
                todo += [(g, "ts", mid) for g in hosts]
            else:
                told = votes[mid]
                bound = book.stamp(*mid)
                assert bound == queue.stamp(*mid) and bound is not None and bound <= told.final, "P12"
                for each in (book, queue):
                    each.decide(*mid, told.final)  # type: ignore[attr-defined]
                    if anticipate:
                        each.anticipate(told.min_next_mid, told.max_next_ts)  # type: ignore[attr-defined]
                out = book.deliverable()
                assert out == queue.deliverable()
                orders[h] += [entry[1:] for entry in out]
            assert sorted(book.listed()) == sorted(queue.listed()) and book.clock == queue.clock
            todo.remove((h, what, mid))
        finals = sorted(self.mids, key=lambda mid: votes[mid].final)
        assert orders == [finals] * self.n and len({told.final for told in votes.values()}) == len(finals), "P13"


@pytest.mark.parametrize("anticipate", [False, True], ids=["abcast", "tomp"])
def test_the_book_does_what_the_queue_of_the_paper_does(anticipate: bool) -> None:
    for seed in range(600):
        Schedule(random.Random(seed)).run(anticipate)


def paper() -> tuple[list[Book], dict[int, Votes]]:
    """The example of section 2.2: three hosts have received m1, m2, m3 in their own orders."""
    books = [Book(host, 3, clock) for host, clock in ((1, 14), (2, 15), (3, 16))]
    votes = {m: Votes((1, 2, 3)) for m in (1, 2, 3)}
    for book, order in zip(books, ((3, 1, 2), (2, 1, 3), (1, 3, 2)), strict=True):
        for m in order:
            votes[m].add(book.me, book.propose(m - 1), tuple(book.next_mid))
    return books, votes


def test_vectors_of_the_paper_E2_E4() -> None:
    _, votes = paper()
    assert [votes[m].final for m in (1, 2, 3)] == [(17, 3), (19, 3), (18, 3)]
    assert [votes[m].min_next_mid for m in (1, 2, 3)] == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    assert votes[1].max_next_ts == [(18, 3)] * 3
    assert votes[2].max_next_ts == [(17, 2), (20, 3), (17, 2)]
    assert votes[3].max_next_ts == [(16, 1), (19, 3), (19, 3)]


@pytest.mark.parametrize("anticipate", [False, True], ids=["abcast", "tomp"])
def test_the_first_validation_of_the_paper_E5_E6(anticipate: bool) -> None:
    """By then all three deliver m1 in TOMP, only host 3 in ABCAST; m2 had 17.1 at host 1."""
    books, votes = paper()
    assert books[0].stamp(1, 1) == (17, 1)
    first = []
    for book in books:
        book.decide(0, 1, votes[1].final)
        if anticipate:
            book.anticipate(votes[1].min_next_mid, votes[1].max_next_ts)
        first.append([rank + 1 for _, rank, _ in book.deliverable()])
    assert first == ([[1], [1], [1]] if anticipate else [[], [], [1]])


def test_of_equal_stamps_the_decided_one_goes_first_E8() -> None:
    """m1 has its final 5.2; m2 cannot get less than that, and so not that."""
    book = Book(1, 2)
    book.propose(0)
    book.propose(1)
    book.decide(0, 1, (5, 2))
    assert book.deliverable() == []
    book.anticipate((2, 1), ((6, 2), (5, 2)))
    assert book.stamp(1, 1) == (5, 2) and book.deliverable() == [((5, 2), 0, 1)]


def test_a_second_acknowledgement_counts_for_nothing() -> None:
    votes = Votes((1, 2))
    assert not votes.add(1, 3, (2, 1)) and not votes.add(1, 9, (1, 1))
    assert votes.add(2, 4, (2, 1)) and not votes.add(2, 5, (2, 1))
    assert votes.final == (4, 2) and votes.max_next_ts == [(5, 2), (5, 2)]


def test_bounds_hold_only_for_what_had_come_and_grow_along_a_sender() -> None:
    book = Book(1, 2)
    for _ in range(3):
        book.propose(1)
    book.anticipate((1, 2), ((9, 9), (10, 2)))
    assert [stamp for _, _, stamp in book.listed()] == [(1, 1), (10, 2), (11, 2)]
    book.propose(1)
    assert book.stamp(1, 4) == (4, 1) and book.base() == 11 and book.clock == 4
