"""One named object as a member holds it: `Bound`, an object of a class that this program has, or `Kept`, bytes and the
steps since, for a program that has no class for it yet.  Both go into a snapshot, and come out of one."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any
from weakref import ref

import msgspec

from ordercast.errors import OrdercastError, RunError, UsageError
from ordercast.replica.pieces import OBJECT, STATE, STEP, KeptStep, ObjectHead
from ordercast.replica.replica import Called, Here, Replica, Step
from ordercast.replica.shapes import ATOMS, Method, encode
from ordercast.state.machine import Call, Context
from ordercast.types import Peer
from ordercast.words import short

KEY = 8  # bytes of a call that name its object and its class
KEPT_BYTES_MAX = 64 * 2**20  # of one object without a class
NEVER_THE_SAME = (MemoryError, RecursionError, KeyboardInterrupt)  # what comes over one machine, and not over another

_log = logging.getLogger("ordercast")


class Raised:
    """An answer: the exception is for the caller."""

    __slots__ = ("why",)

    def __init__(self, why: BaseException) -> None:
        self.why = why


def key_of(head: ObjectHead) -> bytes:
    """Calls name an object and the class they were written for at once."""
    return blake2b(head.digest + head.name.encode(), digest_size=KEY).digest()


def head_of(name: str, object: Replica) -> ObjectHead:
    shape = object._shape
    return ObjectHead(name, shape.title, shape.digest, hasattr(type(object), "merge"))


def chunks_of(object: Replica) -> list[bytes]:
    """Its snapshot, now.  May raise what the class raises, or a sentence."""
    given = object.snapshot()
    chunks = [given] if isinstance(given, bytes) else list(given)
    if not all(type(chunk) is bytes for chunk in chunks):
        raise UsageError(f"{object._shape.title}: snapshot: expected bytes, or several of them")
    return chunks


class Frozen:
    """The state of one object as of one place of the order, read later."""

    __slots__ = ("__weakref__", "_fault", "_later", "_now", "head")

    def __init__(self, head: ObjectHead, later: Iterable[tuple[bytes, bytes]] | None) -> None:
        self.head, self._later = head, later  # None: taken when it is asked for, or before the object changes
        self._now: list[bytes] = []
        self._fault: Exception | None = None

    def take(self, object: Replica) -> None:
        if self._later is None:
            try:
                self._now = chunks_of(object)
            except Exception as why:
                self._fault = why
            self._later = ((STATE, chunk) for chunk in self._now)

    def chunks(self, holder: Bound | Kept) -> Iterator[tuple[bytes, bytes]]:
        yield OBJECT, encode(self.head)
        if isinstance(holder, Bound):
            self.take(holder.object)
        if self._fault is not None:
            raise RunError(f"object {self.head.name!r}: its snapshot failed: {self._fault!r}") from self._fault
        yield from self._later or ()


class Bound:
    """An object that lives: calls are applied to it."""

    __slots__ = ("_frozen", "_size", "head", "here", "key", "methods", "object", "placed")

    def __init__(self, head: ObjectHead, object: Replica, here: Here) -> None:
        self.head, self.key, self.object, self.here = head, key_of(head), object, here
        self.methods: tuple[Method, ...] = object._shape.methods
        self._frozen: list[ref[Frozen]] = []
        self._size = 0
        self.placed = False  # the object is the program's own

    @classmethod
    def fresh(cls, head: ObjectHead, kind: type[Replica], step: Step) -> Bound:
        """A new object beside the one that counts, for a state to come."""
        object, here = kind.__new__(kind), Here(head.name, step, None)
        made = cls(head, object, here)
        Replica._place(object, here)
        return made

    def apply(self, call: bytes, own: bool) -> Any:
        """One call; what its caller gets."""
        if self._frozen:
            self._thaw()
        try:
            method = self.methods[call[KEY]]
            args = method.decode(call[KEY + 1 :])
        except (IndexError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as why:
            return Raised(
                UsageError(f"object {self.head.name!r}: a call that its class does not have: {short(why, 120)}")
            )
        here = self.here
        here.within = True
        try:
            answer = method.function(self.object, *args)
            return answer if not own or type(answer) in ATOMS else method.copy(answer)
        except NEVER_THE_SAME:
            raise
        except BaseException as why:  # also SystemExit: it is the caller's, and ends no other member
            return Raised(why) if own else None
        finally:
            here.within = False

    def left(self, gone: Sequence[Peer]) -> None:
        self._thaw()
        self.here.within = True
        try:
            self.object.left(gone)
        except NEVER_THE_SAME:
            raise
        except BaseException:
            _log.exception("object %r: left() raised", self.head.name)
        finally:
            self.here.within = False

    def replay(self, kept: KeptStep) -> None:
        step = self.here.step
        step.begin(kept.context)
        if kept.calls is None:
            self.left(kept.gone)
        else:
            for number, call in kept.calls:
                step.number = number
                self.apply(call, False)

    def restore(self, chunk: bytes) -> None:
        self.here.within = True
        try:
            self.object.restore(chunk)
        finally:
            self.here.within = False
        self._size += len(chunk)

    def become(self, other: Bound) -> None:
        """Take over the state of another, which is nobody's afterwards; whoever holds the object sees the new one."""
        self._thaw()
        other._thaw()
        self.here.frozen = other.here.frozen  # who reads the other's state slowly goes on reading it here
        old = type(self.object).__new__(type(self.object))
        vars(old).update(vars(self.object))
        vars(self.object).clear()
        vars(self.object).update(vars(other.object))
        self._size = other._size
        if self.here.listeners:
            self.object._taken_over(old)

    def freeze(self) -> Frozen:
        later = self.object._freeze()
        if later is not None:
            return Frozen(self.head, ((STATE, chunk) for chunk in later))
        frozen = Frozen(self.head, None)
        self._frozen.append(ref(frozen))
        return frozen

    def _thaw(self) -> None:
        """It is about to change: who still needs the state as it is gets it now."""
        for each in self._frozen:
            frozen = each()
            if frozen is not None:
                frozen.take(self.object)
        self._frozen.clear()

    @classmethod
    def of(cls, kept: Kept, kind: type[Replica], step: Step) -> Bound:
        """An object of a class that was missing until now."""
        made = cls.fresh(kept.head, kind, step)
        for chunk in kept.chunks:
            made.restore(chunk)
        for each in kept.steps:
            made.replay(each)
        return made

    def called(self, call: Call) -> Called:
        assert call.payload is not None
        method = self.methods[call.payload[KEY]]
        return Called(method.name, method.decode(call.payload[KEY + 1 :]), call.caller.id)

    def size(self) -> int:
        return self.object._bytes_held() or self._size


