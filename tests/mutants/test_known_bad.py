"""Each known-bad protocol is caught by both forms of the checkers, its promise named, its smallest example shown."""

from __future__ import annotations

import pytest
from tests.mutants.bad_runs import BAD, trace_of

from ordercast.verify import BROKEN, check
from ordercast.verify.columns import check_trace


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("form", [check, check_trace], ids=["plain", "columns"])
def test_is_caught(name: str, form) -> None:  # type: ignore[no-untyped-def]
    verdicts = {verdict.promise: verdict for verdict in form(trace_of(name))}
    caught = verdicts[BAD[name]]
    assert caught.state == BROKEN
    assert BAD[name] in caught.text and "member" in caught.text
    assert 1 <= len(caught.example) <= 4
    assert all({"member", "kind", "time_ns"} <= set(row) for row in caught.example)


def test_the_sound_protocol_is_not() -> None:
    for form in (check, check_trace):
        assert [verdict.promise for verdict in form(trace_of("")) if verdict.state == BROKEN] == []


def test_each_breaks_little_else() -> None:
    """What is broken beside the named promise follows from it."""
    allowed = {
        "delivers_twice": {"S2", "S17", "S18", "S19"},
        "swaps_two": {"S16", "S17", "S18", "S19"},
        "loses_one": {"S14", "S15", "S16", "S19", "L3", "L4"},
        "invents_one": {"S1", "S19"},
        "breaks_fifo": {"S15", "S16"},
        "alters_payload": {"S1"},
        "silent_member": {"S14", "L3", "L4"},
        "canary": {"S2", "S17", "S18", "S19"},
    }
    for name, promises in allowed.items():
        broken = {verdict.promise for verdict in check(trace_of(name)) if verdict.state == BROKEN}
        assert broken <= promises, name
