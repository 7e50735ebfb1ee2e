"""Known-bad replicas: each changes one rule, and must be caught by a run by chance or by a smallest case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import test_corrections as cases
import test_disks
import test_due
from test_layer import Chances

from ordercast.state import decision, durable, layer, log, moving, recovery, replica, report
from ordercast.state.history import YES
from ordercast.state.machine import Mark
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY

CHUNK = 5  # its tag
Patch = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, tuple[Patch, list[Callable[[], None]]]] = {}


def by_chance(policy: str, *, disks: bool = False, seeds: int = 60, crashes: bool = True) -> Callable[[], None]:
    def run() -> None:
        for seed in range(seeds):
            Chances(policy, seed, crashes=crashes, n=3 + seed % 3, disks=disks).judge(crashes)

    return run


def mutant(name: str, *killers: Callable[[], None]) -> Callable[[Patch], Patch]:
    def enter(patch: Patch) -> Patch:
        MUTANTS[name] = patch, list(killers)
        return patch

    return enter


EVS, PRIMARY = by_chance(ALL_CONTINUE), by_chance(PRIMARY_MAJORITY)
ON_DISK = by_chance(PRIMARY_MAJORITY, disks=True)


@mutant("snapshot_late", EVS, PRIMARY)
def _(patch: pytest.MonkeyPatch) -> None:
    """The state leaves as it is when its first chunk does, with calls that came after the decision."""

    def lazily(machine: Any) -> Any:
        yield from machine.snapshot()

    begin = moving.Moving.begin

    def late(self: Any, now: int, behind: bool) -> Any:
        out = begin(self, now, behind)
        if self.serving is not None:
            self.serving._pieces = lazily(self.replica.machine)
        return out

    patch.setattr(moving.Moving, "begin", late)


@mutant("snapshot_early", EVS, PRIMARY)
def _(patch: pytest.MonkeyPatch) -> None:
    """The last call before the decision is not in it."""
    begin = moving.Moving.begin

    def early(self: Any, now: int, behind: bool) -> Any:
        lines = self.replica.machine.lines
        kept, self.replica.machine.lines = lines, lines[:-1]
        try:
            return begin(self, now, behind)
        finally:
            self.replica.machine.lines = kept

    patch.setattr(moving.Moving, "begin", early)


@mutant("held_calls_dropped", EVS, PRIMARY)
def _(patch: pytest.MonkeyPatch) -> None:
    """Who takes a state over forgets what waited for it."""
    take_over = replica.Replica.take_over

    def forget(self: Any, *args: Any) -> Any:
        out = take_over(self, *args)
        self.held.clear()
        return out

    patch.setattr(replica.Replica, "take_over", forget)


@mutant("held_calls_twice", EVS, PRIMARY)
def _(patch: pytest.MonkeyPatch) -> None:
    """What waited for a state that was taken over is applied twice."""
    take_over = replica.Replica.take_over

    def twice(self: Any, *args: Any) -> Any:
        self.held.extend(list(self.held))
        return take_over(self, *args)

    patch.setattr(replica.Replica, "take_over", twice)


@mutant("held_calls_kept", EVS, cases.test_what_was_held_is_dropped_by_all)
def _(patch: pytest.MonkeyPatch) -> None:
    """An undecided view ends, and each applies what it held to its own state."""
    patch.setattr(replica.Replica, "drop", lambda self, why: self.ripen() or self.drain(65_536))


@mutant("offered_before_all_was_applied", test_due.in_small_steps)
def _(patch: pytest.MonkeyPatch) -> None:
    """A view begins, and what was due before it is applied after the Offer."""
    enter = layer.State._enter

    def hasty(self: Any, now: int) -> Any:
        due, self.replica.due = self.replica.due, type(self.replica.due)()
        out = enter(self, now)
        self.replica.held.extendleft(reversed(due))
        return out

    patch.setattr(layer.State, "_enter", hasty)


@mutant("served_before_all_was_applied", test_due.a_later_state)
def _(patch: pytest.MonkeyPatch) -> None:
    """Asked for a later state, a donor that has not come so far gives what it has."""
    stop = moving.Moving.stop
    patch.setattr(moving.Moving, "stop", lambda self, cut=None: stop(self, cut and self.replica.history.n))


@mutant("offers_of_a_former_view", EVS, PRIMARY)
def _(patch: pytest.MonkeyPatch) -> None:
    """What others offered in the view before still counts."""
    regular, decide = layer.State._regular, layer.State._decide
    last: dict[Any, dict[int, Any]] = {}

    def decided(self: Any, now: int, found: Any) -> Any:
        last[self.me] = dict(self.council.offers)
        return decide(self, now, found)

    def kept(self: Any, now: int, view: Any) -> Any:
        out = regular(self, now, view)
        if self.council is not None:
            old = {m: offer for m, offer in last.get(self.me, {}).items() if m in view.members and m != self.me.id}
            self.council.offers.update(old)
            self.peers |= {m: layer.Peer(m, 0) for m in old}
        return out

    patch.setattr(layer.State, "_decide", decided)
    patch.setattr(layer.State, "_regular", kept)


@mutant("knows_not_stored", cases.test_who_installed_a_view_knows_of_decisions_without_an_offer)
def _(patch: pytest.MonkeyPatch) -> None:
    """The record of primary views hears of no decision, so no commit entry carries one."""
    patch.setattr(report, "recorded", lambda layer: [])


@mutant("n_before_epoch", PRIMARY, cases.test_nobody_vouches_before_its_own_decision)
def _(patch: pytest.MonkeyPatch) -> None:
    """The longest history wins, however old."""
    patch.setattr(decision, "_by_majority", lambda offers, relation, known: offers)
    patch.setattr(
        decision, "_source", lambda candidates, relation: max(candidates, key=lambda m: (candidates[m].n, -m))
    )


@mutant("place_is_enough", cases.test_to_hold_the_place_of_a_decision_is_not_to_hold_what_followed)
def _(patch: pytest.MonkeyPatch) -> None:
    """Whose history holds the place of the newest decision is a candidate, whether it was there or not."""

    def counts(offers: Mapping[int, Any], relation: Any, known: Mark | None) -> Any:
        def good(member: int) -> bool:
            held = known is not None and relation.holds(member, known.place) == YES
            return known is None or offers[member].epoch >= known.view or held

        return {member: offers[member] for member in offers if good(member)}

    patch.setattr(decision, "_by_majority", counts)


@mutant("without_within", cases.test_the_source_may_leave_its_own_decision_undecided)
def _(patch: pytest.MonkeyPatch) -> None:
    """Only the epoch of the newest decision counts."""

    def counts(offers: Mapping[int, Any], relation: Any, known: Mark | None) -> Any:
        return {m: offer for m, offer in offers.items() if known is None or offer.epoch >= known.view}

    patch.setattr(decision, "_by_majority", counts)


@mutant("n_before_regular", cases.test_regular_calls_count_before_transitional_ones)
def _(patch: pytest.MonkeyPatch) -> None:
    """All calls count alike, and a tie goes to the greatest member."""
    patch.setattr(decision, "_source", lambda candidates, relation: max(candidates, key=lambda m: (candidates[m].n, m)))


@mutant("epoch_at_the_decision", PRIMARY, EVS, cases.test_an_old_state_is_kept_until_another_is_here)
def _(patch: pytest.MonkeyPatch) -> None:
    """Who is behind takes the epoch before it has the state."""
    heard = replica.Replica.heard

    def raised(self: Any, mark: Mark) -> None:
        heard(self, mark)
        self.epoch = mark.view

    patch.setattr(replica.Replica, "heard", raised)


@mutant("synced_before_the_decision", ON_DISK, cases.test_nobody_vouches_before_its_own_decision)
def _(patch: pytest.MonkeyPatch) -> None:
    """What any earlier flush covered is vouched for, of whatever state."""
    enter, decided = layer.Keeping.enter, layer.Keeping.decided

    def early(self: Any, view: Any) -> Any:
        out = enter(self, view)
        self.durable = durable.Durable(view, self.replica, self.log)
        return [*out, durable.say(durable.Synced(view, self.replica.history.n))] if self.log is not None else out

    def kept(self: Any, view: Any) -> Any:
        return decided(self, view) if self.durable is None else []

    patch.setattr(layer.Keeping, "enter", early)
    patch.setattr(layer.Keeping, "decided", kept)


@mutant("answer_before_the_slowest_disk", ON_DISK, cases.test_nobody_vouches_before_its_own_decision)
def _(patch: pytest.MonkeyPatch) -> None:
    """The fastest disk is enough."""

    def first(self: Any, member: int, n: int, replicas: Any) -> Any:
        self.told[member] = n
        self.settled = max(self.told.values())
        return self.replica.answers.synced(self.settled)

    patch.setattr(durable.Durable, "heard", first)


@mutant("no_disk_counts_as_one", test_disks.test_what_was_called_before_it_came_is_told_that_it_cannot_be_durable)
def _(patch: pytest.MonkeyPatch) -> None:
    """A durable call waits for a member that will never have it on disk."""
    patch.setattr(layer.Keeping, "offered", lambda self, member, said: None)


@mutant("behind_counts_as_complete", lambda: behind_alone())
def _(patch: pytest.MonkeyPatch) -> None:
    """A part that knows of a decision it lacks is merged like any other."""
    patch.setattr(decision, "_by_parts", lambda offers, relation, known: offers)


@mutant("merge_in_another_order", EVS, cases.test_calls_that_two_of_three_parts_share_count_once)
def _(patch: pytest.MonkeyPatch) -> None:
    """Each puts its own part first."""
    merge = layer.Meeting.merge

    def mine_first(self: Any) -> Any:
        order = sorted(range(len(self.parts)), key=lambda k: self.me not in self.parts[k])
        self._arriving = [self._arriving[k] for k in order]
        self._pieces = [self._pieces[k] for k in order]
        return merge(self)

    patch.setattr(layer.Meeting, "merge", mine_first)


@mutant("shared_calls_count_twice", cases.test_calls_that_two_of_three_parts_share_count_once)
def _(patch: pytest.MonkeyPatch) -> None:
    """n of a merged state adds up what the parts have."""
    merged = replica.History.merged.__func__  # type: ignore[attr-defined]

    def summed(cls: Any, parts: Any, common: int, initial: bytes) -> Any:
        history = merged(cls, parts, common, initial)
        history.n = common + sum(part.n - common for part in parts)
        return history

    patch.setattr(replica.History, "merged", classmethod(summed))


@mutant("chunk_of_another_decision", EVS, PRIMARY, lambda: stale_chunk())
def _(patch: pytest.MonkeyPatch) -> None:
    """Whatever chunk has the next number is taken."""

    def anything(self: Any, member: int, chunk: Any) -> Any:
        return self.arriving.take(self.arriving.source, chunk) if self.arriving is not None else None

    patch.setattr(moving.Moving, "chunk", anything)
    hear = layer.State._hear

    def heard(self: Any, now: int, sender: Any, raw: bytes) -> Any:
        said = layer.decode(raw)
        if isinstance(said, layer.Chunk) and self.view is not None and said.view != self.view.id:
            return self._guard(self._chunk, now, sender, said)
        return hear(self, now, sender, raw)

    patch.setattr(layer.State, "_hear", heard)

    patch.setattr(moving.Moving, "taken", trusting)


def trusting(self: Any) -> Any:
    """Without the digest, and without the place that was decided."""
    arriving, restoring = self.arriving, self._restoring
    self.arriving = self._restoring = None
    history = arriving.history.finish()
    return moving.Taken(Mark(self.mark.view, *history.place), history, restoring)


def stale_chunk() -> None:
    """A chunk that waited in the donor's outbox leaves in the next view, where a longer state is on its way."""
    group = cases.Group(3)
    group.view(1, 2)
    group.of[1].call(2)
    group.run(1, 2)
    group.view(1, 2, 3)
    while not any(payload[2] == CHUNK for payload in group.of[1].outbox):
        assert any(group.deliver(id) or (id != 1 and group.turn(id)) for id in group.ids) or (
            group.timer(1) or group.turn(1)
        )
    group.of[2].call(2)
    while group.turn(2) or group.deliver(1) or group.deliver(2):
        pass
    group.view(1, 2, 3)
    for _ in range(2):  # Offers, and what each holds
        for id in group.ids:
            group.turn(id)
        while any(group.deliver(id) for id in group.ids):
            pass
    assert cases.word(group.of[3]) == cases.BEHIND
    group.run()
    cases.one_state(group)
    assert len({member.place for member in group.of.values()}) == 1


