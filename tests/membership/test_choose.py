"""The choice of members: the clique search against a dumb twin, and what the choice promises."""

import random
from itertools import combinations

import pytest
from msgspec.structs import replace

from ordercast.membership import Hello, Membership
from ordercast.membership import choose as module
from ordercast.membership.choose import NO_VIEW, Chooser, Graph, Row, bits, choose, linked, search, views
from ordercast.membership.table import _pack
from ordercast.types import Identity, Peer, ViewId


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


EVERYBODY = range(1, 65)


def pairs_apart(skip=0):
    """Complement of many disjoint pairs: 2^32 maximal cliques."""
    rows = {
        q: Row(q, 1, 1, NO_VIEW, False, frozenset(EVERYBODY) - {q + 1 if q % 2 else q - 1, q + skip}) for q in EVERYBODY
    }
    rows[1 + skip] = Row(1 + skip, 1, 1, NO_VIEW, False, rows[1 + skip].hears | {1 + skip})
    return rows


def test_sixty_four_members_within_the_steps():
    chosen, steps = search(pairs_apart(), 1)
    assert len(chosen) == 32 and 1 in chosen
    assert steps == 2_000


def test_a_choice_has_one_budget_and_each_further_cell_a_few_steps():
    """Of a random graph the first cells spend the budget: who is in the last one pays n + 1 for each further cell."""
    rng = random.Random(8)
    rows = {}
    for q in EVERYBODY:
        rows[q] = Row(q, 1, 1, NO_VIEW, False, frozenset({q, *(r for r in EVERYBODY if rng.random() < 0.85)}))
    found = views(rows)
    for view in found:
        for me in view[:1]:
            chosen, steps = search(rows, me)
            assert chosen == view
            assert steps <= 2_000 + (len(EVERYBODY) + 1) * (len(found) - 1)
    assert len(found) > 4, "there are further cells"


def test_new_tables_cannot_keep_a_member_busy():
    """Many tables of the worst kind within T_gap: one search; the newest is looked at when it is over."""
    chooser, gap = Chooser(1, False, 1_000), 1_000
    spent = []

    def search_counted(*what):
        found = search(*what)
        spent.append(found[1])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "search", search_counted)
        tables = [pairs_apart(skip=k) for k in range(1, 64)]
        answers = [chooser(5, rows) for rows in tables]
        assert answers[0] is not None and set(answers[1:]) == {None}
        assert chooser(6, tables[0]) == answers[0], "what was looked at is remembered"
        assert spent == [2_000] and chooser.rest == 5 + gap
        assert chooser(5 + gap, tables[-1]) is not None and len(spent) == 2


def test_ordinary_tables_cost_no_rest():
    chooser = Chooser(1, False, 1_000)
    for gone in range(2, 65):
        rows = {q: Row(q, 1, 1, NO_VIEW, False, frozenset(EVERYBODY) - {gone}) for q in EVERYBODY if q != gone}
        assert chooser(7, rows) == tuple(q for q in EVERYBODY if q != gone)


def test_hellos_with_new_graphs_cost_a_bounded_number_of_steps(monkeypatch):
    """What a neighbour can make this member do: Hellos, each with another graph of 64 members, for ten T_gap."""
    spent = []
    monkeypatch.setattr(module, "search", lambda *what: (found := search(*what), spent.append(found[1]))[0])
    timeout = 40_000_000
    m = Membership(Identity(1, 5, tuple(EVERYBODY)), timeout, random.Random(1), entry=lambda: b"")
    m.start(0, {})
    peer, gap = Peer(3, 5), timeout // 20
    for k in range(200):
        now = 1 + k * gap // 20
        m.heard(now, peer)
        graph = pairs_apart(skip=1 + k % 62).values()
        rows = [replace(row, incarnation=5, version=k + 2) for row in graph if row.id > 1]
        m.receive(now, peer, Hello(NO_VIEW, _pack(rows)))
    assert sum(spent) <= 11 * (2_000 + 64 * 65), "one dear choice per T_gap"
    assert sum(spent) > 2_000, "but there are some"


def test_direct_links_only():
    view = ViewId(8, 1)
    rows = {q: Row(q, 1, 1, view, True, frozenset({q})) for q in (1, 2)}
    assert choose(rows, 1) == (1, 2)
    assert choose(rows, 1, direct=True) == (1,)


def test_last_result_is_remembered_by_content(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "search", lambda *a: calls.append(1) or ((1, 2), 3))
    chooser = Chooser(1, False, 1_000)
    rows = {q: Row(q, 1, 1, NO_VIEW, False, frozenset({1, 2})) for q in (1, 2)}
    chooser(0, rows)
    rows[2] = Row(2, 1, 9, NO_VIEW, False, frozenset({1, 2}))  # only the version moved
    chooser(0, rows)
    assert len(calls) == 1
    rows[2] = Row(2, 1, 10, NO_VIEW, False, frozenset({2}))
    chooser(0, rows)
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
