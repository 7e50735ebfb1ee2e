"""A1 equal states, A2 one history, A3 nothing twice, A4 answered, A5 complete in time, A6 told what was lost."""

from __future__ import annotations

from ordercast.trace.schema import Kind
from ordercast.types import PRIMARY_MAJORITY
from ordercast.verify.plain.model import Run, ViewKey
from ordercast.verify.plain.places import Call, Place, Places, Told, places
from ordercast.verify.plain.settling import DISTURBED, bound_of, halted, life_at, stable_of
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds

TIMEOUTS = 20  # A5: beyond what a view takes


def a1(run: Run) -> Finding:
    """By decision: who took part in it, and stands at n, all of it regular, stands at one place."""
    judged = 0
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


def a2(run: Run) -> Finding:
    """Of each settled decision: its place is in the past of every later one, unless nobody has it any more."""
    if run.header.partition != PRIMARY_MAJORITY:
        return holds(0, "each part goes on by itself")
    known = places(run)
    judged = 0
    for view, took in known.decided.items():
        members = {member for told in known.entered.get(view, ()) for member in told.fields.get("members", ())}
        marks = [told for told in took if not told.fields.get("taken")]
        if not marks or {told.life.member for told in took} != members:
            continue  # not settled
        for later, others in known.decided.items():
            if later <= view:
                continue
            judged += 1
            if marks[0].place in known.past(others[0].place):
                continue
            if not known.gone(members, marks[0].place, None, others[0].row.time_ns):
                what = f"the decision of view {view} is not in the history of that of view {later}"
                return broken(what, [marks[0].row, others[0].row], judged)
    return holds(judged)


def a3(run: Run) -> Finding:
    """In the past of every place where a life ended, or was when another state replaced it."""
    known = places(run)
    judged = 0
    ends: dict[Place, Told] = {}
    last: dict[tuple[int, int], Told] = {}
    for told in known.told:
        if told.before is not None and (told.fields.get("taken") or told.fields.get("parts")):
            ends.setdefault(told.before, told)
        if told.name in ("state", "applied"):
            last[told.life.key] = told
    ends |= {told.place: told for told in last.values()}
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
    """Under `primary-majority`: durable, for ever; else as long as somebody has it when the next view begins."""
    if run.header.partition != PRIMARY_MAJORITY:
        return holds(0, "each part goes on by itself")
    known = places(run)
    judged = 0
    for told in known.told:
        if told.name != "answered":
            continue
        fields, life = told.fields, told.life
        for number in range(fields["first"], fields["first"] + fields["count"]):
            judged += 1
            call = life.member, life.incarnation, number
            found = _forgotten(known, told, call)
            if found is not None:
                what = f"call {call[0]}:{number} was answered, and is not in the decision of view {found.epoch}"
                return broken(what, [told.row, found.row], judged)
    return holds(judged)


def _forgotten(known: Places, answered: Told, call: Call) -> Told | None:
    """The first later decision without it, that should have it."""
    durable = answered.fields["durable"]
    members = {m for told in known.entered.get(answered.view, ()) for m in told.fields.get("members", ())}
    for view, took in known.decided.items():
        if view <= answered.view:
            continue
        has = call in known.calls(took[0].place)
        offered = known.entered.get(view, ())
        held = any(call in known.calls(t.place) for t in offered if t.fields["regular"] == t.fields["n"])
        if has:
            continue
        if durable:
            return None if known.gone(members, took[0].place, call, took[0].row.time_ns) else took[0]
        return took[0] if held else None
    return None


def a5(run: Run) -> Finding:
    """All configured members stay: each is complete, in time."""
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if stopped := halted(run, stable):
        return stopped
    if stable.members != frozenset(run.header.members):
        return holds(0, "some members stay away, perhaps with the state")
    due = stable.since_ns + bound_of(run, stable) + TIMEOUTS * run.header.timeout_ns
    if stable.until_ns < due:
        return cannot_judge("the run ended before the bound")
    for member in sorted(stable.members):
        life = life_at(run, member, stable.until_ns)
        told = [t for t in places(run).told if t.life is life and t.name == "state" and t.row.time_ns <= due]
        if life is None or not told or told[-1].what != "complete":
            last = [told[-1].row] if told else []
            return broken(f"member {member} is not complete", [*last, *(life.of(Kind.END) if life else ())])
    return holds(len(stable.members))


def a6(run: Run) -> Finding:
    """At each take-over: what the old state had and the new one has not, no more and no less."""
    known = places(run)
    judged = 0
    for life in run.lives:
        lost: set[Call] = set()
        for told in (told for told in known.told if told.life is life):
            if told.name == "lost":
                lost |= {(call[0], call[1], call[2]) for call in told.fields["calls"]}
            elif told.name == "state" and told.what == "decided":
                missing = known.calls(told.before) - known.calls(told.place) if told.before is not None else set()
                judged += 1
                if missing != lost:
                    call = min(missing ^ lost)
                    word = "was not told" if call in missing else "was told without reason"
                    what = f"member {life.member} {word} that it lost call {call[0]}:{call[2]}"
                    return broken(what, [told.row], judged)
                lost = set()
    return holds(judged)
