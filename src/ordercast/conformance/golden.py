"""Golden vectors: worked examples with exact results, replayed into the shipped code.

A file is ``{"format": "ordercast-golden/1", "protocol", "kinds", "cases": [{"name", "kind", ...}]}``.  Each module
``golden_*`` beside this one has ``KINDS``: kind -> function from a case to the list of differences.
A kind that nobody here knows is neither passed nor failed: it is counted by its name and told, and `ordercast replay`
fails for it unless `--partial` is said.
"""

from __future__ import annotations

import json
import pkgutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec import Struct

import ordercast.conformance
from ordercast import files
from ordercast.errors import UsageError

FORMAT = "ordercast-golden/1"
Case = dict[str, Any]


class Failure(Struct, frozen=True):
    case: str
    kind: str
    differences: list[str]


class GoldenResult(Struct, frozen=True):
    """What became of one file."""

    file: str
    passed: int
    failures: list[Failure]
    unknown: dict[str, int]  # kind that nothing here can replay -> how many cases of it


@cache
def kinds() -> dict[str, Callable[[Case], list[str]]]:
    """All kinds that the installed protocols can replay."""
    found: dict[str, Callable[[Case], list[str]]] = {}
    for module in pkgutil.iter_modules(ordercast.conformance.__path__):
        if module.name.startswith("golden_"):
            own = import_module(f"ordercast.conformance.{module.name}").KINDS
            assert not found.keys() & own.keys(), f"kind defined twice: {found.keys() & own.keys()}"
            found |= own
    return found


def load(path: Path) -> list[Case]:
    """The cases of a file; UsageError says what is wrong with it."""
    try:
        text = files.text(path, files.DATA_BYTES_MAX)
    except OSError as why:
        raise UsageError(f"{path}: cannot be read ({why.strerror}); expected a file of golden vectors") from None
    except UnicodeDecodeError as why:
        raise UsageError(f"{path}: not UTF-8 at byte {why.start}; expected a JSON file of golden vectors") from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as why:
        raise UsageError(f"{path}: line {why.lineno}: {why.msg}; expected a JSON file of golden vectors") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: a number too long, or nested too deeply; expected golden vectors") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("cases"), list):
        raise UsageError(f'{path}: no golden vectors in it; expected "format": "{FORMAT}" and a list of "cases"')
    for number, case in enumerate(data["cases"]):
        if not isinstance(case, dict) or not isinstance(case.get("name"), str) or not isinstance(case.get("kind"), str):
            raise UsageError(f'{path}: case {number} lacks "name" or "kind"')
    return list(data["cases"])


def replay_case(case: Case) -> list[str]:
    """Differences between what a case of a known kind expects and what our code does; empty if there are none."""
    kind = kinds()[case["kind"]]
    try:
        return kind(case)
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as why:
        return [f"{type(why).__name__}: {why}"]


def replay(path: Path) -> GoldenResult:
    passed = 0
    failures: list[Failure] = []
    unknown: Counter[str] = Counter()
    for case in load(path):
        if case["kind"] not in kinds():
            unknown[case["kind"]] += 1
        elif differences := replay_case(case):
            failures.append(Failure(case["name"], case["kind"], differences))
        else:
            passed += 1
    return GoldenResult(path.stem, passed, failures, dict(unknown))


def differ(what: str, expected: Any, got: Any) -> list[str]:
    """One line if they differ; for the kinds' functions."""
    return [] if expected == got else [f"{what}: expected {expected}, got {got}"]
