"""Packets that no honest member sends: real ones with fields changed, and new ones made up from their types.

Nothing here names a protocol: types come from msgspec, values from the bounds of each type and from what was seen on
the wire (ids, lives, ring numbers, counters, and those beside them).  Bytes that hold MessagePack (entries of a commit
token, messages of the groups layer) are changed inside.  What is made must be well-formed: it goes through the codec
and its checks, a handful of tries each.
"""

from __future__ import annotations

import random
from collections import deque
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from ordercast.contract import Packet
from ordercast.errors import WireError
from ordercast.groups import FOR_ABOVE
from ordercast.types import Frame, Service
from ordercast.wire.codec import Codec, origin

EDGES = (0, 1, 2, 3, 2**8 - 1, 2**16 - 1, 2**31, 2**32 - 1, 2_000_000, 2**62, 2**62 + 2**32, 2**63 - 1)
TRIES = 8
ITEMS_MAX = 8  # of a made-up list; now and then as many as its type allows
SEEN_MAX = 256


@cache
def shape(kind: Any) -> Any:
    return inspect.type_info(kind)


class Forger:
    """One attacker, by its own generator."""

    def __init__(self, codec: Codec, rng: random.Random) -> None:
        self.codec, self.rng = codec, rng
        self.shapes = {origin(kind): shape(kind) for kind in codec.packets}
        self.packets: dict[type, deque[Packet]] = {kind: deque(maxlen=16) for kind in self.shapes}
        self.numbers: deque[int] = deque(maxlen=SEEN_MAX)
        self.bytes: deque[bytes] = deque(maxlen=32)

    def see(self, packet: Packet) -> None:
        """A real packet passes."""
        self.packets[type(packet)].append(packet)
        if self.rng.random() < 0.2:
            self._harvest(packet)

    def _harvest(self, value: Any) -> None:
        if isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                self._harvest(getattr(value, name))
        elif isinstance(value, tuple):
            for item in value[:16]:
                self._harvest(item)
        elif isinstance(value, bytes):
            self.bytes.append(value)
        elif type(value) is int and value not in self.numbers:
            self.numbers.append(value)

    def make(self, wanted: type[Packet] | None = None) -> tuple[Packet, bytes] | None:
        """A packet, of any type or of this one, and its bytes; None if none of the tries is well-formed."""
        rng = self.rng
        for _ in range(TRIES):
            kind = wanted or rng.choice(list(self.shapes))
            real = self.packets[kind]
            try:
                if real and rng.random() < 0.8:
                    packet = rng.choice(real)
                    for _ in range(rng.choice((1, 1, 1, 2, 4))):
                        packet = self.change(packet, self.shapes[kind])
                else:
                    packet = self.invent(self.shapes[kind])
                data = self.codec.encode(packet)
                return self.codec.decode(data), data
            except (WireError, OverflowError):
                continue
        return None

    # ------------------------------------------------------------------------------------------------------ made up

    def number(self, kind: Any, near: int | None = None) -> int:
        """Within the bounds of its type: an edge, something seen, or a neighbour of either."""
        low = kind.ge if kind.ge is not None else 0
        high = kind.le if kind.le is not None else kind.lt - 1 if kind.lt is not None else 2**64 - 1
        rng, draw = self.rng, self.rng.random()
        if near is not None and draw < 0.4:
            value = near + rng.choice((-2, -1, 1, 2, 64, 1_000))
        elif self.numbers and draw < 0.75:
            value = rng.choice(self.numbers) + rng.choice((-1, 0, 0, 0, 1, 4))
        else:
            value = rng.choice((*EDGES, low, high))
        return min(max(value, low), high)

    def invent(self, kind: Any, depth: int = 0) -> Any:
        rng = self.rng
        match kind:
            case inspect.StructType(cls=cls):
                if cls is Frame:
                    return self.frame()
                if depth and self.packets.get(cls):  # a packet inside another: a real one
                    return rng.choice(self.packets[cls])
                return cls(*(self.invent(field.type, depth + 1) for field in kind.fields))
            case inspect.IntType():
                return self.number(kind)
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.BytesType():
                whole = rng.choice(self.bytes) if self.bytes and rng.random() < 0.7 else rng.randbytes(rng.randrange(9))
                return whole[: kind.max_length]
            case inspect.StrType():
                return rng.choice(("g1", "x", "g" * (kind.max_length or 8)))
            case inspect.VarTupleType():
                most = kind.max_length or ITEMS_MAX
                size = rng.choice((kind.min_length or 0, 1, rng.randrange(ITEMS_MAX + 1), most))
                size = min(max(size, kind.min_length or 0), most)
                items = tuple(self.invent(kind.item_type) for _ in range(min(size, ITEMS_MAX)))
                items = items * (size // max(1, len(items)) + 1)
                return tuple(sorted(set(items[:size]))) if rng.random() < 0.5 and _plain(items) else items[:size]
            case inspect.TupleType():
                return tuple(map(self.invent, kind.item_types))
            case inspect.UnionType():
                return self.invent(rng.choice(kind.types))
            case inspect.NoneType():
                return None
            case inspect.LiteralType():
                return rng.choice(kind.values)
        raise NotImplementedError(f"a packet with a field of type {kind}")

    def frame(self) -> Frame:
        """A frame whose table fits its bytes."""
        rng, of = self.rng, {field.name: field.type for field in shape(Frame).fields}
        data = rng.choice(self.bytes) if self.bytes and rng.random() < 0.5 else bytes(rng.choice((0, 1, 64, 1_400)))
        sender, incarnation, counter = (self.number(of[name]) for name in ("sender", "incarnation", "counter"))
        parts = rng.choice((1, 1, 1, 2, 3, 16_384))
        part = rng.choice((0, 1, parts - 1)) % parts
        lengths = len(data).to_bytes(4, "little") if parts == 1 else b""
        groups = ("g1",) if rng.random() < 0.2 else ()
        service = rng.choice(list(Service))
        control = rng.random() < 0.2
        return Frame(sender, incarnation, counter, 1, service, lengths, data, groups, part, parts, control)

    # ------------------------------------------------------------------------------------------------------ changed

    def change(self, value: Any, kind: Any) -> Any:
        """One thing in it is another."""
        rng = self.rng
        match kind:
            case inspect.StructType() if isinstance(value, msgspec.Struct):
                if isinstance(value, Frame) and rng.random() < 0.3:
                    return self.frame()
                fields = shape(type(value)).fields if not kind.fields else kind.fields
                if not fields:  # there is nothing in it that could be another
                    return value
                field = rng.choice(fields)
                return msgspec.structs.replace(
                    value, **{field.name: self.change(getattr(value, field.name), field.type)}
                )
            case inspect.IntType():
                return self.number(kind, value)
            case inspect.BytesType() if value:
                return self._inside(value)[: kind.max_length]
            case inspect.VarTupleType() if value:
                return self._items(value, kind)
            case inspect.TupleType():
                at = rng.randrange(len(value))
                return (*value[:at], self.change(value[at], kind.item_types[at]), *value[at + 1 :])
            case inspect.UnionType():
                for one in kind.types:
                    same = isinstance(one, inspect.StructType) and type(value) is origin(one.cls)
                    if same or (isinstance(one, inspect.IntType) and type(value) is int):
                        return self.change(value, one) if rng.random() < 0.8 else self.invent(kind)
        return self.invent(kind)

    def _items(self, value: tuple[Any, ...], kind: Any) -> tuple[Any, ...]:
        at, other = self.rng.randrange(len(value)), self.rng.randrange(len(value))
        match self.rng.randrange(6):
            case 0:
                return (*value[:at], *value[at + 1 :])
            case 1:
                return (*value[:at], value[other], *value[at:])[: kind.max_length]
            case 2:
                items = list(value)
                items[at], items[other] = items[other], items[at]
                return tuple(items)
        return (*value[:at], self.change(value[at], kind.item_type), *value[at + 1 :])

    def _inside(self, value: bytes) -> bytes:
        """Bytes that hold MessagePack are changed as what they hold, others by a byte."""
        if value[:1] == FOR_ABOVE and self.rng.random() < 0.9:
            return FOR_ABOVE + self._inside(value[1:]) if len(value) > 1 else value
        try:
            held = msgspec.msgpack.decode(value)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            held = None
        if isinstance(held, list) and held:
            return msgspec.msgpack.encode(self._plainly(held))
        at = self.rng.randrange(len(value))
        return value[:at] + self.rng.randbytes(1) + value[at + 1 :]

    def _plainly(self, held: Any) -> Any:
        rng = self.rng
        if isinstance(held, list) and held:
            at = rng.randrange(len(held))
            return [*held[:at], self._plainly(held[at]), *held[at + 1 :]]
        if type(held) is int:
            return rng.choice((held + 1, max(0, held - 1), rng.choice(EDGES), rng.choice(self.numbers or EDGES)))
        if isinstance(held, list):
            return [rng.choice(EDGES)] * rng.choice((1, 64))
        return rng.choice((held, None, 0, "x"))


def _plain(items: tuple[Any, ...]) -> bool:
    return all(type(item) is int for item in items)
