"""A class of one's own, replicated: its `@ordered` methods run at every member, in one order; the others read here.

    class Stock(ordercast.Replica):
        items: dict[str, int] = {}

        @ordercast.ordered
        def add(self, name: str, count: int) -> int:
            self.items[name] = self.items.get(name, 0) + count
            return self.items[name]

An ordered method called from outside becomes a call: bytes that are ordered, and applied here too in their turn;
what it returns is awaited.  Called by another ordered method it is an ordinary method.  Whatever it does must follow
from its arguments and the fields alone: the time and chance to use are `self.now` and `self.random`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import wraps
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, cast
from weakref import ref

import msgspec
from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.replica.shapes import Method, Shape, encode, mark, members, shape
from ordercast.state.machine import Context
from ordercast.types import MemberId, Peer
from ordercast.words import short

Answer = TypeVar("Answer")
EXTRAS = ("snapshot", "restore", "merge")

_set = object.__setattr__
_raw = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class Step:
    """What comes with the call that is applied now; the same at all members."""

    __slots__ = ("_random", "_seed", "_splits", "_time_ns", "caller", "members", "number")

    def __init__(self, splits: bool = False) -> None:
        self._splits = splits  # the parts of a split group may all go on
        self.caller, self.members = Peer(0, 0), cast(tuple[Peer, ...], ())
        self.number = 0  # the caller's own number of this call
        self._random: tuple[int, Random] | None = None
        self._seed, self._time_ns = b"", 0

    def begin(self, context: Context) -> None:
        """A batch of calls."""
        self.caller, self.members, self.number = context.caller, context.members, context.first
        self._seed, self._time_ns, self._random = context.seed, context.time_ns, None

    @property
    def now(self) -> float:
        return self._time_ns / 1e9

    @property
    def random(self) -> Random:
        if self._random is None or self._random[0] != self.number:
            caller = self.caller
            self._random = self.number, Random(f"{self._seed.hex()} {caller.id} {caller.incarnation} {self.number}")
        return self._random[1]

    def number_above(self, last: int) -> int:
        """A larger number, which no other part of a split group comes to, where several may go on: its upper half
        counts, its lower one is drawn, and another call in another history draws another."""
        return (last >> 32) + 1 << 32 | self.random.getrandbits(32) if self._splits else last + 1


class Called(Struct, frozen=True):
    """A call as its class sees it, for `merge` and `lost`."""

    method: str
    arguments: tuple[Any, ...]
    caller: MemberId


class Part(Struct, frozen=True):
    """One of several states that a split group went on with: the object as it is there, and its calls since the split
    that no part before it has; None where they were too many to be kept."""

    state: Any
    calls: tuple[Called, ...] | None


class Door(Protocol):
    """The way from an object to its group."""

    me: Peer

    def ticket(self) -> int:
        """A number that this life has not used for this object."""

    def call(
        self, method: Method, args: tuple[Any, ...], named: dict[str, Any], service: str | None, durable: bool | None
    ) -> Any:
        """Order a call; to be awaited."""

    def surely(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Make a call that may be applied twice, again and again until it is known to be applied, or the group is left;
        nobody waits for it."""

    def sync(self) -> Awaitable[None]:
        """Until everything is applied that was ordered before."""

    def until(self, what: Callable[[], Answer | None], timeout: float | None) -> Awaitable[Answer]:
        """The first answer that is not None, asked again after every step of the order."""

    def patience(self, timeout: float | None) -> Callable[[], float | None]:
        """What is left of a time that begins now, for one who waits more than once."""

    def told(self, listeners: list[Callable[[Any], None]], wanted: Callable[[Any], bool]) -> Any:
        """What those who listen hear from now on, as an iterator to be awaited."""


