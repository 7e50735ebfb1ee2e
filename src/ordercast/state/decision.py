"""Whose state is the group's: a pure function of what the members of a view said when they entered it.

Every member offers its state; where the Offers differ, each says which of the places on offer its history holds.  All
have heard the same, in the same order, so all decide the same.

A state's *epoch* is the decision it belongs to; `knows` is the newest decision that a member has heard of.  Under
`primary-majority` what counts is the newest epoch: who has not been in the newest decision may lack what was answered
after it, however long its history is.  A member that offered its state in that view, and left it undecided, counts if
its history holds what was decided there, for then nothing durable was answered.  Under `evs-all-continue` each part
went on by itself: whoever is no prefix of another is a part, and parts are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ordercast.state.history import TOO_OLD, YES, Place
from ordercast.state.machine import Mark
from ordercast.state.packets import Holds, Offer
from ordercast.types import PRIMARY_MAJORITY, MemberId, ViewId


class Decision(Struct, frozen=True):
    """What a view decided.  Without `mark` there is nothing to go on with, or there are parts to be merged."""

    mark: Mark | None = None
    complete: tuple[MemberId, ...] = ()  # up to date: they have the state of the mark
    behind: tuple[MemberId, ...] = ()
    donor: MemberId | None = None  # who serves those behind
    parts: tuple[tuple[MemberId, ...], ...] = ()  # diverged, in the order in which they are merged
    common: Mark | None = None  # the newest mark that all parts share
    foreign: tuple[MemberId, ...] = ()  # whose machine is another
    lost: bool = False  # nobody had the newest decided state: all configured members went on with what there is
    known: Mark | None = None  # the newest decision that any of them knows of


class Council:
    """What the members of one view have said of their states."""

    def __init__(self, view: ViewId, members: tuple[MemberId, ...], configured: int, policy: str) -> None:
        self.view, self.members, self.policy = view, members, policy
        self.everybody = len(members) == configured
        self.offers: dict[MemberId, Offer] = {}
        self.without: set[MemberId] = set()  # no replicas any more
        self.held: dict[MemberId, Holds] = {}
        self.questions: tuple[Place, ...] | None = None  # of the second round; none asked: one was enough

    def add(self, member: MemberId, said: Offer | Holds) -> bool:
        """Whether it counts: of this view, of a member of it, and its first."""
        if said.view != self.view or member not in self.members or member in self.without:
            return False
        if isinstance(said, Offer):
            counts = self.offers.setdefault(member, said) is said
        elif self.questions is None or len(said.places) != len(self.questions):
            return False
        else:
            return self.held.setdefault(member, said) is said
        self._ask()
        return counts

    def leave(self, member: MemberId) -> None:
        """It is no replica any more."""
        self.without.add(member)
        self.offers.pop(member, None)
        self.held.pop(member, None)
        self._ask()

    def _ask(self) -> None:
        """All have offered: one more round, unless all offer the same state, and know of no other."""
        if self.questions is not None or self._silent(self.offers) or not self.offers:
            return
        places, known = {offer.place for offer in self.offers.values()}, {o.knows for o in self.offers.values()}
        newest = self._known()
        if len(places) > 1 or len(known) > 1 or (newest and all(o.epoch < newest.view for o in self.offers.values())):
            self.questions = tuple(sorted({*places, *(mark.place for mark in known if mark is not None)}))

    def _silent(self, said: Mapping[MemberId, Any]) -> list[MemberId]:
        return [member for member in self.members if member not in said and member not in self.without]

    def missing(self) -> list[MemberId]:
        """Of whom nothing was heard yet, in the round that is on."""
        return self._silent(self.offers) or (self._silent(self.held) if self.questions is not None else [])

    def ready(self) -> bool:
        return bool(self.offers) and not self.missing()

    def decide(self) -> Decision:
        """Once all have spoken; the same everywhere."""
        assert self.ready()
        known, relation = self._known(), _Relation(self.offers, self.held, self.questions)
        find = _by_majority if self.policy == PRIMARY_MAJORITY else _by_parts
        candidates = find(self.offers, relation, known)
        lost = not candidates
        if lost and not self.everybody:
            return Decision(known=known)
        candidates = candidates or self.offers
        if self.policy == PRIMARY_MAJORITY:
            return self._follow(_source(candidates, relation), known, lost)
        parts = _parts(candidates, relation)
        foreign = self._foreign(parts[0][0])
        parts = tuple(part for part in parts if part[0] not in foreign)
        if len(parts) == 1 or not self.offers[parts[0][0]].merges:
            return self._follow(parts[0][0], known, lost)
        marks = [{mark.place: mark for mark in self.held[part[0]].marks} for part in parts]
        shared = set.intersection(*(set(each) for each in marks))
        common = marks[0][max(shared)] if shared else None
        behind = tuple(m for m in sorted(self.offers) if m not in foreign and not any(m in part for part in parts))
        return Decision(None, (), behind, None, parts, common, foreign, lost, known)

    def _follow(self, source: MemberId, known: Mark | None, lost: bool) -> Decision:
        """This one's state is the group's."""
        place, foreign = self.offers[source].place, self._foreign(source)
        complete = tuple(m for m, offer in sorted(self.offers.items()) if offer.place == place and m not in foreign)
        behind = tuple(m for m in sorted(self.offers) if m not in complete and m not in foreign)
        donor = min(complete, key=lambda member: (self.offers[member].size, member))
        return Decision(Mark(self.view, *place), complete, behind, donor, foreign=foreign, lost=lost, known=known)

    def _foreign(self, source: MemberId) -> tuple[MemberId, ...]:
        digest = self.offers[source].digest
        return tuple(member for member, offer in sorted(self.offers.items()) if offer.digest != digest)

    def _known(self) -> Mark | None:
        return max((offer.knows for offer in self.offers.values() if offer.knows is not None), default=None)

    def status(self) -> dict[str, Any]:
        return {"offers": sorted(self.offers), "compared": sorted(self.held), "without": sorted(self.without)}


# ----------------------------------------------------------------------------------------------------------- candidates


class _Relation:
    """Which of the states on offer come from which."""

    def __init__(
        self, offers: Mapping[MemberId, Offer], held: Mapping[MemberId, Holds], questions: tuple[Place, ...] | None
    ) -> None:
        self.offers, self._held = offers, held
        self._at = None if questions is None else {place: k for k, place in enumerate(questions)}

    def holds(self, member: MemberId, place: Place) -> int:
        """Whether this member's history has that place; where one round was enough, all have all there is."""
        return YES if self._at is None else self._held[member].places[self._at[place]]

    def prefix(self, a: MemberId, b: MemberId) -> bool:
        """Whether the state of `a` is an earlier one of what `b` has."""
        place = self.offers[a].place
        return place != self.offers[b].place and self.holds(b, place) == YES

    def too_old(self, a: MemberId, b: MemberId) -> bool:
        place = self.offers[a].place
        return place != self.offers[b].place and self.holds(b, place) == TOO_OLD


