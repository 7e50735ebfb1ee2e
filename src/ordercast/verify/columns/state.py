"""A1 to A6 over arrays of the notes that tell of replicated states: see places.py of how a past is looked up."""

from __future__ import annotations

import numpy as np

from ordercast.limits import HISTORY_CALLS_MAX
from ordercast.types import PRIMARY_MAJORITY
from ordercast.verify.bounds import state_ns
from ordercast.verify.columns.lifecycle import lifecycle
from ordercast.verify.columns.model import Array, Run
from ordercast.verify.columns.places import (
    ANSWERED,
    APPLIED,
    COMPLETE,
    DECIDED,
    FOUND,
    LOST,
    VIEW,
    Notes,
    keys,
    notes,
)
from ordercast.verify.disks import doubtful, emptied
from ordercast.verify.plain import settling
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds

_EMPTY: Array = np.empty(0, np.int64)


def a1(run: Run) -> Finding:
    known = notes(run)
    applied, decided = known.of(APPLIED), known.of(DECIDED)
    if wrong := _missteps(known, applied):
        return wrong
    regular = np.ones(len(known.row), bool)
    regular[applied] = known.flag("regular", applied)
    since = known.since((known.kind == DECIDED) | (known.kind == FOUND) | ~regular)
    epoch = np.where(since >= 0, known.epoch[since], -1)
    own = decided[~known.flag("taken", decided)]
    if pair := _unlike(known.place[own], known.epoch[own]):
        return broken("two members decided differently", run.rows(*known.row[own[list(pair)]]))
    told = known.of(APPLIED, DECIDED)
    told = told[epoch[told] >= 0]
    if pair := _unlike(known.place[told], epoch[told], known.n[known.place[told]]):
        one, two = told[list(pair)].tolist()
        who = known.member(told[list(pair)]).tolist()
        what = f"members {who[0]} and {who[1]} differ after {known.fields[two]['n']} calls"
        return broken(what, run.rows(*known.row[[one, two]]), len(told))
    return holds(len(told))


def _missteps(known: Notes, applied: Array) -> Finding | None:
    """A step that does not count its calls, or leads where other calls led."""
    values = [[known.fields[k][name] for k in applied.tolist()] for name in ("caller", "life", "first", "count")]
    before, place = known.before[applied], known.place[applied]
    wrong = (before >= 0) & (known.n[before] + np.array(values[3], np.int64) != known.n[place])
    for k in applied[wrong][:1].tolist():
        return broken(
            f"member {known.member(applied[wrong])[0]} counts its calls wrongly", known.run.rows(known.row[k])
        )
    codes: dict[tuple[int, ...], int] = {}
    step = np.array([codes.setdefault(each, len(codes)) for each in zip(*values, strict=True)], np.int64)
    if pair := _unlike(step, place):
        rows = known.run.rows(*known.row[applied[list(pair)]])
        return broken(f"different calls led to one state, after {known.n[place[pair[0]]]} calls", rows)
    return None


def _unlike(value: Array, *group: Array) -> tuple[int, int] | None:
    """Two entries of one group with different values."""
    order = np.lexsort((value, *group))
    same = np.all([each[order][1:] == each[order][:-1] for each in group], axis=0)
    differ = np.flatnonzero(same & (value[order][1:] != value[order][:-1]))
    return (int(order[differ[0]]), int(order[differ[0] + 1])) if len(differ) else None


# ------------------------------------------------------------------------------------------------------------ decisions


