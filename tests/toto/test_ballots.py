"""The ballots: what is delivered depends on what is held alone; the fast form equals the definitions."""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import inf

import pytest
from tests.toto.dags import Dag, all_dags, random_dag, random_order
from tests.toto.definition import AllAck, Definition
from tests.toto.every_way import Sets, drained, everything, masks, quorums, walk

from ordercast.conformance.golden_toto import dag_of
from ordercast.protocols.toto.ballots import Ballots, Key, Vector


def feed(ballots: Ballots | Definition, messages: Iterable[tuple[Key, Vector]], agreed: frozenset[Key]) -> list[Sets]:
    """What each message leads to."""
    out = []
    for key, vec in messages:
        ballots.insert(*key, vec, key in agreed)
        out.append(drained(ballots))
    return out


def drawn(draw: random.Random, n: int, size: int) -> tuple[Dag, frozenset[Key]]:
    """A DAG, and what of it is agreed: all of it, or a part."""
    dag = random_dag(draw, n, size)
    share = draw.choice((1.0, 0.7, 0.3))
    return dag, frozenset(key for key, _ in dag if draw.random() < share)


# -------------------------------------------------------------------------------------------------------- exhaustively


@pytest.mark.parametrize(("n", "size", "count"), [(2, 6, 0), (3, 4, 102), (3, 5, 694), (4, 4, 142)])
def test_the_same_on_every_way(n: int, size: int, count: int) -> None:
    dags = all_dags(n, size)
    assert not count or len(dags) == count
    for dag in dags:
        for quorum in quorums(n):
            for strict in (True, False):
                walk(n, dag, everything(dag), quorum, strict)


@pytest.mark.parametrize(("n", "size", "count"), [(3, 5, 21_514)])
def test_the_same_on_every_way_with_causal_messages(n: int, size: int, count: int) -> None:
    cases = [(dag, agreed) for dag in all_dags(n, size) for agreed in masks(dag)]
    assert len(cases) == count
    for dag, agreed in cases:
        for quorum in quorums(n):
            for strict in (True, False):
                walk(n, dag, agreed, quorum, strict)


@pytest.mark.parametrize(("n", "size", "count"), [(3, 5, 2_082)])
def test_the_same_on_every_way_with_a_crash(n: int, size: int, count: int) -> None:
    cases = [(dag, crashing) for dag in all_dags(n, size) for crashing in range(n)]
    assert len(cases) == count
    for dag, crashing in cases:
        for quorum in quorums(n):
            for strict in (True, False):
                walk(n, dag, everything(dag), quorum, strict, (crashing,))


# ------------------------------------------------------------------------------------------------------------ at random


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8])
def test_the_fast_form_equals_the_definitions(n: int) -> None:
    """Event by event, with causal messages and crashes."""
    for seed in range(60):
        draw = random.Random(f"{n}/{seed}")
        dag, agreed = drawn(draw, n, draw.randint(1, 7 * n))
        quorum, strict = draw.choice(quorums(n)), draw.random() < 0.5
        fast, slow = Ballots(n, quorum, strict), Definition(n, quorum, strict)
        order = random_order(draw, dag, n)
        assert feed(fast, order, agreed) == feed(slow, order, agreed), seed
        for rank in draw.sample(range(n), draw.randint(0, n)):
            fast.crash(rank)
            slow.crash(rank)
            assert drained(fast) == drained(slow), seed


def test_two_ways_lead_to_the_same() -> None:
    for seed in range(300):
        draw = random.Random(seed)
        n = draw.choice((3, 4, 5, 6, 7, 9, 16))
        dag, agreed = drawn(draw, n, 8 * n)
        quorum, strict = draw.choice(quorums(n)), draw.random() < 0.5
        ways = [feed(Ballots(n, quorum, strict), random_order(draw, dag, n), agreed) for _ in range(3)]
        totals = [[keys for sets in way for keys in sets] for way in ways]
        assert totals[0] == totals[1] == totals[2], seed


def test_with_a_quorum_of_more_than_all_it_is_all_ack() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        n = draw.randint(1, 6)
        dag, agreed = drawn(draw, n, 6 * n)
        order = random_order(draw, dag, n)
        assert feed(Ballots(n, n + 1), order, agreed) == feed(AllAck(n), order, agreed), seed


