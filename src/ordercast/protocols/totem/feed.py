"""What a ring takes from the layer that joins several: in place of a Sender, when the token is here.

In this order: words of the members to each other; frames carried over from other rings; behind them, once all that may
leave have left, a Guarantee Vector message (which promises nothing that is still to come); own frames, on the ring they
are originated on.  A reader's lack of room holds back own frames only.

Under load a queue never empties: every so many frames a vector leaves all the same, and promises nothing that still
waits.  Without it nobody on that ring would learn what may be forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from ordercast.contract import Action, Event, Leave, Note
from ordercast.joining import Wake
from ordercast.protocols.totem.packets import Token
from ordercast.protocols.totem.ring import Ring, Stamped
from ordercast.types import Frame, MemberId, Nanoseconds, ViewId

VECTOR_FRAMES = 32  # carried over at most between two vectors for which somebody waits
Steps = Callable[[Nanoseconds], list[Action]]


class Owner(Protocol):
    """The layer above, asked while its ring has the token."""

    def tick(self, now: Nanoseconds, child: int) -> None: ...

    def turn(self, child: int, past: Callable[[int], int]) -> list[Action]: ...

    def vector_due(self, child: int) -> bool: ...

    def vector(self, child: int) -> Frame: ...

    def own_waiting(self, child: int) -> int: ...

    def own(self, child: int, n: int) -> Sequence[Stamped]: ...

    def own_left(self) -> list[Action]: ...


class Feed:
    """Of one ring of one member."""

    owner: Owner
    _wake: Steps
    _go: Callable[[Nanoseconds, Nanoseconds], list[Action]]

    def __init__(self, child: int) -> None:
        self.child = child
        self.open = False  # a topology is installed: its frames may leave
        self.words: deque[Frame] = deque()
        self.states: dict[MemberId, Frame] = {}  # the newest of each member, still to be told on this ring
        self.forwards: deque[Stamped] = deque()
        self.undecided: set[tuple[int, int]] = set()  # of these (timestamp, source) it is not known who wants them
        self.unwanted: set[tuple[int, int]] = set()  # and these nobody does
        self.me: MemberId | None = None  # once it has said where it stands
        self.asked = False  # the ring was told that something waits
        self.leaving = False
        self._carried = self._vectors = 0  # since the last rows were written
        self._unpromised = 0  # frames carried over since the last vector

    def bind(self, wake: Steps, go: Callable[[Nanoseconds, Nanoseconds], list[Action]]) -> None:
        """To the ring that takes."""
        self._wake, self._go = wake, go

    def tell(self, state: Frame, own: bool = False) -> None:
        """Where a member stands now; what it said before for another plan is of no use to anybody.

        My own goes first, ahead of frames that are asked for again: whoever hears nothing of it by my next visit counts
        me among those who go on.
        """
        if own:
            self.me, self.states = state.sender, {state.sender: state} | self.states
        self.states[state.sender] = state
        if any(word.sender == state.sender for word in self.words):
            self.words = deque(word for word in self.words if word.sender != state.sender)

    def close(self) -> None:
        """The topology ends: what it would still have carried is exchanged otherwise."""
        self.open = False
        self.forwards.clear()
        self.undecided.clear()
        self.unwanted.clear()

    # -------------------------------------------------------------------------------------------------- as a source

    def turn(self, now: Nanoseconds, ring: Ring, token: Token) -> list[Action]:
        """The token is here, and what the ring may still say is stamped later: frames that wait for that may go on."""
        self.owner.tick(now, self.child)
        return self.owner.turn(self.child, partial(ring.past, token)) if self.undecided else []

    def urgent(self) -> int:
        count = len(self.words) + len(self.states)
        if self.open:
            count += (0 if self.blocked else len(self.forwards)) + self.owner.vector_due(self.child)
        return count

    def first(self) -> bool:
        """My own state waits."""
        return self.me in self.states

    @property
    def blocked(self) -> bool:
        """The next frame to be carried over waits for its place in the order."""
        if not self.undecided or not self.forwards:
            return False
        return (self.forwards[0].stamp, self.forwards[0].source) in self.undecided

    def queued(self) -> dict[int, int]:
        """Source -> the first timestamp of it that is still to be carried over."""
        out: dict[int, int] = {}
        for item in self.forwards:
            out.setdefault(item.source - 1, item.stamp)
        return out

    def queued_controls(self) -> dict[int, int]:
        """The same of frames that change process groups."""
        out: dict[int, int] = {}
        for item in self.forwards:
            if item.frame.control:
                out.setdefault(item.source - 1, item.stamp)
        return out

    def waiting(self) -> int:
        return self.urgent() + (self.owner.own_waiting(self.child) if self.open else 0)

    def __bool__(self) -> bool:
        return bool(self.words or self.states) or self.waiting() > 0

    def take(self, n: int) -> list[Stamped]:
        self.asked = False
        out: list[Stamped] = []
        while self.states and len(out) < n:
            out.append(Stamped(self.states.pop(next(iter(self.states))), 0, 0))
        while self.words and len(out) < n:
            out.append(Stamped(self.words.popleft(), 0, 0))
        if not self.open:
            return out
        forwards, late = self.forwards, self._unpromised >= VECTOR_FRAMES and self.owner.vector_due(self.child)
        while forwards and len(out) < n - late:
            if self.undecided or self.unwanted:
                key = (forwards[0].stamp, forwards[0].source)
                if key in self.undecided:
                    break
                if key in self.unwanted:
                    self.unwanted.discard(key)
                    forwards.popleft()
                    continue
            out.append(forwards.popleft())
            self._carried += 1
            self._unpromised += 1
        if (late or not forwards or self.blocked) and len(out) < n and self.owner.vector_due(self.child):
            out.append(Stamped(self.owner.vector(self.child), 0, 0))
            self._vectors += 1
            self._unpromised = 0
        if len(out) < n:
            out += self.owner.own(self.child, n - len(out))
        return out

    # --------------------------------------------------------------------------------------------- as a ring's Sender

    def originated(self, frames: Sequence[Frame]) -> list[Action]:
        out = self.owner.own_left()
        if self._carried:
            out.append(Note("forward", {"frames": self._carried}))
        if self._vectors:
            out.append(Note("vector message"))
        self._carried = self._vectors = 0
        return out

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if type(event) is Wake:
            return self._wake(now)
        if type(event) is Leave and not self.leaving:
            self.leaving = True
            return self._go(now, now)
        return []

    def settle(self, now: Nanoseconds) -> list[Action]:
        return []

    def timer(self, now: Nanoseconds) -> list[Action]:
        return []

    def enter(self, view: ViewId, primary: bool | None = None) -> list[Action]:
        return []

    def held(self) -> int:
        return self.waiting()

    def waits(self) -> str:
        return ""

    def unsent(self) -> tuple[int, int] | None:
        return None

    def status(self) -> dict[str, Any]:
        return {"words": len(self.words) + len(self.states), "forward": len(self.forwards), "leaving": self.leaving}
