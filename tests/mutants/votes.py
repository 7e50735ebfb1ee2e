"""Variants of ToTo: the literal readings of its paper (E1-E10), and plain blunders of its core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.mutants.cases import CASES
from tests.mutants.registry import mutant

from ordercast.contract import Action, Crash, Received, Setup, Up
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.protocols.toto.ballots import NEVER, Ballots, Key, Vector
from ordercast.protocols.toto.core import SAFE, Toto
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link
from ordercast.types import MemberId, Nanoseconds

AREA = "toto"


def toto(
    setup: Setup,
    form: type[Ballots] = Ballots,
    core: type[Toto] = Toto,
    link: type[Link] = Link,
    quorum: Callable[[int], int] | None = None,
) -> Stack:
    """As the shipped factory, with other parts."""

    class Patched(core):  # type: ignore[misc, valid-type]
        def _reset(self, members: tuple[MemberId, ...]) -> None:
            super()._reset(members)
            self.ballots = form(len(members), self.quorum(len(members)), self.strict)

    options = setup.options
    middle = Patched(setup, quorum or options.quorum, options.strict)
    return chain(Groups(setup.identity.me), Framing(), Seam(), middle, link(setup, crash_hint=options.crash_hint))


# -------------------------------------------------------------------------------------------------- the paper's letters


class EmptyVote(Ballots):
    """E1: a message that follows no candidate is an empty ballot."""

    def _vote(self, rank: int, seq: int, vec: Vector, bit: int) -> bool:
        grew = super()._vote(rank, seq, vec, bit)
        if not self.voted & bit:
            self.voted |= bit
            return True
        return grew


class Figure3(Ballots):
    """E1, figure 3: a message that follows no candidate is an empty ballot until its sender follows one."""

    blank = 0

    def _vote(self, rank: int, seq: int, vec: Vector, bit: int) -> bool:
        super()._vote(rank, seq, vec, bit)
        self.blank = (self.blank & ~bit if self.voted & bit else self.blank | bit) & ~self.voted
        return True

    def _sources(self) -> Sequence[int]:
        return _external(self, _internal(self, self.voted | self.blank))

    def _cast(self) -> None:
        super()._cast()
        self.blank = 0


class StarsAreEqual(Ballots):
    """E2: of two ballots that are not here one is not above the other, so that they cannot make anybody win."""

    def _sources(self) -> Sequence[int]:
        votes, quorum, candidates = self.votes, self.quorum, self.candidates
        sources = [m for m in candidates if not any(_wins(votes[o], votes[m], quorum) for o in candidates)]
        return _external(self, sorted(sources))


class BlankBallots(Ballots):
    """E4: after a delivery candidates stand for themselves, and beside only what comes then is a vote."""

    def _cast(self) -> None:
        for c in self.candidates:
            self.tail[c] = 1 << c
            self.first[c] = [self.head[c] if q == c else 0 for q in range(self.n)]
        super()._cast()


class NoInternal(Ballots):
    """E5: sources are delivered while others may still become some."""

    def _sources(self) -> Sequence[int]:
        votes, quorum, candidates = self.votes, self.quorum, self.candidates
        need = quorum - (self.n - self.voted.bit_count())
        sources = [m for m in candidates if not any(_wins(votes[o], votes[m], need) for o in candidates if o != m)]
        return _external(self, sorted(sources))


class NoNvt(Ballots):
    """E6: no source has to be in a quorum of ballots."""

    def _sources(self) -> Sequence[int]:
        sources = _internal(self)
        if self.voted != self.full and any(self.tail[s].bit_count() <= self.n - self.quorum for s in sources):
            return ()
        return sources


class NoExternal(Ballots):
    """E6: nothing is asked of what is not known yet."""

    def _sources(self) -> Sequence[int]:
        return _internal(self)


class HalfQuorum(Ballots):
    """E7: half of the machines can win, so that two can win against each other."""

    def __init__(self, n: int, quorum: int, strict: bool = True) -> None:
        super().__init__(n, quorum, strict)
        self.quorum = max(1, n // 2)

    def _sources(self) -> Sequence[int]:
        return _external(self, _internal(self))


class Shrinks(Ballots):
    """E8: who is gone no longer counts, neither among all nor for the quorum."""

    def crash(self, rank: int) -> None:
        super().crash(rank)
        self.quorum = min(self.quorum, (self.n - self.gone.bit_count()) // 2 + 1)

    def _sources(self) -> Sequence[int]:
        if self.voted.bit_count() >= self.n - self.gone.bit_count():
            return _internal(self, self.full)
        return _external(self, _internal(self))


class GoneVoteEmpty(Ballots):
    """E8: who is gone votes empty, whatever it had sent."""

    def crash(self, rank: int) -> None:
        super().crash(rank)
        for c in self.candidates:
            self.votes[c] &= ~self.gone

    def _cast(self) -> None:
        super()._cast()
        for c in self.candidates:
            self.votes[c] &= ~self.gone


class NoClosing(Ballots):
    """E10: at the end of a view only the departed vote."""

    def close(self) -> None:
        pass


def _wins(a: int, b: int, need: int) -> bool:
    return (a & ~b).bit_count() >= need


def _internal(ballots: Ballots, known: int | None = None) -> list[int]:
    """The sources, if everybody else has lost; `known`: whose ballots are not waited for."""
    votes, quorum, candidates = ballots.votes, ballots.quorum, ballots.candidates
    need = quorum - (ballots.n - (ballots.voted if known is None else known).bit_count())
    sources = [m for m in candidates if not any(_wins(votes[o], votes[m], need) for o in candidates if o != m)]
    lost = [m for m in candidates if any(_wins(votes[o], votes[m], quorum) for o in candidates)]
    return sorted(sources) if all(m in sources or m in lost for m in candidates) else []


def _external(ballots: Ballots, sources: list[int]) -> Sequence[int]:
    """They, if nobody unknown can come before them."""
    if ballots.voted == ballots.full or not sources:
        return sources
    if max(ballots.votes[s].bit_count() for s in sources) < ballots.quorum:
        return ()
    if ballots.strict and min(ballots.tail[s].bit_count() for s in sources) <= ballots.n - ballots.quorum:
        return ()
    return sources


LETTERS: dict[str, type[Ballots]] = {
    "e1_empty_vote": EmptyVote,
    "e1_figure_3": Figure3,
    "e2_stars_are_equal": StarsAreEqual,
    "e4_blank_ballots": BlankBallots,
    "e5_no_internal_stability": NoInternal,
    "e6_no_nvt": NoNvt,
    "e6_no_external_stability": NoExternal,
    "e7_half_is_a_quorum": HalfQuorum,
    "e8_n_shrinks": Shrinks,
    "e8_gone_vote_empty": GoneVoteEmpty,
    "e10_no_closing": NoClosing,
}


def _enter(name: str, form: type[Ballots]) -> None:
    case = name if name in CASES else ""
    mutant(f"toto_{name}", "toto", AREA, str(form.__doc__).rstrip("."), case=case)(lambda setup: toto(setup, form))


for _name, _form in LETTERS.items():
    _enter(_name, _form)


@mutant("toto_e10_crashes_alone", "toto", AREA, "E10: what the departed's ballots do not settle ends with its view")
def e10_crashes_alone(setup: Setup) -> Stack:
    class Losing(Toto):
        def _flush(self) -> list[Action]:
            self._deliver([])
            self.pending.clear()
            return super()._flush()

    return toto(setup, NoClosing, Losing)


@mutant("toto_e9_crash_before_last", "toto", AREA, "E9: a crash is told before the last messages of the departed")
def e9_crash_before_last(setup: Setup) -> Stack:
    class Hasty(Link):
        def _install(self, now: Nanoseconds) -> list[Action]:
            out = super()._install(now)
            crashes = [a for a in out if isinstance(a, Up) and isinstance(a.event, Crash)]
            return crashes + [a for a in out if a not in crashes]

    return toto(setup, link=Hasty)


# --------------------------------------------------------------------------------------------------- blunders: ballots


@mutant("toto_by_arrival", "toto", AREA, "a set is delivered in the order in which its messages came")
def by_arrival(setup: Setup) -> Stack:
    class Arrival(Ballots):
        def _sources(self) -> Sequence[int]:
            found = super()._sources()
            return [c for c in self.candidates if c in found]

    return toto(setup, Arrival)


@mutant("toto_one_set", "toto", AREA, "after a set is delivered nobody looks whether the next is decided, too")
def one_set(setup: Setup) -> Stack:
    class Once(Ballots):
        fresh = False

        def insert(self, rank: int, seq: int, vec: Vector, agreed: bool) -> bool:
            self.fresh = True
            return super().insert(rank, seq, vec, agreed)

        def activate(self) -> list[Key]:
            fresh, self.fresh = self.fresh or self.gone == self.full, False
            return super().activate() if fresh else []

    return toto(setup, Once)


@mutant("toto_past_ignored", "toto", AREA, "the first pending message of every sender is a candidate")
def past_ignored(setup: Setup) -> Stack:
    class Heads(Ballots):
        def _next(self, delivered: Sequence[int]) -> None:
            self.candidates = [rank for rank in self.candidates if rank not in delivered]
            for rank, seq in enumerate(self.head):
                if seq != NEVER and rank not in self.candidates:
                    self.candidates.append(rank)
                    self._open(rank, seq)
            self._cast()
            if not self.candidates:
                self._forget()

    return toto(setup, Heads)


@mutant(
    "toto_forgets_too_much",
    "toto",
    AREA,
    "what a machine sent before its own first pending message is forgotten",
    case="forgets_too_much",
)
def forgets_too_much(setup: Setup) -> Stack:
    class Forgetful(Ballots):
        def _next(self, delivered: Sequence[int]) -> None:
            super()._next(delivered)
            self._forget()

        def _forget(self) -> None:
            for rank, line in enumerate(self.log):
                pending = self.queue[rank][0] if self.queue[rank] else self.base[rank] + len(line)
                del line[: pending - self.base[rank]]
                self.base[rank] = pending

    return toto(setup, Forgetful)


@mutant("toto_quorum_of_the_configured", "toto", AREA, "the quorum is that of all configured members, in every view")
def quorum_of_the_configured(setup: Setup) -> Stack:
    needed = setup.options.quorum(len(setup.identity.members))
    return toto(setup, quorum=lambda n: min(n + 1, needed))


@mutant("toto_quorum_of_the_old_view", "toto", AREA, "the quorum is that of the view before")
def quorum_of_the_old_view(setup: Setup) -> Stack:
    class Late(Ballots):
        """Views come one after the other, each with its ballots."""

        before = 1

        def __init__(self, n: int, quorum: int, strict: bool = True) -> None:
            super().__init__(n, quorum, strict)
            self.quorum = min(setup.options.quorum(Late.before), n + 1)
            Late.before = n

    return toto(setup, Late)


# ------------------------------------------------------------------------------------------------------ blunders: core


@mutant("toto_no_nulls", "toto", AREA, "B1: who has nothing to say does not vote")
def no_nulls(setup: Setup) -> Stack:
    class Mute(Toto):
        def _watch(self, now: Nanoseconds, out: list[Action]) -> None:
            pass

    return toto(setup, core=Mute)


@mutant("toto_nulls_do_not_vote", "toto", AREA, "a null is not counted as a vote")
def nulls_do_not_vote(setup: Setup) -> Stack:
    class Deaf(Toto):
        def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
            return super()._receive(now, event) if hasattr(event.body, "frame") else []

    return toto(setup, core=Deaf)


@mutant("toto_safe_at_a_quorum", "toto", AREA, "a safe frame goes up when a quorum is known to have it")
def safe_at_a_quorum(setup: Setup) -> Stack:
    class Early(Ballots):
        def held_by_all(self, rank: int, seq: int) -> bool:
            return sum(vec[rank] >= seq for vec in self.last) >= self.quorum

    return toto(setup, Early)


@mutant("toto_safe_not_owed", "toto", AREA, "who has nothing to say does not tell that it has a safe frame")
def safe_not_owed(setup: Setup) -> Stack:
    class Owing(Toto):
        owes = property(lambda self: False, lambda self, value: None)  # type: ignore[assignment]

    return toto(setup, core=Owing)


@mutant("toto_safe_is_passed", "toto", AREA, "a frame behind one that is not safe yet passes it")
def safe_is_passed(setup: Setup) -> Stack:
    class Passing(Toto):
        def _hand_up(self, out: list[Action]) -> None:
            waiting: list[Any] = []
            for key, frame, activation in list(self.line):
                self.line.clear()
                self.line.append((key, frame, activation))
                super()._hand_up(out)
                waiting += self.line
            self.line.clear()
            self.line.extend(waiting)

    return toto(setup, core=Passing)


@mutant("toto_unsafe_forgotten", "toto", AREA, "what is not safe at the end of a view is not delivered")
def unsafe_forgotten(setup: Setup) -> Stack:
    class Forgetting(Toto):
        def _flush(self) -> list[Action]:
            self.line = type(self.line)(each for each in self.line if each[1].service != SAFE)
            return super()._flush()

    return toto(setup, core=Forgetting)
