"""Reach probes: named points of rare branches, and whether a campaign came by them.

Most are Notes of the cores (`ProtocolInfo.probes` lists those expected of a protocol); some can be read off any trace.
A campaign that never reaches a probe has not tested what lies behind it, however many seeds it ran.
"""

from __future__ import annotations

from collections import Counter

from ordercast import registry
from ordercast.drivers.sizes import frame_bytes
from ordercast.limits import RINGS_MAX
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Scenario
from ordercast.trace.schema import Kind
from ordercast.types import ViewKind

FRAGMENT, OVERLOADED, TOO_LARGE = "message in fragments", "refused: overloaded", "refused: too large"
RESTART, LEFT, MERGE, TRANSITIONAL, WRAP = "restart", "left in good order", "merge", "transitional view", "number wrap"
_ALWAYS = (FRAGMENT, OVERLOADED, TOO_LARGE)
_WITH_VIEWS = (RESTART, LEFT, MERGE, TRANSITIONAL, WRAP)
_WRAPS = (2**31, 2**32, 2**48)
_LENGTH_BYTES = 4


def expected(protocol: str) -> tuple[str, ...]:
    """What a campaign of this protocol should come by."""
    info = registry.get(protocol)
    return tuple(dict.fromkeys((*info.probes, *_ALWAYS, *(_WITH_VIEWS if info.changes_views else ()))))


def reached(outcome: Outcome, scenario: Scenario) -> Counter[str]:
    """How often each probe was come by in one run."""
    found = Counter(outcome.notes)
    lives: set[int] = set()
    unit = RINGS_MAX if registry.get(scenario.protocol).rings else 1  # a topology is named by a stamp and a ring
    room = frame_bytes(scenario.packet_largest, scenario.members) - _LENGTH_BYTES
    if outcome.messages and any(room < size < 2**24 for size in scenario.sizes):
        found[FRAGMENT] += 1
    for row in outcome.trace.rows:
        kind = row.kind
        if kind == Kind.REFUSE:
            found[f"refused: {(row.detail or {}).get('why')}"] += 1
        elif kind == Kind.START:
            found[RESTART] += row.sender in lives
            lives.add(row.sender or 0)
        elif kind == Kind.LEAVE:
            found[LEFT] += 1
        elif kind == Kind.VIEW:
            if row.view_kind == ViewKind.TRANSITIONAL:
                found[TRANSITIONAL] += 1
                continue
            old = [part for part in (row.detail or {}).get("components", ()) if part[0] is not None]
            found[MERGE] += len(old) > 1
            before, after = (row.previous_seq or 0) // unit, (row.view_seq or 0) // unit
            found[WRAP] += any(0 < before < wrap <= after for wrap in _WRAPS)
    return +found
