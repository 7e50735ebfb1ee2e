"""A1 equal states, A2 one history, A3 nothing twice, A4 answered, A5 complete in time, A6 told what was lost."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from ordercast.limits import HISTORY_CALLS_MAX
from ordercast.trace.schema import Kind
from ordercast.types import PRIMARY_MAJORITY
from ordercast.verify.bounds import state_ns
from ordercast.verify.disks import doubtful, emptied
from ordercast.verify.plain.model import Run, ViewKey
from ordercast.verify.plain.places import Call, Place, Places, Told, places
from ordercast.verify.plain.settling import DISTURBED, bound_of, halted, life_at, stable_of
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds


def a1(run: Run) -> Finding:
    """By decision: who took part in it, and stands at n, all of it regular, stands at one place; each step counts its
    calls, and leads there from the same calls everywhere."""
    judged = 0
    if wrong := _missteps(places(run)):
        return wrong
    at: dict[tuple[ViewKey, int], Told] = {}
    first: dict[ViewKey, Told] = {}
    for life in run.lives:
        epoch: ViewKey | None = None
        for told in (told for told in places(run).told if told.life is life):
            if told.name == "state" and told.what == "decided":
                epoch = told.epoch
                if not told.fields.get("taken") and first.setdefault(epoch, told).place != told.place:
                    return broken("two members decided differently", [first[epoch].row, told.row], judged)
            elif told.name == "state" and told.what in ("view", "found"):
                epoch = None if told.what == "found" else epoch
                continue
            elif told.name == "applied" and not told.fields["regular"]:
                epoch = None
            elif told.name != "applied":
                continue
            if epoch is None:
                continue
            judged += 1
            other = at.setdefault((epoch, told.place[0]), told)
            if other.place != told.place:
                what = f"members {other.life.member} and {life.member} differ after {told.place[0]} calls"
                return broken(what, [other.row, told.row], judged)
    return holds(judged)


def _missteps(known: Places) -> Finding | None:
    steps: dict[Place, Told] = {}
    for told in known.told:
        if told.name != "applied":
            continue
        if told.before is not None and told.before[0] + told.fields["count"] != told.place[0]:
            return broken(f"member {told.life.member} counts its calls wrongly", [told.row])
        other = steps.setdefault(told.place, told)
        if any(other.fields[name] != told.fields[name] for name in ("caller", "life", "first", "count")):
            return broken(f"different calls led to one state, after {told.place[0]} calls", [other.row, told.row])
    return None


def a2(run: Run) -> Finding:
    """Of each settled decision: its place is in the past of every later one, unless nobody has it any more.

    Where all parts go on: what a member had as a view began is in the past of what that view decided."""
    known = places(run)
    if run.header.partition != PRIMARY_MAJORITY:
        return _nothing_dropped(known)
    judged = 0
    for view, took in known.decided.items():
        members = known.members(view)
        if known.marks[view].fields.get("taken") or {told.life.member for told in took} != members:
            continue  # not settled
        for later, mark in known.marks.items():
            if later <= view:
                continue
            judged += 1
            settled = known.marks[view]
            if settled.place in known.past(mark.place):
                continue
            if not known.gone(members, None, settled, mark):
                what = f"the decision of view {view} is not in the history of that of view {later}"
                return broken(what, [settled.row, mark.row], judged)
    return holds(judged)


def _nothing_dropped(known: Places) -> Finding:
    judged = 0
    for view, mark in known.marks.items():
        if failed_merge(mark.fields):
            continue
        for told in known.entered.get(view, ()):
            if not told.offers(merging=True) or mark.place[0] - told.place[0] > HISTORY_CALLS_MAX:
                continue
            judged += 1
            if told.place not in known.past(mark.place):
                what = f"what member {told.life.member} had is not in the history of the decision of view {view}"
                return broken(what, [told.row, mark.row], judged)
    return holds(judged)


def a3(run: Run) -> Finding:
    """In the past of every place where a life ended, or was when another state replaced it."""
    known = places(run)
    judged = 0
    ends: dict[Place, Told] = {}
    for told in known.told:
        if told.before is not None and told.name == "state" and told.before != told.place:
            ends.setdefault(told.before, told)
    ends |= {told.place: told for told in known.last.values()}
    for place, told in ends.items():
        steps = [(call, step) for step in known.past(place) for call in known.led.get(step, ())]
        judged += 1
        seen: dict[Call, Place] = {}
        for call, step in steps:
            if seen.setdefault(call, step) != step and not _merged(known, seen[call], step):
                what = f"call {call[0]}:{call[2]} was applied after {seen[call][0]} calls, and after {step[0]}"
                return broken(what, [told.row], judged)
    return holds(judged)


def _merged(known: Places, one: Place, two: Place) -> bool:
    """Neither is before the other: they were put together."""
    return one not in known.past(two) and two not in known.past(one)


def a4(run: Run) -> Finding:
    """Durable: for ever, and on disk at once; else as long as somebody has it when the next view begins."""
    known = places(run)
    forgotten = _forgotten if run.header.partition == PRIMARY_MAJORITY else _forgotten_by_all
    doubts = doubtful(run.header)
    judged = 0
    for told in known.told:
        if told.name != "answered":
            continue
        fields, life = told.fields, told.life
        for number in range(fields["first"], fields["first"] + fields["count"]):
            judged += 1
            call = life.member, life.incarnation, number
            found = forgotten(known, told, call)
            if found is not None:
                what = f"call {call[0]}:{number} was answered, and is not in the decision of view {found.epoch}"
                return broken(what, [told.row, found.row], judged)
            found = _unwritten(known, told, call, doubts) if fields["durable"] else None
            if found is not None:
                what = f"call {call[0]}:{number} was answered as durable, and member {found.life.member} had it not"
                return broken(f"{what} on its disk", [told.row, found.row], judged)
    return holds(judged)


def _forgotten(known: Places, answered: Told, call: Call) -> Told | None:
    """Under `primary-majority`: the first later decision without it, that should have it."""
    for view, mark in known.marks.items():
        if view <= answered.view or call in known.calls(mark.place):
            continue
        if answered.fields["durable"]:
            gone = known.gone(known.members(answered.view), call, answered, mark)
            return None if gone else mark
        return mark if _held(known, view, call, merging=False) else None
    return None


def _forgotten_by_all(known: Places, answered: Told, call: Call) -> Told | None:
    """Where all parts go on: a later decision without it, to which somebody brought it, or, durable, all came."""
    for view, mark in known.marks.items():
        if view <= answered.view or failed_merge(mark.fields) or call in known.calls(mark.place):
            continue
        if _held(known, view, call, merging=True):
            return mark
        offered = known.entered.get(view, ())
        met = {told.life.member for told in offered} == set(known.run.header.members)
        met = met and all(told.fields.get("merges", True) for told in offered)
        holders = known.members(answered.view)
        if answered.fields["durable"] and met and not known.gone(holders, call, answered, mark):
            return mark
    return None


def _held(known: Places, view: ViewKey, call: Call, merging: bool) -> bool:
    """Whether somebody had it, without any doubt, as a view began."""
    return any(told.offers(merging) and call in known.calls(told.place) for told in known.entered.get(view, ()))


def _unwritten(known: Places, answered: Told, call: Call, doubts: frozenset[int]) -> Told | None:
    """What a member of that view found in its next life without the call, though it ended with it."""
    for told in known.entered.get(answered.view, ()):
        found = known.found.get(told.life.key)
        if found is None or found.life.member in doubts or emptied(found.fields):
            continue
        if call in known.calls(known.last[told.life.key].place) and call not in known.calls(found.place):
            return found
    return None


def a5(run: Run) -> Finding:
    """Those that stay: each is complete, in time; if others stay away, perhaps with the state, once it was decided."""
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if stopped := halted(run, stable):
        return stopped
    told: dict[int, list[Told]] = {}
    for member in sorted(stable.members):
        life = life_at(run, member, stable.until_ns)
        told[member] = [t for t in places(run).told if t.life is life and t.name == "state"]
    everybody = stable.members == frozenset(run.header.members)
    if not everybody and not any(map(_decided_last, told.values())):
        return holds(0, "some members stay away, perhaps with the state")
    size = max((t.fields.get("bytes", 0) for notes in told.values() for t in notes), default=0)
    bound = state_ns(run.header, bound_of(run, stable), size)
    if bound is None:
        return cannot_judge("how fast the network carries a state is not known")
    due = stable.since_ns + bound
    for member, notes in told.items():
        last = [t for t in notes if t.row.time_ns <= min(due, stable.until_ns)][-1:]
        if not last or last[0].what != "complete":
            if stable.until_ns < due:
                return cannot_judge(f"the run ended before the bound; member {member} was not complete")
            life = life_at(run, member, stable.until_ns)
            ends = life.of(Kind.END) if life else ()
            return broken(f"member {member} is not complete", [*(t.row for t in last), *ends])
    return holds(len(stable.members))


def _decided_last(notes: list[Told]) -> bool:
    """Whether the state was decided in the last view."""
    since = max((k for k, told in enumerate(notes) if told.what == "view"), default=0)
    return any(told.what == "decided" for told in notes[since:])


def a6(run: Run) -> Finding:
    """At each take-over: what the old state had and the new one has not, no more and no less, each once."""
    known = places(run)
    judged = 0
    for life in run.lives:
        lost: list[Call] = []
        for told in (told for told in known.told if told.life is life):
            if told.name == "lost":
                lost += [(call[0], call[1], call[2]) for call in told.fields["calls"]]
            elif told.name == "state" and told.what == "decided":
                missing = known.calls(told.before) - known.calls(told.place) if told.before is not None else set()
                judged += 1
                if sorted(missing) != sorted(lost):
                    return broken(_differs(life.member, missing, lost), [told.row], judged)
                lost = []
    return holds(judged)


def _differs(member: int, missing: Set[Call], lost: list[Call]) -> str:
    call = min((missing ^ set(lost)) or (call for call in lost if lost.count(call) > 1))
    word = (
        "was not told" if call not in lost else "was told without reason" if call not in missing else "was told twice"
    )
    return f"member {member} {word} that it lost call {call[0]}:{call[2]}"


def failed_merge(decided: dict[str, Any]) -> bool:
    """Whether a merge raised, so that the first part is the state."""
    return len(decided.get("parts", (1, 2))) == 1
