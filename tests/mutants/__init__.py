"""Known-bad variants, by area; importing this package fills `registry.MUTANTS`."""

from tests.mutants import determinism, dpg, frames, grouping, known_bad, members, order, reliable, ring, views  # noqa: F401
from tests.mutants.registry import MUTANTS, Mutant, make

__all__ = ["MUTANTS", "Mutant", "make"]
