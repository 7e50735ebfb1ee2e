"""Finding traces: the files and directories a person names become units that can be read by themselves.

A unit is either a Parquet file with whole runs in it, or the row files of one directory, one per life.  Links are
followed, every directory once; names that begin with a dot or an underscore, tables of ours and a sweep's results are
no traces.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from ordercast import files
from ordercast.errors import TraceError, UsageError
from ordercast.trace.rows import MAGIC, SUFFIX
from ordercast.words import short

PARQUET = ".parquet"
OURS = frozenset(("parts", "tables", "set-aside"))  # directories of tables that are no traces
RESULTS = "results.parquet"  # of a sweep
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


class Unit(Struct, frozen=True):
    """What one task reads in one go."""

    kind: str  # "parquet" or "rows"
    path: str
    bytes: int


def find(paths: Iterable[str | os.PathLike[str]]) -> list[Unit]:
    """All traces under these paths, sorted by path, each once; UsageError for a path without any."""
    found: dict[str, Unit] = {}
    for path in paths:
        try:
            found |= {unit.path: unit for unit in units_at(Path(path))}
        except TraceError as why:
            raise UsageError(f"{short(why.path)}: {why.why}") from None
    return [found[path] for path in sorted(found)]


def units_at(path: Path) -> list[Unit]:
    """What is at one path; TraceError: nothing, or it cannot be read."""
    try:
        if not path.is_dir():
            return [_file(path)]
    except OSError as why:
        raise unreadable(path, why) from None
    except RuntimeError:  # a loop of links, as older Pythons say it
        raise TraceError(path, 0, "cannot be read: a loop of symbolic links") from None
    units = _walk(path)
    if not units:
        raise TraceError(path, 0, f"holds no trace: expected {PARQUET} files or a directory with {SUFFIX} files")
    return units


def unreadable(path: str | Path, why: OSError) -> TraceError:
    return TraceError(path, 0, f"cannot be read: {(why.strerror or str(why)).lower()}")


def _file(path: Path) -> Unit:
    """By what it begins with, or at least is called."""
    with files.open_regular(path) as file:
        head, size = file.read(len(MAGIC)), os.fstat(file.fileno()).st_size
    if head == MAGIC or path.suffix == SUFFIX:
        return Unit("rows", str(path), size)
    if head.startswith(b"PAR1") or path.suffix == PARQUET:
        return Unit("parquet", str(path), size)
    packed = [name for magic, name in _COMPRESSED.items() if head.startswith(magic)]
    if packed:
        raise TraceError(path, 0, f"this is a {packed[0]} file: unpack it first")
    what = "this is neither a row file nor a Parquet file" if head else "the file is empty, a trace was expected"
    raise TraceError(path, 0, what)


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
            raise unreadable(directory, why) from None
        rows = 0
        for entry in entries:
            if hidden(entry.name):
                continue
            if os.path.isdir(entry.path):  # a link that leads round to itself is none
                if entry.name not in OURS:
                    waiting.append(entry.path)
            elif entry.name.endswith(SUFFIX):
                rows += _size(entry)
            elif entry.name.endswith(PARQUET) and entry.name != RESULTS:
                units.append(Unit("parquet", entry.path, _size(entry)))
        if rows:
            units.append(Unit("rows", directory, rows))
    return sorted(units, key=lambda unit: unit.path)


def hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return max(1, entry.stat().st_size)
    except OSError:  # gone meanwhile, or a link to nowhere: reading it will say so
        return 1


def row_files(unit: Unit) -> list[Path]:
    """The row files of a live unit, sorted."""
    path = Path(unit.path)
    if not path.is_dir():
        return [path]
    return sorted(entry for entry in path.iterdir() if entry.suffix == SUFFIX and not hidden(entry.name))
