"""TOML that a person wrote: read it, find every fault in it, and say where each one is.

A `Source` is a file (or a table given from Python) that becomes a struct.  The struct describes what may be written:
types and bounds say it for msgspec too, a `Rule` beside a type says what a type cannot.  msgspec stops at the first
fault; here the table is walked beside the struct, so that all are told at once.  Each is one sentence: where it stands,
what stands there, what was expected, and the name that was probably meant.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct, inspect, structs

from ordercast import files
from ordercast.errors import ConfigError
from ordercast.words import bounds, meant, one_of, short

TOLD_MAX = 20  # faults of one source that are told
TOLD_CHARS = 240  # of names in one sentence
DEPTH_MAX = 16  # of tables and arrays within each other
SMALL, LARGE = 1e-12, 1e18  # no number that is meant is nearer to 0, or farther from it
WHOLE_MAX = 2**64 - 1

T = TypeVar("T")
NOTHING: Any = object()  # instead of a value whose fault was told


class Rule(NamedTuple):
    """Beside a field's type: turns what was written into the value, or says by ValueError what was expected."""

    make: Callable[[Any], Any]


class Need(NamedTuple):
    """Beside a field's type: it must be written; its default only lets the rest be judged without it."""

    words: str = ""  # what is expected, where the type does not say it


