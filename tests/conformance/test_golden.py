"""The worked examples, replayed into the shipped code; unknown kinds and bad files are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.conformance import golden
from ordercast.errors import UsageError

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = [case for path in sorted(GOLDEN.glob("*.json")) for case in golden.load(path) if case["kind"] in golden.kinds()]


@pytest.mark.parametrize("kind", sorted(golden.kinds()))
def test_kind(kind: str) -> None:
    cases = [case for case in CASES if case["kind"] == kind]
    assert cases, f"no vectors of kind {kind}"
    failed = {case["name"]: differences for case in cases if (differences := golden.replay_case(case))}
    assert not failed


def test_an_unknown_kind_is_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"format": golden.FORMAT, "cases": [{"name": "a", "kind": "no such kind"}]}))
    result = golden.replay(file)
    assert result.passed == 0 and "unknown kind" in result.failures[0].differences[0]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "other", "cases": []}', '{"format": "ordercast-golden/1"}']
)
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UsageError):
        golden.load(file)
