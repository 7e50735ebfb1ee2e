"""A writer for the TOML that scenarios need: numbers, strings, booleans, lists, tables, lists of tables."""

from __future__ import annotations

import math
from typing import Any

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def dumps(table: dict[str, Any]) -> str:
    """TOML text that `tomllib` reads back as an equal table.  None cannot be written: leave such keys out."""
    lines: list[str] = []
    _table(table, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(table: dict[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) or (_tables(value) and not _short(value)):
            later.append((key, value))
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in later:
        below = (*path, _key(key))
        name = ".".join(below)
        for part in value if isinstance(value, (list, tuple)) else [None]:
            lines.append("")
            if part is None:
                lines.append(f"[{name}]")
                _table(value, below, lines)
            else:
                lines.append(f"[[{name}]]")
                _table(part, below, lines)


def _tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(part, dict) for part in value)


def _short(value: Any) -> bool:
    """Lists of tables without tables inside and of few keys read better in one line each (edges of a graph)."""
    return len(value) > 3 and all(len(part) <= 3 and not any(map(_nested, part.values())) for part in value)


def _nested(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple))


def _key(key: str) -> str:
    bare = key != "" and all(c.isascii() and (c.isalnum() or c in "-_") for c in key)
    return key if bare else _string(key)


def _string(text: str) -> str:
    out = [_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in text]
    return '"' + "".join(out) + '"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        inner = [_value(part) for part in value]
        flat = f"[{', '.join(inner)}]"
        if len(flat) <= 100 or not any(map(_nested, value)):
            return flat
        return "[\n" + "".join(f"  {part},\n" for part in inner) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }" if value else "{}"
    raise TypeError(f"cannot write {type(value).__name__} as TOML")
