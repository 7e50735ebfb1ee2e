"""The reliable layer's parts against dumb twins, and the whole link under loss."""

from __future__ import annotations

import random

from ordercast.transis.reception import Reception
from ordercast.transis.repair import Repair, ranges_of
from ordercast.transis.stability import Stability


def causal_traffic(rng: random.Random, n: int, count: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Messages of n senders that each have seen a random causally closed part."""
    have = [[0] * n for _ in range(n)]
    sent: list[tuple[int, int, tuple[int, ...]]] = []
    for _ in range(count):
        p = rng.randrange(n)
        for q, k, vec in sent:
            follows = all(a <= b for i, (a, b) in enumerate(zip(vec, have[p], strict=True)) if i != q)
            if follows and have[p][q] + 1 == k and rng.random() < 0.6:
                have[p][q] = k
        have[p][p] += 1
        sent.append((p, have[p][p], tuple(have[p])))
    return sent


class DumbReception:
    """Scan everything again and again."""

    def __init__(self, n: int) -> None:
        self.have = [0] * n
        self.held: dict[tuple[int, int], tuple[int, ...]] = {}

    def offer(self, rank: int, seq: int, vec: tuple[int, ...]) -> list[tuple[int, int]] | None:
        if seq <= self.have[rank] or (rank, seq) in self.held:
            return None
        self.held[rank, seq] = vec
        out = []
        while True:
            ready = sorted(
                key
                for key, v in self.held.items()
                if self.have[key[0]] + 1 == key[1] and all(v[q] <= self.have[q] for q in range(len(v)) if q != key[0])
            )
            if not ready:
                return out
            del self.held[ready[0]]
            self.have[ready[0][0]] = ready[0][1]
            out.append(ready[0])


def test_reception_equals_its_dumb_twin() -> None:
    rng = random.Random(11)
    for _ in range(400):
        n = rng.randrange(1, 6)
        sent = causal_traffic(rng, n, rng.randrange(1, 25))
        arrivals = sent + rng.sample(sent, len(sent) // 3)
        rng.shuffle(arrivals)
        smart: Reception[None] = Reception(n)
        dumb = DumbReception(n)
        for rank, seq, vec in arrivals:
            expected = dumb.offer(rank, seq, vec)
            got = smart.offer(rank, seq, vec, None)
            assert (got is None) == (expected is None)
            assert [(q, k) for q, k, _ in got or []] == (expected or [])
            assert smart.have == dumb.have and smart.held.keys() == dumb.held.keys()
        assert not smart.held


def test_gaps_are_what_is_known_and_not_here() -> None:
    state: Reception[None] = Reception(2)
    assert state.learn((3, 0)) and not state.learn((3, 0))
    assert state.gaps() == [(0, 1), (0, 2), (0, 3)]
    state.offer(0, 2, (2, 0), None)
    assert state.gaps() == [(0, 1), (0, 3)]
    assert [(q, k) for q, k, _ in state.offer(0, 1, (1, 0), None) or []] == [(0, 1), (0, 2)]
    assert state.gaps() == [(0, 3)]


def test_nothing_is_released_before_everybody_has_it() -> None:
    rng = random.Random(5)
    for _ in range(200):
        n = rng.randrange(2, 6)
        state: Stability[None] = Stability(n)
        have = [[0] * n for _ in range(n)]
        last = [0] * n
        for _ in range(40):
            q = rng.randrange(n)
            last[q] += 1
            have[0][q] = last[q]
            state.insert(q, last[q], tuple(last[q] if i == q else 0 for i in range(n)), None)
            state.report(0, have[0])
            p = rng.randrange(1, n)
            have[p] = [rng.randint(h, k) for h, k in zip(have[p], have[0], strict=True)]
            state.report(p, have[p])
            state.advance()
            known = [state.acked(p) for p in range(n)]
            assert state.stable == [min(row[q] for row in known) for q in range(n)]
            assert set(state.buffer) == {(q, k) for q in range(n) for k in range(state.stable[q] + 1, last[q] + 1)}


def test_repair_asks_the_revealer_first_then_the_sender_then_holders_then_all() -> None:
    repair = Repair(0, 4, 400_000_000)
    repair.open(0, [(2, 5)], revealer=3)
    asked = []
    now = 0
    for _ in range(7):
        now = repair.next_due() or now
        ((who, ranges),) = repair.due(now, {(2, 5): [1]})
        assert ranges == ((2, 5, 5),)
        asked.append(who)
    assert asked == [3, 2, 1, 3, 2, 1, None]
    repair.close((2, 5))
    assert repair.next_due() is None


def test_repair_pauses_double_and_another_nack_is_given_time() -> None:
    repair = Repair(1, 2, 400_000_000)
    assert repair.first_ns == 6_000_000
    repair.open(0, [(0, 1)], revealer=0)
    repair.heard(5_000_000, ((0, 1, 1),))
    assert repair.next_due() == 9_000_000
    pauses, now = [], 0
    for _ in range(8):
        due = repair.next_due()
        assert due is not None
        pauses.append(due - now)
        now = due
        repair.due(now, {})
    assert pauses == [9_000_000] + [8_000_000 * 2**k for k in range(4)] + [100_000_000] * 3


def test_ranges_join_neighbours_and_fit_a_nack() -> None:
    assert ranges_of([(0, 1), (0, 2), (0, 4), (1, 5)]) == [((0, 1, 2), (0, 4, 4), (1, 5, 5))]
    portions = ranges_of([(0, 2 * k) for k in range(1, 101)])
    assert [len(p) for p in portions] == [64, 36]