Offers = Mapping[MemberId, Offer]


def _by_majority(offers: Offers, relation: _Relation, known: Mark | None) -> Offers:
    """In the newest decision, or there when it was made, and with nothing else in its history; and with all of it."""

    def counts(member: MemberId, offer: Offer) -> bool:
        if known is None:
            return True
        if offer.short:
            return False
        if offer.epoch >= known.view:
            return True
        return known.view in offer.within and relation.holds(member, known.place) == YES

    return {member: offer for member, offer in offers.items() if counts(member, offer)}


def _source(candidates: Offers, relation: _Relation) -> MemberId:
    """Of the newest epoch, the longest that is no prefix of another; first by what all of them must have."""
    newest = max(offer.epoch for offer in candidates.values())
    there = [member for member, offer in candidates.items() if offer.epoch == newest]
    ends = [a for a in there if not any(relation.prefix(a, b) for b in there)]
    return max(ends, key=lambda member: (candidates[member].regular, candidates[member].n, -member))


def _by_parts(offers: Offers, relation: _Relation, known: Mark | None) -> Offers:
    """Those that lack no decision they know of, if they hold all that anybody knows of."""
    full = {m: offer for m, offer in offers.items() if offer.knows is None or offer.epoch >= offer.knows.view}
    marks = {offer.knows for offer in offers.values() if offer.knows is not None}
    held = all(any(relation.holds(member, mark.place) == YES for member in full) for mark in marks)
    return full if held else {}


def _parts(candidates: Offers, relation: _Relation) -> tuple[tuple[MemberId, ...], ...]:
    """States that are neither an earlier one of another, nor too old to know: longest first, then smallest member."""
    ends = [a for a in candidates if not any(relation.prefix(a, b) or relation.too_old(a, b) for b in candidates)]
    parts: dict[Place, list[MemberId]] = {}
    for member in sorted(ends):
        parts.setdefault(candidates[member].place, []).append(member)
    return tuple(sorted((tuple(part) for part in parts.values()), key=lambda part: (-candidates[part[0]].n, part[0])))