class Decisions:
    """Of one run, by view, ascending: the note that tells each, who took it, and what members had as it began."""

    def __init__(self, known: Notes) -> None:
        self.known = known
        decided = known.of(DECIDED)
        self.taken = known.flag("taken", decided)
        order = np.lexsort((decided, self.taken, known.epoch[decided]))
        self.views, at = np.unique(known.epoch[decided][order], return_index=True)
        self.mark = decided[order][at]  # by one who had the state already, where there is one
        self.second_hand = self.taken[order][at]
        self.place, self.time = known.place[self.mark], known.time[self.mark]
        self.took = {int(v): set(known.member(decided[known.epoch[decided] == v]).tolist()) for v in self.views}
        self.failed = np.array([len(known.fields[k].get("parts", (1, 2))) == 1 for k in self.mark.tolist()], bool)
        self._entered = known.of(VIEW)
        self.found = known.of(FOUND)

    def entered(self, view: int) -> Array:
        """Where each stood as it began."""
        out: Array = self._entered[self.known.stands[self._entered] == view]
        return out

    def offers(self, view: int, merging: bool) -> Array:
        """Of these, what nobody may doubt."""
        which = self.entered(view)
        fields = [self.known.fields[k] for k in which.tolist()]
        sure = [f["regular"] == f["n"] and (not merging or bool(f.get("merges", True))) for f in fields]
        out: Array = which[np.array(sure, bool)]
        return out

    def members(self, view: int) -> set[int]:
        return {member for k in self.entered(view).tolist() for member in self.known.fields[k].get("members", ())}

    def gone(self, holders: set[int], lacking: Array, since: int, k: int) -> bool:
        """Whether each of these members began a life after that time and before decision k that found nothing of it:
        `lacking` says so of each note of what was found."""
        time = self.known.time[self.found]
        lacking = lacking & (time >= since) & (time <= self.time[k])
        return holders <= set(self.known.member(self.found[lacking]).tolist())


def a2(run: Run) -> Finding:
    known = notes(run)
    decisions = Decisions(known)
    if run.header.partition != PRIMARY_MAJORITY:
        return _nothing_dropped(known, decisions)
    judged = 0
    for k, view in enumerate(decisions.views.tolist()):
        if decisions.second_hand[k] or decisions.took[view] != decisions.members(view):
            continue  # not settled
        place, later = decisions.place[k], decisions.place[k + 1 :]
        judged += len(later)
        for j in np.flatnonzero(~known.past(later, np.full(len(later), place))).tolist():
            found = known.place[decisions.found]
            lacking = ~known.past(found, np.full(len(found), place))
            if not decisions.gone(decisions.members(view), lacking, int(decisions.time[k]), k + 1 + j):
                one, two = known.views[view], known.views[int(decisions.views[k + 1 + j])]
                what = f"the decision of view {one} is not in the history of that of view {two}"
                return broken(what, run.rows(*known.row[decisions.mark[[k, k + 1 + j]]]), judged)
    return holds(judged)


def _nothing_dropped(known: Notes, decisions: Decisions) -> Finding:
    judged = 0
    for k in np.flatnonzero(~decisions.failed).tolist():
        which = decisions.offers(int(decisions.views[k]), merging=True)
        mark = int(decisions.place[k])
        which = which[known.n[mark] - known.n[known.place[which]] <= HISTORY_CALLS_MAX]
        judged += len(which)
        for lost in which[~known.past(mark, known.place[which])][:1].tolist():
            view = known.views[int(decisions.views[k])]
            member = known.run.life_member[known.life[lost]]
            what = f"what member {member} had is not in the history of the decision of view {view}"
            return broken(what, known.run.rows(known.row[lost], known.row[decisions.mark[k]]), judged)
    return holds(judged)


def a3(run: Run) -> Finding:
    known = notes(run)
    placed = np.flatnonzero(known.place >= 0)
    life = known.life[placed]
    last = placed[np.append(life[1:] != life[:-1], True)] if len(placed) else _EMPTY
    left = np.flatnonzero((known.kind != APPLIED) & (known.before >= 0) & (known.before != known.place))
    judged = len(np.unique(np.concatenate((known.place[last], known.before[left]))))
    order = np.lexsort((known.led_place, known.led_call))
    call, place = known.led_call[order], known.led_place[order]
    for apart in range(1, len(call)):
        pair = np.flatnonzero(call[apart:] == call[:-apart])
        if not len(pair):
            break
        one, two = place[pair], place[pair + apart]
        for k in np.flatnonzero(known.past(two, one) | known.past(one, two))[:1].tolist():
            n = sorted(known.n[[one[k], two[k]]].tolist())
            what = f"{known.named(int(call[pair[k]]))} was applied after {n[0]} calls, and after {n[1]}"
            rows = known.row[known.place == (one[k] if known.n[one[k]] == n[1] else two[k])]
            return broken(what, run.rows(*rows[:1]), judged)
    return holds(judged)


