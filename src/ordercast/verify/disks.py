"""Whose disk may have lost what was on it: what a state lacks after a restart is no fault of the replica then."""

from __future__ import annotations

from typing import Any

from ordercast.trace.schema import Header

_FORGETS = frozenset(("lost", "flip"))


def doubtful(header: Header) -> frozenset[int]:
    """Members of a simulated run whose disk was taken away, lied or erred, by the scenario's faults."""
    out: set[int] = set()
    for fault in (header.scenario or {}).get("faults", ()):
        kind = fault.get("fault")
        wiped = kind in ("crash", "storm") and fault.get("disk") is False
        if wiped or kind == "claimant" or (kind == "disk" and fault.get("how") in _FORGETS):
            member = fault.get("member")
            out |= set(header.members) if member is None else {member}
    return frozenset(out)


def emptied(found: dict[str, Any]) -> bool:
    """Whether what a life found on its disk says by itself that something is missing."""
    return found["n"] == 0 or bool(found.get("damaged"))
