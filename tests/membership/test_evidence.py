"""Evidence of links: runs, strikes, probation, calm, new lives, own pauses."""

import random

from ordercast.membership.choose import NO_VIEW
from ordercast.membership.evidence import STRIKES_MAX, Evidence
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.types import Identity, Peer

MS = 1_000_000
T = 40 * MS
Q = 2


class Dumb:
    """The rules as they are said, over the whole history of one link: packets, ticks and strikes by others."""

    def __init__(self):
        self.heard = self.since = None
        self.strikes, self.inside, self.calm = 0, False, 0

    def probation(self):
        return 0 if self.strikes <= 2 else min(60_000 * MS, T * 4 ** (self.strikes - 2))

    def struck(self, now, most):
        if self.strikes < most:
            self.strikes += 1
        self.since = self.calm = now
        if self.strikes > 2:
            self.inside = False

    def forgive(self, now):
        while self.inside and self.strikes and now - self.calm >= 60_000 * MS:
            self.strikes -= 1
            self.calm += 60_000 * MS

    def look(self, now):
        self.forgive(now)
        hears = self.heard is not None and now - self.heard <= T and now - self.since >= self.probation()
        if self.inside and not hears:
            self.inside = False
            self.struck(now, 12)
        elif hears and not self.inside:
            self.inside = True
            self.calm = max(self.calm, now)

    def packet(self, now):
        if self.heard is None or now - self.heard > T:
            self.since = now
        self.heard = now
        if not self.inside:
            self.look(now)

    def blame(self, now):
        self.forgive(now)
        self.struck(now, 12 if self.inside else 4)
        self.look(now)


def test_equals_the_dumb_twin_in_2000_histories():
    rng = random.Random(1)
    for _ in range(2000):
        evidence, dumb, now = Evidence(T), Dumb(), 0
        evidence.learn(0, Q, 1)
        pace = rng.choice([0.3, 1.0, 3.0, 200.0])
        for _ in range(rng.randint(1, 80)):
            now += int(rng.expovariate(1 / (pace * T / 2))) if rng.random() < 0.7 else int(rng.uniform(0, 0.9) * T)
            what = rng.choices(["packet", "tick", "strike"], [6, 4, 1])[0]
            if what == "packet":
                evidence.packet(now, Q)
                if not evidence.links[Q].hears:
                    evidence.recompute(now)
                dumb.packet(now)
            elif what == "tick":
                evidence.recompute(now)
                dumb.look(now)
            else:
                evidence.strike(now, Q, "blamed")
                evidence.recompute(now)
                dumb.blame(now)
            assert (evidence.links[Q].hears, evidence.links[Q].strikes) == (dumb.inside, dumb.strikes)


def heard_at(evidence, *times):
    for when in times:
        evidence.packet(when, Q)
        evidence.recompute(when)


def test_only_the_transmitter_is_heard():
    """A row that names q, or a message of q that another repeats, proves nothing of my link to q."""
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    evidence.learn(0, 3, 1)
    heard_at(evidence, 0)
    assert evidence.hears() == {Q}


def test_strikes_stop_at_twelve():
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    now = 0
    for _ in range(20):
        heard_at(evidence, now)
        while not evidence.links[Q].hears:  # believed again each time, then silent
            now += T * 3 // 4
            heard_at(evidence, now)
        now += 2 * T
        evidence.recompute(now)
    assert evidence.links[Q].strikes == STRIKES_MAX
    assert evidence.probation_ns(Q) == 60_000 * MS


def test_who_is_out_is_not_struck_beyond_the_fourth():
    """A probation above 16 T takes a link that failed again after it was last believed."""
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    heard_at(evidence, 0)
    for k in range(1, 8):
        evidence.strike(k, Q, "did not agree")
        evidence.recompute(k)
    link = evidence.links[Q]
    assert link.strikes == 4 and evidence.probation_ns(Q) == 16 * T
    assert link.since == 7 and link.why == "did not agree", "the good run begins anew all the same"
    now = 7
    while not link.hears:
        now += T // 2
        heard_at(evidence, now)
    assert link.strikes == 4
    assert evidence.recompute(now + 2 * T) == [Q] and link.strikes == 5, "believed, and failed again"
    evidence.strike(now + 2 * T, Q, "did not agree")
    assert link.strikes == 5


