"""Every checker accepts what it should and names what it rejects."""

from __future__ import annotations

import pytest
from verify_cases import ACCEPTED, REJECTED, UNJUDGED, Case
from verify_traces import run

from ordercast.errors import UsageError
from ordercast.trace.trace import Trace
from ordercast.verify import CATALOGUE, check
from ordercast.verify.columns import check_trace
from ordercast.verify.plain import CHECKS


def cases(table: dict[str, list[Case]]) -> list[object]:
    return [pytest.param(id, c, id=f"{id}-{k}") for id, of in table.items() for k, c in enumerate(of)]


@pytest.mark.parametrize(("promise", "case"), cases(ACCEPTED))
def test_accepts(promise: str, case: Case) -> None:
    [verdict] = check(run(case[0], **case[1]), [promise])
    assert verdict.state == "holds", verdict


@pytest.mark.parametrize(("promise", "case"), cases(REJECTED))
def test_rejects_and_says_why(promise: str, case: Case) -> None:
    [verdict] = check(run(case[0], **case[1]), [promise])
    assert verdict.state == "broken", verdict
    assert CATALOGUE[promise].statement in verdict.text and verdict.example
    assert all({"member", "index", "kind"} <= row.keys() for row in verdict.example)


@pytest.mark.parametrize(("promise", "case"), cases(UNJUDGED))
def test_cannot_judge(promise: str, case: Case) -> None:
    [verdict] = check(run(case[0], **case[1]), [promise])
    assert verdict.state == "cannot judge" and not verdict.example, verdict


def test_every_checker_has_both_kinds_of_traces() -> None:
    assert set(CHECKS) == set(ACCEPTED) == set(REJECTED)
    assert set(CHECKS) == {id for id, promise in CATALOGUE.items() if not promise.elsewhere}


def test_a_missing_row_is_never_ok() -> None:
    trace = run("1 view 1,2 | 1 sub 1 | 1 org 1 | 1 del 1:1")
    less = Trace(trace.header, [row for row in trace.rows if row.index != 2])
    assert {v.state for v in check(less)} == {"cannot judge"}
    twice = Trace(trace.header, [*trace.rows, trace.rows[1]])
    assert {v.state for v in check(twice)} == {"cannot judge"}


def test_the_header_says_which_promises_apply() -> None:
    trace = run("1 view 1", promises=("S4", "S1"))
    assert [v.promise for v in check(trace)] == ["S1", "S4"]
    with pytest.raises(UsageError, match="S99"):
        check(trace, ["S99"])


def test_a_life_that_stops_without_an_end_is_named() -> None:
    trace = run("1 view 1,2,3 | 2 view 1,2,3 | 3 view 1,2,3 | 0 crash 2 | 3 end")
    for form in (check, check_trace):
        [verdict] = form(trace, ["S4"])
        assert verdict.state == "holds" and "the rows of member 1 stop without an end" in verdict.text
    odd = run("1 view 1", level="everything")
    assert {v.state for v in check(odd)} == {v.state for v in check_trace(odd)} == {"cannot judge"}