# -------------------------------------------------------------------------------------------------------------- answers


class Answered:
    """Calls that were answered: the key, the view and the note of each, whether it is durable."""

    def __init__(self, known: Notes) -> None:
        which = known.of(ANSWERED)
        fields = [known.fields[k] for k in which.tolist()]
        count = np.array([f["count"] for f in fields], np.int64)
        lives = [(known.run.life_member[life], known.run.life_incarnation[life]) for life in known.life[which].tolist()]
        self.key = keys([known.owner(*life) for life in lives], [f["first"] for f in fields], count)
        self.view = np.repeat(known.stands[which], count)
        self.row, self.time = np.repeat(known.row[which], count), np.repeat(known.time[which], count)
        self.durable = np.repeat(np.array([bool(f["durable"]) for f in fields], bool), count)


def a4(run: Run) -> Finding:
    known = notes(run)
    decisions, answered = Decisions(known), Answered(known)
    waits = np.ones(len(answered.key), bool)  # for a decision that might lack it
    for k in range(len(decisions.views)):
        due = waits & (answered.view < decisions.views[k])
        due[due] = ~np.isin(answered.key[due], known.calls(int(decisions.place[k])))
        if not due.any():
            continue
        wrong = _forgotten(known, decisions, answered, k, due)
        if run.header.partition == PRIMARY_MAJORITY:
            waits &= ~due
        for j in np.flatnonzero(wrong)[:1].tolist():
            view = known.views[int(decisions.views[k])]
            what = f"{known.named(int(answered.key[j]))} was answered, and is not in the decision of view {view}"
            return broken(what, run.rows(answered.row[j], known.row[decisions.mark[k]]), len(answered.key))
    return _unwritten(known, decisions, answered) or holds(len(answered.key))


def _forgotten(known: Notes, decisions: Decisions, answered: Answered, k: int, lacks: Array) -> Array:
    """Of the answered calls that a decision lacks, those that it should have."""
    view, majority = int(decisions.views[k]), known.run.header.partition == PRIMARY_MAJORITY
    if decisions.failed[k] and not majority:
        return np.zeros(len(lacks), bool)
    out = np.zeros(len(lacks), bool)
    for offer in known.place[decisions.offers(view, merging=not majority)].tolist():
        out[lacks] |= np.isin(answered.key[lacks], known.calls(offer))
    durable = lacks & answered.durable
    if majority:
        out &= ~durable
    else:
        offered = decisions.entered(view)
        met = set(known.member(offered).tolist()) == set(known.run.header.members)
        durable &= bool(met and known.flag("merges", offered, default=True).all())
    for j in np.flatnonzero(durable & ~out).tolist():
        places = known.led_place[known.led_call == answered.key[j]]
        lacking = np.array(
            [not known.past(int(found), places).any() for found in known.place[decisions.found].tolist()], bool
        )
        holders, since = decisions.members(int(answered.view[j])), int(answered.time[j])
        out[j] = not decisions.gone(holders, lacking, since, k)
    return out


def _unwritten(known: Notes, decisions: Decisions, answered: Answered) -> Finding | None:
    """Somebody ended with a durable call that was answered in its view, and began again without it."""
    run, doubts = known.run, doubtful(known.run.header)
    found = {int(known.life[k]): k for k in decisions.found.tolist()}
    placed = np.flatnonzero(known.place >= 0)
    last = dict(zip(known.life[placed].tolist(), placed.tolist(), strict=True))
    for view in np.unique(answered.view[answered.durable]).tolist():
        mine = np.flatnonzero(answered.durable & (answered.view == view))
        for life in known.life[decisions.entered(view)].tolist():
            k, member = found.get(life + 1), run.life_member[life]
            if k is None or run.life_member[life + 1] != member or member in doubts or emptied(known.fields[k]):
                continue
            had = np.isin(answered.key[mine], known.calls(int(known.place[last[life]])))
            has = np.isin(answered.key[mine], known.calls(int(known.place[k])))
            for j in mine[had & ~has][:1].tolist():
                what = f"{known.named(int(answered.key[j]))} was answered as durable, and member {member} had it not"
                return broken(f"{what} on its disk", run.rows(answered.row[j], known.row[k]))
    return None


