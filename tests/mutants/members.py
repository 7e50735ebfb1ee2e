"""Variants of the choice of members: evidence, rows, agreement, commit token, numbers of rings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace
from tests.mutants.parts import totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Setup
from ordercast.membership import Membership
from ordercast.membership.automaton import Happening, State
from ordercast.membership.ballot import Ballot
from ordercast.membership.choose import NO_VIEW, Chooser, Row, Rows
from ordercast.membership.commit import Commit
from ordercast.membership.evidence import Evidence
from ordercast.membership.handover import Handover
from ordercast.membership.packets import CommitToken, Got, Join
from ordercast.membership.ringnumber import RingNumber
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.stay import Stay
from ordercast.membership.step import Step
from ordercast.membership.table import Table
from ordercast.membership.waits import Patience
from ordercast.protocols.totem.packets import Token
from ordercast.protocols.totem.ring import Ring
from ordercast.protocols.totem.turning import Turning
from ordercast.stack import Stack
from ordercast.types import Cause, Incarnation, MemberId, Nanoseconds, Peer

AREA = "choice of members"


@mutant("members_one_way_hearing", "totem", AREA, "two count as linked if one of them hears the other")
def members_one_way_hearing(setup: Setup) -> Stack:
    class OneWay(Chooser):
        __slots__ = ()

        def __call__(self, now: Nanoseconds, rows: Rows) -> tuple[MemberId, ...] | None:
            both = {
                q: replace(row, hears=row.hears | {p for p, r in rows.items() if q in r.hears}) if row.hears else row
                for q, row in rows.items()
            }
            return super().__call__(now, both)

    return totem(setup, chooser=OneWay)


@mutant("members_rows_not_relayed", "totem", AREA, "a member tells only its own row", row="MB14")
def members_rows_not_relayed(setup: Setup) -> Stack:
    class Own(Table):
        __slots__ = ()

        def relayed(self, now: Nanoseconds, keep_ns: Nanoseconds) -> list[Row]:
            return [self.own]

    return totem(setup, table=Own)


@mutant("members_work_is_no_evidence", "totem", AREA, "a view that works does not count as a link", row="MB8")
def members_work_is_no_evidence(setup: Setup) -> Stack:
    class Direct(Chooser):
        __slots__ = ()

        def __call__(self, now: Nanoseconds, rows: Rows) -> tuple[MemberId, ...] | None:
            self.direct = True
            return super().__call__(now, rows)

    return totem(setup, chooser=Direct)


@mutant(
    "members_no_preference", "totem", AREA, "of two cliques of one size the present view is not preferred", row="MB32"
)
def members_no_preference(setup: Setup) -> Stack:
    class Fickle(Chooser):
        __slots__ = ()

        def __call__(self, now: Nanoseconds, rows: Rows) -> tuple[MemberId, ...] | None:
            return super().__call__(now, {q: replace(row, view=NO_VIEW, working=False) for q, row in rows.items()})

    return totem(setup, chooser=Fickle)


@mutant(
    "members_no_probation", "totem", AREA, "a link that keeps breaking is believed at once",
    scenario="flapping_link",
)  # fmt: skip
def members_no_probation(setup: Setup) -> Stack:
    class Trusting(Evidence):
        __slots__ = ()

        def probation_ns(self, q: MemberId) -> Nanoseconds:
            return 0

    return totem(setup, evidence=Trusting)


@mutant("members_strikes_outlive_a_life", "totem", AREA, "strikes are kept over a restart")
def members_strikes_outlive_a_life(setup: Setup) -> Stack:
    class Resents(Evidence):
        __slots__ = ()

        def learn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> bool:
            before = self.links.get(q)
            news = super().learn(now, q, incarnation)
            if news and before is not None:
                self.links[q].strikes = before.strikes
            return news

    return totem(setup, evidence=Resents)


@mutant(
    "members_earlier_life_counts", "totem", AREA, "packets of an earlier incarnation count as life", scenario="ghost"
)
def members_earlier_life_counts(setup: Setup) -> Stack:
    class AnyLife(Evidence):
        __slots__ = ()

        def counts(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> bool:
            return True

    return totem(setup, evidence=AnyLife)


@mutant("members_strikes_never_forgotten", "totem", AREA, "calm forgives no strike", row="MB31")
def members_strikes_never_forgotten(setup: Setup) -> Stack:
    class Bears(Evidence):
        __slots__ = ()

        def _forgive(self, now: Nanoseconds, link: Any) -> None:
            return

    return totem(setup, evidence=Bears)


@mutant(
    "members_any_frame_ends_repeats", "totem", AREA, "a late frame of the ring ends the repetition of a lost token",
    scenario="token_lost",
)  # fmt: skip
def members_any_frame_ends_repeats(setup: Setup) -> Stack:
    class Relieved(Turning):
        def _alive(self, now: Nanoseconds, ring: Ring, seq: int, sender: MemberId, out: list[Action]) -> None:
            super()._alive(now, ring, seq, sender, out)
            out += self._carry(now, self.membership.went_on(now))

    return totem(setup, turn=Relieved)


@mutant("members_clone_admitted", "totem", AREA, "packets of a later life of my own id are handled")
def members_clone_admitted(setup: Setup) -> Stack:
    class Twin(Sight):
        __slots__ = ()

        def admit(self, now: Nanoseconds, peer: Peer) -> bool:
            return peer.id == self.me or super().admit(now, peer)

    return totem(setup, sight=Twin)


@mutant("members_no_rest", "totem", AREA, "nobody waits for rows to rest", scenario="bridge_of_seven")
def members_no_rest(setup: Setup) -> Stack:
    class NoRest(Patience):
        __slots__ = ()

        def _reason(self, now: Nanoseconds, rows: Rows, chosen: tuple[MemberId, ...]) -> str:
            words = super()._reason(now, rows, chosen)
            return "" if words.startswith("for rows to rest") else words

    return totem(setup, patience=NoRest)


@mutant("members_silence_ignored", "totem", AREA, "who was heard once is heard for ever")
def members_silence_ignored(setup: Setup) -> Stack:
    class Loyal(Evidence):
        __slots__ = ()

        def recompute(self, now: Nanoseconds, gone: Any = ()) -> list[MemberId]:
            self.hear_ns = 2**62
            return super().recompute(now, gone)

    return totem(setup, evidence=Loyal)


@mutant(
    "members_no_waits", "totem", AREA, "nobody waits for unknown links, nor for rows to rest",
    scenario="bridge",
)  # fmt: skip
def members_no_waits(setup: Setup) -> Stack:
    class Hasty(Patience):
        __slots__ = ()

        def too_early(self, now: Nanoseconds, rows: Rows, chosen: tuple[MemberId, ...]) -> bool:
            return False

    return totem(setup, patience=Hasty)


@mutant("members_commit_teaches_nothing", "totem", AREA, "after an install rows that show the old view are believed")
def members_commit_teaches_nothing(setup: Setup) -> Stack:
    class Untaught(Standing):
        def taught(self, table: Rows) -> dict[MemberId, Row]:
            return dict(table)

    return totem(setup, standing=Untaught)


@mutant("members_any_join_gathers", "totem", AREA, "a Join from outside breaks a working view")
def members_any_join_gathers(setup: Setup) -> Stack:
    class Nervous(Membership):
        def _left_by(self, now: Nanoseconds, q: MemberId, join: Join) -> None:
            if self.state is State.OPERATIONAL and q not in self.members:
                self.standing.happens(now, Happening.CHOICE, Cause("join", q))
            else:
                super()._left_by(now, q, join)

    return totem(setup, membership=Nervous)


@mutant(
    "members_joins_of_ours_ignored",
    "totem",
    AREA,
    "a member of my view that gathers moves me only by token loss",
    scenario="hint_in_a_merge",
)
def members_joins_of_ours_ignored(setup: Setup) -> Stack:
    class Deaf(Membership):
        def _left_by(self, now: Nanoseconds, q: MemberId, join: Join) -> None:
            return

    return totem(setup, membership=Deaf)


@mutant("members_moved_on_still_counted", "totem", AREA, "a member that went on to a newer view still counts as mine")
def members_moved_on_still_counted(setup: Setup) -> Stack:
    class Clings(Stay):
        def _departed(self, now: Nanoseconds, happening: Happening, q: MemberId, what: str) -> None:
            return

    return totem(setup, stay=Clings)


@mutant("members_token_never_by_multicast", "totem", AREA, "a token that does not arrive is repeated by unicast only")
def members_token_never_by_multicast(setup: Setup) -> Stack:
    class Stubborn(Handover):
        __slots__ = ()

        def repeat(self, now: Nanoseconds) -> list[Action]:
            self.repetitions = -1
            return super().repeat(now)

    return totem(setup, handover=Stubborn)


@mutant(
    "members_token_never_repeated", "totem", AREA, "a token that does not arrive is not repeated",
    scenario="token_lost",
)  # fmt: skip
def members_token_never_repeated(setup: Setup) -> Stack:
    class Once(Handover):
        __slots__ = ()

        def repeat(self, now: Nanoseconds) -> list[Action]:
            return []

    return totem(setup, handover=Once)


@mutant(
    "members_lost_token_blames_nobody", "totem", AREA, "a link that passes everything but tokens is never struck",
    scenario="tokens_only",
)  # fmt: skip
def members_lost_token_blames_nobody(setup: Setup) -> Stack:
    class Kind(Handover):
        __slots__ = ()

        def judge(self, q: MemberId, got: Got | None) -> bool:
            return False

    return totem(setup, handover=Kind)


@mutant(
    "members_stuck_receiver_ignored", "totem", AREA, "a member that keeps the mark down for ever is left in",
    scenario="no_frames",
)  # fmt: skip
def members_stuck_receiver_ignored(setup: Setup) -> Stack:
    class Patient(Turning):
        def stuck(self, now: Nanoseconds, token: Token) -> list[Action]:
            return []

    return totem(setup, turn=Patient)


@mutant("members_no_contradiction", "totem", AREA, "who is said to be gone does not contradict", row="MB30")
def members_no_contradiction(setup: Setup) -> Stack:
    class Meek(Table):
        __slots__ = ()

        def _contradict(self, now: Nanoseconds, row: Row) -> bool:
            return False

    return totem(setup, table=Meek)


@mutant(
    "members_own_pause_unnoticed", "totem", AREA, "after an own pause all others count as silent",
    scenario="all_busy",
)  # fmt: skip
def members_own_pause_unnoticed(setup: Setup) -> Stack:
    class Unaware(Step):
        def begin(self, now: Nanoseconds, late: Nanoseconds, evidence: Evidence) -> None:
            super().begin(now, 2**62, evidence)

    return totem(setup, step=Unaware)


@mutant(
    "members_one_agrees_for_all", "totem", AREA, "a view is committed though not all have proposed it", row="MB19 MB8"
)
def members_one_agrees_for_all(setup: Setup) -> Stack:
    class Bold(Ballot):
        __slots__ = ()

        def mine_to_commit(self) -> bool:
            return bool(self.proposal) and self.proposal[0] == self.me

    return totem(setup, ballot=Bold)


@mutant("members_any_set_accepted", "totem", AREA, "a commit token for another set than my proposal is accepted")
def members_any_set_accepted(setup: Setup) -> Stack:
    class Agrees(Commit):
        def take(self, now: Nanoseconds, token: CommitToken) -> None:
            if token.ring_id.seq <= self._number.used:
                return super().take(now, token)
            self._ballot.propose(token.members)
            return self._accept(now, token)

    return totem(setup, commit=Agrees)


class OldCommits(Commit):
    """A commit token of an earlier ring is as good as one of a new ring."""

    def came(self, now: Nanoseconds, token: CommitToken) -> None:
        used, self._number.used = self._number.used, 0
        super().came(now, token)
        self._number.used = max(used, self._number.used)


@mutant("members_old_commit_accepted", "totem", AREA, "a commit token of an earlier ring is accepted")
def members_old_commit_accepted(setup: Setup) -> Stack:
    return totem(setup, commit=OldCommits)


@mutant(
    "members_old_commit_believed", "totem", AREA, "as before, and whatever stands in my entry's place counts as mine",
    scenario="old_commits",
)  # fmt: skip
def members_old_commit_believed(setup: Setup) -> Stack:
    class Believes(OldCommits):
        def came(self, now: Nanoseconds, token: CommitToken) -> None:
            forming = self._standing.forming
            if forming is not None and len(token.entries) == len(token.members):
                forming.entry = token.entries[token.members.index(token.to)]
            super().came(now, token)

    return totem(setup, commit=Believes)


@mutant("members_restart_reuses_numbers", "totem", AREA, "a restarted member begins with ring number 0 again")
def members_restart_reuses_numbers(setup: Setup) -> Stack:
    class Reuses(RingNumber):
        __slots__ = ()

        def start(self, first: int, stored: Mapping[str, tuple[int, bytes]]) -> None:
            self.stored = self.used = 0

    return totem(setup, number=Reuses)


@mutant("members_ring_numbers_wrap", "totem", AREA, "ring numbers are kept in 31 bits")
def members_ring_numbers_wrap(setup: Setup) -> Stack:
    class Wraps(RingNumber):
        __slots__ = ()

        def next(self, members: Iterable[MemberId] = ()) -> int:
            return super().next(members) % 2**31

    return totem(setup, number=Wraps)


@mutant("members_number_not_raised", "totem", AREA, "two attempts use the same ring number")
def members_number_not_raised(setup: Setup) -> Stack:
    class Same(RingNumber):
        __slots__ = ()

        def next(self, members: Iterable[MemberId] = ()) -> int:
            return self.used + 4

    return totem(setup, number=Same)


@mutant("members_left_out_not_taken_back", "totem", AREA, "a member outside is never taken in while the view works")
def members_left_out_not_taken_back(setup: Setup) -> Stack:
    class Closed(Stay):
        def consider(self, now: Nanoseconds) -> None:
            chosen = self._chooser(now, self._standing.taught(self._sight.table.rows))
            if not set(chosen or ()) > set(self._standing.installed.members):
                super().consider(now)

    return totem(setup, stay=Closed)


@mutant("members_installed_view_forgotten", "totem", AREA, "the old view is not named on the commit entry of a merge")
def members_installed_view_forgotten(setup: Setup) -> Stack:
    class Shifted(Membership):
        def installed(self, now: Nanoseconds) -> list[Action]:
            out = super().installed(now)
            view = self.standing.installed
            view.members = tuple(m for m in view.members if m != max(view.members)) or view.members
            return out

    return totem(setup, membership=Shifted)
