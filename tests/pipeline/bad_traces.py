"""Traces, good ones and ones spoilt in every way of the bad-input table."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.parquet import HEADERS, SCHEMA
from ordercast.trace.rows import RowFile
from ordercast.trace.trace import Trace


def trace(seed: int = 1) -> Trace:
    """A run that lasts until views must have settled."""
    load = Load(regime="poisson", rate=15.0)
    return run(Scenario(protocol="token_site", messages=40, members=3, seed=seed, load=load)).trace


def live_directory(directory: Path, of: Trace | None = None) -> Path:
    """The trace as live members would have written it."""
    of = of or trace()
    lives: dict[tuple[int, int], RowFile] = {}
    for row in of.rows:
        key = row.member, row.incarnation
        if key not in lives:
            lives[key] = RowFile(directory, of.header, *key)
        lives[key].append(row)
    for file in lives.values():
        file.close()
    return directory


def member_file(directory: Path, member: int) -> Path:
    return next(directory.glob(f"member-{member}-*.rows"))


def with_metadata(path: Path, change: dict[bytes, bytes]) -> None:
    table = pq.read_table(path)
    kept = {**(pq.ParquetFile(path).metadata.metadata or {}), **change}
    kept.pop(b"ARROW:schema", None)
    pq.write_table(table.replace_schema_metadata(kept), path)


# what is done to a good file -> a piece of the reason given
def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2000])


def _foreign(path: Path) -> None:
    path.write_bytes(b"To be, or not to be, that is the question.\n" * 50)


def _foreign_parquet(path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)


def _newer(path: Path) -> None:
    with_metadata(path, {SCHEMA: b"99"})


def _two_headers(path: Path) -> None:
    header = (pq.ParquetFile(path).metadata.metadata or {})[HEADERS]
    with_metadata(path, {HEADERS: header[:-1] + b"," + header[1:]})


def _no_header(path: Path) -> None:
    with_metadata(path, {HEADERS: b"[]"})


def _headers_unreadable(path: Path) -> None:
    with_metadata(path, {HEADERS: b"{nonsense"})


def _unknown_event(path: Path) -> None:
    table = pq.read_table(path)
    kinds = table["kind"].to_pylist()
    kinds[7] = "teleport"
    metadata = pq.ParquetFile(path).metadata.metadata or {}
    at = table.schema.get_field_index("kind")
    table = table.set_column(at, "kind", pa.array(kinds, pa.string()))
    keep = {key: value for key, value in metadata.items() if key != b"ARROW:schema"}
    pq.write_table(table.replace_schema_metadata(keep), path)


def _gzipped(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes())[:500])


def _removed(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("gone.parquet"))


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (_empty, "empty"),
    "cut short": (_cut, "cannot be read as Parquet"),
    "not a trace": (_foreign, "cannot be read as Parquet"),
    "another Parquet file": (_foreign_parquet, "not a trace"),
    "newer schema": (_newer, "newer"),
    "two headers": (_two_headers, "two headers"),
    "rows without a header": (_no_header, "no header"),
    "headers of nonsense": (_headers_unreadable, "headers"),
    "unknown event": (_unknown_event, "unknown event teleport"),
    "gzip cut short": (_gzipped, "cannot be read as Parquet"),
    "gone": (_removed, "cannot be read"),
}
