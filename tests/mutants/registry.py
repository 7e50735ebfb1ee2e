"""Known-bad variants of every protocol and layer: what the swarm must find.

A mutant is a maker of stacks that differs from the shipped one by a few lines.  `MUTANTS` names them all; `make` gives
the maker of one, which is how child processes come by it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ordercast.contract import Setup
from ordercast.stack import Stack

Maker = Callable[[Setup], Stack]


class Mutant(Struct, frozen=True):
    """One known-bad variant."""

    protocol: str
    maker: Maker
    breaks: str  # what is wrong with it, in words
    area: str  # of the list in docs/design/swarm.md
    by: str = "swarm"  # or "determinism": only two runs of a seed can show it
    scenario: str = ""  # the directed scenario that is tried before the seeds
    row: str = ""  # of the membership's table, the same
    case: str = ""  # of cases.py, tried after the seeds


MUTANTS: dict[str, Mutant] = {}


def mutant(
    name: str,
    protocol: str,
    area: str,
    breaks: str,
    *,
    by: str = "swarm",
    scenario: str = "",
    row: str = "",
    case: str = "",
) -> Callable[[Maker], Maker]:
    """Enter a maker into the list."""

    def enter(maker: Maker) -> Maker:
        assert name not in MUTANTS, f"two mutants named {name}"
        MUTANTS[name] = Mutant(protocol, maker, breaks, area, by, scenario, row, case)
        return maker

    return enter


def make(name: str) -> Maker:
    """The maker of a mutant."""
    from tests import mutants  # noqa: F401  fills the list

    return MUTANTS[name].maker
