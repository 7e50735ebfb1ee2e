"""Both forms of every checker agree on every trace."""

from __future__ import annotations

import pytest
from verify_cases import ACCEPTED, REJECTED, UNJUDGED, Case
from verify_traces import run

from ordercast.verify import CATALOGUE, check
from ordercast.verify.columns import CHECKS, check_trace

ALL = [c for table in (ACCEPTED, REJECTED, UNJUDGED) for of in table.values() for c in of]


@pytest.mark.parametrize("case", ALL, ids=range(len(ALL)))
def test_the_forms_agree(case: Case) -> None:
    trace = run(case[0], **case[1])
    plain = {v.promise: v.state for v in check(trace)}
    assert {v.promise: v.state for v in check_trace(trace)} == plain


@pytest.mark.parametrize(("promise", "case"), [(id, c) for id, of in REJECTED.items() for c in of])
def test_rejects_and_says_why(promise: str, case: Case) -> None:
    [verdict] = check_trace(run(case[0], **case[1]), [promise])
    assert verdict.state == "broken" and CATALOGUE[promise].statement in verdict.text and verdict.example


def test_there_is_an_array_form_of_every_checker() -> None:
    assert set(CHECKS) == {id for id, promise in CATALOGUE.items() if not promise.elsewhere}
