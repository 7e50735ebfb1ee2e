"""Where the paper breaks when it is read to the letter: the smallest case of each, and the variant that fails it.

The numbers are those of docs/protocols/toto.md.  x' is a message that is only causal; `<` names what it acknowledges.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mutants.cases import CASES, Case, messages, said
from tests.mutants.votes import LETTERS, HalfQuorum, NoClosing
from tests.toto.every_way import drained

from ordercast.conformance import golden
from ordercast.conformance.golden_toto import dag_of, walk
from ordercast.protocols.toto.ballots import Ballots

GOLDEN = Path(__file__).parent.parent / "golden" / "toto.json"

# erratum -> what the letter delivers, at two machines that cannot both be right; how it came: tests/mutants/cases.py
SAYS = {
    "e1_empty_vote": ("b1", "a2 b1"),
    "e1_figure_3": ("c1 d1", "d1"),
    "e2_stars_are_equal": ("c1 d1", "d1"),
    "e4_blank_ballots": ("a1 c1", "a1 b1 c1"),
    "e5_no_internal_stability": ("e1", "c1 e1"),
    "e6_no_nvt": ("a1 b1", "b1 a1"),
    "e6_no_external_stability": ("a1 b1", "b1 a1"),
    "e8_gone_vote_empty": ("a1 a2 b1 c1", "a1 b1"),
    "e8_n_shrinks": ("a1 b1 c1", "b1 a1 c1"),
}


@pytest.mark.parametrize("letter", SAYS)
def test_the_letter_disagrees_with_itself(letter: str) -> None:
    case = CASES[letter]
    right = [said(case, order, Ballots) for order in (case.one, case.other)]
    shorter = min(map(len, right))
    assert right[0][:shorter] == right[1][:shorter]
    wrong = [" ".join(said(case, order, LETTERS[letter])) for order in (case.one, case.other)]
    assert tuple(wrong) == SAYS[letter]


def test_e3_the_clause_on_tails_only_delays() -> None:
    """The smallest case in which it matters has seven machines; both deliver the same, the strict rule later."""
    text = "a1 b1 c1 d1'<a1 e1'<a1 f1'<a1,b1 g1'<a1,b1"
    order = ["a1", "d1", "b1", "c1", "f1", "g1", "e1"]
    strict, relaxed = (walk(7, 4, rule, messages(text, 7), order) for rule in (True, False))
    assert (strict, relaxed) == ([[6, ["a1", "b1"]]], [[5, ["a1", "b1"]]])


@pytest.mark.parametrize(("n", "text"), [(2, "a1 b1"), (4, "a1 b1 c1<a1 d1<b1")])
def test_e7_two_halves_beat_each_other_for_ever(n: int, text: str) -> None:
    case = Case(n, n // 2 + 1, text, *[" ".join(word.partition("<")[0] for word in text.split())] * 2)
    assert said(case, case.one, Ballots)[:2] == ["a1", "b1"]
    assert said(case, case.one, HalfQuorum) == []
    with pytest.raises(AssertionError, match="no quorum"):
        Ballots(n, n // 2)


def test_e9_a_crash_before_the_last_message_would_order_otherwise() -> None:
    case = CASES["e8_n_shrinks"]
    assert said(case, "a1 b1 crash:c", Ballots) == ["a1", "b1"]
    assert said(case, "a1 b1 c1", Ballots)[:1] == ["b1"]
    with pytest.raises(AssertionError, match="after its sender's crash"):
        said(case, "a1 b1 crash:c c1", Ballots)


def test_e10_crashes_alone_leave_something_pending() -> None:
    for form, left in ((Ballots, []), (NoClosing, [0])):
        ballots = form(3, 2)
        ballots.insert(0, 1, (1, 0, 0), True)
        ballots.crash(2)
        assert drained(ballots) == []
        ballots.close()
        drained(ballots)
        assert ballots.candidates == left


@pytest.mark.parametrize("letter", sorted(LETTERS.keys() - {"e10_no_closing"}))
def test_the_golden_vectors_tell_the_letters_from_the_protocol(letter: str) -> None:
    form = LETTERS[letter]

    def differs(case: golden.Case) -> bool:
        dag = dag_of(case["n"], case["messages"])
        return any(walk(case["n"], case["Q"], True, dag, run["order"], form) != run["out"] for run in case["runs"])

    assert any(differs(case) for case in golden.load(GOLDEN))
