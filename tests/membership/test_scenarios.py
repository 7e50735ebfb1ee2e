"""The table of scenarios on the whole stack, a part of it: every row once, small groups, the short timeout.

All of it (3, 5 and 9 members, two timeouts): `make membership`.
"""

from functools import partial

import pytest
from mb import under
from mb_table import LAYER_ONLY, NEEDS_FOUR, ROWS, SHORT, mb33

ONCE = ("MB21", "MB22")  # of each the first row only
FIVE = {"MB3", "MB5", "MB6", "MB8", "MB12", "MB18", "MB19 MB8", "MB24", "MB25", "MB27 quick", "MB28 long", "MB30"}
ORDERED = ("MB1", "MB4", "MB9", "MB12", "MB17", "MB24", "MB28 long", *LAYER_ONLY)
ON_THE_LAYER = SHORT | {name: partial(row, until=100) for name, row in LAYER_ONLY.items()}
TESTED = [name for name in SHORT if not name.startswith(ONCE)] + ["MB21 link 1-2 1.5", "MB22 link 1-2"]


@pytest.mark.parametrize("name", TESTED)
def test_row(name):
    n = 5 if name in FIVE or name in NEEDS_FOUR else 3
    assert SHORT[name](n, 40.0, 1).wrong == []


def test_row_with_the_longer_timeout():
    assert ROWS["MB4"](3, 200.0, 2).wrong == []


@pytest.mark.parametrize("seed", range(4))
def test_random_lopsided_faults(seed):
    assert mb33(seed).wrong == []


@pytest.mark.parametrize("name", [*TESTED, *LAYER_ONLY])
def test_row_on_the_layer(name):
    n = 5 if name in FIVE or name in NEEDS_FOUR else 3
    with under("causal"):
        assert ON_THE_LAYER[name](n, 40.0, 1).wrong == []


@pytest.mark.parametrize(
    ("protocol", "name"),
    [*((p, name) for p in ("hybrid", "toto") for name in ORDERED), *(("tomp", name) for name in LAYER_ONLY)],
)
def test_row_under_an_order(name, protocol):
    for n in (3, 5):
        with under(protocol):
            assert ON_THE_LAYER[name](n, 40.0, 1).wrong == []


@pytest.mark.parametrize("seed", range(2))
def test_random_lopsided_faults_on_the_layer(seed):
    with under("causal"):
        assert mb33(seed).wrong == []
