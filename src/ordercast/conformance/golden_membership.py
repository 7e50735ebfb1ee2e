"""Golden replay of the membership's vectors: kinds `choose` (choice of members) and `hearing` (evidence of a link)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ordercast.membership.choose import Row, choose, views
from ordercast.membership.evidence import Evidence
from ordercast.types import ViewId

MILLISECOND = 1_000_000


def replay_choose(case: dict[str, Any]) -> list[str]:
    """Every member of the table that computes `choose` gets the one of the expected views that holds it."""
    rows = {
        int(q): Row(int(q), 1, 1, ViewId(*row["view"]), row["working"], frozenset(row["hears"]))
        for q, row in case["rows"].items()
    }
    expected = [tuple(view) for view in case["views"]]
    differences = []
    found = views(rows)
    if found != sorted(expected):
        differences.append(f"views: expected {sorted(expected)}, got {found}")
    for view in expected:
        for q in view:
            got = choose(rows, q)
            if got != view:
                differences.append(f"choose at {q}: expected {view}, got {got}")
    return differences


def replay_hearing(case: dict[str, Any]) -> list[str]:
    """One link, event by event: is q in `hears`, and how many strikes has it?"""
    q = 2
    evidence = Evidence(case["T"] * MILLISECOND)
    evidence.learn(0, q, 1)
    expected_strikes = {index: strikes for index, strikes in case["strikes"]}
    differences = []
    for index, ((time_ms, what), expected) in enumerate(zip(case["events"], case["hears"], strict=True)):
        now = time_ms * MILLISECOND
        _hearing_event(evidence, now, q, what)
        link = evidence.links[q]
        if link.hears != expected:
            differences.append(f"event {index} ({what} at {time_ms} ms): expected hears {expected}, got {link.hears}")
        if index in expected_strikes and link.strikes != expected_strikes[index]:
            wanted = expected_strikes[index]
            differences.append(f"event {index} ({what} at {time_ms} ms): expected {wanted} strikes, got {link.strikes}")
    return differences


def _hearing_event(evidence: Evidence, now: int, q: int, what: str) -> None:
    if what == "restart":
        evidence.learn(now, q, evidence.links[q].incarnation + 1)
    if what in ("packet", "restart"):
        evidence.packet(now, q)
        if not evidence.links[q].hears:
            evidence.recompute(now)
        return
    if what == "strike":
        evidence.strike(now, q, "")
    evidence.recompute(now)


KINDS: dict[str, Callable[[dict[str, Any]], list[str]]] = {"choose": replay_choose, "hearing": replay_hearing}
