"""Counterexamples of the view-synchronous layer under tickets: F7 (roles in a merge) and F9 (when nulls may stop).

Each smallest script is right with what is shipped, and wrong with the variant that leaves the rule out.
"""

from __future__ import annotations

import pytest
from tests.mutants.registry import make

from ordercast.conformance.script import Script


def orders(variant: str, *lines: str) -> list[list[str]]:
    """What each of three members has delivered after these lines; `variant`: a known-bad one, or none."""
    made = Script(make(variant) if variant else None)
    for line in lines:
        made.run(line)
    return [made.members[member].log for member in (1, 2, 3)]


MERGE = ("run 30ms", "crash 3", "run 200ms", "restart 3", "run 300ms", "submit 1 a", "submit 3 c", "run 300ms")


@pytest.mark.parametrize("protocol", ["token_site", "hybrid"])
def test_F7_who_merges_forgets_its_roles(protocol: str) -> None:
    """1 and 2 lean on 2 when 3 returns, which leans on itself."""
    assert orders("", f"members 3 protocol={protocol}", *MERGE) == [["3.1", "1.1"]] * 3


@pytest.mark.parametrize(
    ("variant", "protocol", "delivered"),
    [
        ("roles_kept_in_a_merge", "token_site", [[], [], []]),
        ("roles_kept_and_believed", "token_site", [["1.1", "3.1"], ["1.1", "3.1"], ["3.1", "1.1"]]),
        ("roles_of_their_own", "hybrid", [[], [], []]),
    ],
)
def test_F7_roles_that_are_kept(variant: str, protocol: str, delivered: list[list[str]]) -> None:
    """Members wait for different ones: nothing is delivered, or in two orders where nobody doubts a ticket."""
    assert orders(variant, f"members 3 protocol={protocol}", *MERGE) == delivered


@pytest.mark.parametrize(
    ("variant", "delivered"), [("", [["2.1"], ["2.1"], ["2.1"]]), ("f9_null_only_for_own", [["2.1"], [], []])]
)
def test_F9_who_has_delivered_everything_may_still_owe_a_null(variant: str, delivered: list[list[str]]) -> None:
    """1 gets the message of 2 and the promise of 3 at once and delivers; 2 and 3 wait for the promise of 1."""
    lines = ("run 30ms", "submit 2 a", "pass 2 3", "advance 3ms", "pass 3 1", "pass 2 1", "run 300ms")
    assert orders(variant, "members 3 protocol=symmetric", *lines) == delivered
