"""Where the paper breaks when it is read to the letter: the smallest case of each, and the variant that fails it.

The numbers are those of docs/protocols/toto.md.  x' is a message that is only causal; `<` names what it acknowledges.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mutants.votes import LETTERS, HalfQuorum, NoClosing
from tests.toto.every_way import drained

from ordercast.conformance import golden
from ordercast.conformance.golden_toto import dag_of, walk
from ordercast.protocols.toto.ballots import Ballots

GOLDEN = Path(__file__).parent.parent / "golden" / "toto.json"

E1 = "a1' a2<a1 b1 c1'"
E1_CLOSED = "c1 d1 b1<c1,d1 a1<d1 d2'<c1,d1 e1' e2<d1,e1"
E2 = "c1 d1 b1<c1,d1 a1<d1 d2'<c1,d1 e1<d1"
E4 = "a1 b1<a1 c1 a2<a1,c1 a3<b1,a2"
E5 = "e1 c1 b1<e1 d1<c1,b1 a1"
E8 = "a1 b1 c1<b1"
TWO = "a1 b1"
GONE = "a1 a2 b1 c1<a1"

# erratum, n, quorum, messages, then arrivals -> what the letter delivers, at two machines that cannot both be right
CASES = [
    ("e1_empty_vote", 3, 2, E1, "b1 a1 c1", "b1", "a1 a2 b1 c1", "a2 b1"),
    ("e1_figure_3", 5, 3, E1_CLOSED, "c1 d1 b1 a1 d2 e1", "c1 d1", "d1 a1 e1 e2", "d1"),
    ("e2_stars_are_equal", 5, 3, E2, "c1 d1 b1 a1 d2", "c1 d1", "d1 a1 e1", "d1"),
    ("e4_blank_ballots", 3, 2, E4, "a1 b1 c1 a2", "a1 c1", "a1 c1 a2 b1 a3", "a1 b1 c1"),
    ("e5_no_internal_stability", 5, 3, E5, "e1 c1 b1 d1", "e1", "e1 c1 b1 a1 d1", "c1 e1"),
    ("e6_no_nvt", 3, 3, TWO, "a1 b1", "a1 b1", "b1 a1", "b1 a1"),
    ("e6_no_external_stability", 3, 2, TWO, "a1 b1", "a1 b1", "b1 a1", "b1 a1"),
    ("e8_gone_vote_empty", 3, 2, GONE, "b1 a1 c1 a2 crash:a", "a1 a2 b1 c1", "a1 a2 crash:a b1 c1", "a1 b1"),
    ("e8_n_shrinks", 3, 2, E8, "a1 b1 crash:b c1", "a1 b1 c1", "a1 b1 c1 crash:b", "b1 a1 c1"),
]


def messages(text: str, n: int) -> dict[str, tuple[tuple[int, int], tuple[int, ...], bool]]:
    rows = []
    for word in text.split():
        name, _, acks = word.partition("<")
        kind = "causal" if name.endswith("'") else "agreed"
        rows.append((name.rstrip("'"), acks.split(",") if acks else [], kind))
    return dag_of(n, rows)


def said(n: int, quorum: int, text: str, order: str, form: type[Ballots] = Ballots) -> list[str]:
    sets = walk(n, quorum, True, messages(text, n), order.split(), form)
    return [name for _, names in sets for name in names]


@pytest.mark.parametrize(("letter", "n", "quorum", "text", "one", "its", "other", "theirs"), CASES)
def test_the_letter_disagrees_with_itself(
    letter: str, n: int, quorum: int, text: str, one: str, its: str, other: str, theirs: str
) -> None:
    right = said(n, quorum, text, one), said(n, quorum, text, other)
    shorter = min(map(len, right))
    assert right[0][:shorter] == right[1][:shorter]
    wrong = said(n, quorum, text, one, LETTERS[letter]), said(n, quorum, text, other, LETTERS[letter])
    assert (" ".join(wrong[0]), " ".join(wrong[1])) == (its, theirs)


def test_e3_the_clause_on_tails_only_delays() -> None:
    """The smallest case in which it matters has seven machines; both deliver the same, the strict rule later."""
    text = "a1 b1 c1 d1'<a1 e1'<a1 f1'<a1,b1 g1'<a1,b1"
    order = ["a1", "d1", "b1", "c1", "f1", "g1", "e1"]
    strict, relaxed = (walk(7, 4, rule, messages(text, 7), order) for rule in (True, False))
    assert (strict, relaxed) == ([[6, ["a1", "b1"]]], [[5, ["a1", "b1"]]])


@pytest.mark.parametrize(("n", "text"), [(2, "a1 b1"), (4, "a1 b1 c1<a1 d1<b1")])
def test_e7_two_halves_beat_each_other_for_ever(n: int, text: str) -> None:
    order = [word.partition("<")[0] for word in text.split()]
    assert said(n, n // 2 + 1, text, " ".join(order))[:2] == ["a1", "b1"]
    assert said(n, n // 2 + 1, text, " ".join(order), HalfQuorum) == []
    with pytest.raises(AssertionError, match="no quorum"):
        Ballots(n, n // 2)


def test_e9_a_crash_before_the_last_message_would_order_otherwise() -> None:
    assert said(3, 2, E8, "a1 b1 crash:c") == ["a1", "b1"]
    assert said(3, 2, E8, "a1 b1 c1")[:1] == ["b1"]
    with pytest.raises(AssertionError, match="after its sender's crash"):
        said(3, 2, E8, "a1 b1 crash:c c1")


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
