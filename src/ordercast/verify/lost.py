"""Lives whose rows are not there: the file is gone, or could not be read and was left out.

A trace without them is never "ok": what would hold cannot be judged.  What is broken must stand on rows that are there,
so a checker asks here before it takes an absence for a fault.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ordercast.trace.schema import Header

LifeKey = tuple[int, int]  # (member, incarnation)
UNKNOWN = 0  # as a member: nobody knows whose file it was; as an incarnation: nor which life's


class Lost(Struct, frozen=True):
    """Which lives are missing, whole or in part; false if none is."""

    lives: frozenset[LifeKey]
    newest: dict[int, int]  # member -> its last life of which there are rows

    def __bool__(self) -> bool:
        return bool(self.lives)

    def words(self) -> str:
        member, incarnation = min(self.lives)
        if member == UNKNOWN:
            return "the trace of a member is not there"
        return f"the trace of member {member}{f' in incarnation {incarnation}' if incarnation else ''} is not there"

    def life(self, member: int, incarnation: int) -> bool:
        """Whether rows of a life are missing: what is said of it may be true."""
        return not self.lives.isdisjoint(((member, incarnation), (member, UNKNOWN), (UNKNOWN, UNKNOWN)))

    def some(self, member: int) -> bool:
        """Whether any life of a member is missing."""
        return any(of in (member, UNKNOWN) for of, _ in self.lives)

    def last(self, member: int) -> bool:
        """Whether what a member did last is missing."""
        newest = self.newest.get(member, 0)
        return any(of in (member, UNKNOWN) and (not life or life >= newest) for of, life in self.lives)


def lost(
    header: Header,
    lives: Iterable[LifeKey],
    started: Iterable[tuple[int | None, int | None]],
    crashed: Iterable[int | None],
    viewed: Iterable[int],
    senders: Iterable[LifeKey],
) -> Lost:
    """What must be missing: named by the reader, started in a live run, in somebody's view, or heard by somebody.

    `started`, `crashed`: lives and members of which member 0 tells it; `viewed`: members of installed views; `senders`:
    lives of whom something was delivered.  A member whose starts are told has no other lives: a sender that is none of
    them was made up.  One that crashed may have written nothing, though others had it in their view.
    """
    known = set(lives)
    members = {member for member, _ in known}
    told = {(who, life) for who, life in started if who and life}
    gone = {(member, life) for member, life in header.lost}
    if header.live:
        gone |= told - known  # it was ready when this was written, so it had written, too
    elif told:
        return Lost(frozenset(gone), _newest(known))  # a simulator writes all or nothing: who is silent wrote nothing
    heard = set(senders) - known
    silent = set(header.members) - members
    gone |= {(member, UNKNOWN) for member in silent & (set(viewed) - set(crashed) | {who for who, _ in heard})}
    tells = {who for who, _ in told}
    gone |= {life for life in heard if life[0] in members and (life in told or life[0] not in tells)}
    return Lost(frozenset(gone), _newest(known))


def _newest(lives: Iterable[LifeKey]) -> dict[int, int]:
    return dict(sorted(lives))
