"""That views settle once a run is undisturbed: L1 precision, L2 no flapping, L8 rejoin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from ordercast.trace.schema import Kind, Level, Row
from ordercast.types import ViewKind
from ordercast.verify.bounds import Stability, flapping_views, precision_ns, stability
from ordercast.verify.plain.model import Life, Run, ViewKey, view_key
from ordercast.verify.verdict import Finding, broken, cannot_judge, holds

_BUSY = frozenset((Kind.SUBMIT, Kind.ORIGINATE, Kind.RECEIVE, Kind.DECIDE, Kind.DELIVER))
_UPSETTING = frozenset((Kind.FAULT, Kind.CRASH, Kind.PAUSE, Kind.RESUME, Kind.START))
DISTURBED = cannot_judge("the run was disturbed and has no stable row")


def stable_of(run: Run) -> Stability | None:
    rows = [row for life in run.lives for row in life.rows]
    begin = min(row.time_ns for row in rows)
    quiet = [row for row in [*run.world, *rows] if row.kind not in _BUSY]
    return stability(run.header, quiet, begin, run.end_ns)


def life_at(run: Run, member: int, time_ns: int) -> Life | None:
    """The life a member is in at that time: the newest, unless that one is over and an earlier one outlived it (of two
    processes with one id either may stay)."""
    lives = [life for life in run.lives if life.member == member and life.rows[0].time_ns <= time_ns]
    for life in reversed(lives):
        over = lives[-1].crash
        if over is None or over.time_ns > time_ns or life.rows[-1].time_ns > over.time_ns:
            return life
    return lives[-1] if lives else None


def regular_views(life: Life) -> Iterator[Row]:
    return (row for row in life.of(Kind.VIEW) if row.view_kind != ViewKind.TRANSITIONAL)


def view_at(life: Life, time_ns: int) -> Row | None:
    """The regular view a life is in at that time."""
    return ([None, *(row for row in regular_views(life) if row.time_ns <= time_ns)])[-1]


def primary_at(life: Life | None, time_ns: int) -> bool:
    """Whether a life's view may do something then: it is not known not to be primary."""
    view = view_at(life, time_ns) if life is not None else None
    return view is None or (view.detail or {}).get("primary") is not False


def halted(run: Run, stable: Stability) -> Finding | None:
    """Those that stay are not primary in the end: they deliver nothing, and what they accepted waits, by the policy."""
    if all(primary_at(life_at(run, member, stable.until_ns), stable.until_ns) for member in stable.members):
        return None
    return holds(0, "those that stay are not primary")


def common_view(run: Run, stable: Stability, time_ns: int) -> tuple[dict[int, Life], ViewKey | None, str]:
    """The lives of those that stay, the view they are all in then (None: no views), or why there is none."""
    lives: dict[int, Life] = {}
    views: set[ViewKey | None] = set()
    for member in sorted(stable.members):
        life = life_at(run, member, time_ns)
        if run.lost.last(member):
            return {}, None, run.lost.words()
        if life is None:
            return {}, None, f"member {member}, which stays, wrote nothing"
        view = view_at(life, time_ns)
        if view is not None and set(view.members or ()) != stable.members:
            return {}, None, f"member {member} is in view {view.view_seq}.{view.view_rep} of {list(view.members or ())}"
        lives[member] = life
        views.add(view_key(view))
    if len(views) > 1:
        return {}, None, f"those that stay are in {len(views)} different views"
    return lives, views.pop(), ""


def bound_of(run: Run, stable: Stability) -> int:
    return precision_ns(run.header, stable, [row for life in run.lives for row in life.of(Kind.NOTE)])


def unless_noted(run: Run, finding: Finding) -> Finding:
    """A bound that notes may lengthen cannot be called broken where notes were left out."""
    if finding.state == "broken" and Level[run.header.level.upper()] < Level.FULL:
        return cannot_judge(f"without notes the bound is not known ({finding.text})")
    return finding


def untold(run: Run, stable: Stability) -> Finding | None:
    """What somebody who stays did last is not there."""
    return cannot_judge(run.lost.words()) if any(map(run.lost.last, stable.members)) else None


