"""The golden vectors of the choice of members and of the evidence of links."""

import json
from pathlib import Path

import pytest

from ordercast.conformance.golden_membership import KINDS

CASES = json.loads((Path(__file__).parents[1] / "golden" / "membership.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_golden(case):
    assert KINDS[case["kind"]](case) == []