def behind_alone() -> None:
    """Who is behind goes on with nothing but the state that it waits for."""
    group = cases.Group(3, merges=False)
    group.view(1, 2, 3)
    group.run()
    group.view(1, 2)
    group.view(3)
    for _ in range(3):
        group.of[1].call()
    group.of[3].call()
    group.run()
    group.view(1, 3)
    cases.until(group, 3, cases.BEHIND, 1)
    group.view(3)
    group.run(3)
    assert cases.word(group.of[3]) == cases.UNDECIDED


@mutant("log_over_a_newer_snapshot", lambda: snapshot_and_log())
def _(patch: pytest.MonkeyPatch) -> None:
    """Every step in every log is taken, whatever the state is."""
    recover = recovery.recover

    def all_of_it(of: Any, found: Mapping[str, bytes]) -> Any:
        out = recover(of, {name: data for name, data in found.items() if name.startswith(recovery.SNAPSHOT)})
        for k in recovery.numbers(found, recovery.LOG):
            for record in recovery.records(found[f"{recovery.LOG}{k}"]):
                if isinstance(record, recovery.Stepped):
                    said = recovery.decode_step(record.raw)
                    of.apply(recovery.Entry(record.caller, said, record.raw, record.irregular))
        return out

    patch.setattr("ordercast.state.keeping.recover", all_of_it)


def snapshot_and_log() -> None:
    """A snapshot is on disk, and so is the log before it, which is kept with the snapshot before."""
    group = cases.Group(1, disks=True)
    group.view(1)
    group.run()
    member = group.of[1]
    member.call(3)
    group.run()
    member.does([*member.layer.replica.save(), log.SetTimer(log.WRITE, 0)])
    group.run()
    member.call(2)
    group.run()
    group.view(1)
    group.run()
    lines = list(member.lines)
    group.crash(1)
    assert group.start(1).lines == lines and len(lines) == 5


@pytest.mark.parametrize("name", MUTANTS)
def test_a_known_bad_replica_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, killers = MUTANTS[name]
    patch(monkeypatch)
    for kill in reversed(killers):  # smallest cases are last, and quickest
        try:
            kill()
        except AssertionError:
            return
    pytest.fail(f"{name} survives")


@pytest.mark.parametrize("check", [stale_chunk, snapshot_and_log, behind_alone])
def test_an_honest_replica_is_not(check: Callable[[], None]) -> None:
    check()
