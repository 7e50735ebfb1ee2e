"""The parts that a Membership holds, each alone: where it stands, the frame of a step, its voice, staying or going."""

from types import SimpleNamespace

import pytest

from ordercast.contract import Note, SetTimer, Transmit
from ordercast.membership import Hello, Join, State
from ordercast.membership.automaton import Happening
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import NO_VIEW, Chooser, Row
from ordercast.membership.commit import blank
from ordercast.membership.handover import Handover
from ordercast.membership.packets import Got
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Roster, Standing
from ordercast.membership.stay import Stay
from ordercast.membership.step import Step
from ordercast.membership.timers import COMMIT, LOSS, POLL, TICK, Deadlines, Times
from ordercast.membership.voice import Voice
from ordercast.membership.waits import Patience
from ordercast.types import Cause, Identity, Peer, ViewId

T = 40_000_000
VIEW = ViewId(8, 1)


class Part:
    """Takes what the table gives it."""

    def __init__(self):
        self.done = []

    def __getattr__(self, name):
        return lambda now, *what: self.done.append((name, *what))


def member(direct=False):
    """Member 1 of the installed view of 1 and 2: everything but Gather and Commit, which only take notes."""
    m = SimpleNamespace(gather=Part(), commit=Part(), step=Step(Times.of(T)), ballot=Ballot(1), number=RingNumber())
    m.standing = Standing(m)
    m.sight = Sight(Identity(1, 1, (1, 2)), m.standing, T, 60 * T, m.step.say, m.ballot.forget)
    m.voice = Voice(m.step, m.standing, m.sight, m.number, m.ballot, 0, 1400)
    m.patience = Patience(m.step, m.sight, direct)
    m.stay = Stay(m.step, m.standing, m.sight, m.voice, Chooser(1, direct, m.step.times.gap), m.patience, direct)
    m.sight.start(0, 0)
    m.sight.hear(0, Peer(2, 1))
    m.standing.state = State.RECOVERY
    m.standing.form(VIEW, (1, 2))
    m.standing.forming.incarnations = {1: 1, 2: 1}
    m.standing.happens(0, Happening.INSTALLED)
    m.step.end()
    return m


# ------------------------------------------------------------------------------------------------------------- standing


def test_a_rule_names_the_part_that_acts_and_the_state_to_come():
    m, cause = member(), Cause("stuck")
    assert m.standing.happens(1, Happening.BLAMED, cause)
    assert m.gather.done == [("leave", cause)] and m.standing.state is State.GATHER
    assert not m.standing.happens(1, Happening.BLAMED, cause), "Gather knows no such event"
    assert len(m.gather.done) == 1


def test_what_is_formed_counts_until_it_is_installed_or_void():
    standing = Standing(None)
    assert standing.present.id == NO_VIEW and not standing.frozen
    standing.form(VIEW, (1, 2))
    assert (standing.present.id, standing.installed.id, standing.frozen) == (VIEW, NO_VIEW, True)
    standing.gather()
    assert (standing.present.id, standing.frozen) == (NO_VIEW, True), "an entry binds also if the attempt fails"
    standing.form(VIEW, (1, 2))
    standing.install()
    assert (standing.present.id, standing.installed.members, standing.frozen) == (VIEW, (1, 2), False)


@pytest.mark.parametrize("state", [State.OPERATIONAL, State.GATHER])
def test_the_commit_token_teaches_more_than_older_rows(state):
    standing = Standing(None)
    standing.state, standing.installed = state, Roster(VIEW, (1, 2, 3))
    standing.installed.incarnations = {1: 1, 2: 1, 3: 1}
    old, hears = ViewId(4, 1), frozenset({1, 2})
    rows = {
        1: Row(1, 1, 5, VIEW, True, hears), 2: Row(2, 1, 5, old, False, hears), 3: Row(3, 2, 5, old, False, hears),
        4: Row(4, 1, 5, old, False, hears),
    }  # fmt: skip
    taught = standing.taught(rows)
    assert taught[2] == Row(2, 1, 5, VIEW, state is State.OPERATIONAL, hears)
    assert all(taught[q] == rows[q] for q in (1, 3, 4)), "not of another life, nor of others"


# ----------------------------------------------------------------------------------------------------------------- step


