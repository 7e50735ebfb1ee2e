"""Row files of live members as numpy columns, thousands of rows at a time; bad rows are set aside, not lost.

ordercast.trace.load reads the same files and stops at the first damage; here what is good around it is kept.  A file
may be growing while it is read, or end where a kill tore it: what is whole at this moment is read, and the empty end is
no damage.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.columns import FIXED, SPARSE, Columns, Sparse, coded
from ordercast.trace.rows import CERTAINTIES, NULLABLE, ROW, SIDE_SUFFIX, RowReader, Side
from ordercast.trace.schema import Header, Kind

Array = np.ndarray[Any, Any]

LAYOUT = np.dtype(
    [
        ("time_ns", "<i8"), ("now_ns", "<i8"), ("sender_incarnation", "<u8"), ("counter", "<u8"), ("digest", "<u8"),
        ("position", "<i8"), ("order_epoch", "<i8"), ("order_seq", "<i8"), ("view_seq", "<u8"), ("side", "<u8"),
        ("side_bytes", "<u4"), ("side_crc", "<u4"), ("sender", "<u4"), ("count", "<u4"), ("view_rep", "<u4"),
        ("ring", "<u2"), ("service", "u1"), ("kind", "u1"), ("view_kind", "u1"), ("certainty", "u1"), ("null", "<u2"),
        ("unused", "<u4"), ("index", "<u8"),
    ]
)  # fmt: skip
assert LAYOUT.itemsize == ROW.size
_KINDS = np.array(sorted(map(int, Kind)))
_side = msgspec.json.Decoder(Side)


class BadRow(Struct, frozen=True):
    """A row (or a whole file) that cannot be used, with its place."""

    path: str
    offset: int
    reason: str


class Life(Struct):
    """The rows of one incarnation that can be used, and those that cannot."""

    header: Header
    member: int
    incarnation: int
    columns: Columns
    bad: list[BadRow]


def read_life(path: Path) -> Life:
    """All good rows of one file as of now.  TraceError when the file as a whole is no trace."""
    reader = RowReader(path)
    try:
        with open(path, "rb") as file:
            file.seek(reader.first)
            data = file.read()
        side_path = path.with_suffix(SIDE_SUFFIX)
        side = side_path.read_bytes() if side_path.exists() else b""
    except OSError as why:
        raise TraceError(path, 0, f"cannot be read: {why.strerror or why}") from why
    slots = len(data) // ROW.size
    table = np.frombuffer(data, LAYOUT, slots)
    used = np.flatnonzero(table["index"])
    end = int(used[-1]) + 1 if len(used) else 0
    table = table[:end]
    bad = [*_bad_rows(path, reader.first, table), *_torn_end(path, reader.first, data, slots, end)]
    wrong = {(entry.offset - reader.first) // ROW.size for entry in bad}
    aside: dict[int, Side] = {}
    cache: dict[tuple[int, int], Side] = {}
    for row in np.flatnonzero(table["side_bytes"]).tolist():
        if row in wrong:
            continue
        found = _aside(side, table[row], cache)
        if isinstance(found, str):
            bad.append(BadRow(str(path), reader.first + row * ROW.size, found))
            wrong.add(row)
        else:
            aside[row] = found
    if wrong:
        good = np.array([row for row in range(end) if row not in wrong], np.int64)
        where = {old: new for new, old in enumerate(good.tolist())}
        table, aside = table[good], {where[row]: more for row, more in aside.items()}
    columns = _columns(reader, table, aside)
    return Life(reader.header, reader.member, reader.incarnation, columns, sorted(bad, key=lambda b: b.offset))


def _columns(reader: RowReader, table: Array, aside: dict[int, Side]) -> Columns:
    fixed: dict[str, Array] = {
        "member": np.full(len(table), reader.member, "u4"),
        "incarnation": np.full(len(table), reader.incarnation, "i8"),
    }
    for name, (kind, null) in FIXED.items():
        if name not in fixed:
            column = table[name].astype(kind)
            if name in NULLABLE and null is not None:
                column[(table["null"] >> NULLABLE.index(name)) & 1 == 1] = null
            fixed[name] = column
    groups: list[Any] = [None] * len(table)
    certainty: list[Any] = [CERTAINTIES[code] for code in table["certainty"].tolist()]
    for row, more in aside.items():
        groups[row] = more.groups
        certainty[row] = more.certainty or certainty[row]
    codes, tables = {}, {}
    codes["groups"], tables["groups"] = coded(groups)
    codes["certainty"], tables["certainty"] = coded(certainty)
    sparse = {}
    for name in SPARSE:
        said = [(row, getattr(more, name)) for row, more in aside.items() if getattr(more, name) is not None]
        sparse[name] = Sparse(np.array([row for row, _ in said], np.int64), [value for _, value in said])
    return Columns(fixed, codes, tables, sparse)


def _bad_rows(path: Path, first: int, table: Array) -> list[BadRow]:
    out: list[BadRow] = []
    index = table["index"].astype(np.int64)
    expected = np.arange(1, len(table) + 1)
    for row in np.flatnonzero(index != expected).tolist():
        found = int(index[row])
        why = "was torn or never written" if found == 0 else f"has local index {found}"
        out.append(BadRow(str(path), first + row * ROW.size, f"row {row + 1} {why}"))
    known = np.isin(table["kind"], _KINDS) & (table["certainty"] < len(CERTAINTIES))
    for row in np.flatnonzero(~known & (index == expected)).tolist():
        kind, certainty = int(table["kind"][row]), int(table["certainty"][row])
        what = f"unknown event {kind}" if kind not in _KINDS else f"unknown certainty {certainty}"
        out.append(BadRow(str(path), first + row * ROW.size, f"row {row + 1} has {what}"))
    return out


def _torn_end(path: Path, first: int, data: bytes, slots: int, end: int) -> list[BadRow]:
    """A file cut inside a row that had been written (a mapped file is longer than its rows, never shorter)."""
    rest = data[slots * ROW.size :]
    if end == slots and any(rest):
        return [BadRow(str(path), first + slots * ROW.size, f"the file ends inside row {slots + 1}")]
    return []


def _aside(side: bytes, row: Any, cache: dict[tuple[int, int], Side]) -> Side | str:
    offset, length, crc = int(row["side"]), int(row["side_bytes"]), int(row["side_crc"])
    if (offset, length) in cache:
        return cache[offset, length]
    data = side[offset : offset + length]
    if len(data) < length:
        return f"row {int(row['index'])}: its detail is missing from the side file at byte {offset}"
    if crc32(data) != crc:
        return f"row {int(row['index'])}: its detail in the side file at byte {offset} is damaged"
    try:
        found = _side.decode(data)
    except msgspec.MsgspecError as why:
        return f"row {int(row['index'])}: its detail in the side file at byte {offset}: {why}"
    cache[offset, length] = found
    return found