def test_what_is_left_of_a_probation():
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    heard_at(evidence, 0)
    assert evidence.left_ns(Q) == 0
    for k in (1, 2, 3):
        evidence.strike(k, Q, "silence")
    heard_at(evidence, T)
    assert evidence.left_ns(Q) == 3 + 4 * T - T
    evidence.recompute(3 * T)
    assert evidence.left_ns(Q) == 4 * T, "silent again: the whole of it, once it speaks"
    heard_at(evidence, *(3 * T + k * T // 2 for k in range(9)))
    assert evidence.left_ns(Q) == 0 and evidence.links[Q].hears


def test_a_strike_that_puts_on_probation_is_one_strike():
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    heard_at(evidence, 0)
    for k in (1, 2, 3):
        evidence.strike(k, Q, "")
        evidence.recompute(k)
    assert evidence.links[Q].strikes == 3
    assert not evidence.links[Q].hears
    assert evidence.on_probation(4, Q)


def test_a_new_life_starts_clean_and_an_old_one_is_stale():
    evidence = Evidence(T)
    evidence.learn(0, Q, 5)
    heard_at(evidence, 0)
    for k in range(5):
        evidence.strike(k, Q, "")
    assert evidence.learn(10, Q, 6)
    assert not evidence.links[Q].hears and evidence.links[Q].strikes == 0
    assert evidence.stale(Q, 5) and not evidence.stale(Q, 6)
    assert not evidence.learn(11, Q, 5)


def test_a_life_that_was_agreed_on_stays_and_one_that_fell_silent_before_is_forgotten():
    evidence = Evidence(T)
    evidence.learn(0, Q, 5)
    heard_at(evidence, 0)
    evidence.agreed(Q, 5)
    for _ in range(3):
        evidence.strike(1, Q, "silence")
    assert evidence.counts(2, Q, 9) and evidence.learn(2, Q, 9), "a newer one counts at once"
    assert not evidence.counts(2 + T, Q, 5), "and the one before does not, for T_hear"
    assert evidence.counts(3 + T, Q, 5)
    evidence.turn(3 + T, Q, 5)
    assert evidence.links[Q].incarnation == 5 and evidence.links[Q].strikes == 3 and evidence.links[Q].agreed
    assert evidence.stale(Q, 9) and not evidence.stale(Q, 8), "rows of the forgotten life teach nobody"
    assert evidence.counts(4 + T, Q, 9) and evidence.learn(4 + T, Q, 9), "a packet of its own does"
    evidence.agreed(Q, 9)
    assert evidence.counts(6 + 2 * T, Q, 5), "on a commit token, but never heard: somebody's word"
    evidence.packet(5 + T, Q)
    evidence.agreed(Q, 9)
    assert not evidence.counts(100 * T, Q, 5), "it was on a commit token: the one before is over"


def test_own_pause_refreshes_whom_we_heard_and_nobody_else():
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    evidence.learn(0, 3, 1)
    heard_at(evidence, 0)
    evidence.stood_still(5 * T, T // 2)
    assert evidence.recompute(5 * T) == []
    assert evidence.hears() == {Q}


def test_who_is_gone_drops_out_without_a_strike():
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    heard_at(evidence, 0)
    assert evidence.recompute(2 * T, gone={Q}) == []
    assert evidence.links[Q].strikes == 0 and not evidence.links[Q].hears
    evidence.packet(2 * T, Q)
    evidence.recompute(2 * T)
    evidence.forget(Q)
    assert evidence.links[Q].strikes == 0 and not evidence.links[Q].hears


def test_a_strike_is_not_being_heard_again():
    """The wait for unknown links looks at runs that a packet began, not at those a strike did."""
    evidence = Evidence(T)
    evidence.learn(0, Q, 1)
    heard_at(evidence, 0)
    evidence.strike(10 * T, Q, "")
    assert not evidence.fresh(10 * T + 1, Q, T // 2)
    evidence.packet(11 * T, Q)  # after a silence
    assert evidence.fresh(11 * T + 1, Q, T // 2)


def test_t_hear_follows_t_loss():
    sight = Sight(Identity(1, 1, (1, Q)), Standing(None), T, 60 * T, lambda note: None, lambda q: None)
    sight.hear(0, Peer(Q, 1))
    sight.measure(1, 3 * T // 2)  # T_loss is 3 T now
    for now, hears in ((0, {1, Q}), (3 * T, {1, Q}), (3 * T + 1, {1})):
        sight.recompute(now, NO_VIEW, False, False)
        assert sight.table.own.hears == hears, now
