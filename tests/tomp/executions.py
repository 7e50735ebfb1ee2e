"""Every execution of a small group, on the shipped Book and Votes: data, acknowledgements and validations in any order.

An execution is one order of events per host: data of each sender in its order, a validation after its data.  Orders of
acknowledgements do not matter.  It is feasible if it can happen: a validation needs the data at all hosts.  Host states
are few: each is kept once, and `step` from one to the next is remembered, so that whole sets are walked in seconds.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

from ordercast.protocols.tomp.stamps import Book, Stamp, Votes

Mid = tuple[int, int]  # rank of the sender, n


class Decision(NamedTuple):
    """What a validation says."""

    final: Stamp
    min_next_mid: tuple[int, ...]
    max_next_ts: tuple[Stamp, ...]


class Host:
    """A book, and what it delivered; `unsound`: a bound was above the final."""

    def __init__(self, book: Book) -> None:
        self.book, self.delivered, self.unsound = book, (), False

    def data(self, rank: int) -> tuple[int, tuple[int, ...]]:
        return self.book.propose(rank), tuple(self.book.next_mid)

    def validation(self, mid: Mid, votes: Decision, anticipate: bool) -> None:
        bound = self.book.stamp(*mid)
        assert bound is not None
        self.unsound |= bound > votes.final
        self.book.decide(*mid, votes.final)
        if anticipate:
            self.book.anticipate(votes.min_next_mid, votes.max_next_ts)
        self.delivered += tuple((rank, n) for _, rank, n in self.book.deliverable())

    def key(self) -> Any:
        book = self.book
        lines = tuple((line.first, tuple(line.numbers.items()), tuple(line.bounds)) for line in book.lines)
        queue = tuple(book.heads), tuple(sorted(book.ready))
        return book.clock, tuple(book.next_mid), lines, queue, self.delivered, self.unsound


class Variant:
    """One protocol: the states of its hosts by number, and the steps between them."""

    def __init__(
        self, clocks: tuple[int, ...], anticipate: bool, book: type[Book] = Book, votes: type[Votes] = Votes
    ) -> None:
        self.n, self.anticipate, self.votes = len(clocks), anticipate, votes
        self.states: list[Host] = []
        self._ids: dict[Any, int] = {}
        self._steps: dict[Any, tuple[int, Any]] = {}
        self._decided: dict[Any, Decision] = {}
        self.first = tuple(self._number(Host(book(host, self.n, clock))) for host, clock in enumerate(clocks, 1))

    def _number(self, host: Host) -> int:
        key = (host.book.me, host.key())
        if key not in self._ids:
            self._ids[key] = len(self.states)
            self.states.append(host)
        return self._ids[key]

    def data(self, state: int, rank: int) -> tuple[int, tuple[int, tuple[int, ...]]]:
        """The next state, and the acknowledgement."""
        if (state, rank) not in self._steps:
            host = deepcopy(self.states[state])
            ack = host.data(rank)
            self._steps[state, rank] = self._number(host), ack
        return self._steps[state, rank]

    def validation(self, state: int, mid: Mid, decision: Decision) -> int:
        key = (state, mid, decision)
        if key not in self._steps:
            host = deepcopy(self.states[state])
            host.validation(mid, decision, self.anticipate)
            self._steps[key] = self._number(host), None
        return self._steps[key][0]

    def decided(self, acks: tuple[Any, ...]) -> Any:
        """What a source makes of the acknowledgements of all hosts; as long as one is missing, it keeps them."""
        if None in acks:
            return acks
        if acks not in self._decided:
            votes = self.votes(range(1, self.n + 1))
            for host, (number, next_mid) in enumerate(acks, 1):
                votes.add(host, number, next_mid)
            self._decided[acks] = Decision(votes.final, tuple(votes.min_next_mid), tuple(votes.max_next_ts))
        return self._decided[acks]


class Found(NamedTuple):
    """What became of some executions; by variant: those in which hosts disagree, those with a bound too high, and those
    in which a host does not deliver by final stamps."""

    feasible: int
    disagree: tuple[int, ...]
    unsound: tuple[int, ...]
    astray: tuple[int, ...]
    late: int = 0  # validations after which the second variant had delivered less than the first
    other_finals: int = 0


class Walk:
    """All executions of a group in which every host sends `messages`, the variants side by side.

    A message is its index here.  Of those hosts that are not waiting the first one moves; so every execution is met
    once, however its events are spread over time.  What can still happen follows from the arguments of `_go` alone:
    where two executions meet, the rest is walked once and counted twice.
    """

    def __init__(self, messages: int, *variants: Variant) -> None:
        self.variants, self.n = variants, variants[0].n
        self.mids = [(rank, n) for rank in range(self.n) for n in range(1, messages + 1)]
        self.none = (0,) * len(variants)
        self._known: dict[Any, Found] = {}

    def run(self) -> Found:
        all_of_them, nothing = tuple(range(len(self.mids))), (None,) * self.n
        acks = (nothing,) * len(self.mids)
        return self._go(tuple(v.first for v in self.variants), (all_of_them,) * self.n, ((),) * self.n, nothing,
                        (acks,) * len(self.variants))  # fmt: skip

    def _go(self, states: Any, data: Any, valid: Any, waits: Any, acks: Any) -> Found:
        """states: by variant and host; data: what each host has yet to receive; valid: what it has, without validation;
        waits: the validation that is next at a host though it does not exist yet; acks: by variant and message, those
        that came, or what was decided by them."""
        key = (states, data, valid, waits, acks)
        if key not in self._known:
            self._known[key] = self._walk(*key)
        return self._known[key]

    def _walk(self, states: Any, data: Any, valid: Any, waits: Any, acks: Any) -> Found:
        told = acks[0]
        for host, m in enumerate(waits):
            if m is not None and None not in told[m]:
                return self._validate(host, m, states, data, valid, _put(waits, host, None), acks)
        for host in range(self.n):
            if waits[host] is not None or not (data[host] or valid[host]):
                continue
            ways = []
            for m in data[host]:
                if self.mids[m][1] == 1 or m - 1 not in data[host]:
                    ways.append(self._receive(host, m, states, data, valid, waits, acks))
            for m in valid[host]:
                if None not in told[m]:
                    ways.append(self._validate(host, m, states, data, valid, waits, acks))
                else:
                    ways.append(self._go(states, data, valid, _put(waits, host, m), acks))
            return self._together(ways)
        return self._end(states, acks) if waits.count(None) == self.n else Found(0, *[self.none] * 3)

    def _receive(self, host: int, m: int, states: Any, data: Any, valid: Any, waits: Any, acks: Any) -> Found:
        after, told = [], []
        for variant, own, got in zip(self.variants, states, acks, strict=True):
            state, ack = variant.data(own[host], self.mids[m][0])
            after.append(_put(own, host, state))
            told.append(_put(got, m, variant.decided(_put(got[m], host, ack))))
        return self._go(tuple(after), _put(data, host, _without(data[host], m)), _put(valid, host, (*valid[host], m)),
                        waits, tuple(told))  # fmt: skip

    def _validate(self, host: int, m: int, states: Any, data: Any, valid: Any, waits: Any, acks: Any) -> Found:
        after = tuple(
            _put(own, host, variant.validation(own[host], self.mids[m], got[m]))
            for variant, own, got in zip(self.variants, states, acks, strict=True)
        )
        late = False
        if len(after) == 2:  # the second never delivers later
            first, second = (v.states[own[host]].delivered for v, own in zip(self.variants, after, strict=True))
            late = second[: len(first)] != first
        rest = self._go(after, data, _put(valid, host, _without(valid[host], m)), waits, acks)
        return rest._replace(late=rest.late + late)

    def _end(self, states: Any, acks: Any) -> Found:
        disagree, unsound, astray = [], [], []
        finals = [[decision.final for decision in got] for got in acks]
        for variant, own, final in zip(self.variants, states, finals, strict=True):
            hosts = [variant.states[state] for state in own]
            order = tuple(mid for _, mid in sorted(zip(final, self.mids, strict=True)))
            disagree.append(int(any(host.delivered != hosts[0].delivered for host in hosts)))
            unsound.append(int(any(host.unsound for host in hosts)))
            astray.append(int(any(host.delivered != order for host in hosts)))
        return Found(1, tuple(disagree), tuple(unsound), tuple(astray), other_finals=int(finals[0] != finals[-1]))

    def _together(self, ways: list[Found]) -> Found:
        each = ([way.disagree for way in ways], [way.unsound for way in ways], [way.astray for way in ways])
        by_variant = (tuple(map(sum, zip(*counts, strict=True))) for counts in each)
        late, other_finals = sum(way.late for way in ways), sum(way.other_finals for way in ways)
        return Found(sum(way.feasible for way in ways), *by_variant, late, other_finals)


def _put(items: Any, at: int, item: Any) -> Any:
    return (*items[:at], item, *items[at + 1 :])


def _without(items: tuple[int, ...], m: int) -> tuple[int, ...]:
    return tuple(other for other in items if other != m)
