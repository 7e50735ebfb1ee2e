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
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.errors import ConfigError
from ordercast.sim.scenario import Scenario
from ordercast.toml_input import Source

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
    weight: float = 1.0  # how long it takes beside the others, as far as one knows


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


class _File(Struct):
    name: str = "sweep"
    repetitions: Annotated[int, Meta(ge=1, le=POINTS_MAX)] | None = None
    seed: int | None = None
    seeds: list[int] | None = None
    limit_s: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    base: dict[str, Any] = {}
    grid: dict[str, Any] = {}
    choice: dict[str, dict[str, dict[str, Any]]] = {}
    case: list[dict[str, Any]] = []


def from_file(path: str | Path) -> Experiment:
    source = Source.of_file(Path(path), "sweep.toml")
    if not source.data:
        raise ConfigError([f"{path}: is empty: expected at least a [base] table with a protocol"])
    return _from_source(source)


def from_dict(table: dict[str, Any], place: str = "experiment", scenarios: bool = True) -> Experiment:
    """`scenarios`: false for points that are something else than runs of the simulator."""
    return _from_source(Source(place, table), scenarios)


def _from_source(source: Source, scenarios: bool = True) -> Experiment:
    """Raise ConfigError, a sentence for each fault: of the file itself, or else of the runs that it makes."""
    astray = set(source.data) & set(Scenario.__struct_fields__) - set(_File.__struct_fields__) if scenarios else set()
    for key in sorted(astray):
        source.fault(key, "is a scenario's key: expected it under [base]")
    file: _File = source.part({key: value for key, value in source.data.items() if key not in astray}, _File)
    seeds = _seeds(file, source)
    axes = [*_grid(file.grid, source), *_choices(file.choice), *_cases(file.case, source)]
    size = len(seeds)
    for _, values in axes:
        size *= len(values)
    if size > POINTS_MAX:
        source.fault("", f"makes {size} runs: expected at most {POINTS_MAX}")
    source.refuse()
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
    if scenarios:
        _check(points, file.case, source)
    return Experiment(file.name, tuple(points), file.limit_s, names)


def _check(points: list[Point], cases: list[dict[str, Any]], source: Source) -> None:
    """Every run must be one; a fault that several share is told of the first."""
    told: set[tuple[str, str]] = set()
    bad = 0
    for point in points:
        own = Source(point.run, point.scenario)
        try:
            Scenario.from_source(own)
        except ConfigError:
            bad += 1
            axes = ", ".join(f"{axis} = {word}" for axis, word in point.parameters.items())
            run = f"run {point.number}" + (f" ({axes})" if axes else "")
            for path, words in own.faults:
                if (path, words) not in told:
                    told.add((path, words))
                    source.fault(f"{run}: {path}", words)
                    source.lines |= {f"{run}: {path}": line for line in _written(path, point, cases, source)}
        if bad >= BAD_RUNS_MAX:
            break
    source.refuse()


def _written(path: str, point: Point, cases: list[dict[str, Any]], source: Source) -> list[int]:
    """Where the file says this of the run, if one can tell: the last piece laid over the others counts."""
    tables = ["base", "grid", *(f"choice.{axis}.{word}" for axis, word in point.parameters.items())]
    tables += [f"case[{k}]" for k, case in enumerate(cases) if point.parameters["case"] == case.get("name", str(k))]
    lines = [source.lines[f"{table}.{path}"] for table in tables if f"{table}.{path}" in source.lines]
    return lines[-1:]


def merge(base: dict[str, Any], piece: dict[str, Any]) -> dict[str, Any]:
    """`piece` laid over `base`: tables are merged, everything else is replaced."""
    out = dict(base)
    for key, value in piece.items():
        old = out.get(key)
        out[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out


def _seeds(file: _File, source: Source) -> list[int | None]:
    if file.seeds is not None:
        if file.seed is not None or file.repetitions is not None:
            other = "seed" if file.seed is not None else "repetitions"
            source.fault("seeds", f"stands beside {other}: expected one of the two")
        if not file.seeds:
            source.wrong("seeds", [], "at least one")
        return list(file.seeds)
    if file.seed is None and file.repetitions is None:
        return [None]  # the base's own
    first = file.seed if file.seed is not None else file.base.get("seed", 1)
    if type(first) is not int:
        source.wrong("base.seed", first, "a whole number")
        return []
    return [first + k for k in range(file.repetitions or 1)]


Axis = tuple[str, list[tuple[Any, dict[str, Any]]]]  # name, (word, piece of a scenario) of each value


def _grid(table: dict[str, Any], source: Source, path: tuple[str, ...] = ()) -> list[Axis]:
    out: list[Axis] = []
    for key, value in table.items():
        at = (*path, *key.split("."))
        if isinstance(value, dict):
            out += _grid(value, source, at)
            continue
        name = ".".join(at)
        if not isinstance(value, list) or not value:
            source.wrong(f"grid.{name}", value, "a list of values")
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


def _cases(cases: list[dict[str, Any]], source: Source) -> list[Axis]:
    if not cases:
        return []
    values: list[tuple[Any, dict[str, Any]]] = []
    for k, case in enumerate(cases):
        name = case.get("name", str(k))
        if not isinstance(name, str):
            source.wrong(f"case[{k}].name", name, "a string")
        values.append((name, {key: value for key, value in case.items() if key != "name"}))
    return [("case", values)]