class Here:
    """What is this member's own of a replicated object: no part of its state."""

    __slots__ = ("door", "frozen", "listeners", "name", "step", "within")

    def __init__(self, name: str, step: Step, door: Door | None) -> None:
        self.name, self.step, self.door = name, step, door
        self.within = False  # a step of the order is being taken
        self.listeners: list[Callable[[Any], None]] = []
        self.frozen: list[ref[Any]] = []  # snapshots that are still read, of a class with such a way of its own


def ordered(function: Callable[..., Answer]) -> Callable[..., Awaitable[Answer]]:
    """Mark a method: it is applied at every member, in one order, and its result is awaited.

    A call takes two words besides its arguments: `service` ("safe" or "agreed") and `durable=True`.
    """
    mark(function)
    name = function.__name__

    @wraps(function)
    def call(self: Replica, *args: Any, service: str | None = None, durable: bool | None = None, **named: Any) -> Any:
        here = self._here
        if here is not None and here.within:
            return function(self, *args, **named)
        return self._door(name).call(self._methods[name], args, named, service, durable)

    call.__ordered__ = function  # type: ignore[attr-defined]
    return call


class Replica:
    """Base of replicated classes.  Annotated attributes are the state; all else is refused.

    A class may have ways of its own: `snapshot() -> bytes or an iterable of bytes`; `restore(piece)`, which gets each
    of them in turn, on a new object that never saw `__init__`; and `merge(parts)`, which makes the object of the first
    part what all `Part`s are together.  `left(peers)` is a step of the order: these lives are no longer in the group.
    `lost(calls)` is told here alone: what was applied at this member and is not in the state it took over.
    """

    __slots__ = ("_here",)

    version: ClassVar[int] = 1  # members with different ones do not share an object
    _shape: ClassVar[Shape]
    _methods: ClassVar[dict[str, Method]]
    _defaults: ClassVar[dict[str, Any]]
    _types: ClassVar[dict[Any, Any]] = {}
    _special: ClassVar[dict[Any, type]]
    if TYPE_CHECKING:
        _here: Here | None

    # ------------------------------------------------------------------------------------------------------ the class

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        extras = tuple(name for name in EXTRAS if getattr(cls, name, None) is not getattr(Replica, name, None))
        if ("snapshot" in extras) is not ("restore" in extras):
            raise UsageError(f"{cls.__name__}: expected both snapshot and restore, or neither")
        if cls.__dictoffset__ == 0:
            raise UsageError(f"{cls.__name__}: __slots__: expected a class without them")
        if type(cls.version) is not int:
            raise UsageError(f"{cls.__name__}: version {short(cls.version)}: expected a whole number")
        cls._special = {}
        taken = [name for name in vars(cls).get("__annotations__", {}) if name in vars(Replica) and name != "version"]
        if taken and cls.__module__ != __name__:
            raise UsageError(f"{cls.__name__}.{taken[0]}: every replica has something of this name: expected another")
        cls._shape = shape(cls, cls.__name__, cls.version, cls._types, extras)
        cls._methods = {method.name: method for method in cls._shape.methods}
        plain = dict(members(cls))
        cls._defaults = {
            name: plain[name] for name in cls._shape.fields if isinstance(plain.get(name), (list, dict, set))
        }

    def __class_getitem__(cls, given: Any) -> Any:
        """With types for its type variables: Dict[str, int]."""
        types = given if isinstance(given, tuple) else (given,)
        made = cls._special.get(types)
        if made is None:
            free = [each for each in getattr(cls, "__parameters__", ()) if each not in cls._types]
            if len(free) != len(types):
                raise UsageError(f"{cls.__name__}: {len(types)} types given: expected {len(free)}")
            title = (
                f"{cls.__name__}[{', '.join(each.__name__ if isinstance(each, type) else str(each) for each in types)}]"
            )
            space = {"__module__": cls.__module__, "_types": cls._types | dict(zip(free, types, strict=True))}
            made = cls._special[types] = type(title, (cls,), space | {"__slots__": ()})
        return made

    def __new__(cls, *args: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        _set(made, "_here", None)
        for name, value in cls._defaults.items():
            _set(made, name, value.copy())
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        here = self._here
        if here is not None and not here.within:
            raise UsageError(f"{here.name}.{name}: set outside of an ordered method, which would change it here alone")
        if name not in self._shape.fields:
            raise UsageError(
                f"{self._shape.title}.{name}: not annotated in the class, so it would not be a part of its state"
            )
        _set(self, name, value)

    @staticmethod
    def _place(object: Replica, here: Here | None) -> None:
        """It is in a group now, or no longer."""
        _set(object, "_here", here)

    # ----------------------------------------------------------------------------------------- within ordered methods

    @property
    def now(self) -> float:
        """Seconds since 1970 by the clock of the member that called; the same at all members."""
        return self._step("now").now

    @property
    def random(self) -> Random:
        """A generator for this call, in the same state at all members; whoever sees the order can foretell it."""
        return self._step("random").random

    @property
    def caller(self) -> Peer:
        """The life of the member that called."""
        return self._step("caller").caller

    @property
    def present(self) -> tuple[Peer, ...]:
        """The lives that are in the group."""
        return self._step("present").members

    def _step(self, what: str) -> Step:
        here = self._here
        if here is None or not here.within:
            raise UsageError(f"{self._shape.title}.{what}: it comes with a call: expected within an ordered method")
        return here.step

    def tell(self, event: Any) -> None:
        """Hand something to those who listen at this member; no part of the state."""
        here = self._here
        if here is not None:
            for listener in tuple(here.listeners):
                listener(event)

    # ------------------------------------------------------------------------------------------------ from outside

    async def sync(self) -> None:
        """Until everything is applied here that was ordered, anywhere, before this was called."""
        await self._door("sync").sync()

    async def until(self, what: Callable[[], Answer | None], timeout: float | None = None) -> Answer:
        """Until `what()` is not None here, which is what is returned; asked after every step of the order."""
        return await self._door("until").until(what, timeout)

    def told(self, wanted: Callable[[Any], bool] = lambda event: True) -> Any:
        """`async for event in replica.told()`: what the object tells here from now on."""
        door = self._door("told")
        assert self._here is not None
        return door.told(self._here.listeners, wanted)

    def _surely(self, call: Callable[[], Awaitable[Any]]) -> None:
        """What nobody waits for any more is taken back, whatever becomes of one call."""
        if self._here is not None and self._here.door is not None:
            self._here.door.surely(call)

    def _door(self, what: str) -> Door:
        here = self._here
        if here is None or here.door is None:
            raise UsageError(f"{self._shape.title}.{what}: not in a group: use join(objects=...) or group.replicate")
        return here.door

    # ------------------------------------------------------------------------------------------------- ways of a class

    def snapshot(self) -> bytes | Iterable[bytes]:
        """The whole state; by default its fields."""
        missing = [name for name in self._shape.fields if not hasattr(self, name)]
        if missing:
            raise UsageError(
                f"{self._shape.title}: {', '.join(missing)} has no value: set it in __init__, or in the class"
            )
        return encode([getattr(self, name) for name in self._shape.fields])

    def restore(self, piece: bytes) -> None:
        """The next of what `snapshot` gave."""
        for (name, read), value in zip(self._shape.readers.items(), _raw(piece), strict=True):
            _set(self, name, read(value))

    def left(self, peers: Sequence[Peer]) -> None:
        """These lives are gone; a step of the order."""

    def lost(self, calls: Sequence[Called]) -> None:
        """These calls were applied at this member, and are not in the state that it took over."""

    def _freeze(self) -> Iterator[bytes] | None:
        """A snapshot of now that is read later, piece by piece, whatever is applied meanwhile; None: the class has no
        such way, and `snapshot` is asked before the object changes again."""
        return None

    def _taken_over(self, old: Self) -> None:
        """Another state has taken the place of `old`, for those who listen here."""

    def _bytes_held(self) -> int:
        """About how large a snapshot would be, if that is cheap to know; else 0."""
        return 0
