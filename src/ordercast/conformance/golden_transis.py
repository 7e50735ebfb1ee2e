"""Golden kinds of the reliable causal layer: reception and stability, on the layer's own parts."""

from __future__ import annotations

from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.transis.reception import Reception
from ordercast.transis.stability import Stability


def reception(case: Case) -> list[str]:
    """A member that sends nothing is fed data and Status; what it inserts, holds and misses."""
    state: Reception[None] = Reception(case["n"])
    for number, step in enumerate(case["steps"]):
        inserted: list[Any] = []
        duplicate = False
        if "data" in step:
            sender, seq, vec = step["data"]
            answer = state.offer(sender, seq, tuple(vec), None)
            duplicate = answer is None
            inserted = [[q, k] for q, k, _ in answer or []]
            if answer is not None:
                state.learn(vec)
        else:
            state.learn(step["status"][1])
        got = {
            "inserted": inserted,
            "duplicate": duplicate,
            "held": sorted(map(list, state.held)),
            "gaps": sorted(map(list, state.gaps())),
            "have": state.have,
        }
        for key, value in got.items():
            if key in step:
                expected = sorted(step[key]) if key in ("held", "gaps") else step[key]
                found = differ(f"step {number}, {key}", expected, value)
                if found:
                    return found
    return []


def stability(case: Case) -> list[str]:
    """Messages and Status reports; what becomes stable and is released."""
    n, me = case["n"], case["me"]
    state: Stability[None] = Stability(n)
    have = [0] * n
    for number, step in enumerate(case["steps"]):
        if "insert" in step:
            sender, seq, vec = step["insert"]
            state.insert(sender, seq, tuple(vec), None)
            have[sender] = seq
            state.report(me, have)
        else:
            state.report(*step["status"])
        released = sorted(map(list, state.advance()))
        got = {"stable": state.stable, "released": released, "buffered": len(state.buffer)}
        for key, value in got.items():
            found = differ(f"step {number}, {key}", step[key], value)
            if found:
                return found
    return []


KINDS = {"reception": reception, "stability": stability}
