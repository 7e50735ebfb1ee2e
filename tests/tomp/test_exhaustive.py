"""All executions of small groups: the counts, and the literal readings of the paper that they catch."""

from __future__ import annotations

from typing import Any

import pytest
from exhaustive import CASES, CONTROLS, count


@pytest.mark.parametrize("case", [case for case in CASES if case.quick], ids=str)
def test_every_execution_agrees(case: Any) -> None:
    assert count(case) == case.expected


@pytest.mark.parametrize("case", [case for case in CONTROLS if case.quick], ids=str)
def test_without_a_correction_executions_disagree(case: Any) -> None:
    assert count(case) == case.expected
