"""The table of scenarios on the whole stack, a part of it: every row once, small groups, the short timeout.

All of it (3, 5 and 9 members, two timeouts): `make membership`.
"""

import pytest
from mb_table import NEEDS_FOUR, ROWS, mb17, mb21, mb22, mb23, mb31, mb33

LONG = {name for name in ROWS if name.startswith(("MB17", "MB21", "MB22", "MB23", "MB31"))}  # shortened below
FIVE = {"MB3", "MB5", "MB6", "MB8", "MB12", "MB18", "MB19 MB8", "MB24", "MB25", "MB27 quick", "MB28 long", "MB30"}


@pytest.mark.parametrize("name", [name for name in ROWS if name not in LONG])
def test_row(name):
    n = 5 if name in FIVE or name in NEEDS_FOUR else 3
    assert ROWS[name](n, 40.0, 1).wrong == []


def test_row_with_the_longer_timeout():
    assert ROWS["MB4"](3, 200.0, 2).wrong == []


def test_links_without_tokens():
    assert mb17(3, 40.0, 1, until=120).wrong == []


def test_flapping_links():
    assert mb21(3, 40.0, 1, phase=1.5, until=100).wrong == []
    assert mb22(3, 40.0, 1, until=120).wrong == []


def test_a_link_that_loses_most():
    assert mb23(3, 40.0, 1, until=100).wrong == []


def test_strikes_are_forgotten_in_a_calm():
    assert mb31(3, 40.0, 1, calm=400, cap=40).wrong == []


@pytest.mark.parametrize("seed", range(4))
def test_random_lopsided_faults(seed):
    assert mb33(seed).wrong == []
