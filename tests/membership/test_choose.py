"""The choice of members: the clique search against a dumb twin, and what the choice promises."""

import random
from itertools import combinations

import pytest

from ordercast.membership import choose as module
from ordercast.membership.choose import NO_VIEW, Chooser, Graph, Row, bits, choose, linked, views
from ordercast.types import ViewId


def random_rows(rng, n, direct_share=0.6):
    """A table of n members with random hearing, views and states; ids are not ranks."""
    ids = sorted(rng.sample(range(1, 60), n))
    ring = [ViewId(4 * rng.randint(1, 3), rng.choice(ids)) for _ in range(3)]
    share = rng.uniform(0.2, 0.95)
    rows = {}
    for q in ids:
        hears = frozenset({q} | {r for r in ids if rng.random() < share})
        if rng.random() < 0.05:
            hears = frozenset()
        rows[q] = Row(q, 1, 1, rng.choice(ring), rng.random() < direct_share, hears)
    return rows


# ------------------------------------------------------------------------------------------------------ the dumb twin


def dumb_linked(a, b):
    if not a.hears or not b.hears:
        return False
    return (b.id in a.hears and a.id in b.hears) or (a.working and b.working and a.view == b.view)


def dumb_best(rows, among):
    """All sets, largest first; of the largest that are cliques the best."""
    for size in range(len(among), 0, -1):
        found = [
            set_
            for set_ in combinations(sorted(among), size)
            if all(dumb_linked(rows[a], rows[b]) for a, b in combinations(set_, 2))
        ]
        if found:
            return min(found, key=lambda s: (-max([rows[q].view for q in s].count(rows[q].view) for q in s), s))
    raise AssertionError("somebody is always a clique")


def dumb_choose(rows, me):
    if not rows[me].hears:
        return (me,)
    component = {me}
    while more := {q for q in rows if q not in component and any(dumb_linked(rows[q], rows[r]) for r in component)}:
        component |= more
    while True:
        best = dumb_best(rows, component)
        if me in best:
            return best
        component -= set(best)


def test_choice_equals_the_dumb_twin_in_2000_tables():
    rng = random.Random(3)
    for _ in range(2000):
        rows = random_rows(rng, rng.randint(1, 7))
        for me in rows:
            assert choose(rows, me) == dumb_choose(rows, me), rows


def test_all_maximal_cliques_are_found_in_2000_graphs():
    rng = random.Random(4)
    for _ in range(2000):
        rows = random_rows(rng, rng.randint(1, 9))
        graph = Graph(rows)
        if not graph.ids:
            continue
        everybody = (1 << len(graph.ids)) - 1
        found = sorted(graph.cliques(everybody))
        dumb = []
        for mask in range(1, everybody + 1):
            inside = list(bits(mask))
            if all(graph.neighbours[a] >> b & 1 for a, b in combinations(inside, 2)) and not any(
                all(graph.neighbours[v] >> w & 1 for w in inside) for v in range(len(graph.ids)) if not mask >> v & 1
            ):
                dumb.append(mask)
        assert found == sorted(dumb)


# ----------------------------------------------------------------------------------------------------------- promises


def test_views_are_what_everybody_chooses():
    rng = random.Random(5)
    for _ in range(1000):
        rows = random_rows(rng, rng.randint(1, 9))
        found = views(rows)
        assert sorted(q for view in found for q in view) == sorted(rows), "disjoint and complete"
        for view in found:
            for me in view:
                assert choose(rows, me) == view  # M3: equal tables, equal choices; M2: I am in it


def test_formed_views_are_chosen_again():
    """The fixpoint: once every member works in the view the table gives, the table gives the same views."""
    rng = random.Random(6)
    for _ in range(1000):
        rows = random_rows(rng, rng.randint(2, 9))
        formed = views(rows)
        for number, view in enumerate(formed):
            for q in view:
                row = rows[q]
                rows[q] = Row(q, 1, row.version + 1, ViewId(100 + 4 * number, view[0]), bool(row.hears), row.hears)
        assert views(rows) == formed


def test_cut_off_is_the_same_everywhere_and_always_gives_a_clique(monkeypatch):
    monkeypatch.setattr(module, "STEPS_MAX", 40)
    rng = random.Random(7)
    for _ in range(20):
        rows = random_rows(rng, 24)
        found = views(rows)
        for view in found:
            assert all(linked(rows[a], rows[b]) for a, b in combinations(view, 2))
            assert all(choose(rows, me) == view for me in view)


def test_sixty_four_members_within_the_steps():
    """Complement of many disjoint pairs: 2^32 maximal cliques; the search stops at its bound."""
    ids = range(1, 65)
    rows = {q: Row(q, 1, 1, NO_VIEW, False, frozenset(ids) - {q + 1 if q % 2 else q - 1}) for q in ids}
    chosen = choose(rows, 1)
    assert len(chosen) == 32 and 1 in chosen


def test_direct_links_only():
    view = ViewId(8, 1)
    rows = {q: Row(q, 1, 1, view, True, frozenset({q})) for q in (1, 2)}
    assert choose(rows, 1) == (1, 2)
    assert choose(rows, 1, direct=True) == (1,)


def test_last_result_is_remembered_by_content(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "choose", lambda *a: calls.append(1) or (1, 2))
    chooser = Chooser(1, False)
    rows = {q: Row(q, 1, 1, NO_VIEW, False, frozenset({1, 2})) for q in (1, 2)}
    chooser(rows)
    rows[2] = Row(2, 1, 9, NO_VIEW, False, frozenset({1, 2}))  # only the version moved
    chooser(rows)
    assert len(calls) == 1
    rows[2] = Row(2, 1, 10, NO_VIEW, False, frozenset({2}))
    chooser(rows)
    assert len(calls) == 2


@pytest.mark.parametrize("shared", [True, False])
def test_equal_cores_keep_the_current_view(shared):
    """1 returns; {1, 2} and {2, 3} are equally large, and {2, 3} works."""
    view = ViewId(8, 2) if shared else NO_VIEW
    rows = {
        1: Row(1, 1, 1, ViewId(4, 1), False, frozenset({1, 2})),
        2: Row(2, 1, 1, view, shared, frozenset({1, 2, 3})),
        3: Row(3, 1, 1, view, shared, frozenset({2, 3})),
    }
    assert choose(rows, 2) == ((2, 3) if shared else (1, 2))
