"""Keys of a file that may come from the environment: net.port from ORDERCAST_NET_PORT.

Where file and environment disagree, that is a fault: neither wins in silence.  So is a variable that means no key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct, structs

from ordercast.toml_input import Source, shown
from ordercast.words import near

PREFIX = "ORDERCAST_"


def variable(path: str) -> str:
    """The environment variable of a key: net.port -> ORDERCAST_NET_PORT."""
    return PREFIX + path.replace(".", "_").upper()


def overlay(source: Source, shape: type[Struct], environ: Mapping[str, str]) -> None:
    """Lay the variables over what was written, which is to become `shape`."""
    kinds = keys(shape)
    paths = {variable(path): path for path in kinds}
    source.data = {key: dict(value) if isinstance(value, dict) else value for key, value in source.data.items()}
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        if name not in paths:
            source.variables[name] = name
            source.fault(name, f"unknown variable {near(name, paths)}")
            continue
        path, value = paths[name], _typed(environ[name], kinds[paths[name]])
        head, _, key = path.rpartition(".")
        table = source.data.setdefault(head, {}) if head else source.data
        if not isinstance(table, dict):
            continue  # told when the table is read
        if key not in table:
            table[key] = value
            source.variables[path] = name
        elif table[key] != value:
            source.fault(path, f"{shown(table[key])} here but {shown(value)} in {name}: remove one")


def keys(shape: type[Struct], head: str = "") -> dict[str, type]:
    """Key path -> type, of the keys that hold one word, number or boolean."""
    found: dict[str, type] = {}
    for field in structs.fields(shape):
        kind = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
        if kind in (str, int, bool):
            found[head + field.name] = kind
        elif isinstance(kind, type) and issubclass(kind, Struct):
            found |= keys(kind, f"{head}{field.name}.")
    return found


def _typed(text: str, kind: type) -> Any:
    """What the text means as TOML where a number or boolean is expected; else the text, for its rule to refuse."""
    if kind is int and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if kind is bool and text in ("true", "false"):
        return text == "true"
    return text
