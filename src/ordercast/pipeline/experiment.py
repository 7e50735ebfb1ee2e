"""An experiment file: which simulations a sweep runs.

    name = "latency"                 # begins the names of the runs
    repetitions = 3                  # each point with three seeds: seed, seed + 1, seed + 2
    seed = 1                         # or  seeds = [1, 7, 9]
    limit_s = 60                     # wall seconds one run may take
    [base]                           # a scenario: what all runs share
    messages = 500
    [grid]                           # every combination; keys are a scenario's, dotted where it has tables
    protocol = ["token_site", "totem"]
    load.rate = [100, 1000]
    [choice.network.lan]             # a named axis whose values are pieces of a scenario
    nets = [{model = "lan"}]
    [choice.network.wan]
    nets = [{model = "links", delay = {law = "uniform", low_us = 1000, high_us = 5000}}]
    [[case]]                         # a list instead of combinations: each one is crossed with all of the above
    name = "calm"

The expansion is a list of points, numbered from 0 in a fixed order, so that a sweep gives the same table however it is
cut into tasks, and a later one can tell which points are done.
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.errors import ConfigError, UsageError
from ordercast.sim.scenario import Scenario
from ordercast.toml_input import convert, told
from ordercast.words import near

POINTS_MAX = 1_000_000
BAD_RUNS_MAX = 1000  # looked at, of an experiment with faults in it
_LISTS = frozenset(("sizes", "senders", "core"))  # of numbers: one number on an axis stands for a list of one


class Point(Struct, frozen=True):
    """One run of an experiment."""

    number: int
    run: str
    scenario: dict[str, Any]
    parameters: dict[str, Any]  # axis -> value, as a person would name it
    repetition: int


class Experiment(Struct, frozen=True):
    """All runs of a sweep, in order."""

    name: str
    points: tuple[Point, ...]
    limit_s: float
    axes: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of what will be run: two files with the same points have the same digest."""
        points = [(p.run, p.scenario, p.repetition) for p in self.points]
        return hashlib.blake2b(msgspec.json.encode(points, order="sorted"), digest_size=16).hexdigest()


class _File(Struct, forbid_unknown_fields=True):
    name: str = "sweep"
    repetitions: int | None = None
    seed: int | None = None
    seeds: list[int] | None = None
    limit_s: float = 60.0
    base: dict[str, Any] = {}
    grid: dict[str, Any] = {}
    choice: dict[str, dict[str, dict[str, Any]]] = {}
    case: list[dict[str, Any]] = []