def l1(run: Run) -> Finding:
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if gone := untold(run, stable):
        return gone
    due = stable.since_ns + bound_of(run, stable)
    time = min(due, stable.until_ns)
    _, view, why = common_view(run, stable, time)
    if not why and view is not None:
        return holds(len(stable.members))
    why = why or "no member installed a view"
    if stable.until_ns < due:
        return cannot_judge(f"the run ended before the bound of {(due - stable.since_ns) / 1e6:g} ms; {why}")
    rows = [life.rows[-1] if view_at(life, time) is None else view_at(life, time) for life in run.lives
            if life.member in stable.members]  # fmt: skip
    what = f"{(due - stable.since_ns) / 1e6:g} ms after all was well, {why}"
    return unless_noted(run, broken(what, [_stable_row(run), *rows]))


def _stable_row(run: Run) -> Row | None:
    return ([None, *(row for row in run.world if row.kind == Kind.STABLE)])[-1]


def l2(run: Run) -> Finding:
    stable = stable_of(run)
    if stable is None:
        return _lasting(run)
    if stopped := halted(run, stable):
        return stopped
    settled = stable.since_ns + bound_of(run, stable)
    if stable.until_ns <= settled:
        return cannot_judge("the run ended before views had to settle")
    allowed = flapping_views(run.header, [r for r in run.world if r.kind == Kind.FAULT], stable.until_ns - settled)
    for member in sorted(stable.members):
        views = [row for life in run.lives if life.member == member for row in regular_views(life)]
        late = [row for row in views if settled < row.time_ns <= stable.until_ns]
        if len(late) > allowed:
            what = f"member {member} installed {len(late)} views after they had to be settled, {allowed} are allowed"
            return unless_noted(run, broken(what, [_stable_row(run), *late[:4]]))
    return _permanent(run, stable) or holds(len(stable.members))


def _permanent(run: Run, stable: Stability) -> Finding | None:
    """A lasting fault of links, alone: at most two views per member in four times the bound."""
    span = 4 * bound_of(run, stable)
    for fault in run.world:
        fields = (fault.detail or {}).get("fields", {})
        if fault.kind != Kind.FAULT or not fields.get("lasting") or (fault.detail or {}).get("state") != "on":
            continue
        if fields.get("up_ms") or fields.get("down_ms") or fields.get("packets"):
            continue
        others = [row for row in run.world if row is not fault and row.kind in _UPSETTING]
        if any(fault.time_ns - span < row.time_ns <= fault.time_ns + span for row in others):
            continue  # something else happened around it
        for life in run.lives:
            near = [row for row in regular_views(life) if fault.time_ns < row.time_ns <= fault.time_ns + span]
            if len(near) > 2:
                what = f"member {life.member} installed {len(near)} views under one permanent fault, 2 are allowed"
                return unless_noted(run, broken(what, [fault, *near[:4]]))
    return None


def _lasting(run: Run) -> Finding:
    """Nothing ever heals: one lasting fault of links, alone.  Two views per member in four times the bound, then none;
    if it comes and goes, or is of some packets only, as many as the probations allow.

    Judged from one view of everybody on; the fault's row says the delay of a hop.
    """
    faults = [row for row in run.world if row.kind == Kind.FAULT and _sets_in_for_good(row)]
    if len(faults) != 1:
        return DISTURBED
    onset, delay = faults[0].time_ns, int((faults[0].detail or {}).get("delay_ns", run.header.timeout_ns))
    number = (faults[0].detail or {}).get("number")
    for row in run.world:
        own_end = row.kind == Kind.FAULT and (row.detail or {}).get("number") == number
        if row.kind in _UPSETTING and not own_end and (row.kind != Kind.START or row.time_ns > onset):
            return DISTURBED
    stable = Stability(frozenset(run.header.members), onset, run.end_ns, delay, True)
    _, view, why = common_view(run, stable, onset)
    if why or view is None:
        return cannot_judge(f"when the lasting fault set in, {why or 'nobody had a view'}")
    goes_on = [life for life in run.lives if primary_at(life, run.end_ns)]
    after = {life: [row for row in regular_views(life) if row.time_ns > onset] for life in goes_on}
    most = flapping_views(run.header, faults, run.end_ns - onset)
    settled = run.end_ns if most else onset + 4 * bound_of(run, stable)
    if run.end_ns < settled:
        return cannot_judge("the run ended before views had to settle")
    for life, views in after.items():
        late = [row for row in views if row.time_ns > settled]
        if len(views) - len(late) > (most or 2) or late:
            what = f"member {life.member} installed {len(views)} views under a lasting fault, {len(late)} of them late"
            return unless_noted(run, broken(f"{what}; {most or 2} are allowed", [faults[0], *views[:4]]))
    return _stands_still(run, faults[0], bound_of(run, stable)) or holds(len(after))