# ---------------------------------------------------------------------------------------------------- in time, and told


def a5(run: Run) -> Finding:
    quiet = lifecycle(run)
    stable = settling.stable_of(quiet)
    if stable is None:
        return settling.DISTURBED
    if stopped := settling.halted(quiet, stable):
        return stopped
    known = notes(run)
    number = {key: k for k, key in enumerate(zip(run.life_member, run.life_incarnation, strict=True))}
    alive = {member: settling.life_at(quiet, member, stable.until_ns) for member in sorted(stable.members)}
    told = {member: _said(known, -1 if life is None else number[life.key]) for member, life in alive.items()}
    everybody = stable.members == frozenset(run.header.members)
    if not everybody and not any(_decided_last(known, which) for which in told.values()):
        return holds(0, "some members stay away, perhaps with the state")
    sizes = [known.fields[k].get("bytes", 0) for which in told.values() for k in which.tolist()]
    bound = state_ns(run.header, settling.bound_of(quiet, stable), max(sizes, default=0))
    if bound is None:
        return cannot_judge("how fast the network carries a state is not known")
    due = stable.since_ns + bound
    for member, which in told.items():
        last = which[known.time[which] <= min(due, stable.until_ns)][-1:]
        if not len(last) or known.kind[last[0]] != COMPLETE:
            if stable.until_ns < due:
                return cannot_judge(f"the run ended before the bound; member {member} was not complete")
            life = alive[member]
            end = [] if life is None else [run.life_end[number[life.key]] - 1]
            return broken(f"member {member} is not complete", run.rows(*known.row[last], *end))
    return holds(len(stable.members))


def _said(known: Notes, life: int) -> Array:
    """What a life said of its state."""
    return np.flatnonzero((known.life == life) & (known.place >= 0) & (known.kind != APPLIED))


def _decided_last(known: Notes, which: Array) -> bool:
    """Whether the state was decided in the last view."""
    views = np.flatnonzero(known.kind[which] == VIEW)
    return bool((known.kind[which[views[-1] if len(views) else 0 :]] == DECIDED).any())


def a6(run: Run) -> Finding:
    known = notes(run)
    decided, told = known.of(DECIDED), known.of(LOST)
    lost: dict[int, list[int]] = {}
    for k in told.tolist():
        at = int(np.searchsorted(decided, k))  # the decision that it is told with
        if at < len(decided) and known.life[decided[at]] == known.life[k]:
            calls = known.fields[k]["calls"]
            mine = keys([known.owner(c[0], c[1]) for c in calls], [c[2] for c in calls], np.ones(len(calls), np.int64))
            lost.setdefault(int(decided[at]), []).extend(mine.tolist())
    before, place = known.before[decided], known.place[decided]
    onward = before < 0
    onward[~onward] = known.past(place[~onward], before[~onward])
    for k in sorted({*lost, *decided[~onward].tolist()}):
        had = known.calls(int(known.before[k])) if known.before[k] >= 0 else _EMPTY
        missing = np.setdiff1d(had, known.calls(int(known.place[k])))
        mine = np.sort(np.array(lost.get(k, ()), np.int64))
        if not np.array_equal(missing, mine):
            unlike = np.setxor1d(missing, mine)
            call = int(unlike[0] if len(unlike) else mine[np.flatnonzero(mine[1:] == mine[:-1])[0]])
            word = (
                "was not told" if call not in mine else "was told without reason" if len(unlike) else "was told twice"
            )
            what = f"member {run.life_member[known.life[k]]} {word} that it lost {known.named(call)}"
            return broken(what, run.rows(known.row[k]), len(decided))
    return holds(len(decided))