def test_an_own_pause_excuses_the_others_and_postpones_what_speaks_against_them():
    m = member()
    step, evidence = m.step, m.sight.evidence
    step.set(LOSS, T)
    step.set(TICK, T)
    step.begin(T, T, evidence)
    assert not step.paused and evidence.links[2].heard == 0
    step.begin(2 * T, T, evidence)
    assert step.paused and evidence.links[2].heard == 2 * T
    assert step.deadlines.due == {LOSS: 2 * T + T // 2, TICK: T}
    assert [action.name for action in step.end() if isinstance(action, Note)] == ["own_pause"]
    assert step.end() == []


def test_only_after_an_own_pause_a_deadline_gets_more_time():
    step = Step(Times.of(T))
    assert not step.spare(T, COMMIT)
    step.paused = True
    assert not step.spare(T, POLL)
    assert step.spare(T, COMMIT) and step.deadlines.due == {COMMIT: T + T // 2}


# ---------------------------------------------------------------------------------------------------------------- voice


def said(m):
    return [type(action.packet) for action in m.step.end() if isinstance(action, Transmit)]


def test_a_hello_outside_gather_a_join_inside_and_not_closer_than_t_gap():
    m, gap = member(), T // 20
    m.voice.speak(T)
    assert said(m) == [Hello], "the view is new"
    m.voice.speak(T)
    assert said(m) == [], "nothing new"
    m.voice.relay = True
    m.voice.speak(T + 1)
    assert m.step.end() == [SetTimer(TICK, T + gap)], "too soon"
    m.voice.relay = True
    m.voice.speak(T + gap)
    assert said(m) == [Hello]
    m.standing.state = State.GATHER
    m.voice.announce = True
    m.voice.speak(T + gap + 1)
    assert said(m) == [Join], "what is proposed is said at once"


def test_who_leaves_says_that_it_hears_nobody():
    m = member()
    m.step.set(LOSS, T)
    assert m.standing.happens(1, Happening.LEAVE)
    [hello] = [action.packet for action in m.step.end() if isinstance(action, Transmit)]
    assert hello.rows.rows[0].hears == b"\0" and list(m.step.deadlines.due) == ["m.part"]


# ----------------------------------------------------------------------------------------------------------- stay or go


def test_a_young_view_is_not_left_for_a_choice():
    m = member()
    m.sight.table.take(1, Row(2, 1, 1, VIEW, True, frozenset({2})))
    assert m.standing.young
    m.standing.happens(1, Happening.NEWS)
    assert m.standing.works and not m.gather.done


def test_a_member_that_names_a_newer_view_has_left():
    m = member()
    m.stay.named(1, 2, VIEW)
    m.stay.named(1, 3, ViewId(12, 3))
    assert not m.gather.done, "the same view, and a member of another"
    m.stay.named(1, 2, ViewId(12, 2))
    [(act, cause, note)] = m.gather.done
    assert (act, cause.reason, cause.member, note.name) == ("leave", "departure", 2, "departed")


def test_a_member_that_comes_back_in_another_life_has_left():
    m = member()
    m.stay.met(1, Peer(2, 1))
    m.stay.met(1, Peer(3, 9))
    assert not m.gather.done
    m.stay.met(1, Peer(2, 2))
    assert m.gather.done[0][:2] == ("leave", Cause("departure", 2, "", "came back in another life"))


def test_silence_of_one_member_with_direct_links_the_token_without():
    m = member(direct=True)
    m.stay.expect(0)
    m.sight.hear(T // 2, Peer(2, 1))
    m.stay.lost(T)
    assert not m.gather.done and m.step.deadlines.due[LOSS] == T + T // 2 + 1, "heard since"
    m.stay.lost(T + T // 2)
    assert not m.gather.done, "so long counts as hearing"
    m.stay.lost(T + T // 2 + 1)
    assert m.gather.done[0][1].reason == "silence"
    m = member()
    m.stay.visited(T)
    m.stay.lost(2 * T)
    assert m.gather.done[0][1].reason == "token loss"


# -------------------------------------------------------------------------------------------------------- commit token


def test_a_proposal_ends_the_wait_of_the_token_for_the_one_before():
    ballot = Ballot(1)
    for end in (ballot.void, lambda: ballot.propose((1, 3))):
        ballot.propose((1, 2))
        ballot.pending = blank(VIEW, (1, 2))
        end()
        assert ballot.pending is None


@pytest.mark.parametrize(
    "seen, arrived",
    [
        (Got(VIEW, 0, 4), True),
        (Got(VIEW, 0, 3), False),
        (Got(VIEW, 0, 2), False),
        (Got(ViewId(12, 1), 0, 4), False),
    ],
)
def test_my_commit_token_further_on_its_way_has_arrived(seen, arrived):
    way = Handover(Deadlines(1), 0, 10)
    way.overtaken(seen)
    way.send(0, 2, Note("token"), Got(VIEW, 0, 3))
    way.overtaken(seen)
    assert (way.copy is None) is arrived


def test_a_commit_token_further_on_says_nothing_of_a_regular_one():
    way = Handover(Deadlines(1), 0, 10)
    way.send(0, 2, Note("token"), Got(VIEW, 1, 3))
    way.overtaken(Got(VIEW, 0, 4))
    assert way.copy is not None