def _stands_still(run: Run, fault: Row, bound: int) -> Finding | None:
    """The largest set of members of which no link is cut, if a majority, goes on delivering.

    Judged where the fault names its pairs: one such set has delivered what it submitted last, in time for the bound.
    """
    members = run.header.members
    nets = [set(net["members"]) for net in (run.header.scenario or {}).get("nets") or () if net.get("members")]
    last = {member: life_at(run, member, run.end_ns) for member in members}
    grouped = any(any(life.of(Kind.GROUP_VIEW)) for life in run.lives)  # then not everything is for everybody
    stopped: Row | None = None
    for core in _cores(members, nets, (fault.detail or {}).get("fields", {}).get("pairs", ())):
        lives = [life for member in core if (life := last[member]) is not None]
        if not all(primary_at(life, run.end_ns) for life in lives):
            return None
        submits = [row for life in lives for row in life.of(Kind.SUBMIT) if row.time_ns > fault.time_ns]
        submit = max(submits, key=lambda row: row.time_ns, default=None)
        if submit is None or grouped or submit.time_ns > run.end_ns - 2 * bound:
            return None
        silent = [life for life in lives if all(r.time_ns < submit.time_ns for r in life.of(Kind.DELIVER))]
        if not silent:
            return None
        stopped = submit
    if stopped is None:
        return None
    what = f"member {stopped.member} submitted under a lasting fault, and no core of a majority delivered after it"
    return unless_noted(run, broken(what, [fault, stopped]))


def _cores(members: tuple[int, ...], nets: Sequence[set[int]], pairs: tuple[str, ...]) -> list[tuple[int, ...]]:
    """The largest sets without a cut pair, of more than half of the members.

    On several nets each has its own largest sets, and any choice of them may come to be: where one leaves no majority
    joined together, nothing is asked.
    """
    cut = [set(map(int, re.findall(r"\d+", pair))) for pair in pairs]
    if not cut or any(len(pair) < 2 for pair in cut):
        return []
    choices = product(*(_largest(sorted(net), cut) for net in nets or [set(members)]))
    found = [max(_joined(choice), key=len) for choice in choices]
    return found if all(2 * len(core) > len(members) for core in found) else []


def _largest(members: Sequence[int], cut: list[set[int]]) -> list[tuple[int, ...]]:
    for size in range(len(members), 0, -1):
        found = [core for core in combinations(members, size) if not any(pair <= set(core) for pair in cut)]
        if found:
            return found
    return []


def _joined(sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Sets that have a member in common are one."""
    out: list[set[int]] = []
    for each in sets:
        one, rest = set(each), []
        for other in out:
            if one & other:
                one |= other
            else:
                rest.append(other)
        out = [*rest, one]
    return [tuple(sorted(each)) for each in out]


def _sets_in_for_good(row: Row) -> bool:
    detail = row.detail or {}
    return bool(detail.get("state") == "on" and detail.get("fields", {}).get("lasting"))


def l8(run: Run) -> Finding:
    stable = stable_of(run)
    if stable is None:
        return DISTURBED
    if gone := untold(run, stable):
        return gone
    bound, judged, early = 2 * bound_of(run, stable), 0, ""
    first = {life.member: life.incarnation for life in reversed(run.lives)}
    for row in run.world:
        restart = row.kind == Kind.START and row.sender_incarnation != first.get(row.sender or 0)
        if row.sender not in stable.members or not (restart or row.kind == Kind.RESUME):
            continue
        due = max(row.time_ns, stable.since_ns) + bound
        time = min(due, stable.until_ns)
        _, view, why = common_view(run, stable, time)
        judged += 1
        if not why and view is not None:
            continue
        if stable.until_ns < due:
            early = f"the run ended before member {row.sender} had to be back"
            continue
        what = f"member {row.sender} was not back in the common view after {bound / 1e6:g} ms: {why}"
        life = life_at(run, row.sender or 0, time)
        return unless_noted(run, broken(what, [row, view_at(life, time) if life else None], judged))
    return cannot_judge(early) if early else holds(judged)
