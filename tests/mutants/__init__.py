"""Known-bad variants, by area; importing this package fills `registry.MUTANTS`."""

from tests.mutants import (  # noqa: F401
    determinism,
    dpg,
    frames,
    grouping,
    known_bad,
    layer,
    members,
    order,
    primary,
    reliable,
    ring,
    rings,
    stamps,
    views,
    votes,
)
from tests.mutants.registry import MUTANTS, Mutant, make

__all__ = ["MUTANTS", "Mutant", "make"]
