"""Every checker accepts what it should and names what it rejects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from verify_cases import ABC, ACCEPTED, EMPTY, REJECTED, UNJUDGED, V3, Case, V
from verify_traces import run

from ordercast.errors import UsageError
from ordercast.trace.trace import Trace
from ordercast.verify import CATALOGUE, Verdict, check
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


@pytest.mark.parametrize(("promise", "case"), cases(EMPTY))
def test_nothing_to_judge(promise: str, case: Case) -> None:
    [verdict] = check(run(case[0], **case[1]), [promise])
    assert verdict.state == "nothing to judge" and not verdict.ok and not verdict.judged, verdict


@pytest.mark.parametrize("form", [check, check_trace])
def test_one_cause_is_one_finding_of_the_strongest_promise(form: Callable[..., list[Verdict]]) -> None:
    order = ["S17", "S18", "S19", "S21"]
    swapped = "1 del 1:1 | 1 del 2:1 | 2 del 2:1 | 2 del 1:1"
    found = {v.promise: (v.state, v.told_by) for v in form(run(f"{ABC} | {swapped}"), order)}
    assert found == {
        "S17": ("broken", "S18"), "S18": ("broken", ""), "S19": ("broken", "S18"), "S21": ("nothing to judge", ""),
    }  # fmt: skip
    found = {v.promise: v.told_by for v in form(run(f"{ABC} | {swapped}"), ["S17", "S19"])}
    assert found == {"S17": "", "S19": "S17"}, "S18 is not promised"
    elsewhere = "3 sub 2 | 3 org 1 | 3 org 2 | 1 del 3:1 | 1 del 3:2 | 2 del 3:2"
    found = {v.promise: v.told_by for v in form(run(f"{V3} | {elsewhere}"), order) if v.state == "broken"}
    assert found == {"S19": ""}, "a hole alone"
    grouped = " | ".join(f"{m} gview x 1,2" for m in (1, 2))
    texts = swapped.replace(" |", " g=x |") + " g=x"
    said = "1 sub 1 g=x | 1 org 1 g=x | 2 sub 1 g=x | 2 org 1 g=x"
    found = {v.promise: v.told_by for v in form(run(f"{V} | {grouped} | {said} | {texts}"), order)}
    assert found == {"S17": "S18", "S18": "", "S19": "S18", "S21": "S18"}


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