def test_causal_messages_behind_nothing_pending_change_nothing() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        n = draw.randint(2, 6)
        dag, agreed = drawn(draw, n, 6 * n)
        bare = [key for key, vec in dag if key not in agreed and not any(vec[r] >= k for r, k in agreed)]
        plain, fewer = Ballots(n, n // 2 + 1), Definition(n, n // 2 + 1)
        order = random_order(draw, dag, n)
        without = [message for message in order if message[0] not in bare]
        total = [keys for sets in feed(plain, order, agreed) for keys in sets]
        assert total == [keys for sets in feed(fewer, without, agreed) for keys in sets], seed


def test_other_names_change_the_order_only_within_a_set() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        n = draw.randint(2, 7)
        dag, agreed = drawn(draw, n, 6 * n)
        names = draw.sample(range(n), n)
        renamed = tuple(((names[r], k), tuple(vec[names.index(q)] for q in range(n))) for (r, k), vec in dag)
        total = [keys for sets in feed(Ballots(n, n // 2 + 1), dag, agreed) for keys in sets]
        theirs = feed(Ballots(n, n // 2 + 1), renamed, frozenset((names[r], k) for r, k in agreed))
        assert [sorted((names[r], k) for r, k in keys) for keys in total] == [keys for sets in theirs for keys in sets]


def test_at_its_end_a_view_holds_nothing_and_closing_messages_would_say_the_same() -> None:
    """E10: empty ballots for all stand for a last message of everybody who goes on, and a crash of the rest."""
    for seed in range(300):
        draw = random.Random(seed)
        n = draw.randint(1, 6)
        dag, agreed = drawn(draw, n, draw.randint(1, 6 * n))
        quorum, strict = draw.choice(quorums(n)), draw.random() < 0.5
        closed, said = Ballots(n, quorum, strict), Ballots(n, quorum, strict)
        feed(closed, dag, agreed)
        feed(said, dag, agreed)
        closed.close()
        cut = tuple(sum(key[0] == q for key, _ in dag) for q in range(n))
        departed = draw.sample(range(n), draw.randint(0, n - 1))
        told: Sets = []
        for rank in sorted(departed):
            said.crash(rank)
            told += drained(said)
        for rank in set(range(n)) - set(departed):
            said.insert(rank, cut[rank] + 1, tuple(k + (q == rank) for q, k in enumerate(cut)), False)
            told += drained(said)
        assert drained(closed) == told, seed
        assert not closed.candidates and not any(closed.queue)


def test_the_index_of_latency_lies_between_the_quorum_and_all() -> None:
    """P10: of those from whom something came that m does not follow, and its sender, there are Q to n."""
    for seed in range(100):
        draw = random.Random(seed)
        n = draw.randint(2, 8)
        dag, agreed = drawn(draw, n, 8 * n)
        quorum = draw.choice(range(n // 2 + 1, n + 1))
        ballots, have, vectors = Ballots(n, quorum), [0] * n, dict(dag)
        for key, vec in random_order(draw, dag, n):
            have[key[0]] = key[1]
            ballots.insert(*key, vec, key in agreed)
            for rank, seq in (key for keys in drained(ballots) for key in keys):
                past = vectors[rank, seq]
                assert quorum <= 1 + sum(have[q] > past[q] for q in range(n) if q != rank) <= n, seed


def test_what_is_not_needed_is_forgotten() -> None:
    """Five members in turn, each message after all before it: what is kept does not grow."""
    n, have = 5, [0] * 5
    ballots, kept = Ballots(n, 3), []
    for turn in range(5_000):
        rank = turn % n
        have[rank] += 1
        ballots.insert(rank, have[rank], tuple(have), True)
        drained(ballots)
        kept.append(sum(map(len, ballots.log)) + sum(map(len, ballots.queue)))
    assert max(kept[2_500:]) <= max(kept[:500]) < 200


def test_a_vector_that_falls_back_is_made_to_follow() -> None:
    """What no honest member sends: its second message follows less than its first.  All hold it for the same."""
    ballots = Ballots(3, 2)
    ballots.insert(0, 1, (1, 0, 0), True)
    ballots.insert(1, 1, (1, 1, 0), True)
    assert drained(ballots) == [[(0, 1)]]
    ballots.insert(1, 2, (0, 2, 0), True)
    assert ballots.last[1] == (1, 2, 0)


# ------------------------------------------------------------------------------------------------------------- figure 1

FIGURE_1 = [
    *(("a1", "", True), ("d1", "a1", True), ("e1", "a1", True), ("b1", "a1", True), ("c1", "d1", True)),
    *(
        ("e2", "e1", True),
        ("d2", "c1 e2", False),
        ("a2", "b1 c1 e2", False),
        ("c2", "c1", True),
        ("d3", "b1 d2", False),
    ),
]


def test_table_1_of_the_paper() -> None:
    """Tail, NTail, VT and NVT of the candidates b1, c1 and e2, once a1, d1 and e1 are delivered."""
    dag = dag_of(5, [(name, acks.split(), "agreed" if agreed else "causal") for name, acks, agreed in FIGURE_1])
    slow = Definition(5, 3)
    for key, vec, agreed in dag.values():
        slow.insert(*key, vec, agreed)
    slow.done = {(0, 1), (3, 1), (4, 1)}
    b1, c1, e2 = candidates = slow.candidates()
    assert candidates == [(1, 1), (2, 1), (4, 2)]
    tail = {c: {m[0] for m in slow.dag if slow.follows(m, c)} for c in candidates}
    assert tail == {b1: {0, 1, 3}, c1: {0, 2, 3}, e2: {0, 3, 4}}
    vt = {c: [slow.vt(c, q, candidates) for q in range(5)] for c in candidates}
    assert vt == {b1: [2, 1, inf, inf, inf], c1: [2, inf, 1, 2, inf], e2: [2, inf, inf, 2, 2]}
    assert [sum(v != inf for v in vt[c]) for c in candidates] == [2, 3, 3]
    assert slow.activate() == candidates