def string(value: Any) -> str:
    """For rules: what was written, if it is a string."""
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def word(*words: str) -> Rule:
    def rule(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected {one_of(value, words)}")
        return str(value)

    return Rule(rule)


def value_of(text: str) -> Any:
    """One value as TOML writes it; ValueError if it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def struct_of(data: Any, shape: type[T], name: str) -> T:
    """The table as a struct; ConfigError with all faults, each begun by `name`."""
    source = Source(name, data)
    found = source.part(data, shape)
    source.refuse()
    return found  # type: ignore[no-any-return]


def unfit(value: Any, kind: Any) -> str:
    """What was expected instead of this value, in words; empty if it is in order."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return one_of(value, filter(None, get_args(kind))) if get_origin(kind) is Literal else expected(kind)
    return ""


def expected(kind: Any) -> str:
    """What a type takes, in words."""
    return _words(inspect.type_info(kind))


def some(names: Iterable[str]) -> str:
    """These, or as many of them as a person reads in one sentence."""
    told = ", ".join(names)
    return told if len(told) <= TOLD_CHARS else told[:TOLD_CHARS].rpartition(",")[0] + ", ..."


class Source:
    """What was written, where each key of it stands, and the faults found so far."""

    def __init__(self, name: str, data: Any, lines: dict[str, int] | None = None) -> None:
        self.name, self.data, self.lines = name, data, lines or {}
        self.variables: dict[str, str] = {}  # key path -> the environment variable it came from
        self.faults: list[tuple[str, str]] = []  # key path, words
        self.odd: dict[str, str] = {}  # path of what no key can mean -> what was expected
        self._look(data)

    @classmethod
    def of_text(cls, text: str, name: str) -> Source:
        try:
            return cls(name, tomllib.loads(text), _lines(text))
        except ValueError as why:  # also integers of too many digits
            raise ConfigError([f"{name}: not valid TOML: {_lower(str(why))}"]) from None
        except RecursionError:
            raise ConfigError([f"{name}: not valid TOML: nested too deeply"]) from None

    @classmethod
    def of_file(cls, path: Path, like: str) -> Source:
        """`like`: what such a file is usually called."""
        return cls.of_text(_text(path, like), str(path))

    def _look(self, data: Any) -> None:
        """Numbers that nobody means and tables that nobody reads, wherever they stand."""
        todo: list[tuple[str, Any, int]] = [("", data, 0)]
        while todo:
            path, value, depth = todo.pop()
            if isinstance(value, dict | list | tuple) and depth < DEPTH_MAX:
                inner = value.items() if isinstance(value, dict) else enumerate(value)
                within = [(_join(path, k) if isinstance(value, dict) else f"{path}[{k}]", v) for k, v in inner]
                todo += [(at, each, depth + 1) for at, each in reversed(within)]
            elif expected := _odd(value):
                self.odd[path] = f"{shown(value)}: expected {expected}"

    # ------------------------------------------------------------------------------------------------------- faults

    def fault(self, path: str, words: str) -> None:
        self.faults.append((path, words))

    def wrong(self, path: str, value: Any, expected: str) -> None:
        self.fault(path, f"{shown(value)}: expected {expected}")

    def faulty(self, *keys: str) -> bool:
        """Was anything found in these keys of the outermost table, or in what stands below them?"""
        return any(re.split(r"[.\[]", path)[0] in keys for path, _ in self.faults)

    def told(self, path: str) -> bool:
        """Was anything found at this key, or below it?"""
        return any(at == path or at.startswith((f"{path}.", f"{path}[")) for at, _ in self.faults)

    def where(self, path: str) -> str:
        """The place of a key, or of the nearest table around it, for the sentence about it."""
        if path in self.variables:
            return f"environment: {self.variables[path]}"
        at = path
        while at and at not in self.lines:
            at = at[: max(at.rfind("."), at.rfind("["), 0)]
        line = f"line {self.lines[at]}" if at else ""
        return ": ".join(part for part in (self.name, line, path) if part)

    def refuse(self) -> None:
        """Raise ConfigError, a sentence for each fault up to a number that can be read, if there is any."""
        told = {path for path, _ in self.faults}
        self.faults += [(path, words) for path, words in self.odd.items() if path not in told]
        if self.faults:
            rest = len(self.faults) - TOLD_MAX
            more = [f"{self.name}: and {rest} more"] if rest > 0 else []
            raise ConfigError([f"{self.where(path)}: {words}" for path, words in self.faults[:TOLD_MAX]] + more)

    # ---------------------------------------------------------------------------------------------------- the walk

    def part(self, value: Any, kind: Any, path: str = "") -> Any:
        """The value as `kind`, or NOTHING when what is wrong with it has been told."""
        if path in self.odd:
            bare = inspect.type_info(kind) if kind in (int, float) or get_origin(kind) is Annotated else None
            if isinstance(bare, inspect.IntType | inspect.FloatType):
                self.wrong(path, value, _words(bare))
            return NOTHING
        bare, notes = (kind.__origin__, kind.__metadata__) if get_origin(kind) is Annotated else (kind, ())
        for note in notes:
            if isinstance(note, Rule):
                return self._by_rule(value, note, path)
        origin, inner = get_origin(bare), get_args(bare)
        if origin in (Union, UnionType):
            kinds = [each for each in inner if each is not NoneType]
            if len(kinds) == 1 and value is not None:
                return self.part(value, kinds[0], path)
            if all(isinstance(each, type) and issubclass(each, Struct) for each in kinds):
                return self._tagged(value, kinds, path)
        if isinstance(bare, type) and issubclass(bare, Struct):
            return self._struct(value, bare, path)
        if (origin is list or (origin is tuple and inner[1:] == (...,))) and isinstance(value, list | tuple):
            parts = [self.part(each, inner[0], f"{path}[{k}]") for k, each in enumerate(value)]
            return NOTHING if NOTHING in parts else origin(parts)
        if origin is dict and isinstance(value, dict):
            table = {key: self.part(each, inner[1], _join(path, key)) for key, each in value.items()}
            return NOTHING if NOTHING in table.values() else table
        if words := unfit(value, kind):
            needed = [note.words for note in notes if isinstance(note, Need) and note.words]
            self.wrong(path, value, needed[0] if needed else words)
            return NOTHING
        return msgspec.convert(value, kind)

    def _by_rule(self, value: Any, rule: Rule, path: str) -> Any:
        try:
            return rule.make(value)
        except ValueError as why:
            self.fault(path, f"{shown(value)}: {why}")
            return NOTHING

    def _tagged(self, value: Any, kinds: list[type[Struct]], path: str) -> Any:
        """One of several structs: a key says which."""
        tags = {str(each.__struct_config__.tag): each for each in kinds}
        key = str(kinds[0].__struct_config__.tag_field)
        if not isinstance(value, dict):
            self.wrong(path, value, "a table")
        elif key not in value:
            self.fault(_join(path, key), f"is missing: expected {one_of('', tags)}")
        elif not isinstance(value[key], str) or value[key] not in tags:
            self.wrong(_join(path, key), value[key], one_of(value[key], tags))
        else:
            return self._struct(value, tags[value[key]], path, key)
        return NOTHING

    def _struct(self, value: Any, shape: type[Struct], path: str, tag: str | None = None) -> Any:
        if not isinstance(value, dict):
            self.wrong(path, value, "a table")
            return NOTHING
        before = len(self.faults)
        fields = {field.encode_name: field for field in structs.fields(shape)}
        parts = {}
        for key, field in fields.items():
            if key in value:
                parts[field.name] = self.part(value[key], field.type, _join(path, key))
            elif needed := _needed(field):
                self.fault(_join(path, key), f"is missing: expected {needed}")
        for key in value:
            if key not in fields and key != tag:
                close = meant(str(key), fields) or (f": expected one of {some(fields)}" if fields else "")
                self.fault(_join(path, key), f"unknown key {short(key)}{close}")
        try:
            return shape(**{name: part for name, part in parts.items() if part is not NOTHING})
        except (TypeError, ValueError) as why:  # a needed part is missing; or the struct's own rule
            if len(self.faults) == before:
                self.fault(path, _lower(str(why)))
            return NOTHING


def _odd(value: Any) -> str:
    """What was expected instead of a value that no key can mean; empty of any other."""
    if isinstance(value, float):
        return "" if value == 0 or SMALL <= abs(value) <= LARGE else "a finite number, 0 or not so near to it"
    if isinstance(value, int):
        return "" if abs(value) <= WHOLE_MAX else "a whole number below 2^64"
    return f"at most {DEPTH_MAX} tables and arrays within each other" if isinstance(value, dict | list | tuple) else ""


def _join(path: str, key: Any) -> str:
    return f"{path}.{short(key)}" if path else short(key)


def _needed(field: structs.FieldInfo) -> str:
    """What is expected of a field that must be there; empty if it need not."""
    notes = [note for note in getattr(field.type, "__metadata__", ()) if isinstance(note, Need)]
    if not notes and not field.required:
        return ""
    return next((note.words for note in notes if note.words), "") or expected(field.type)


# ----------------------------------------------------------------------------------------------------------- words


def _words(info: inspect.Type) -> str:
    """What a type takes."""
    match info:
        case inspect.IntType() | inspect.FloatType():
            noun = "a whole number" if isinstance(info, inspect.IntType) else "a number"
            return noun + bounds(info.ge, info.le, info.gt, info.lt)
        case inspect.LiteralType():
            return one_of("", filter(None, info.values))
        case inspect.UnionType():
            return " or ".join(_words(each) for each in info.types if not isinstance(each, inspect.NoneType))
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "a string"
        case inspect.ListType() | inspect.VarTupleType() | inspect.TupleType():
            return "an array"
    return "a table"


def shown(value: Any) -> str:
    """What stands there: a short value itself, else its kind."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return short(value)
    if isinstance(value, list | tuple):
        return "an array" if value else "an empty array"
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


# ----------------------------------------------------------------------------------------------------------- files


def _text(path: Path, like: str) -> str:
    try:
        if path.is_dir():
            raise ConfigError([f"{path}: is a directory: expected a file such as {path / like}"])
        raw = files.read(path)
    except OSError as error:
        raise ConfigError([f"{short(path, 300)}: cannot be read: {error.strerror}"]) from None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError([f"{path}: begins with the byte order mark of UTF-16: expected UTF-8"])
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        words = f"byte 0x{raw[error.start]:02x} is not UTF-8: expected a TOML file"
        raise ConfigError([f"{path}: line {line}: {words}"]) from None


_KEY = re.compile(r"""\s*([\w-]+(?:\s*\.\s*[\w-]+)*)\s*=""")
_HEAD = re.compile(r"""\s*(\[\[?)\s*([\w-]+(?:\s*\.\s*[\w-]+)*)\s*(\]\]?)\s*(?:#.*)?$""")


def _lines(text: str) -> dict[str, int]:
    """Key path ("net.port", "member[1].id") -> line, as far as one can tell line by line."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}  # tables of a list so far
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        head = _HEAD.match(line)
        if head and len(head[1]) == len(head[3]):
            *around, last = re.split(r"\s*\.\s*", head[2])
            table = ""
            for part in around:
                table = _join(table, part)
                table += f"[{counts[table] - 1}]" if table in counts else ""
            table = _join(table, last)
            if head[1] == "[[":
                lines.setdefault(table, number)
                counts[table] = counts.get(table, 0) + 1
                table += f"[{counts[table] - 1}]"
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            at = table
            for part in re.split(r"\s*\.\s*", key[1]):
                at = _join(at, part)
                lines.setdefault(at, number)
    return lines
