"""Golden kinds of the view-synchronous layer, on its own parts: reception, stability, exchange, plans, primary."""

from __future__ import annotations

from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.membership.bitmap import from_bitmap, to_bitmap
from ordercast.membership.primary import Mark, Record, newest, rule, undecided
from ordercast.transis.exchange import bounds, first_holder
from ordercast.transis.plan import PlanName, components
from ordercast.transis.reception import Reception
from ordercast.transis.stability import Stability
from ordercast.types import ViewId


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


def exchange(case: Case) -> list[str]:
    """What the entries of T say: low, wanted, who sends what, and the agreed set."""
    haves = {int(member): tuple(entry["have"]) for member, entry in case["entries"].items()}
    assert sorted(haves) == sorted(case["T"])
    found = bounds(haves)
    wanted = found.wanted()
    got = {
        "low": list(found.low),
        "wanted": sorted(map(list, wanted)),
        "sender": sorted([*key, first_holder(key, haves)] for key in wanted),
        "cut": list(found.cut),
    }
    return [line for key, value in got.items() for line in differ(key, case[key], value)]


def plan_alive(case: Case) -> list[str]:
    """Who goes on together, with which plan, and through which view."""
    entries = {int(member): (ViewId(*entry["view"]), _plan(entry["plan"])) for member, entry in case["entries"].items()}
    got = [
        {
            "old_view": _pair(found.view),
            "members": list(found.members),
            "plan": None if found.plan is None else [_pair(found.plan[0]), list(found.plan[1])],
            "T": list(found.together),
            "intermediate": None if found.intermediate is None else _pair(found.intermediate),
        }
        for found in components(ViewId(*case["ring"]), entries)
    ]
    return differ("components", case["components"], got)


def _plan(plan: list[Any] | None) -> PlanName | None:
    return None if plan is None else (ViewId(*plan[0]), tuple(plan[1]))


def _pair(view: ViewId) -> list[int]:
    return [view.seq, view.rep]


def primary(case: Case) -> list[str]:
    """The last primary view known, the attempts after it that must be held too, and whether the view is primary."""
    told = case["entries"]
    views = [view for entry in told.values() for view in (entry["last"], *entry["pending"]) if view is not None]
    ids = {*map(int, told), *(id for view in views for id in (view[0][1], *view[1]))}
    ids |= {rep for entry in told.values() for _, rep in entry["left"]}
    configured = (*sorted(ids), max(ids) + 1)  # and one more, so that nobody is alone the whole group

    def mark(view: list[Any]) -> Mark:
        (seq, rep), members = view
        return Mark(seq, configured.index(rep), to_bitmap(members, configured))

    def shown(mark: Mark) -> list[Any]:
        return [[mark.seq, configured[mark.rank]], list(from_bitmap(mark.members, configured) or ())]

    records = {
        configured.index(int(member)): Record(
            None if entry["last"] is None else mark(entry["last"]),
            tuple(map(mark, entry["pending"])),
            tuple((seq, configured.index(rep)) for seq, rep in entry["left"]),
        )
        for member, entry in told.items()
    }
    last = newest(records.values())
    got = {
        "newest": None if last is None else shown(last),
        "counted": [] if last is None else list(map(shown, undecided(records.values(), last))),
        "primary": rule(records, len(configured)).primary,
    }
    return [line for key, value in got.items() for line in differ(key, case[key], value)]


KINDS = {
    "reception": reception, "stability": stability, "exchange": exchange, "plan_alive": plan_alive, "primary": primary,
}  # fmt: skip
