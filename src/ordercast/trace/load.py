"""Reads traces in any form: a live run's directory, a row file, a Parquet file, a directory of these.

What cannot be read is a TraceError with the path, the offset and the reason.  Give `bad` a list to have such files put
there instead and the rest read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.errors import TraceError
from ordercast.trace import rows as rowfile
from ordercast.trace.rows import CERTAINTIES, NULLABLE, ROW, ROW_BYTES, SIDE_SUFFIX, RowReader
from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace

if TYPE_CHECKING:
    from ordercast.trace.columns import Columns

Path_ = str | os.PathLike[str]
Bad = list[TraceError] | None
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


def load(path: Path_, bad: Bad = None) -> list[Trace]:
    """All runs at a path, rows in memory."""
    out: list[Trace] = []
    for form, files in _forms(Path(path), bad):
        try:
            if form == "live":
                out.append(live_trace(files, bad))
            else:
                from ordercast.trace import parquet

                for header, columns in parquet.ParquetFile(files[0]).runs():
                    rows = columns.rows()
                    _in_order(files[0], rows)
                    out.append(Trace(header, rows))
        except TraceError as why:
            _put(why, bad)
    return out


def load_columns(path: Path_, names: Sequence[str] | None = None, bad: Bad = None) -> Iterator[tuple[Header, Columns]]:
    """All runs at a path as arrays, one after the other; `names`: the columns wanted (None: all)."""
    for form, files in _forms(Path(path), bad):
        try:
            if form == "live":
                yield live_columns(files, bad)
            else:
                from ordercast.trace import parquet

                yield from parquet.ParquetFile(files[0]).runs(names)
        except TraceError as why:
            _put(why, bad)


def _put(why: TraceError, bad: Bad) -> None:
    if bad is None:
        raise why
    bad.append(why)


# ------------------------------------------------------------------------------------------------- what is at a path


def _forms(path: Path, bad: Bad) -> list[tuple[str, list[Path]]]:
    """("live", row files of one run) or ("parquet", [file]), in the order of names."""
    try:
        if path.is_dir():
            found = _directory(path)
            if not found:
                raise TraceError(path, 0, "no trace is in this directory (no .rows and no .parquet file)")
            return found
        with open(path, "rb") as file:
            head = file.read(8)
    except OSError as why:
        _put(TraceError(path, 0, f"cannot be read: {why.strerror or why}"), bad)
        return []
    except TraceError as why:
        _put(why, bad)
        return []
    if head.startswith(b"PAR1"):
        return [("parquet", [path])]
    if head == rowfile.MAGIC:
        return [("live", [path])]
    reason = "this is neither a row file nor a Parquet file" if head else "the file is empty, a trace was expected"
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            reason = f"this is a {name} file: unpack it first"
    _put(TraceError(path, 0, reason), bad)
    return []


def _directory(path: Path) -> list[tuple[str, list[Path]]]:
    """What a directory holds: its own row files are one run, each Parquet file and each directory in it more."""
    out: list[tuple[str, list[Path]]] = []
    files = sorted(path.iterdir())
    rows = [file for file in files if file.suffix == rowfile.SUFFIX]
    if rows:
        out.append(("live", rows))
    out += [("parquet", [file]) for file in files if file.suffix == ".parquet" and not file.name.startswith((".", "_"))]
    for file in files:
        if file.is_dir() and not file.is_symlink() and not file.name.startswith((".", "_")):
            out += _directory(file)
    return out


# ---------------------------------------------------------------------------------------------------------- live runs


def _readers(files: list[Path], bad: Bad) -> list[RowReader]:
    readers: list[RowReader] = []
    lives: dict[tuple[int, int], Path] = {}
    for file in files:
        try:
            reader = RowReader(file)
            if readers:
                _same_run(readers[0], reader)
            life = (reader.member, reader.incarnation)
            if life in lives:
                raise TraceError(file, 0, f"member {life[0]} wrote {lives[life].name} in the same incarnation")
            lives[life] = file
            readers.append(reader)
        except TraceError as why:
            _put(why, bad)
    if not readers:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return sorted(readers, key=lambda reader: (reader.member, reader.incarnation))


def _same_run(one: RowReader, two: RowReader) -> None:
    a, b = one.header, two.header
    if a.run != b.run:
        raise TraceError(two.path, 0, f"runs are mixed here: {b.run!r}, but {one.path.name} is of {a.run!r}")
    for name in ("protocol", "service", "members", "promises", "timeout_ns"):
        if getattr(a, name) != getattr(b, name):
            raise TraceError(
                two.path, 0, f"run {a.run!r} has two headers: {name} is {getattr(b, name)!r} here and "
                f"{getattr(a, name)!r} in {one.path.name}",
            )  # fmt: skip


def _header(readers: list[RowReader]) -> Header:
    header = readers[-1].header  # a member's rather than the launcher's
    for reader in readers:
        header.clock_offsets_ns |= reader.header.clock_offsets_ns
    return header


def live_trace(files: list[Path], bad: Bad) -> Trace:
    """One live run from its row files, rows in memory."""
    readers = _readers(files, bad)
    rows: list[Row] = []
    for reader in readers:
        try:
            more = reader.rows()
            _in_order(reader.path, more, reader.first)
            rows += more
        except TraceError as why:
            _put(why, bad)
    return Trace(_header(readers), rows)


def _in_order(path: Path, rows: list[Row], first: int = 0) -> None:
    """Refuse a doubled or missing local index and a clock that goes backwards."""
    last: Row | None = None
    for k, row in enumerate(rows):
        offset = first + k * ROW_BYTES if first else k
        life = last is not None and (last.member, last.incarnation) == (row.member, row.incarnation)
        expected = last.index + 1 if life and last is not None else 1
        if row.index != expected:
            raise TraceError(
                path, offset, f"local index {expected} of member {row.member} was expected, found {row.index}"
            )
        if life and last is not None and row.time_ns < last.time_ns:
            raise TraceError(path, offset, f"time goes backwards in row {row.index} of member {row.member}")
        last = row


def live_columns(files: list[Path], bad: Bad) -> tuple[Header, Columns]:
    """One live run from its row files."""
    from ordercast.trace.columns import joined

    readers = _readers(files, bad)
    parts = []
    for reader in readers:
        try:
            parts.append(row_columns(reader))
        except TraceError as why:
            _put(why, bad)
    if not parts:
        raise TraceError(files[0].parent, 0, "no row file in this directory can be read")
    return _header(readers), joined(parts)


def row_columns(reader: RowReader, start: int = 0) -> Columns:
    """A row file's rows from `start` on as arrays, without a struct per row."""
    import numpy as np

    from ordercast.trace.columns import FIXED, Columns, Sparse, coded, too_many

    try:
        with open(reader.path, "rb") as file:
            file.seek(reader.first + start * ROW_BYTES)
            data = file.read()
        side_path = reader.path.with_suffix(SIDE_SUFFIX)
        side = side_path.read_bytes() if side_path.exists() else b""
    except OSError as why:
        raise TraceError(reader.path, 0, f"cannot be read: {why.strerror or why}") from why
    table = np.frombuffer(data, _dtype(), len(data) // ROW_BYTES)
    count = _valid(reader, table["index"], start)
    table = table[:count]
    _known(reader, table["kind"], table["certainty"], start)
    many = np.flatnonzero(too_many(table["kind"], table["count"]))
    if len(many):
        what = f"{int(table['count'][many[0]])} messages in row {start + int(many[0]) + 1} of member {reader.member}"
        raise TraceError(reader.path, reader.first + (start + int(many[0])) * ROW_BYTES, what)
    fixed: dict[str, Any] = {
        "member": np.full(count, reader.member, "u4"),
        "incarnation": np.full(count, reader.incarnation, "i8"),
    }
    for name, (kind, null) in FIXED.items():
        if name in fixed:
            continue
        column = table[name].astype(kind)
        if name in NULLABLE and null is not None:
            column[(table["null"] >> NULLABLE.index(name)) & 1 == 1] = null
        fixed[name] = column
    aside: list[tuple[int, Any]] = []
    groups: list[Any] = [None] * count
    certainty: list[Any] = [CERTAINTIES[c] for c in table["certainty"]] if table["certainty"].any() else [None] * count
    for k in np.flatnonzero(table["side_bytes"]).tolist():
        row = table[k]
        at = reader.first + (start + k) * ROW_BYTES
        more = reader._aside(at, int(row["side"]), int(row["side_bytes"]), int(row["side_crc"]), side)
        aside.append((k, more))
        groups[k] = more.groups
        certainty[k] = more.certainty or certainty[k]
    codes, tables = {}, {}
    codes["groups"], tables["groups"] = coded(groups)
    codes["certainty"], tables["certainty"] = coded(certainty)
    sparse = {}
    for name in ("members", "trans", "previous", "detail"):
        pairs = [(k, getattr(more, name)) for k, more in aside if getattr(more, name) is not None]
        sparse[name] = Sparse(np.array([k for k, _ in pairs], np.int64), [value for _, value in pairs])
    return Columns(fixed, codes, tables, sparse)


def _dtype() -> list[tuple[str, str]]:
    """The layout of a row; the names in the order of ordercast.trace.rows.ROW."""
    names = (
        "time_ns", "now_ns", "sender_incarnation", "counter", "digest", "position", "order_epoch", "order_seq",
        "view_seq", "side", "side_bytes", "side_crc", "sender", "count", "view_rep", "ring", "service", "kind",
        "view_kind", "certainty", "null", "unused", "index",
    )  # fmt: skip
    kinds = {"q": "<i8", "Q": "<u8", "I": "<u4", "H": "<u2", "B": "<u1"}
    return [(name, kinds[code]) for name, code in zip(names, ROW.format[1:], strict=True)]


def _valid(reader: RowReader, index: Any, start: int) -> int:
    """How many rows are whole; refuse damage, as RowReader.valid does."""
    import numpy as np

    wrong = np.flatnonzero(index != np.arange(start + 1, start + 1 + len(index), dtype=index.dtype))
    if not len(wrong):
        return len(index)
    k = int(wrong[0])
    if index[k] == 0 and not index[k + 1 : k + 64].any():
        return k
    raise TraceError(
        reader.path, reader.first + (start + k) * ROW_BYTES,
        f"local index {start + k + 1} of member {reader.member} was expected, found {int(index[k])}",
    )  # fmt: skip


def _known(reader: RowReader, kinds: Any, certainties: Any, start: int) -> None:
    import numpy as np

    unknown = np.flatnonzero((kinds < 1) | (kinds > max(Kind)) | (certainties >= len(CERTAINTIES)))
    if len(unknown):
        k = int(unknown[0])
        what = f"unknown event {int(kinds[k])} in row {start + k + 1} of member {reader.member}"
        raise TraceError(reader.path, reader.first + (start + k) * ROW_BYTES, what)
