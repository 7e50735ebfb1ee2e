"""Judges a run by the promises of the catalogue: `plain` in short loops, `columns` over arrays; both agree."""

from ordercast.verify.catalogue import CATALOGUE, Promise
from ordercast.verify.plain import check
from ordercast.verify.quasi import RATE
from ordercast.verify.verdict import BROKEN, CANNOT_JUDGE, HOLDS, NOTHING, Verdict

__all__ = ["BROKEN", "CANNOT_JUDGE", "CATALOGUE", "HOLDS", "NOTHING", "RATE", "Promise", "Verdict", "check"]
