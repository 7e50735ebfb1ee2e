"""What notes tell of replicated states: where each life stood, what led from place to place, what was answered, lost.

A place is (n, digest).  Digests are chained, so a place has one past wherever it is seen; only a merged state has
several before it.  Names of calls are (caller, its life, its number); steps that are nobody's calls have none.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from ordercast.trace.schema import Kind, Row
from ordercast.verify.lost import LifeKey
from ordercast.verify.plain.model import Life, Run, ViewKey, view_key

NOTES = frozenset(("state", "applied", "answered", "lost", "state lost"))
Place = tuple[int, str]
Call = tuple[int, int, int]


class Told(NamedTuple):
    """One note, and where its life stood before it."""

    life: Life
    row: Row
    name: str
    fields: dict[str, Any]
    before: Place | None
    stands: ViewKey | None  # the view that its life is in, by its own last note of one

    @property
    def place(self) -> Place:
        return self.fields["n"], self.fields["h"]

    @property
    def what(self) -> str:
        return str(self.fields.get("what", ""))

    @property
    def view(self) -> ViewKey:
        """A row of a transitional view names the one that follows."""
        return self.stands or view_key(self.row) or (-1, -1)

    def offers(self, merging: bool) -> bool:
        """Whether it is a state as a view began, of which nothing is in doubt; `merging`: of a class that merges."""
        return self.fields["regular"] == self.fields["n"] and (not merging or self.fields.get("merges", True))

    @property
    def epoch(self) -> ViewKey:
        """The decision that the state belongs to."""
        seq, _, rep = self.fields["epoch"].partition(".")
        return int(seq), int(rep)


class Places:
    """Of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.before: dict[Place, tuple[Place, ...]] = {}
        self.led: dict[Place, tuple[Call, ...]] = {}  # the calls of the step that led to it
        self.told = [told for life in run.lives for told in self._walk(life)]
        self._past: dict[Place, frozenset[Place]] = {}
        self._calls: dict[Place, frozenset[Call]] = {}

    def _walk(self, life: Life) -> list[Told]:
        out: list[Told] = []
        place: Place | None = None
        stands: ViewKey | None = None
        for row in life.of(Kind.NOTE):
            fields = row.detail or {}
            if fields.get("name") not in NOTES:
                continue
            if fields.get("what") == "view":
                stands = view_key(row)
            told = Told(life, row, fields["name"], fields, place, stands)
            out.append(told)
            if told.name == "applied":
                self._led(told)
            if told.name in ("applied", "state"):
                place = told.place
            for part in fields.get("parts", ()):
                self.before[told.place] = (*self.before.get(told.place, ()), (part[0], part[1]))
        return out

    def _led(self, told: Told) -> None:
        fields, place = told.fields, told.place
        if told.before is not None and told.before[0] < place[0] and place not in self.before:
            self.before[place] = (told.before,)
        calls = range(fields["first"], fields["first"] + fields["count"]) if fields["caller"] else ()
        self.led[place] = tuple((fields["caller"], fields["life"], number) for number in calls)

    def past(self, place: Place) -> frozenset[Place]:
        """It, and all before it."""
        if place not in self._past:
            seen, todo = {place}, [place]
            while todo:
                for earlier in self.before.get(todo.pop(), ()):
                    if earlier not in seen:
                        seen.add(earlier)
                        todo.append(earlier)
            self._past[place] = frozenset(seen)
        return self._past[place]

    def calls(self, place: Place) -> frozenset[Call]:
        """All that were applied on the way there."""
        if place not in self._calls:
            self._calls[place] = frozenset(call for each in self.past(place) for call in self.led.get(each, ()))
        return self._calls[place]

    @cached_property
    def decided(self) -> dict[ViewKey, list[Told]]:
        """By view, in their order: who took part in its decision, sooner or later."""
        out: dict[ViewKey, list[Told]] = {}
        for told in self.told:
            if told.name == "state" and told.what == "decided":
                out.setdefault(told.epoch, []).append(told)
        return dict(sorted(out.items()))

    @cached_property
    def marks(self) -> dict[ViewKey, Told]:
        """The decision of each view: by one who had its state already, where there is a note of one."""
        return {
            view: next((told for told in took if not told.fields.get("taken")), took[0])
            for view, took in self.decided.items()
        }

    def members(self, view: ViewKey) -> set[int]:
        return {member for told in self.entered.get(view, ()) for member in told.fields.get("members", ())}

    @cached_property
    def entered(self) -> dict[ViewKey, list[Told]]:
        """By view: where each stood as it began."""
        out: dict[ViewKey, list[Told]] = {}
        for told in self.told:
            if told.name == "state" and told.what == "view":
                out.setdefault(told.view, []).append(told)
        return out

    @cached_property
    def last(self) -> dict[LifeKey, Told]:
        """Where each life ended."""
        return {told.life.key: told for told in self.told if told.name in ("state", "applied")}

    @cached_property
    def found(self) -> dict[LifeKey, Told]:
        """What each life found on its disk, by the life before it."""
        first = {told.life.key: told for told in self.told if told.name == "state" and told.what == "found"}
        lives = [life.key for life in self.run.lives]
        return {one: first[two] for one, two in pairwise(lives) if one[0] == two[0] and two in first}

    def gone(self, holders: set[int], call: Call | None, had: Told, later: Told) -> bool:
        """Whether every one of these members began a life between these notes that found nothing of it (a call, or the
        place of the first note): its disk was lost, or the life before had not written it."""

        def lacks(told: Told) -> bool:
            has = had.place in self.past(told.place) if call is None else call in self.calls(told.place)
            return had.row.time_ns <= told.row.time_ns <= later.row.time_ns and not has

        found = [told for told in self.told if told.name == "state" and told.what == "found"]
        return all(any(told.life.member == member and lacks(told) for told in found) for member in holders)


def places(run: Run) -> Places:
    """Made once for a run."""
    if "_places" not in run.__dict__:
        run.__dict__["_places"] = Places(run)
    made: Places = run.__dict__["_places"]
    return made
