"""What the state part drives, and what is said between it and the application.

The layer `state.layer.State` stands on top of a stack.  It hands ordered calls to a `Machine`, in one order at all
members, moves the machine's state to those who lack it, and knows which of several states is the group's.  It never
looks into a call, an answer or a piece of a snapshot.  A machine is a pure function of its calls: no clock, randomness
or thread may show in what it answers or becomes; the time and the seed to use come with each batch of calls.

Down, by `Stack.tell`: `Calls`; it is taken, or the actions have a `Refuse(why)` ("not primary", "no view", "closed",
"overloaded", "service", "too large", "no disk", "no disk at member 2", "ended") and nothing happened.
Up: `Answered` or `FateUnknown`, one of them for every call that was taken while this life lasts, and `Standing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct

from ordercast.contract import Event
from ordercast.types import U63, Nanoseconds, Peer, ViewId

# a state as its holder knows it; also what `Standing.word` says
UNDECIDED = "undecided"  # the view has not decided whose state counts: calls wait
BEHIND = "behind"  # another's state is on its way here
COMPLETE = "complete"  # up to date: calls are applied
HALTED = "not primary"  # in a view that may not go on: calls are refused
ENDED = "ended"  # no replica any more; `why` is the sentence


Digest = Annotated[bytes, Meta(max_length=64)]


class Mark(Struct, frozen=True, order=True, array_like=True, gc=False):
    """A place in a history: the view that decided it, how many calls lie before it, and the digest of them all."""

    view: ViewId
    n: U63
    h: Digest

    @property
    def place(self) -> tuple[int, bytes]:
        return self.n, self.h

    @property
    def parts(self) -> tuple[ViewId, int, bytes]:
        return self.view, self.n, self.h


class Context(Struct, frozen=True, gc=False):
    """What came with a batch of calls; the same at all members."""

    caller: Peer  # the life of the member that called
    first: int  # the caller's own number of the first call; a call's name for ever is (caller, number)
    n: int  # calls applied before the first
    seed: bytes  # differs from batch to batch; mix the call's place in it for each call
    time_ns: Nanoseconds  # the caller's wall clock
    members: tuple[Peer, ...]  # who was in the view of the last decision


class Call(Struct, frozen=True, gc=False):
    """One call by its name, for `lost` and `merge`.  `payload` is None where it is no longer kept."""

    caller: Peer
    number: int
    payload: bytes | None


class Part(Struct, frozen=True):
    """A state that diverged from the others: its snapshot's pieces, and its calls since the common mark that no part
    before it has; None: too many to have been kept."""

    mark: Mark
    pieces: Iterable[bytes]
    calls: tuple[Call, ...] | None


class Restoring(Protocol):
    """A state that is being read from its pieces, beside the one that counts."""

    def feed(self, piece: bytes) -> None:
        """The next piece, as `snapshot` gave it.  May raise."""

    def finish(self) -> None:
        """That was the last: from now on this is the machine's state.  May raise; then the old one still counts."""


class Machine(Protocol):
    """What is replicated.  If `apply` or `present` raises, this member ends as a replica: an exception that a caller
    shall have is an answer like any other."""

    digest: bytes  # names its classes, methods and versions; members whose digests differ have no state in common
    merges: bool  # it can put diverged states together; else one of them wins, and the others are told what they lost

    def size(self) -> int:
        """About how many bytes a snapshot would have; cheap."""

    def apply(self, calls: list[bytes], context: Context) -> list[Any]:
        """Apply these in order; the answer of each, which goes to its caller and to nobody else."""

    def present(self, peers: tuple[Peer, ...], context: Context) -> None:
        """A view was decided, and these lives are in it: what others held, such as locks, is given up.  A step of the
        order like a call: every member takes it at the same place."""

    def snapshot(self) -> Iterator[bytes]:
        """The state as of now, in pieces of at most `limits.PIECE_BYTES_MAX`.  It returns at once, each `next` is
        little work, and calls that are applied meanwhile do not show in later pieces.  May raise, at any piece."""

    def restore(self) -> Restoring:
        """Another state begins to arrive."""

    def merge(self, common: Mark | None, parts: Sequence[Part], mine: int | None) -> None:
        """Become what these states are together: a function of the common mark and the parts, nothing else; `mine` is
        the part that this member's own state is, None if it was behind.  Only where `merges`.  May raise; then nothing
        changed, and the first part is taken over instead."""

    def lost(self, calls: Sequence[Call]) -> None:
        """These had been applied here and are not in the state that is taken over; each is told once."""


# ------------------------------------------------------------------------------------------------------------- down


class Calls(Event, frozen=True, gc=False):
    """Calls of one step of the application, ordered together, first .. first + len - 1 by its own count; numbers go up
    from 1 in each life and are used once, also if refused."""

    first: int
    payloads: list[bytes]
    time_ns: Nanoseconds
    safe: bool = True  # the answer comes when every member of the view holds the call; else when it has its place
    durable: bool = False  # the answer comes when every member of the view has it on disk


# --------------------------------------------------------------------------------------------------------------- up


class Answered(Event, frozen=True, gc=False):
    """What `apply` said of own calls, first .. first + len - 1; they are in the state, as firmly as they were asked."""

    first: int
    answers: list[Any]


class FateUnknown(Event, frozen=True, gc=False):
    """Own calls, first .. first + count - 1, which may have been applied, or be applied yet, or never."""

    first: int
    count: int
    why: str


class Standing(Event, frozen=True, gc=False):
    """How this member stands; said when it changes, and now and then while a state arrives."""

    word: str  # UNDECIDED, BEHIND, COMPLETE, HALTED or ENDED
    n: int
    h: bytes
    why: str = ""  # a sentence, where there is something to say
    done_bytes: int = 0  # of the state that arrives
    total_bytes: int = 0
