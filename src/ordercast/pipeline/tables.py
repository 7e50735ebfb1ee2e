"""Runs as Arrow tables and back: whole runs per file, sorted by (run, member, incarnation, index), headers along.

A file's schema metadata holds the headers of its runs, so that a task can judge a file with nothing but its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.trace.schema import Header, Row

Array = np.ndarray[Any, Any]

SCHEMA = pa.schema(
    [
        ("run", pa.string()), ("member", pa.uint32()), ("incarnation", pa.uint64()), ("index", pa.uint64()),
        ("time_ns", pa.int64()), ("now_ns", pa.int64()), ("kind", pa.uint8()), ("sender", pa.uint32()),
        ("sender_incarnation", pa.uint64()), ("counter", pa.uint64()), ("count", pa.uint32()),
        ("digest", pa.uint64()), ("position", pa.int64()), ("order_epoch", pa.int64()), ("order_seq", pa.int64()),
        ("ring", pa.uint16()), ("service", pa.uint8()), ("groups", pa.list_(pa.string())), ("view_seq", pa.uint64()),
        ("view_rep", pa.uint32()), ("view_kind", pa.uint8()), ("members", pa.list_(pa.uint32())),
        ("trans", pa.list_(pa.uint32())), ("previous_seq", pa.uint64()), ("previous_rep", pa.uint32()),
        ("certainty", pa.string()), ("detail", pa.string()),
    ]
)  # fmt: skip
FIELDS = {field.name: field.type for field in SCHEMA}
LISTS = ("groups", "members", "trans")
TEXTS = ("certainty", "detail")
KEY = b"ordercast.runs"  # in a file's metadata: its runs, in order, each with its header and number of rows
GROUP_ROWS = 1 << 20  # rows of a row group, whole runs
FILE_ROWS = 1 << 22  # rows of a file, whole runs
_SMALL = [
    "run",
    "member",
    "incarnation",
    "kind",
    "sender",
    "sender_incarnation",
    "count",
    "order_epoch",
    "ring",
    "service",
    "view_seq",
    "view_rep",
    "view_kind",
    "previous_seq",
    "previous_rep",
    "certainty",
    "detail",
]  # fmt: skip  dictionary-encoded: few values
_RISING = ("index", "time_ns", "now_ns", "counter", "position", "order_seq")


class RunEntry(msgspec.Struct):
    """What a file says of one of its runs."""

    header: Header
    rows: int


class RunWriter:
    """Writes whole runs into one file, which appears under its name when it is closed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._half = self.path.with_name(self.path.name + ".half")
        self._entries: list[RunEntry] = []
        self._waiting: list[pa.Table] = []
        self.rows = self._waiting_rows = 0
        self._writer = pq.ParquetWriter(
            self._half,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=_SMALL,
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
            write_statistics=["run", "kind", "member"],
        )

    def write(self, header: Header, table: pa.Table) -> None:
        """One run, sorted by (member, incarnation, index)."""
        self._entries.append(RunEntry(header, table.num_rows))
        self._waiting.append(table)
        self.rows += table.num_rows
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting).combine_chunks()
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
            self._waiting, self._waiting_rows = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.add_key_value_metadata({KEY: msgspec.json.encode(self._entries)})
        self._writer.close()
        self._half.rename(self.path)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._writer.close()
            self._half.unlink(missing_ok=True)


def table_of(header: Header, rows: Sequence[Row]) -> pa.Table:
    """Rows of one run, already sorted, as a table."""
    columns: list[pa.Array] = []
    for field in SCHEMA:
        if field.name == "run":
            columns.append(pa.array([header.run] * len(rows), field.type))
        elif field.name == "detail":
            said = [None if row.detail is None else msgspec.json.encode(row.detail).decode() for row in rows]
            columns.append(pa.array(said, field.type))
        else:
            columns.append(pa.array([getattr(row, field.name) for row in rows], field.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def arrays(table: pa.Table, names: Iterable[str]) -> dict[str, Array]:
    """Number columns as numpy arrays; null is 0."""
    out: dict[str, Array] = {}
    for name in names:
        column = table.column(name)
        if column.null_count:
            column = column.fill_null(0)
        out[name] = column.to_numpy()
    return out
