"""Damage to whole traces of a group with crashes, partitions and process groups: what is done, and what must be seen.

A damage changes one thing at one member, as a wrong protocol or recorder would; a reader takes the rows as they are.
`Nowhere`: this trace has no place for it.  Each names the promises of which at least one must be broken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace
from ordercast.types import ViewKind

Rows = list[Row]
TRANSITIONAL, REGULAR = int(ViewKind.TRANSITIONAL), int(ViewKind.REGULAR)


class Nowhere(Exception):
    """The trace has no place for this damage."""


class Story:
    """A trace that is being changed: rows by life, in order."""

    def __init__(self, trace: Trace, seed: int) -> None:
        self.header, self.pick = trace.header, random.Random(seed)
        self.lives: dict[tuple[int, int], Rows] = {}
        for row in trace.rows:
            self.lives.setdefault((row.member, row.incarnation), []).append(row)
        self.world = self.lives.pop(next(key for key in self.lives if key[0] == 0))
        self.core = next(row.members or () for row in reversed(self.world) if row.kind == Kind.STABLE)

    def trace(self) -> Trace:
        """With local indexes and times as a recorder would have written them."""
        rows: Rows = []
        for life in (self.world, *self.lives.values()):
            time = -1
            for k, row in enumerate(life, 1):
                time = max(time, row.time_ns)
                rows.append(replace(row, index=k, time_ns=time))
        return Trace(self.header, rows)

    def any(self, places: Iterable[Any]) -> Any:
        found = list(places)
        if not found:
            raise Nowhere
        return self.pick.choice(found)

    def place(self, kind: Kind, good: Callable[[Rows, int], bool] = lambda life, k: True) -> tuple[Rows, int]:
        """A row of a kind, and its life."""
        found = [(life, k) for life in self.lives.values() for k, row in enumerate(life) if row.kind == kind]
        return self.any((life, k) for life, k in found if good(life, k))  # type: ignore[no-any-return]

    def change(self, kind: Kind, good: Callable[[Rows, int], bool] = lambda life, k: True, **fields: Any) -> None:
        life, k = self.place(kind, good)
        made = {name: value(life[k]) if callable(value) else value for name, value in fields.items()}
        if all(getattr(life[k], name) == value for name, value in made.items()):
            raise Nowhere
        life[k] = replace(life[k], **made)


def stays(life: Rows) -> list[tuple[int, int]]:
    """Slices of a life between its regular views: (first row after the view, row of the next one or the end)."""
    views = [k for k, row in enumerate(life) if row.kind == Kind.VIEW and row.view_kind == REGULAR]
    return [(a + 1, b) for a, b in zip(views, [*views[1:], len(life)], strict=True)]


def key(row: Row) -> tuple[Any, ...]:
    return row.sender, row.sender_incarnation, row.counter


def shared(story: Story, life: Rows, a: int, b: int) -> bool:
    """Whether another life delivered both of these, in the same order."""
    wanted = [key(life[a]), key(life[b])]
    for other in story.lives.values():
        if other is not life:
            found = [key(row) for row in other if row.kind == Kind.DELIVER and key(row) in wanted]
            if found == wanted:
                return True
    return False


def others_have(story: Story, life: Rows, k: int, come: Iterable[int]) -> bool:
    """Whether another of those that come along delivered it, too: else nobody can tell that it is missing."""
    along = set(come) - {life[0].member}
    rows = (row for (member, _), other in story.lives.items() if member in along for row in other)
    return any(row.kind == Kind.DELIVER and key(row) == key(life[k]) for row in rows)


def regular(life: Rows, k: int) -> bool:
    return life[k].view_kind == REGULAR


def installed_twice(story: Story) -> Callable[[Rows, int], bool]:
    ids = [
        (r.view_seq, r.view_rep)
        for life in story.lives.values()
        for r in life
        if r.kind == Kind.VIEW and r.view_kind == REGULAR
    ]
    return lambda life, k: regular(life, k) and ids.count((life[k].view_seq, life[k].view_rep)) > 1


def later(life: Rows, k: int) -> bool:
    """A regular view after another one."""
    return regular(life, k) and any(row.kind == Kind.VIEW for row in life[:k])


def together(story: Story) -> Callable[[Rows, int], bool]:
    """A transitional view with more than one member."""
    return lambda life, k: life[k].view_kind == TRANSITIONAL and len(life[k].members or ()) > 1


# ------------------------------------------------------------------------------------------------------- deliveries


def swap(story: Story) -> None:
    pairs = []
    for life in story.lives.values():
        for first, last in stays(life):
            mine = [k for k in range(first, last) if life[k].kind == Kind.DELIVER]
            pairs += [(life, a, b) for a, b in pairwise(mine) if shared(story, life, a, b)]
    life, a, b = story.any(pairs)
    life[a], life[b] = replace(life[b], time_ns=life[a].time_ns), replace(life[a], time_ns=life[b].time_ns)


def lose(story: Story) -> None:
    """One that others delivered, before another that both did."""
    found = []
    for life in story.lives.values():
        for first, last in stays(life):
            mine = [k for k in range(first, last) if life[k].kind == Kind.DELIVER]
            found += [(life, a) for a, b in pairwise(mine) if shared(story, life, a, b)]
    life, k = story.any(found)
    del life[k]


def lose_last(story: Story) -> None:
    """The last of a view, at one that goes on together with others."""
    found = []
    for life in story.lives.values():
        for first, last in stays(life):
            if last < len(life) and len(life[last].trans or ()) > 1:
                mine = [k for k in range(first, last) if life[k].kind == Kind.DELIVER]
                found += [(life, k) for k in mine[-1:] if others_have(story, life, k, life[last].trans or ())]
    life, k = story.any(found)
    del life[k]


def twice(story: Story) -> None:
    life, k = story.place(Kind.DELIVER)
    life.insert(story.pick.randint(k, min(len(life), k + 9)) + 1, life[k])


def invent(story: Story) -> None:
    life, k = story.place(Kind.DELIVER)
    life.insert(k + 1, replace(life[k], counter=(life[k].counter or 0) + 10_000))


def another_life(story: Story) -> None:
    story.change(Kind.DELIVER, sender_incarnation=lambda row: row.sender_incarnation + 12345)


def another_sender(story: Story) -> None:
    story.change(Kind.DELIVER, sender=lambda row: row.sender % 4 + 1)


def next_view(story: Story) -> None:
    """A delivery takes place after the next view was installed, and says so."""
    found = []
    for life in story.lives.values():
        for first, last in stays(life):
            mine = [k for k in range(first, last) if life[k].kind == Kind.DELIVER]
            found += [(life, mine[-1], last)] if mine and last < len(life) else []
    life, k, view = story.any(found)
    names = {name: getattr(life[view], name) for name in ("view_seq", "view_rep", "view_kind")}
    moved = replace(life[k], **names, time_ns=life[view].time_ns)
    life.insert(view + 1, moved)
    del life[k]


def into_transition(story: Story) -> None:
    """The last delivery of a regular view is one of the transitional view, at one of several."""
    found = []
    for life in story.lives.values():
        for first, last in stays(life):
            between = [k for k in range(first, last) if life[k].kind == Kind.VIEW]
            mine = [k for k in range(first, between[0] if between else first) if life[k].kind == Kind.DELIVER]
            if between and mine and others_have(story, life, mine[-1], life[between[0]].members or ()):
                found.append((life, mine[-1], between[0]))
    life, k, view = story.any(found)
    names = {name: getattr(life[view], name) for name in ("view_seq", "view_rep", "view_kind")}
    life.insert(view + 1, replace(life[k], **names, time_ns=life[view].time_ns))
    del life[k]


def before_a_view(story: Story, kind: Kind = Kind.DELIVER) -> None:
    life, k = story.place(kind)
    row = replace(life.pop(k), view_seq=None, view_rep=None, view_kind=None)
    first = next(j for j, other in enumerate(life) if other.kind == Kind.VIEW)
    life.insert(first, replace(row, time_ns=life[first].time_ns))


def too_early(story: Story) -> None:
    """Everything from an origination on takes place late: others delivered it before."""
    life, k = story.place(Kind.ORIGINATE)
    others = [row for other in story.lives.values() if other is not life for row in other if row.kind == Kind.DELIVER]
    if not any(key(row) == key(life[k]) for row in others):
        raise Nowhere
    life[k:] = [replace(row, time_ns=row.time_ns + 10**11) for row in life[k:]]


def to_an_outsider(story: Story) -> None:
    """Somebody delivers what was sent to a group it is not in."""
    found = []
    for life in story.lives.values():
        told: dict[str, tuple[int, ...]] = {}
        mine = {key(row) for row in life if row.kind == Kind.DELIVER}
        here: dict[int, dict[str, tuple[int, ...]]] = {}
        for k, row in enumerate(life):
            if row.kind == Kind.GROUP_VIEW:
                told |= dict.fromkeys(row.groups or (), row.members or ())
            here[k] = dict(told)
        for other in story.lives.values():
            for row in other:
                if row.kind == Kind.DELIVER and row.groups and key(row) not in mine:
                    place = next((k for k, mine_ in enumerate(life) if mine_.time_ns > row.time_ns), None)
                    if place and not any(life[0].member in here[place - 1].get(g, ()) for g in row.groups):
                        found.append((life, place, row))
    life, place, row = story.any(found[:200])
    now = next((r for r in reversed(life[:place]) if r.view_seq is not None), None)
    names = {n: getattr(now, n) if now else None for n in ("view_seq", "view_rep", "view_kind")}
    made = replace(
        row, member=life[0].member, incarnation=life[0].incarnation, time_ns=life[place - 1].time_ns, **names
    )
    life.insert(place, made)


def silent_at_the_end(story: Story) -> None:
    """One that stays delivers nothing that was originated in the last view."""
    life = story.any(life for (member, _), life in story.lives.items() if member in story.core and ends(life))
    first, last = stays(life)[-1]
    mine = [k for k in range(first, last) if life[k].kind == Kind.DELIVER]
    if not mine:
        raise Nowhere
    for k in reversed(mine):
        del life[k]


def ends(life: Rows) -> bool:
    return life[-1].kind == Kind.END


# ----------------------------------------------------------------------------------------- submissions, originations


def drop(kind: Kind, good: Callable[[Story], Callable[[Rows, int], bool]] | None = None) -> Callable[[Story], None]:
    def do(story: Story) -> None:
        life, k = story.place(kind, good(story) if good else lambda life, k: True)
        del life[k]

    return do


def delivered_elsewhere(story: Story) -> Callable[[Rows, int], bool]:
    known = {key(row) for life in story.lives.values() for row in life if row.kind == Kind.DELIVER}
    return lambda life, k: key(life[k]) in known


def originate_twice(story: Story) -> None:
    life, k = story.place(Kind.ORIGINATE)
    life.insert(k + 1, life[k])


def originate_out_of_order(story: Story) -> None:
    found = []
    for life in story.lives.values():
        mine = [k for k, row in enumerate(life) if row.kind == Kind.ORIGINATE]
        found += [(life, a, b) for a, b in pairwise(mine)]
    life, a, b = story.any(found)
    life[a], life[b] = replace(life[b], time_ns=life[a].time_ns), replace(life[a], time_ns=life[b].time_ns)


def smaller_incarnation(story: Story) -> None:
    """The second life of a member has a smaller number than the first."""
    members = [member for member, _ in story.lives]
    member = story.any(m for m in set(members) if members.count(m) > 1)
    numbers = sorted(life for who, life in story.lives if who == member)
    other = {numbers[0]: numbers[-1], numbers[-1]: numbers[0]}
    for (who, number), life in list(story.lives.items()):
        if who == member and number in other:
            life[:] = [replace(row, incarnation=other[number]) for row in life]


# ------------------------------------------------------------------------------------------------------------- views


def drop_view(kind: int) -> Callable[[Story], None]:
    def do(story: Story) -> None:
        life, k = story.place(Kind.VIEW, lambda life, k: life[k].view_kind == kind and k > 3)
        del life[k]

    return do


def again(story: Story) -> None:
    life, k = story.place(Kind.VIEW, regular)
    life.insert(k + 1, life[k])


def late_view(story: Story) -> None:
    """A view more, just before the end."""
    life = story.any(life for (member, _), life in story.lives.items() if member in story.core and ends(life))
    view = next(row for row in reversed(life) if row.kind == Kind.VIEW)
    more = {"view_seq": (view.view_seq or 0) + 4, "time_ns": life[-1].time_ns, "previous_seq": view.view_seq}
    life.insert(-1, replace(view, view_kind=TRANSITIONAL, trans=view.members, previous_rep=view.view_rep, **more))
    life.insert(-1, replace(view, trans=view.members, previous_rep=view.view_rep, **more))


def never_back(story: Story) -> None:
    """The life after a restart installs no view with others."""
    members = [member for member, _ in story.lives]
    life = story.any(life for (m, number), life in story.lives.items() if members.count(m) > 1 and number == max(
        n for who, n in story.lives if who == m))  # fmt: skip
    places = [k for k, row in enumerate(life) if row.kind == Kind.VIEW and len(row.members or ()) > 1]
    if not places:
        raise Nowhere
    del life[min(places) : -1]


def other_members(row: Row) -> tuple[int, ...]:
    return tuple(m for m in row.members or () if m == row.member) or (row.member,)


# ------------------------------------------------------------------------------------------------------------ others


def receives_late(story: Story) -> None:
    """One member receives a safe message only when it delivers it, after another did."""
    first: dict[tuple[Any, ...], int] = {}  # when a safe message was first delivered
    for life in story.lives.values():
        for row in life:
            if row.kind == Kind.DELIVER and row.service == 4 and row.view_kind == REGULAR:
                first[key(row)] = min(row.time_ns, first.get(key(row), row.time_ns))
    found = []
    for life in story.lives.values():
        mine = {key(row): k for k, row in enumerate(life) if row.kind == Kind.DELIVER}
        found += [(life, k, mine[key(row)]) for k, row in enumerate(life) if row.kind == Kind.RECEIVE
                  and key(row) in mine and first.get(key(row), 2**63) < life[mine[key(row)]].time_ns]  # fmt: skip
    life, k, at = story.any(found)
    life.insert(at, replace(life[k], time_ns=life[at].time_ns))
    del life[k]


def last_told(story: Story) -> None:
    """At the end one is told other members of a group than the others."""
    found = []
    for (member, _), life in story.lives.items():
        if member in story.core and ends(life):
            told = {g: k for k, row in enumerate(life) if row.kind == Kind.GROUP_VIEW for g in row.groups or ()}
            found += [(life, k) for k in told.values()]
    life, k = story.any(found)
    members = set(life[k].members or ()) ^ {story.any(story.core)}
    life[k] = replace(life[k], members=tuple(sorted(members)))


def end_detail(**detail: Any) -> Callable[[Story], None]:
    """Says this in its last row, long after everything else."""

    def do(story: Story) -> None:
        story.change(
            Kind.END, lambda life, k: life[k].member in story.core, time_ns=lambda row: row.time_ns + 10**10,
            detail=lambda row: {**(row.detail or {}), **detail},
        )  # fmt: skip

    return do


def without_token(story: Story) -> None:
    """One that stays notes no visit of the token any more."""
    life = story.any(life for (member, _), life in story.lives.items() if member in story.core and ends(life))
    since = next(row.time_ns for row in reversed(story.world) if row.kind == Kind.STABLE)
    life[:] = [row for row in life if row.kind != Kind.NOTE or row.time_ns < since]


def refused_for_ever(story: Story) -> None:
    life = story.any(life for (member, _), life in story.lives.items() if member in story.core and ends(life))
    since = next(row.time_ns for row in reversed(story.world) if row.kind == Kind.STABLE)
    life[:] = [row for row in life if row.kind != Kind.SUBMIT or row.time_ns < since]
    late = [k for k, row in enumerate(life) if row.time_ns > since]
    for k in (late[-1], late[0]):
        life.insert(k, replace(life[k], kind=int(Kind.REFUSE), detail={"why": "overloaded"}, members=None, trans=None))


def leaver(story: Story) -> tuple[Rows, list[Row]]:
    """A life that leaves, and what it originated in its last view."""
    life = story.any(life for life in story.lives.values() if any(row.kind == Kind.LEAVE for row in life))
    first, last = stays(life)[-1]
    return life, [row for row in life[first:last] if row.kind == Kind.ORIGINATE]


def left_unsaid(story: Story) -> None:
    """The last that the leaver accepted was never sent, and it does not say so."""
    _, mine = leaver(story)
    if not mine:
        raise Nowhere
    gone = {key(mine[-1])}
    for other in story.lives.values():
        other[:] = [row for row in other if row.kind == Kind.SUBMIT or key(row) not in gone]


def left_undelivered(story: Story) -> None:
    """What the leaver had sent in its last view, the others go on without."""
    life, mine = leaver(story)
    had = [row for row in mine if delivered_by_others(story, life, key(row))]
    gone = {key(row) for row in had[-1:]}
    if not gone:
        raise Nowhere
    for other in story.lives.values():
        if other is not life:
            other[:] = [row for row in other if row.kind != Kind.DELIVER or key(row) not in gone]


def delivered_by_others(story: Story, life: Rows, message: tuple[Any, ...]) -> bool:
    others = (row for other in story.lives.values() if other is not life for row in other)
    return any(row.kind == Kind.DELIVER and key(row) == message for row in others)


ORDER = {"S15", "S16", "S17", "S18", "S19", "S21"}
SETS = {"S11", "S13", "S14", "S15", "S16", "S19", "S20", "S21", "L3", "L4"}
VIEWS = {"S4", "S5", "S6", "S9", "S10", "S11", "S12", "S13"}

# what is done -> promises of which at least one must be broken
DAMAGES: dict[str, tuple[Callable[[Story], None], set[str]]] = {
    "two deliveries swapped": (swap, ORDER),
    "a delivery lost": (lose, SETS),
    "the last delivery of a view lost": (lose_last, SETS),
    "delivered twice": (twice, {"S2"}),
    "a delivery invented": (invent, {"S1"}),
    "delivered with another digest": (lambda s: s.change(Kind.DELIVER, digest=lambda r: r.digest ^ 1), {"S1"}),
    "delivered with another service": (lambda s: s.change(Kind.DELIVER, service=lambda r: r.service % 4 + 1), {"S1"}),
    "delivered to other groups": (lambda s: s.change(Kind.DELIVER, groups=("elsewhere",)), {"S1"}),
    "delivered to no group": (lambda s: s.change(Kind.DELIVER, groups=None), {"S1"}),
    "delivered with another number": (lambda s: s.change(Kind.DELIVER, counter=lambda r: r.counter + 1), {"S1"}),
    "delivered with another count": (lambda s: s.change(Kind.DELIVER, count=lambda r: r.count + 1), {"S1"}),
    "delivered of another life": (another_life, {"S1"}),
    "delivered of another sender": (another_sender, {"S1"}),
    "delivered altered": (lambda s: s.change(Kind.DELIVER, detail=lambda r: {"altered": r.counter}), {"S1"}),
    "delivered for another view": (lambda s: s.change(Kind.DELIVER, view_seq=lambda r: r.view_seq + 4), {"S9"}),
    "delivered for another leader": (lambda s: s.change(Kind.DELIVER, view_rep=lambda r: r.view_rep + 1), {"S9"}),
    "delivered for another kind of view": (
        lambda s: s.change(Kind.DELIVER, view_kind=lambda r: 3 - r.view_kind), {"S9"}),
    "delivered in the next view": (next_view, {"S9", "S10"}),
    "delivered in the transition": (into_transition, {"S13"}),
    "delivered before a view": (before_a_view, {"S7"}),
    "delivered before it was originated": (too_early, {"S1"}),
    "delivered outside its group": (to_an_outsider, {"S22"}),
    "nothing delivered at the end": (silent_at_the_end, {"L3", "L4"}),
    "an origination lost": (drop(Kind.ORIGINATE, delivered_elsewhere), {"S1"}),
    "originated twice": (originate_twice, {"S3"}),
    "originated out of order": (originate_out_of_order, {"S14", "S15"}),
    "originated for another": (lambda s: s.change(Kind.ORIGINATE, sender=lambda r: r.sender % 4 + 1), {"S1"}),
    "originated with another digest": (
        lambda s: s.change(Kind.ORIGINATE, delivered_elsewhere(s), digest=lambda r: r.digest ^ 1), {"S1"}),
    "originated with another service": (
        lambda s: s.change(Kind.ORIGINATE, service=lambda r: r.service % 4 + 1), {"S1"}),
    "originated to other groups": (lambda s: s.change(Kind.ORIGINATE, groups=("elsewhere",)), {"S1"}),
    "originated with another count": (lambda s: s.change(Kind.ORIGINATE, count=lambda r: r.count + 1), {"S1", "S3"}),
    "originated for another view": (lambda s: s.change(Kind.ORIGINATE, view_seq=lambda r: r.view_seq + 4), {"S10"}),
    "originated altered": (lambda s: s.change(Kind.ORIGINATE, detail=lambda r: {"altered": r.counter}), {"S1"}),
    "a submission lost": (drop(Kind.SUBMIT), {"S1", "S3"}),
    "a submission of one more": (
        lambda s: s.change(Kind.SUBMIT, lambda life, k: any(r.kind == Kind.SUBMIT for r in life[k + 1:]),
                           count=lambda r: r.count + 1), {"S3"}),
    "a submission of another number": (lambda s: s.change(Kind.SUBMIT, counter=lambda r: r.counter + 1), {"S3"}),
    "a submission with another service": (
        lambda s: s.change(Kind.SUBMIT, lambda life, k: any(key(r) == key(life[k]) for r in life[k + 1:]),
                           service=lambda r: r.service % 4 + 1), {"S1"}),
    "submitted before a view": (lambda s: before_a_view(s, Kind.SUBMIT), {"S7"}),
    "a smaller incarnation": (smaller_incarnation, {"S3"}),
    "a view without oneself": (
        lambda s: s.change(Kind.VIEW, members=lambda r: tuple(m for m in r.members if m != r.member) or (9,)), {"S4"}),
    "a view with one more": (
        lambda s: s.change(Kind.VIEW, installed_twice(s), members=lambda r: (*r.members, 9)), {"S5"}),
    "a view with one less": (
        lambda s: s.change(Kind.VIEW, lambda life, k: installed_twice(s)(life, k) and len(life[k].members) > 1,
                           members=other_members), {"S5"}),
    "a view from other views": (
        lambda s: s.change(Kind.VIEW, installed_twice(s),
                           detail=lambda r: {"components": [[None, list(r.members)]]}), {"S5"}),
    "a view of a larger number": (
        lambda s: s.change(Kind.VIEW, later, view_seq=lambda r: r.view_seq + 1), VIEWS),
    "a view of a smaller number": (lambda s: s.change(Kind.VIEW, later, view_seq=1), VIEWS),
    "a view of another leader": (lambda s: s.change(Kind.VIEW, later, view_rep=lambda r: r.view_rep + 1), VIEWS),
    "a regular view lost": (drop_view(REGULAR), VIEWS),
    "a transitional view lost": (drop_view(TRANSITIONAL), {"S12"}),
    "a view twice": (again, {"S6"}),
    "a view of the other kind": (lambda s: s.change(Kind.VIEW, later, view_kind=TRANSITIONAL), VIEWS),
    "another transitional set": (
        lambda s: s.change(Kind.VIEW, later, trans=lambda r: tuple(m for m in r.trans if m != r.member)), {"S12"}),
    "other members in the transition": (
        lambda s: s.change(Kind.VIEW, together(s), members=lambda r: (r.member,)), {"S5", "S12"}),
    "a transition of another view": (
        lambda s: s.change(Kind.VIEW, together(s), previous_seq=lambda r: r.previous_seq + 4), {"S12"}),
    "a view at the very end": (late_view, {"L1", "L2"}),
    "never back": (never_back, {"L1", "L8"}),
    "a reception lost": (
        drop(Kind.RECEIVE, lambda s: lambda life, k: (
            life[k].service == 4 and life[k].sender != life[k].member and delivered_elsewhere(s)(life, k))),
        {"S20"}),
    "received late": (receives_late, {"S20"}),
    "another group at the end": (last_told, {"S22"}),
    "a queue that is not empty": (end_detail(queues={"outbox": 3}), {"L6"}),
    "waits for a stranger": (end_detail(waits={"ring": "waits for member 9"}), {"L12"}),
    "no token": (without_token, {"L5"}),
    "refused for ever": (refused_for_ever, {"L7"}),
    "left, and does not say what it never sent": (left_unsaid, {"L13"}),
    "left, and nobody has what it sent": (left_undelivered, {"L13"}),
}  # fmt: skip


# -------------------------------------------------------------------------------------------------- no damage at all


def shifted(story: Story) -> None:
    for life in (story.world, *story.lives.values()):
        life[:] = [replace(row, time_ns=row.time_ns + 10**9, now_ns=row.now_ns + 10**9) for row in life]


def other_measures(story: Story) -> None:
    """What is for measures only says nothing about promises."""
    for life in story.lives.values():
        life[:] = [replace(row, position=None, order_seq=None, order_epoch=None) for row in life]


def killed(story: Story) -> None:
    """A life stops somewhere after the last thing others know of it, and member 0 saw it die."""
    known = (Kind.ORIGINATE, Kind.RECEIVE, Kind.SUBMIT, Kind.VIEW)
    life = story.any(life for life in story.lives.values() if ends(life))
    last = max(k for k, row in enumerate(life) if row.kind in known)
    del life[story.pick.randint(last + 1, len(life) - 1) :]
    who = {"sender": life[0].member, "sender_incarnation": life[0].incarnation}
    end = max(row.time_ns for other in story.lives.values() for row in other)
    story.world.append(replace(story.world[-1], kind=int(Kind.CRASH), members=None, detail=None, time_ns=end, **who))


HARMLESS: dict[str, Callable[[Story], None]] = {
    "nothing": lambda story: None,
    "another clock": shifted,
    "without what is for measures": other_measures,
    "killed at the end": killed,
}
