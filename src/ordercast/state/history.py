"""The history of a replica's state: how many calls, the digest of them all, and where it has met others.

n counts the calls since the initial state, h is a chain of digests over them, so equal (n, h) means equal state; such a
pair is a *place*.  A state is a prefix of another if that one's history holds its place.  Calls that were ordered
together are one *step*; histories differ by whole steps, so digests are kept at the ends of steps alone.

*Marks* are the places at which the member entered views and decisions.  *Regular* calls are those not delivered in a
transitional view since the epoch: there a call of somebody who departed may be missing in front of others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.limits import HISTORY_BYTES_MAX, HISTORY_CALLS_MAX, MARKS_MAX, PIECE_BYTES_MAX
from ordercast.state.machine import Call, Digest, Mark
from ordercast.state.packets import Called, Marks, decode_step
from ordercast.types import U63, MemberId, Peer, ViewId

NO_VIEW = ViewId(0, 0)
NO, YES, TOO_OLD = 0, 1, 2  # whether a history holds a place
STEP_BYTES = 48  # of one that travels without its calls
NOBODY: MemberId = 0  # takes the steps that are no calls

Place = tuple[int, bytes]
CallName = tuple[MemberId, int, int]  # caller, its life, its number


class Step(Struct, frozen=True, array_like=True, gc=False):
    """Calls that were ordered together: the place they lead to, their names, their bytes where these are kept."""

    n: U63
    h: Digest
    caller: Peer
    first: U63
    count: Annotated[int, Meta(ge=1, le=HISTORY_CALLS_MAX)]
    raw: bytes | None = None

    def names(self) -> Iterator[CallName]:
        caller = self.caller
        return ((caller.id, caller.incarnation, number) for number in range(self.first, self.first + self.count))


class Head(Struct, frozen=True, array_like=True, gc=False):
    """What goes ahead of the steps when a history travels, or is stored."""

    n: U63
    h: Digest
    floor: U63
    marks: Marks
    met: dict[MemberId, Mark]
    peers: tuple[Peer, ...]
    size: U63  # about how many bytes follow


_encode = msgspec.msgpack.Encoder().encode
_head = msgspec.msgpack.Decoder(Head).decode
_steps = msgspec.msgpack.Decoder(list[Step]).decode


class History:
    """Of one replica; `initial` names its machine."""

    def __init__(self, initial: bytes) -> None:
        self.n = self.irregular = 0
        self.h = self.initial = _digest(b"ordercast state", initial)
        self.floor = 0  # places below it are not known any more
        self.peers: tuple[Peer, ...] = ()  # who was in the view of the last decision
        self.marks: deque[Mark] = deque(maxlen=MARKS_MAX)
        self.met: dict[MemberId, Mark] = {}  # the last decision together with each
        self.steps: deque[Step] = deque()
        self._places: set[Place] = {(0, self.h)}
        self._calls = self._bytes = 0  # of `steps`; and of those from `_bare` on
        self._bare = 0  # so many steps, the oldest, are without their bytes

    @property
    def place(self) -> Place:
        return self.n, self.h

    @property
    def regular(self) -> int:
        return self.n - self.irregular

    # ---------------------------------------------------------------------------------------------------------- growing

    def add(self, caller: Peer, first: int, count: int, raw: bytes, *, irregular: bool = False) -> Step:
        """The next step."""
        self.n, self.h = following(self.place, caller, count, raw)
        if irregular:
            self.irregular += count
        step = Step(self.n, self.h, caller, first, count, raw)
        self._append(step)
        return step

    def _append(self, step: Step) -> None:
        steps = self.steps
        steps.append(step)
        self._places.add((step.n, step.h))
        self._calls += step.count
        self._bytes += len(step.raw or b"")
        while self._bytes > HISTORY_BYTES_MAX and self._bare < len(steps):
            bare = steps[self._bare]
            self._bytes -= len(bare.raw or b"")
            steps[self._bare] = Step(bare.n, bare.h, bare.caller, bare.first, bare.count)
            self._bare += 1
        while self._calls > HISTORY_CALLS_MAX:
            old = steps.popleft()
            self._calls -= old.count
            self._bytes -= len(old.raw or b"")
            self._bare = max(0, self._bare - 1)
            self._places.discard((old.n, old.h))
            self.floor = max(self.floor, old.n + 1)

    def enter(self, view: ViewId) -> None:
        """A view begins here."""
        self._remember(Mark(view, self.n, self.h))

    def decided(self, mark: Mark, members: Iterable[MemberId]) -> None:
        """The state belongs to this decision now, which these took part in."""
        assert mark.place == self.place, "a decision is about the state it names"
        self._remember(mark)
        self.met |= dict.fromkeys(members, mark)
        self.irregular = 0

    def _remember(self, mark: Mark) -> None:
        if not self.marks or self.marks[-1] != mark:
            self.marks.append(mark)

    # ----------------------------------------------------------------------------------------------------------- asking

    def holds(self, place: Place) -> int:
        """Whether this state, or one that it came from, is at that place."""
        if place in self._places or any(mark.place == place for mark in self.all_marks()):
            return YES
        return TOO_OLD if place[0] < self.floor else NO

    def all_marks(self) -> tuple[Mark, ...]:
        """All that is remembered of views, by age; the last one with each member is among them."""
        return tuple(sorted({*self.marks, *self.met.values()}))

    def names(self) -> set[CallName]:
        return {name for step in self.steps for name in step.names()}

    def since(self, n: int) -> list[Step]:
        """The steps after a place that this history holds."""
        return [step for step in self.steps if step.n > n]

    def lost_to(self, other: History) -> list[Call]:
        """Calls that are here and not in the other, by name; nothing where this is its prefix."""
        if other.holds(self.place) == YES:
            return []
        theirs = other.names()
        mine = [*((step.n, step.h) for step in self.steps), *(mark.place for mark in self.all_marks())]
        common = max((place[0] for place in mine if other.holds(place) == YES), default=0)
        return [call for step in self.since(common) for call in calls_of(step, without=theirs)]

    # ------------------------------------------------------------------------------------------------------- on the way

    def pieces(self, size: int, since: int | None = None) -> Iterator[bytes]:
        """This history as it is now, to be sent or stored: names and digests; bytes only of steps after `since`."""
        head = Head(self.n, self.h, self.floor, tuple(self.marks), dict(self.met), self.peers, size)
        return _pieces(head, list(self.steps), since)

    @classmethod
    def of(cls, initial: bytes, pieces: Iterable[bytes]) -> History:
        """From what `pieces` gave; raises msgspec.MsgspecError where it is not that."""
        reading = Reading(initial)
        for piece in pieces:
            reading.feed(piece)
        return reading.finish()

    def begin(self, head: Head) -> None:
        """Of one that is read: what went ahead of its steps."""
        self.n, self.h, self.floor, self.peers = head.n, head.h, head.floor, head.peers
        self.marks.extend(head.marks)
        self.met.update(head.met)
        self._places.add(self.place)

    def follow(self, steps: Iterable[Step]) -> None:
        """And these, as they were."""
        for step in steps:
            self._append(step)

    @classmethod
    def merged(cls, parts: list[History], common: int, initial: bytes) -> History:
        """Of states that are put together, in the order of `parts`: all their places, and each call once."""
        history = cls(initial)
        names: set[CallName] = set()
        n = common
        for part in parts:
            history._places |= part._places
            history.floor = max(history.floor, part.floor)
            for step in part.steps:
                new = [name for name in step.names() if name not in names]
                names.update(new)
                n += len(new) if step.n > common else 0
                if new:
                    history.steps.append(step)
        for mark in sorted({mark for part in parts for mark in part.all_marks()})[-MARKS_MAX:]:
            history.marks.append(mark)
        for part in parts:
            for member, mark in part.met.items():
                history.met[member] = max(mark, history.met.get(member, mark))
        history._calls = sum(step.count for step in history.steps)
        history._bytes = sum(len(step.raw or b"") for step in history.steps)
        history.n, history.h = n, _digest(b"merge", *(part.h for part in parts))
        history._places.add(history.place)
        return history


class Reading:
    """A history on its way, read piece by piece: a long one is too much for one step."""

    def __init__(self, initial: bytes) -> None:
        self._history, self._begun, self._fault = History(initial), False, ""

    def feed(self, piece: bytes) -> None:
        if self._fault:
            return
        try:
            if self._begun:
                self._history.follow(_steps(piece))
            else:
                self._history.begin(_head(piece))
                self._begun = True
        except msgspec.MsgspecError as why:
            self._fault = str(why)

    def finish(self) -> History:
        """Raises msgspec.MsgspecError where it was none."""
        if self._fault or not self._begun:
            raise msgspec.ValidationError(self._fault or "a history of no pieces")
        return self._history


def calls_of(step: Step, without: set[CallName] = frozenset()) -> list[Call]:  # type: ignore[assignment]
    """The calls of a step one by one, but for these names, and for steps that are nobody's calls."""
    if step.caller.id == NOBODY:
        return []
    said = decode_step(step.raw) if step.raw is not None else None
    payloads = said.payloads if isinstance(said, Called) else [None] * step.count
    return [
        Call(step.caller, name[2], payload)
        for name, payload in zip(step.names(), payloads, strict=True)
        if name not in without
    ]


def _pieces(head: Head, steps: list[Step], since: int | None) -> Iterator[bytes]:
    yield _encode(head)
    piece: list[Step] = []
    size = 0
    for step in steps:
        if since is None or step.n <= since:
            step = Step(step.n, step.h, step.caller, step.first, step.count)
        piece.append(step)
        size += STEP_BYTES + len(step.raw or b"")
        if size >= PIECE_BYTES_MAX:
            yield _encode(piece)
            piece, size = [], 0
    if piece:
        yield _encode(piece)


def following(place: Place, caller: Peer, count: int, raw: bytes) -> Place:
    """Where a step leads to."""
    return place[0] + count, _digest(place[1], _encode(caller), raw)


def _digest(*parts: bytes) -> bytes:
    h = blake2b(digest_size=16)
    for part in parts:
        h.update(len(part).to_bytes(4, "little"))
        h.update(part)
    return h.digest()
