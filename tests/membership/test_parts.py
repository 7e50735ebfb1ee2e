"""The small parts: self-tuned T_loss, deadlines, the token on its way, the ring number, the ballot, causes."""

import random

from ordercast.contract import ALL, Note, SetTimer, Store, Transmit
from ordercast.membership import cause as causes
from ordercast.membership.ballot import Ballot
from ordercast.membership.cause import tell, told
from ordercast.membership.choose import NO_VIEW, Row
from ordercast.membership.evidence import Evidence
from ordercast.membership.handover import Handover
from ordercast.membership.packets import Got
from ordercast.membership.ringnumber import RESERVE, RingNumber
from ordercast.membership.timers import LOSS, REPEAT, Deadlines, Times
from ordercast.membership.tuning import Tuning
from ordercast.types import Cause, ViewId

MS = 1_000_000
T = 40 * MS

# ------------------------------------------------------------------------------------------------------------- tuning


def test_a_ring_that_runs_well_waits_exactly_t():
    tuning = Tuning(T)
    for k in range(1000):
        assert not tuning.observe(k * T, T // 3)
    assert tuning.loss_ns == T


def test_a_stall_makes_64_to_128_t_tolerant():
    tuning = Tuning(T)
    assert tuning.observe(10 * T, 9 * T // 10)
    assert tuning.loss_ns == 18 * T // 10
    assert not tuning.tick(127 * T)
    assert tuning.tick(128 * T)
    assert tuning.loss_ns == T


def test_never_above_8_t():
    tuning = Tuning(T)
    tuning.observe(0, 100 * T)
    assert tuning.loss_ns == 8 * T


def test_tuning_equals_the_dumb_twin():
    rng = random.Random(2)
    for _ in range(300):
        tuning, seen, now = Tuning(T), [], 0
        for _ in range(40):
            now += int(rng.expovariate(1 / (10 * T)))
            rotation = int(rng.expovariate(1 / T))
            seen.append((now, rotation))
            tuning.observe(now, rotation)
            bucket = now // (64 * T)
            longest = max(r for when, r in seen if when // (64 * T) >= bucket - 1)
            assert tuning.loss_ns == max(T, min(2 * longest, 8 * T))


# ---------------------------------------------------------------------------------------------------------- deadlines


def test_all_times_derive_from_one():
    times = Times.of(840 * MS)
    assert times.timeout == times.commit == 840 * MS
    assert (times.hello, times.join, times.gap) == (210 * MS, 84 * MS, 42 * MS)
    assert (times.settle, times.quiet, times.consensus, times.repeat) == (420 * MS, 210 * MS, 1008 * MS, 200 * MS)


def test_a_deadline_that_moves_on_costs_no_timer():
    deadlines = Deadlines(1_000)
    assert deadlines.set(LOSS, 100) == [SetTimer(LOSS, 100)]
    assert deadlines.set(LOSS, 130) == []
    assert deadlines.fired(100, LOSS) == (False, [SetTimer(LOSS, 130)])
    assert deadlines.set(LOSS, 120) == [SetTimer(LOSS, 120)]
    assert deadlines.fired(120, LOSS) == (True, [])
    assert deadlines.fired(130, LOSS) == (False, [])


def test_a_timer_that_would_fire_far_too_early_is_moved():
    deadlines = Deadlines(1_000)
    deadlines.set(LOSS, 100)
    assert deadlines.set(LOSS, 1_099) == []
    assert deadlines.set(LOSS, 1_100) == [SetTimer(LOSS, 1_100)]


def test_a_cleared_deadline_does_not_come():
    deadlines = Deadlines(1_000)
    deadlines.set(LOSS, 100)
    deadlines.clear(LOSS)
    assert deadlines.fired(100, LOSS) == (False, [])


def test_after_a_pause_only_what_is_near_moves():
    deadlines = Deadlines(1_000)
    deadlines.set("a", 90)
    deadlines.set("b", 500)
    deadlines.postpone(100, 20, "a", "b", "c")
    assert deadlines.due == {"a": 120, "b": 500}


def test_own_pauses_postpone_a_deadline_twice_and_no_more():
    deadlines = Deadlines(1_000)
    deadlines.set(LOSS, 100)
    assert deadlines.spare(110, 20, LOSS) is not None and deadlines.spare(115, 20, LOSS) is not None
    assert deadlines.due[LOSS] == 135, "the same pause, noticed again"
    assert deadlines.spare(140, 20, LOSS) is not None
    assert deadlines.spare(165, 20, LOSS) is None, "late again and again: slow"
    deadlines.set(LOSS, 300)
    assert deadlines.spare(310, 20, LOSS) is not None, "a token came in between"


def test_own_pauses_excuse_a_silence_twice_and_no_more():
    evidence = Evidence(100)
    evidence.learn(0, 2, 1)
    evidence.packet(0, 2)
    evidence.recompute(0)
    for now, excused in ((200, True), (210, True), (260, True), (320, False)):
        evidence.stood_still(now, 50)
        assert (evidence.links[2].heard == now) is excused, now
    evidence.packet(330, 2)
    evidence.stood_still(500, 50)
    assert evidence.links[2].heard == 500


# -------------------------------------------------------------------------------------------------- the token's way


def handover():
    deadlines = Deadlines(1_000)
    return Handover(deadlines, 0, 10), deadlines


def sent_to(actions):
    return [a.to for a in actions if isinstance(a, Transmit)]


def test_repeated_by_unicast_once_then_by_multicast_and_faster():
    way, deadlines = handover()
    token, got = Note("token"), Got(ViewId(4, 1), 1, 7)
    assert sent_to(way.send(0, 2, token, got)) == [2]
    assert sent_to(way.repeat(10)) == [2]
    assert sent_to(way.repeat(20)) == [ALL, 2], "the unicast finds out whether anybody is there"
    assert deadlines.due[REPEAT] == 22
    way.went_on()
    assert REPEAT not in deadlines.due and way.repeat(30) == []
    assert sent_to(way.send(40, 2, token, got)) == [ALL], "this successor needs it for the rest of the view"
    assert sent_to(way.send(40, 3, token, got)) == [3]
    way.new_ring()
    assert sent_to(way.send(50, 2, token, got)) == [2]


def test_who_used_the_token_is_asked_whether_it_lives_until_a_token_comes():
    way, deadlines = handover()
    token, got = Note("token"), Got(ViewId(4, 1), 1, 7)
    way.send(0, 2, token, got)
    way.used(3)
    assert deadlines.due[REPEAT] == 23
    assert sent_to(way.repeat(23)) == [2] and deadlines.due[REPEAT] == 43
    way.used(30)
    assert deadlines.due[REPEAT] == 43, "its next frame is no news"
    way.went_on()
    assert REPEAT not in deadlines.due and way.repeat(50) == []
    way.send(60, 2, token, got)
    way.used(61)
    way.give_up()
    assert way.blamed is None and way.repeat(90) == [], "it has arrived: nobody is to blame"


def test_blame_needs_two_repetitions_and_a_join_that_lacks_the_token():
    sent = Got(ViewId(4, 1), 1, 7)
    for repetitions, got, blamed in [
        (1, None, False),
        (2, None, True),
        (2, Got(ViewId(4, 1), 1, 6), True),
        (2, Got(ViewId(4, 1), 0, 99), True),
        (2, sent, False),
        (2, Got(ViewId(8, 1), 0, 1), False),
    ]:
        way, _ = handover()
        way.send(0, 2, Note("token"), sent)
        for k in range(repetitions):
            way.repeat(k)
        way.give_up()
        assert not way.judge(3, None), "another member's Join says nothing"
        assert way.judge(2, got) is blamed
        assert not way.judge(2, None), "one token, one strike"


# --------------------------------------------------------------------------------------------------------- ring number


def test_a_number_is_stored_before_it_is_used_and_raised_at_each_start():
    number = RingNumber()
    number.start(0, {"ring_seq": (40, b"")})
    assert number.used == 44 and number.next() == 48
    number.see(2, 100)
    number.see(3, 2**40)
    assert number.next() == 48 and number.next((1, 2)) == 104, "what somebody outside the proposal says leaves no mark"
    assert number.need(104) == [Store("ring_seq", 104 + RESERVE, b"")]
    assert number.need(104) == [], "under way"
    number.answered(104 + RESERVE)
    assert number.need(104) == []
    assert number.use(104) == []
    assert number.used == 104 and number.next() == 108


def test_most_views_wait_for_no_disk():
    number, stores = RingNumber(), 0
    number.start(0, {})
    for _ in range(320):
        for store in number.need(number.next()) + number.use(number.next()) if number.stored else number.need(4):
            stores += 1
            number.answered(store.number)
    assert stores <= 320 // 16 + 2


def test_a_failed_store_is_tried_again():
    number = RingNumber()
    number.start(4, {})
    number.need(8)
    number.failed(8 + RESERVE, "disk full")
    assert number.error == "disk full" and number.ill
    assert number.need(8) == [Store("ring_seq", 8 + RESERVE, b"")]
    number.answered(8 + RESERVE)
    assert number.error == ""


def test_a_disk_that_fails_does_no_harm_while_numbers_are_in_reserve():
    number = RingNumber()
    number.start(4, {})
    number.need(8)
    number.answered(8 + RESERVE)
    number.need(10_000)
    number.failed(10_000 + RESERVE, "disk full")
    assert number.error and not number.ill
    assert number.want(8) == [] and not number.ill
    number.want(10_000)
    assert number.ill
    assert number.again() == [] and number.storing, "under way"
    number.failed(number.storing, "disk full")
    assert number.again() == [Store("ring_seq", 10_000 + RESERVE, b"")]


def test_the_clock_is_a_lower_bound_too():
    number = RingNumber()
    number.start(1_700_000_000_000, {})
    assert number.used == 1_700_000_000_000


# -------------------------------------------------------------------------------------------------------------- ballot


def test_only_the_smallest_commits_and_only_when_all_agree():
    ballot = Ballot(1)
    ballot.propose((1, 2, 3))
    ballot.note(2, (1, 2, 3))
    ballot.note(3, (1, 2))
    assert ballot.dissenters() == [3] and not ballot.mine_to_commit()
    ballot.note(3, (1, 2, 3))
    assert ballot.mine_to_commit()
    other = Ballot(2)
    other.propose((1, 2))
    other.note(1, (1, 2))
    assert not other.dissenters() and not other.mine_to_commit()


def test_an_overtaken_join_says_nothing():
    ballot = Ballot(1)
    assert ballot.newer(0, 2, 5, 40)
    assert not ballot.newer(9, 2, 4, 40) and not ballot.newer(40, 2, 5, 40)
    ballot.forget(2)
    assert ballot.newer(40, 2, 1, 40), "a new life counts from the start"
    assert ballot.newer(41, 2, 2**32 - 1, 40), "a number that it never wrote"
    assert not ballot.newer(81, 2, 3, 40)
    assert ballot.newer(82, 2, 4, 40), "does no lasting harm"


def test_no_proposal_commits_nothing():
    assert not Ballot(1).mine_to_commit()


# --------------------------------------------------------------------------------------------------------------- causes


def test_causes_name_who_which_timer_and_which_evidence():
    assert str(causes.token_loss(41 * MS, 40 * MS)) == "token loss (T_loss): no token for 41 ms, bound 40 ms"
    assert str(causes.silence(3, 41 * MS, 40 * MS)).startswith("silence of member 3 (T_loss)")
    assert str(causes.hint(2)) == "crash hint of member 2: its port answered that nobody is there"


def row(q, hears=frozenset({1})):
    return Row(q, 1, 1, NO_VIEW, False, hears)


def test_a_choice_is_a_merge_a_broken_link_or_a_leave():
    rows = {q: row(q) for q in (1, 2, 3, 4)}
    assert causes.choice((1, 2), (1, 2, 3, 4), rows).reason == "merge"
    assert causes.choice((1, 2, 3), (1, 2), rows).reason == "broken link"
    rows[3] = row(3, frozenset())
    assert causes.choice((1, 2, 3), (1, 2), rows) == Cause("leave", 3, "", "member 3 said to be gone")


def test_followers_name_the_origin_and_the_first_teller():
    first = told(tell(causes.token_loss(41 * MS, 40 * MS)), 2)
    assert first.evidence.endswith("(told by 2)")
    assert told(tell(first), 3).evidence == first.evidence
    long = Cause("x" * 99, 1, "y" * 99, "z" * 999)
    assert len(tell(long).evidence) == 160