def from_file(path: str | Path) -> Experiment:
    """Read an experiment; UsageError in one sentence with the place for anything that is not one."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as why:
        raise UsageError(f"{path}: cannot be read: {(why.strerror or str(why)).lower()}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not TOML: expected text in UTF-8") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as why:
        raise UsageError(f"{path}: not TOML: {why}") from None
    if not table:
        raise UsageError(f"{path}: is empty: expected at least a [base] table with a protocol")
    return from_dict(table, str(path))


def from_dict(table: dict[str, Any], place: str = "experiment") -> Experiment:
    """Raise ConfigError, a sentence for each fault: of the file itself, or else of the runs that it makes."""
    file, faults = _file(table)
    if file is None or faults:
        raise told(place, faults)
    seeds, axes = _seeds(file, faults), [*_grid(file.grid, faults), *_choices(file.choice), *_cases(file.case, faults)]
    size = len(seeds)
    for _, values in axes:
        size *= len(values)
    if size > POINTS_MAX:
        faults.append(f"makes {size} runs, expected at most {POINTS_MAX}")
    if not 0 < file.limit_s <= 86_400:
        faults.append(f"limit_s: expected above 0 and at most 86400, got {file.limit_s:g}")
    if faults:
        raise told(place, faults)
    names = tuple(name for name, _ in axes)
    points: list[Point] = []
    digits = len(str(size - 1))
    for combination in itertools.product(*(values for _, values in axes)):
        scenario: dict[str, Any] = file.base
        for _, piece in combination:
            scenario = merge(scenario, piece)
        words = {name: word for name, (word, _) in zip(names, combination, strict=True)}
        for repetition, seed in enumerate(seeds):
            number = len(points)
            whole = merge(scenario, {"seed": seed}) if seed is not None else scenario
            run = f"{file.name}-{number:0{digits}d}"
            points.append(Point(number, run, whole, words, repetition))
    _check(points, place)
    return Experiment(file.name, tuple(points), file.limit_s, names)


def _file(table: dict[str, Any]) -> tuple[_File | None, list[str]]:
    known = list(_File.__struct_fields__)
    faults = [
        f"{key}: is a scenario's key: expected it under [base]"
        if key in Scenario.__struct_fields__
        else f"unknown key {near(key, known)}"
        for key in table
        if key not in known
    ]
    file, against = convert({key: value for key, value in table.items() if key in known}, _File, {"case": {}})
    for text in against:
        what, _, where = text.replace("`", "").partition(" - at $.")
        faults.append(f"{where}: {what[:1].lower()}{what[1:]}" if where else what)
    return file, faults


def _check(points: list[Point], place: str) -> None:
    """Every run must be one; a fault that several share is told of the first."""
    faults: dict[str, str] = {}  # words -> the run
    bad = 0
    for point in points:
        axes = ", ".join(f"{axis} = {word}" for axis, word in point.parameters.items())
        where = f"run {point.number}" + (f" ({axes})" if axes else "")
        try:
            Scenario.from_dict(point.scenario, where)
        except ConfigError as error:
            bad += 1
            for sentence in error.faults:
                faults.setdefault(sentence.removeprefix(f"{where}: "), where)
            if bad >= BAD_RUNS_MAX:
                break
    if faults:
        raise told(place, [f"{where}: {words}" for words, where in faults.items()])


def merge(base: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    """`piece` laid over `base`: tables are merged, everything else is replaced."""
    out = dict(base)
    for key, value in piece.items():
        old = out.get(key)
        out[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out


def _seeds(file: _File, faults: list[str]) -> list[int | None]:
    if file.seeds is not None:
        if file.seed is not None or file.repetitions is not None:
            faults.append(f"seeds and {'seed' if file.seed is not None else 'repetitions'} exclude each other")
        if not file.seeds:
            faults.append("seeds: expected at least one")
        return list(file.seeds)
    repetitions = 1 if file.repetitions is None else file.repetitions
    if not 1 <= repetitions <= POINTS_MAX:
        faults.append(f"repetitions: expected 1 to {POINTS_MAX}, got {repetitions}")
        return []
    if file.seed is None and file.repetitions is None:
        return [None]  # the base's own
    first = file.seed if file.seed is not None else file.base.get("seed", 1)
    if type(first) is not int:
        faults.append("base.seed: expected a whole number")
        return []
    return [first + k for k in range(repetitions)]


Axis = tuple[str, list[tuple[Any, dict[str, Any]]]]  # name, (word, piece of a scenario) of each value


def _grid(table: dict[str, Any], faults: list[str], path: tuple[str, ...] = ()) -> list[Axis]:
    out: list[Axis] = []
    for key, value in table.items():
        at = (*path, *key.split("."))
        if isinstance(value, dict):
            out += _grid(value, faults, at)
            continue
        name = ".".join(at)
        if not isinstance(value, list) or not value:
            faults.append(f"grid.{name}: expected a list of values")
            continue
        values: list[tuple[Any, dict[str, Any]]] = []
        for entry in value:
            piece: Any = [entry] if at[-1] in _LISTS and not isinstance(entry, list) else entry
            for part in reversed(at):
                piece = {part: piece}
            values.append(
                (entry if isinstance(entry, (int, float, str)) else msgspec.json.encode(entry).decode(), piece)
            )
        out.append((name, values))
    return out


def _choices(table: dict[str, dict[str, dict[str, Any]]]) -> list[Axis]:
    return [(name, list(values.items())) for name, values in table.items()]


def _cases(cases: list[dict[str, Any]], faults: list[str]) -> list[Axis]:
    if not cases:
        return []
    values: list[tuple[Any, dict[str, Any]]] = []
    for k, case in enumerate(cases):
        name = case.get("name", str(k))
        if not isinstance(name, str):
            faults.append(f"case[{k}].name: expected text")
        values.append((name, {key: value for key, value in case.items() if key != "name"}))
    return [("case", values)]
