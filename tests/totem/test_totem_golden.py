"""Worked examples with known answers, through the ring's own code."""

import json
from pathlib import Path

import pytest

from ordercast.conformance.golden_totem import KINDS

CASES = json.loads((Path(__file__).parents[1] / "golden" / "totem.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case):
    assert KINDS[case["kind"]](case) == []
