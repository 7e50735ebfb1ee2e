"""The shape of a replicated class: its ordered methods and its fields, typed by their annotations, and their digest.

Everything that members tell each other of an object goes through msgspec, typed: arguments, results, fields.  What it
cannot encode is refused when the class is defined, in one sentence.  Two programs whose digests are equal understand
each other's calls; the code of a method is not part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from hashlib import blake2b
from typing import Any, ClassVar, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import inspect as kinds

from ordercast.errors import UsageError
from ordercast.words import short

METHODS_MAX = 256  # their number is a byte of a call
RESERVED = ("service", "durable")  # how a call is made, not what it says
ATOMS = frozenset((type(None), bool, int, float, str, bytes))  # nobody can change them

encode = msgspec.msgpack.Encoder().encode


class Method:
    """One ordered method: how its arguments become bytes and come back."""

    __slots__ = ("_signature", "_whole", "count", "decode", "function", "name", "number", "title")

    def __init__(self, title: str, number: int, function: Callable[..., Any], hints: dict[str, Any]) -> None:
        self.name, self.title, self.number, self.function = function.__name__, title, number, function
        self._signature = inspect.signature(function)
        _, *parameters = self._signature.parameters
        self.count = len(parameters)
        types = tuple(hints[name] for name in parameters)
        self.decode: Callable[[bytes], tuple[Any, ...]] = _decoder(title, tuple[types])  # type: ignore[valid-type]
        self._whole = _decoder(title, hints["return"])

    def arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> bytes:
        """What a caller gave, checked as every member will read it."""
        if named or len(args) != self.count:
            try:
                bound = self._signature.bind(None, *args, **named)
            except TypeError as why:
                raise TypeError(f"{self.title}: {why}") from None
            bound.apply_defaults()
            args = tuple(bound.arguments.values())[1:]
        try:
            data = encode(args)
            self.decode(data)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as why:
            raise TypeError(f"{self.title}: {self._where(str(why))}") from None
        return data

    def copy(self, value: Any) -> Any:
        """A result for the application, which may do with it what it likes."""
        if type(value) in ATOMS:
            return value
        try:
            return self._whole(encode(value))
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as why:
            raise TypeError(f"{self.title}: its result is not what its annotation says: {why}") from None

    def _where(self, why: str) -> str:
        """msgspec names an argument by its place; people by its name."""
        for place, name in enumerate(list(self._signature.parameters)[1:]):
            why = why.replace(f"`$[{place}]", f"`{name}")
        return why


class Shape(Struct, frozen=True):
    """What is known of a class."""

    title: str  # as people write it: Dict[str, int]
    version: int
    methods: tuple[Method, ...]
    fields: dict[str, Any]  # name -> type, in the order of the class
    readers: dict[str, Callable[[bytes], Any]]  # of each field
    digest: bytes


def mark(function: Any) -> None:
    """Refuse, where it is written, what can never be an ordered method."""
    if not inspect.isfunction(function):
        raise UsageError(f"ordered: {short(function)}: expected a method")
    title = function.__qualname__
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise UsageError(f"{title}: an ordered method is applied without waiting: expected def, and no yield")
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise UsageError(f"{title}: {parameter.name}: expected plain parameters: no *, ** or /")
        if parameter.name in RESERVED:
            raise UsageError(f"{title}: {parameter.name} says how a call is made: expected another name")
        if parameter.annotation is parameter.empty:
            raise UsageError(f"{title}: {parameter.name} has no annotation, which says how it is encoded")
    if "return" not in function.__annotations__:
        raise UsageError(f"{title}: the result has no annotation: expected -> and a type, or -> None")


def shape(cls: type, title: str, version: int, bound: dict[Any, Any], extras: tuple[str, ...]) -> Shape:
    """Of a class with the types given for its type variables; `extras`: which optional ways of its own it has."""
    found = {name: value.__ordered__ for name, value in members(cls) if hasattr(value, "__ordered__")}
    if len(found) > METHODS_MAX:
        raise UsageError(f"{title}: {len(found)} ordered methods: expected at most {METHODS_MAX}")
    hints = {name: _hints(f"{title}.{name}", function, bound) for name, function in found.items()}
    methods = [Method(f"{title}.{name}", k, found[name], hints[name]) for k, name in enumerate(sorted(found))]
    fields = {
        name: hint
        for name, hint in _hints(title, cls, bound).items()
        if get_origin(hint) is not ClassVar and hint is not ClassVar
    }
    readers = {name: _decoder(f"{title}.{name}", hint) for name, hint in fields.items()}
    words = {"class": cls.__name__.partition("[")[0], "version": version, "extras": sorted(extras)}
    lines = [repr(words), *(f"{name}: {_words(hint)}" for name, hint in fields.items())]
    for method in methods:
        lines.append(f"{method.name}({', '.join(f'{n}: {_words(t)}' for n, t in hints[method.name].items())})")
    digest = blake2b("\n".join(lines).encode(), digest_size=16).digest()
    return Shape(title, version, tuple(methods), fields, readers, digest)


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The attributes of a class as its instances see them."""
    seen: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        seen |= vars(base)
    yield from seen.items()


def _hints(title: str, of: Any, bound: dict[Any, Any]) -> dict[str, Any]:
    try:
        found = get_type_hints(of, include_extras=True)
    except (NameError, TypeError, SyntaxError) as why:
        raise UsageError(f"{title}: an annotation cannot be read: {why}") from None
    return {name: _filled(hint, bound) for name, hint in found.items()}


def _filled(hint: Any, bound: dict[Any, Any]) -> Any:
    """With type variables replaced; one of which nothing is said is anything."""
    if isinstance(hint, TypeVar):
        return bound.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(bound.get(each, Any) for each in parameters)] if parameters else hint


def _decoder(title: str, hint: Any) -> Callable[[bytes], Any]:
    try:
        decode = msgspec.msgpack.Decoder(hint).decode
        odd = next((info for info in _walk(kinds.type_info(hint), set()) if isinstance(info, kinds.CustomType)), None)
    except (TypeError, NotImplementedError) as why:
        raise UsageError(f"{title}: cannot be encoded: {why}") from None
    if odd is not None:
        name = getattr(odd.cls, "__name__", str(odd.cls))
        raise UsageError(f"{title}: {name} cannot be encoded: expected a type that msgspec knows, such as a Struct")
    return decode


def _walk(info: Any, seen: set[Any]) -> Iterator[Any]:
    """A type and all within it."""
    yield info
    key = getattr(info, "cls", None)
    if key is not None and not isinstance(info, kinds.CustomType):
        if key in seen:
            return
        seen.add(key)
    for name in info.__struct_fields__:
        value = getattr(info, name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, kinds.Type | kinds.Field):
                yield from _walk(each, seen)


def _words(hint: Any) -> str:
    """A type in words that are the same in every program."""
    return " ".join(_said(info) for info in _walk(kinds.type_info(hint), set()))


def _said(info: Any) -> str:
    parts = [type(info).__name__]
    for name in info.__struct_fields__:
        value = getattr(info, name)
        if isinstance(value, type):
            parts.append(value.__name__)
            parts += [f"{each.name}={each.value!r}" for each in value] if issubclass(value, Enum) else []
        elif isinstance(value, (str, int, float, bytes)):
            parts.append(f"{name}={value!r}")
        elif isinstance(value, tuple):
            parts += [f"{name}={each!r}" for each in value if type(each) in ATOMS]
            parts.append(f"{name}:{len(value)}")
    return "(" + " ".join(parts) + ")"
