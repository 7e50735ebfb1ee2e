"""A TOML file that a person wrote: read it, find every fault in it, and say where each one is.

Used for the configuration.  A *rule* turns a raw value into the wanted one or raises ValueError saying what was
expected; a `Table` applies rules key by key and collects the faults, so that all are told at once.  Scenarios and
experiments are structs: `convert` finds all that msgspec has against a table, and `told` makes sentences of it.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ordercast.errors import ConfigError
from ordercast.words import near, short

FILE_BYTES_MAX = 2**20
TOLD_MAX = 20  # faults of one scenario or experiment that are told
FOUND_MAX = 1000  # and that are looked for

T = TypeVar("T")


def read(path: Path) -> tuple[dict[str, Any], Places]:
    """The file's tables, and where its keys stand; a file that is no TOML is one fault."""
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except ValueError as error:  # also integers of too many digits
        raise ConfigError([f"{path}: not valid TOML: {_lower(str(error))}"]) from None
    except RecursionError:
        raise ConfigError([f"{path}: not valid TOML: nested too deeply"]) from None
    return data, Places(str(path), _lines(text))


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise ConfigError([f"{path}: is a directory: expected a file such as {path / 'group.toml'}"])
        if path.exists() and not path.is_file():
            raise ConfigError([f"{path}: is not a regular file"])
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {error.strerror}"]) from None
    except ValueError as error:  # a NUL in the name
        raise ConfigError([f"{short(path)}: cannot be read: {error}"]) from None
    if len(raw) > FILE_BYTES_MAX:
        raise ConfigError([f"{path}: is larger than {FILE_BYTES_MAX} bytes: expected a configuration"])
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError([f"{path}: begins with a byte order mark: expected UTF-8 without one"])
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError([f"{path}: line {line}: byte 0x{raw[error.start]:02x} is not UTF-8"]) from None


_KEY = re.compile(r"""\s*([\w-]+(?:\s*\.\s*[\w-]+)*)\s*=""")
_HEAD = re.compile(r"""\s*(\[\[?)\s*([\w.-]+)\s*\]""")


def _lines(text: str) -> dict[str, int]:
    """Key path ("net.port", "member[2].id") -> line, as far as one can tell line by line."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if head := _HEAD.match(line):
            table = head[2]
            if head[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                table = f"{table}[{counts[table]}]"
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            name = re.sub(r"\s", "", key[1])
            lines.setdefault(f"{table}.{name}" if table else name, number)
    return lines


class Places:
    """Where a key stands, for the sentence about it."""

    def __init__(self, source: str, lines: dict[str, int]) -> None:
        self.source, self.lines = source, lines
        self.environment: dict[str, str] = {}  # key path -> the variable it came from

    def of(self, path: str) -> str:
        if path in self.environment:
            return f"environment: {self.environment[path]}"
        line = self.lines.get(path) or self.lines.get(path.rpartition(".")[0])
        return f"{self.source}: line {line}: {path}" if line else f"{self.source}: {path}"


class Table:
    """One table: hands out its keys through rules, collects faults, and at the end names the keys nobody knows."""

    def __init__(self, data: Any, place: Places, faults: list[str], path: str = "") -> None:
        self.place, self.faults, self.path = place, faults, path
        self.known: list[str] = []
        if not isinstance(data, dict):
            self.fault("", f"{kind(data)}: expected a table")
            data = {}
        self.data: dict[str, Any] = data

    def fault(self, key: str, words: str) -> None:
        path = f"{self.path}.{key}".strip(".")
        self.faults.append(f"{self.place.of(path)}: {words}")

    def take(self, key: str, rule: Callable[[Any], T], default: T) -> T:
        """The key's value through its rule, or the default; a rule says what it expected by ValueError."""
        self.known.append(key)
        if key not in self.data:
            return default
        try:
            return rule(self.data[key])
        except ValueError as why:
            self.fault(key, f"{shown(self.data[key])}: {why}")
            return default

    def need(self, key: str, rule: Callable[[Any], T], default: T, expected: str) -> T:
        if key not in self.data:
            self.fault(key, f"is missing: expected {expected}")
        return self.take(key, rule, default)

    def finish(self) -> None:
        for key in self.data:
            if key not in self.known:
                self.fault(short(key), f"unknown key {near(key, self.known)}")


# ------------------------------------------------------------------------------------------------- tables as structs


def told(place: str, faults: list[str]) -> ConfigError:
    """A sentence for each fault, up to a number that can be read."""
    rest = len(faults) - TOLD_MAX
    more = [f"{place}: and {rest} more"] if rest > 0 else []
    return ConfigError([f"{place}: {text}" for text in faults[:TOLD_MAX]] + more)


def convert(table: Any, shape: type[T], spare: Mapping[str, Any]) -> tuple[T | None, list[str]]:
    """The table as `shape`, and everything that msgspec had against it, in its own words.

    It stops at the first fault: what it names is taken out, and the rest tried again.  `spare` has for the name of a
    list an entry that is in order, to stand where a faulty one was: so the others keep their numbers.
    """
    faults: list[str] = []
    while True:
        try:
            return msgspec.convert(table, shape), faults
        except msgspec.ValidationError as why:
            table = table if faults else copy.deepcopy(table)
            faults.append(str(why))
            if len(faults) >= FOUND_MAX or not _take_out(table, str(why), spare):
                return None, faults


def _take_out(table: Any, fault: str, spare: Mapping[str, Any]) -> bool:
    """Remove what the fault is about; False if it is the whole table or cannot be found."""
    what, _, where = fault.partition(" - at `$")
    steps = [int(index) if index else key for key, index in re.findall(r"\.([^.[`]+)|\[(\d+)\]", where)]
    if unknown := re.match(r"Object contains unknown field `(.*)`", what):
        steps.append(unknown[1])
    elif steps and steps[-1] == "fault":
        steps.pop()  # the word that says what the other keys mean
    while steps:
        holder = table
        try:
            for step in steps[:-1]:
                holder = holder[step]
            if isinstance(holder, dict):
                del holder[steps[-1]]
                return True
            if len(steps) > 1 and steps[-2] in spare:
                holder[steps[-1]] = copy.deepcopy(spare[str(steps[-2])])
                return True
        except (LookupError, TypeError):
            return False
        steps.pop()  # a list without such an entry has to go as a whole
    return False


# ---------------------------------------------------------------------------------------------------------- values


def kind(value: Any) -> str:
    words = {bool: "a boolean", int: "a whole number", float: "a decimal number", str: "a string", list: "an array"}
    return words.get(type(value), "a table" if isinstance(value, dict) else f"a {type(value).__name__}")


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return short(value) if isinstance(value, str | int | float) else kind(value)


def whole(low: int, high: int) -> Callable[[Any], int]:
    def rule(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return value

    return rule


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def word(*words: str) -> Callable[[Any], str]:
    def rule(value: Any) -> str:
        if value not in words:
            raise ValueError(f"expected {' or '.join(words) if len(words) < 3 else 'one of ' + ', '.join(words)}")
        return str(value)

    return rule


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def to_toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {to_toml(item)}' for key, item in value.items())}}}"
    return repr(value)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
