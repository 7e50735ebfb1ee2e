"""All objects of a group, by their names: the machine that the state part drives.

An object comes into being by an ordered call that carries its class (by digest) and its first state, so that all
members have the same; whoever comes later, or has the class only later, finds it.  A call names object and class by
eight bytes, the method by one, and holds the arguments in MessagePack.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import RunError, UsageError
from ordercast.limits import GROUP_NAME_BYTES_MAX
from ordercast.replica import replica
from ordercast.replica.entries import KEY, Bound, Kept, Raised, chunks_of, head_of
from ordercast.replica.pieces import GROUP, OBJECT, STATE, STEP, GroupHead, Joiner, KeptStep, Name, ObjectHead, cut
from ordercast.replica.replica import Called, Door, Here, Replica, Step
from ordercast.replica.shapes import encode
from ordercast.state.machine import Call, Context, Mark, Part
from ordercast.types import Peer
from ordercast.words import short

OBJECTS_MAX = 4_096
CONTROL = bytes(KEY)
SYNC = b""  # a call that changes nothing: who has its answer has applied everything before it

_log = logging.getLogger("ordercast")


class Create(Struct, frozen=True, array_like=True):
    """A new object; nothing happens if there is one of this name and class."""

    name: Name
    title: Annotated[str, Meta(max_length=1_024)]
    digest: Annotated[bytes, Meta(max_length=16)]
    merges: bool
    chunks: list[bytes]


_head = msgspec.msgpack.Decoder(ObjectHead).decode
_group = msgspec.msgpack.Decoder(GroupHead).decode
_step = msgspec.msgpack.Decoder(KeptStep).decode
_create = msgspec.msgpack.Decoder(Create).decode

Entry = Bound | Kept
World = dict[bytes, Entry]


class Objects:
    """The machine of one member."""

    digest = blake2b(b"ordercast objects 1", digest_size=16).digest()
    merges = True  # object by object, where its class does

    def __init__(self, me: Peer, splits: bool = False) -> None:
        self.me, self._splits = me, splits  # whether the parts of a split group may all go on
        self.step = self.new_step()
        self.present_now: tuple[Peer, ...] = ()
        self.classes: dict[tuple[str, bytes], type[Replica]] = {}  # what this program has for a name and a digest
        self.observers: list[Callable[[], None]] = []  # told after every step
        self._entries: World = {}
        self._listeners: dict[str, list[Callable[[Any], None]]] = {}  # of objects that are to come into being anew

    def new_step(self) -> Step:
        return Step(self._splits)

    # ----------------------------------------------------------------------------------------------- the application

    def find(self, name: str) -> Entry | None:
        return next((entry for entry in self._entries.values() if entry.head.name == name), None)

    def titles(self) -> dict[str, str]:
        """Name and class of every object, for people."""
        return {entry.head.name: entry.head.title for entry in self._entries.values()}

    def creation(self, name: str, object: Replica) -> bytes:
        """The call that brings an object into being."""
        if not isinstance(object, Replica):
            raise UsageError(
                f"object {short(name)}: {type(object).__name__}: expected an instance of a Replica's class"
            )
        if not isinstance(name, str) or not 0 < len(name.encode()) <= GROUP_NAME_BYTES_MAX:
            raise UsageError(f"object {short(name)}: expected a name of 1 to {GROUP_NAME_BYTES_MAX} bytes")
        if object._here is not None:
            there = f"it is, or was until its group was left, replicated as {object._here.name!r}"
            raise UsageError(f"object {name!r}: {there}: expected a new object")
        head = head_of(name, object)
        return CONTROL + encode(Create(name, head.title, head.digest, head.merges, chunks_of(object)))

    def expect(self, name: str, object: Replica) -> None:
        """This program has a class for it, and will bring it to life: its calls are applied from now on."""
        self.classes[name, object._shape.digest] = type(object)

    def bind(self, name: str, object: Replica, door: Door) -> Iterator[None]:
        """Bring the object of this name to life in `object`, some steps at a time: calls may be applied between them.
        Raises where it is of another class; ends when all is done."""
        kind, head = type(object), head_of(name, object)
        self.expect(name, object)
        while True:
            kept = self.find(name)
            if kept is None or kept.head.digest != head.digest:
                raise UsageError(_differs(head, kept))
            if isinstance(kept, Bound):
                if kept.placed:
                    raise UsageError(f"object {name!r}: this program has replicated it already")
                fresh = kept
                break
            fresh = Bound.fresh(head, kind, self.new_step())
            if (yield from self._read(kept, fresh)):
                break
        made = Bound(head, object, Here(name, self.step, door))
        made.here.listeners = self._listeners.pop(name, made.here.listeners)
        made.become(fresh)
        Replica._place(object, made.here)
        made.placed = True
        self._entries[made.key] = made

    def _read(self, kept: Kept, fresh: Bound) -> Generator[None, None, bool]:
        """Whether it was read to its end; not if another state came in between."""
        for chunk in list(kept.chunks):
            fresh.restore(chunk)
            yield
            if self._entries.get(kept.key) is not kept:
                return False
        done = 0
        while done < len(kept.steps):
            fresh.replay(kept.steps[done])
            done += 1
            if done < len(kept.steps) - 1:
                yield
                if self._entries.get(kept.key) is not kept:
                    return False
        return True

    # -------------------------------------------------------------------------------------------------------- calls

    def size(self) -> int:
        return 64 + sum(64 + entry.size() for entry in self._entries.values())

    def apply(self, calls: list[bytes], context: Context) -> list[Any]:
        step, entries, own = self.step, self._entries, context.caller == self.me
        step.begin(context)
        number = context.first
        answers = []
        for call in calls:
            step.number = number
            entry = entries.get(call[:KEY])
            if isinstance(entry, Bound):
                answers.append(entry.apply(call, own))
            elif entry is not None:
                answers.append(entry.apply(context, number, call))
            else:
                answers.append(self._control(call))
            number += 1
        self._stepped()
        return answers

    def _control(self, call: bytes) -> Any:
        if call == SYNC:
            return None
        if call[:KEY] != CONTROL:
            return Raised(UsageError("a call to an object that this group does not have, or has by another class"))
        try:
            asked = _create(call[KEY:])
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as why:
            return Raised(UsageError(f"an object that cannot be made: {short(why, 120)}"))
        head = ObjectHead(asked.name, asked.title, asked.digest, asked.merges)
        there = self.find(asked.name)
        if there is not None:
            return None if there.head.digest == head.digest else Raised(UsageError(_differs(head, there)))
        if len(self._entries) >= OBJECTS_MAX:
            return Raised(UsageError(f"object {head.name!r}: a group has at most {OBJECTS_MAX} objects"))
        kept = Kept(head, list(asked.chunks))
        kind = self.classes.get((head.name, head.digest))
        self._entries[kept.key] = kept if kind is None else Bound.of(kept, kind, self.step)
        return None

    def present(self, peers: tuple[Peer, ...], context: Context) -> None:
        gone = tuple(peer for peer in self.present_now if peer not in peers)
        self.present_now = peers
        self.step.begin(context)
        for entry in self._entries.values() if gone else ():
            if isinstance(entry, Bound):
                entry.left(gone)
            else:
                entry.left(context, gone)
        self._stepped()

    def _stepped(self) -> None:
        for observer in self.observers:
            observer()

    # ------------------------------------------------------------------------------------------------ whole states

    def snapshot(self) -> Iterator[bytes]:
        frozen = [(entry.freeze(), entry) for entry in self._entries.values()]
        head = encode(GroupHead(self.present_now))
        return cut(chunk for part in ([(GROUP, head)], *(each.chunks(of) for each, of in frozen)) for chunk in part)

    def restore(self) -> Arriving:
        return Arriving(self)

    def take_over(self, world: World, present: tuple[Peer, ...]) -> None:
        """From now on this is the state."""
        before, self._entries = self._entries, {}
        for key, entry in world.items():
            here = before.get(key)
            if isinstance(here, Bound) and here.placed:
                here.become(Bound.of(entry, type(here.object), self.new_step()) if isinstance(entry, Kept) else entry)
                self._entries[key] = here
            else:
                if isinstance(entry, Bound):
                    entry.here.step = self.step
                self._entries[key] = entry
        self.present_now = present
        for key, entry in before.items():
            if type(entry) is Bound and key not in self._entries:
                self._listeners[entry.head.name] = entry.here.listeners
                Replica._place(entry.object, None)
        self._stepped()

    def merge(self, common: Mark | None, parts: Sequence[Part], mine: int | None) -> None:
        """Object by object: what its class makes of the parts; without such a way the first part that has it wins."""
        worlds: list[dict[str, Entry]] = []
        present: tuple[Peer, ...] = ()
        for part in parts:
            arriving = Arriving(self)
            for piece in part.pieces:
                arriving.feed(piece)
            world, there = arriving.end()
            worlds.append({entry.head.name: entry for entry in world.values()})
            present = tuple(sorted({*present, *there}))
        world = {}
        told: list[Call] = []
        for name in dict.fromkeys(name for each in worlds for name in each):
            first, *others = [k for k, each in enumerate(worlds) if name in each]
            entry = worlds[first][name]
            merged = self._merged(name, worlds, parts) if others else entry
            if merged is None and mine is not None and mine != first and name in worlds[mine]:
                own = worlds[mine][name].key
                told += [call for call in parts[mine].calls or () if (call.payload or b"")[:KEY] == own]
            chosen = merged or entry
            world[chosen.key] = chosen
        self.take_over(world, present)
        if told:
            self.lost(told)

    def _merged(self, name: str, worlds: Sequence[dict[str, Entry]], parts: Sequence[Part]) -> Entry | None:
        """None: the first part wins."""
        first, *others = [(world[name], part) for world, part in zip(worlds, parts, strict=True) if name in world]
        entry = first[0]
        same = [(each, part) for each, part in (first, *others) if each.head.digest == entry.head.digest]
        if not entry.head.merges or len(same) == 1:
            return None
        if type(entry) is not Bound:
            raise RunError(f"object {name!r}: two parts of it meet, and this program has no class to merge them")
        target = Bound.fresh(entry.head, type(entry.object), self.new_step())
        try:
            for chunk in chunks_of(entry.object):
                target.restore(chunk)
            target.here.within = True
            target.object.merge([_part(each, part) for each, part in same])  # type: ignore[attr-defined]
        except Exception as why:
            _log.warning("object %r: merge failed, and its largest part counts alone: %r", name, why)
            return None
        finally:
            target.here.within = False
        return target

    def lost(self, calls: Sequence[Call]) -> None:
        for key in dict.fromkeys((call.payload or b"")[:KEY] for call in calls):
            entry = self._entries.get(key)
            own = [call for call in calls if (call.payload or b"")[:KEY] == key]
            name = entry.head.name if entry is not None else "?"
            _log.warning("object %r: %d calls applied here are not in the state of the group", name, len(own))
            if type(entry) is Bound:
                try:
                    entry.object.lost([entry.called(call) for call in own])
                except Exception:
                    _log.exception("object %r: lost() raised", name)


def _part(entry: Entry, part: Part) -> replica.Part:
    assert type(entry) is Bound
    if part.calls is None or any(call.payload is None for call in part.calls):
        return replica.Part(entry.object, None)
    calls: list[Called] = []
    for call in part.calls:
        if (call.payload or b"")[:KEY] == entry.key:
            calls.append(entry.called(call))
    return replica.Part(entry.object, tuple(calls))


def _differs(head: ObjectHead, there: Entry | None) -> str:
    if there is None:
        return f"object {head.name!r}: the group does not have it"
    if there.head.title == head.title:
        names = f"the group has a {head.title} with other methods, annotations or version"
        return f"object {head.name!r}: {names}: expected the same class, or another name for what the new one holds"
    names = f"it is a {there.head.title} in the group, and a {head.title} here"
    return f"object {head.name!r}: {names}: expected a class with the same methods, annotations and version"


class Arriving:
    """A state on its way, read piece by piece beside the one that counts."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._joiner, self._step = Joiner(), objects.new_step()
        self._world: World = {}
        self._last: Entry | None = None
        self._present: tuple[Peer, ...] | None = None

    def feed(self, piece: bytes) -> None:
        chunk = self._joiner.feed(piece)
        if chunk is None:
            return
        kind, body = chunk
        if kind == GROUP:
            self._present = _group(body).present
        elif kind == OBJECT:
            head = _head(body)
            known = self._objects.classes.get((head.name, head.digest))
            self._last = Bound.fresh(head, known, self._step) if known is not None else Kept(head, [])
            self._world[self._last.key] = self._last
        elif kind == STATE and self._last is not None:
            self._last.restore(body)
        elif kind == STEP and self._last is not None:
            self._last.replay(_step(body))
        else:
            raise RunError("a snapshot that does not begin with who is present, or names no object")

    def end(self) -> tuple[World, tuple[Peer, ...]]:
        if self._joiner.open or self._present is None:
            raise RunError("a snapshot that ends in the middle")
        return self._world, self._present

    def finish(self) -> None:
        self._objects.take_over(*self.end())
