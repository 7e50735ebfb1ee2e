"""Finding traces: the files and directories a person names become units that a task can read by itself.

A unit is either a Parquet file with whole runs in it, or the directory of a live run with one row file per life.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.trace.rows import SIDE_SUFFIX, SUFFIX
from ordercast.words import short

PARQUET = ".parquet"
OURS = frozenset(("parts", "tables", "set-aside"))  # directories of tables that are no traces
RESULTS = "results.parquet"  # of a sweep


class Unit(Struct, frozen=True):
    """What one task reads in one go."""

    kind: str  # "parquet" or "rows"
    path: str
    bytes: int


def find(paths: Iterable[str | os.PathLike[str]]) -> list[Unit]:
    """All traces under these paths, sorted by path, each once; UsageError for a path without any."""
    found: dict[str, Unit] = {}
    for path in paths:
        before = len(found)
        units = _at(Path(path))
        found |= {unit.path: unit for unit in units}
        if not units and len(found) == before:
            raise UsageError(
                f"{short(path)}: holds no trace: expected {PARQUET} files or a directory with {SUFFIX} files"
            )
    return [found[path] for path in sorted(found)]


def _at(path: Path) -> list[Unit]:
    try:
        if path.is_dir():
            return _walk(path)
        size = path.stat().st_size
    except OSError as why:
        raise UsageError(f"{short(path)}: cannot be read: {(why.strerror or str(why)).lower()}") from None
    except RuntimeError:  # a loop of links, as older Pythons say it
        raise UsageError(f"{short(path)}: cannot be read: a loop of symbolic links") from None
    if path.suffix == SUFFIX:
        return [Unit("rows", str(path), size)]
    return [Unit("parquet", str(path), size)]


def _walk(top: Path) -> list[Unit]:
    """Every directory once, however links join them."""
    seen: set[str] = set()
    units: list[Unit] = []
    waiting = [str(top)]
    while waiting:
        directory = waiting.pop()
        real = os.path.realpath(directory)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError as why:
            raise UsageError(f"{short(directory)}: cannot be read: {(why.strerror or str(why)).lower()}") from None
        rows = 0
        for entry in entries:
            if entry.name.startswith((".", "_")):
                continue
            if entry.is_dir():
                if entry.name not in OURS:
                    waiting.append(entry.path)
            elif entry.name.endswith(SUFFIX):
                rows += _size(entry)
            elif entry.name.endswith(PARQUET) and entry.name != RESULTS:
                units.append(Unit("parquet", entry.path, _size(entry)))
        if rows:
            units.append(Unit("rows", directory, rows))
    return units


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return max(1, entry.stat().st_size)
    except OSError:  # gone meanwhile, or a link to nowhere: reading it will say so
        return 1


def row_files(unit: Unit) -> list[Path]:
    """The row files of a live unit, sorted."""
    path = Path(unit.path)
    if path.suffix == SUFFIX:
        return [path]
    return sorted(entry for entry in path.iterdir() if entry.suffix == SUFFIX)


__all__ = ["PARQUET", "SIDE_SUFFIX", "Unit", "find", "row_files"]
