"""Gather: a view is left, or an attempt at one given up; members are proposed until all of them propose the same.

Paper: the membership of Totem (Amir, Moser, Melliar-Smith, Agarwal, Ciarfella 1995): its states and commit token.
Differs from it:
  D1  Members are chosen by rows of who hears whom and cliques, not by proc_set and fail_set (choose.py).
  D2  A Join from outside moves nobody; only the choice of members does (automaton.py).
  D3  Links that keep breaking are on probation (evidence.py); tokens are repeated by multicast (handover.py).
  D4  T_loss tunes itself (tuning.py); a pause of this member is told from a silence of the others (step.py).
  D5  A representative whose commit token waits for somebody who now proposes other members gives it up at once
      instead of after T_commit; Joins are numbered, so that an overtaken one is no such sign.
  D6  A member whose storage fails says that it is gone until a write succeeds, so that it holds nobody up.
  D7  The time given after an own pause is bounded (timers.py, evidence.py): on a machine so busy that every timer is
      late, the dead are noticed all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.contract import Note
from ordercast.membership.automaton import Happening
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import Chooser
from ordercast.membership.events import Gathering
from ordercast.membership.handover import Handover
from ordercast.membership.packets import Join
from ordercast.membership.primary import Primary
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.step import Step
from ordercast.membership.timers import COMMIT, CONSENSUS, LOSS, POLL
from ordercast.membership.voice import Voice
from ordercast.membership.waits import Patience
from ordercast.types import Cause, MemberId, Nanoseconds


class Gather:
    def __init__(
        self, step: Step, standing: Standing, sight: Sight, voice: Voice, number: RingNumber, ballot: Ballot,
        chooser: Chooser, patience: Patience, handover: Handover, primary: Primary | None,
    ) -> None:  # fmt: skip
        self._step, self._standing, self._sight, self._voice, self._number = step, standing, sight, voice, number
        self._ballot, self._chooser, self._patience, self._handover = ballot, chooser, patience, handover
        self._primary = primary

    def leave(self, now: Nanoseconds, cause: Cause, note: Note | None = None, blamed: Sequence[MemberId] = ()) -> None:
        """Out of a working view: this is what the next one will name as its cause."""
        self._standing.cause = cause
        self.give_up(now, cause, note, blamed)

    def give_up(
        self, now: Nanoseconds, cause: Cause, note: Note | None = None, blamed: Sequence[MemberId] = ()
    ) -> None:
        if note is not None:
            self._step.say(note)
        for q in blamed:
            self._sight.strike(now, q, cause.reason)
        self._step.say(Gathering(cause))
        self.enter(now)

    def again(self, now: Nanoseconds) -> None:
        """Agreement took too long: who is heard and did not agree is struck."""
        for q in self._ballot.dissenters():
            if self._sight.hears(q):
                self._step.say(Note("refused_agreement", {"member": q}))
                self._sight.strike(now, q, "did not agree")
        cause = Cause("consensus timeout", None, "T_consensus", "not all agreed")
        self._step.say(Note("gather_again", {"cause": str(cause)}))
        self.enter(now)

    def enter(self, now: Nanoseconds) -> None:
        """Nothing of an earlier proposal or attempt counts any more."""
        step, times, forming = self._step, self._step.times, self._standing.forming
        if self._primary is not None and forming is not None:
            step.out += self._primary.leave(forming.id)
        self._standing.gather()
        self._ballot.void()
        self._handover.give_up()
        step.deadlines.clear(LOSS, COMMIT, POLL)
        step.set(CONSENSUS, now + times.consensus)
        step.tick_at(now + times.join)
        self._voice.announce = True
        self._voice.recompute(now)
        self.propose(now)

    def joined(self, now: Nanoseconds, q: MemberId, join: Join) -> None:
        """A Join says what q proposes, and which token it got last."""
        self._ballot.note(q, join.proposal)
        if self._handover.judge(q, join.got):
            self._step.say(Note("blame", {"member": q}))
            self._sight.strike(now, q, "token did not arrive")
            self._voice.recompute(now)
        self.propose(now)

    def propose(self, now: Nanoseconds) -> None:
        ballot, rows = self._ballot, self._standing.taught(self._sight.table.rows)
        proposal = () if self._number.ill else self._chooser(now, rows)
        if proposal is None:
            self._patience.rest(self._chooser.rest)
            return
        if proposal != ballot.proposal:
            if proposal and self._patience.too_early(now, rows, proposal):
                proposal = ()
            if proposal != ballot.proposal:
                ballot.propose(proposal)
                self._voice.announce = True
                self._step.set(CONSENSUS, now + self._step.times.consensus)
        if ballot.mine_to_commit() and ballot.pending is None:
            self._standing.happens(now, Happening.AGREED)
