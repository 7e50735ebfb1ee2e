"""Variants of the ring held against the membership's table: what a fault may cost in views and time, row by row.

The promises judge one run by what holds for every run; the table says of a given fault how many views it costs, who is
in them and how soon (tests/membership/mb_table.py).  Every row is one that the unchanged ring must show as well.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mutants.registry import Maker

from ordercast.swarm.judge import RAISES
from ordercast.swarm.runner import describe

sys.path.append(str(Path(__file__).parents[1] / "membership"))  # its helpers import each other by their bare names

from mb import variant
from mb_table import SHORT

__all__ = ["SHORT", "broken"]

PROTOCOL = "totem"
MEMBERS, TIMEOUT_MS, SEED = 5, 40.0, 1  # for all rows: the smallest group in which each of them means something


def broken(title: str, maker: Maker) -> tuple[str, str]:
    """(what broke, in words) of one row with this variant; empty if it shows what it must."""
    try:
        with variant(maker):
            wrong = SHORT[title](MEMBERS, TIMEOUT_MS, SEED).wrong
    except Exception as error:
        return RAISES, describe(error)
    return (title.split()[0], wrong[0]) if wrong else ("", "")