class Kept:
    """An object without a class: its state as it came, and what followed."""

    __slots__ = ("_bytes", "_waits", "chunks", "head", "key", "steps")

    def __init__(self, head: ObjectHead, chunks: list[bytes]) -> None:
        self.head, self.key, self.chunks = head, key_of(head), chunks
        self.steps: list[KeptStep] = []
        self._bytes, self._waits = sum(map(len, chunks)), 0  # of its state; of the steps

    def apply(self, context: Context, number: int, call: bytes) -> Any:
        last = self.steps[-1] if self.steps else None
        if last is not None and last.context is context and last.calls is not None:
            last.calls.append((number, call))
            self._count(len(call) + 16)
        else:
            self._count(len(call) + 128)
            self.steps.append(KeptStep(context, [(number, call)]))
        return Raised(UsageError(f"object {self.head.name!r}: this program has no class for it yet"))

    def left(self, context: Context, gone: Sequence[Peer]) -> None:
        self._count(128)
        self.steps.append(KeptStep(context, None, tuple(gone)))

    def replay(self, kept: KeptStep) -> None:
        self._count(128 + sum(len(call) + 16 for _, call in kept.calls or ()))
        self.steps.append(kept)

    def restore(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self._bytes += len(chunk)

    def _count(self, size: int) -> None:
        self._waits += size
        if self._waits > KEPT_BYTES_MAX:
            raise Unread(self.head.name)

    def freeze(self) -> Frozen:
        return Frozen(self.head, _kept(tuple(self.chunks), tuple(self.steps)))

    def size(self) -> int:
        return self._bytes + self._waits


class Unread(OrdercastError):
    """An object's calls wait for a class, and too many do."""

    def __init__(self, name: str) -> None:
        what = f"{KEPT_BYTES_MAX >> 20} MiB of calls to it wait here"
        super().__init__(
            f"object {name!r}: this program has no class for it, and {what}: expected group.replicate({name!r}, ...)"
        )


def _kept(chunks: tuple[bytes, ...], steps: tuple[KeptStep, ...]) -> Iterator[tuple[bytes, bytes]]:
    yield from ((STATE, chunk) for chunk in chunks)
    yield from ((STEP, encode(step)) for step in steps)
