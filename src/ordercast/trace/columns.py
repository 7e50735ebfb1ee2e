"""A run as numpy arrays, one per column: what the array checkers, the pipeline and Parquet files work on.

Columns of fixed width are arrays with one value that means null; groups and certainty are codes into small tables;
lists, previous views and details, which few rows have, are kept apart by row number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ordercast.limits import FRAME_MESSAGES_MAX
from ordercast.trace.schema import FRAME_KINDS, SUBMIT_COUNT_MAX, Row

NULL_INT = np.iinfo(np.int64).min
NULL_U32 = 0xFFFF_FFFF

# column -> (type, the value that means null; None: never null)
FIXED: dict[str, tuple[str, int | None]] = {
    "member": ("u4", None),
    "incarnation": ("i8", None),
    "index": ("i8", None),
    "time_ns": ("i8", None),
    "now_ns": ("i8", None),
    "kind": ("u1", None),
    "sender": ("u4", NULL_U32),
    "sender_incarnation": ("i8", -1),
    "counter": ("i8", -1),
    "count": ("u4", 0),
    "digest": ("u8", 0),
    "position": ("i8", NULL_INT),
    "order_epoch": ("i8", NULL_INT),
    "order_seq": ("i8", NULL_INT),
    "ring": ("u2", 0xFFFF),
    "service": ("u1", 0),
    "view_seq": ("i8", -1),
    "view_rep": ("u4", NULL_U32),
    "view_kind": ("u1", 0),
}
CODED = ("groups", "certainty")
SPARSE = ("members", "trans", "previous", "detail")
Array = np.ndarray[Any, Any]


class Sparse:
    """A column few rows have: `rows` ascending, `values` beside it (a detail may still be JSON)."""

    __slots__ = ("_place", "rows", "values")

    def __init__(self, rows: Array | None = None, values: Sequence[Any] | None = None) -> None:
        self.rows: Array = np.empty(0, np.int64) if rows is None else rows
        self.values: Sequence[Any] = [] if values is None else values
        self._place: dict[int, int] | None = None  # made when somebody asks

    def get(self, row: int) -> Any:
        if self._place is None:
            self._place = {row: k for k, row in enumerate(self.rows.tolist())}
        k = self._place.get(row)
        return None if k is None else self._value(k)

    def _value(self, k: int) -> Any:
        value = self.values[k]
        value = value.as_py() if hasattr(value, "as_py") else value
        if isinstance(value, str | bytes):
            return msgspec.json.decode(value)
        return tuple(value) if isinstance(value, list) else value

    def items(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        a, b = np.searchsorted(self.rows, (start, end))
        return ((int(self.rows[k]), self._value(k)) for k in range(a, b))

    def slice(self, start: int, end: int) -> Sparse:
        a, b = np.searchsorted(self.rows, (start, end))
        return Sparse(self.rows[a:b] - start, self.values[a:b])

    def __len__(self) -> int:
        return len(self.rows)


class Columns:
    """The rows of one run, or of several in a row, sorted by (run, member, incarnation, index)."""

    def __init__(
        self,
        fixed: dict[str, Array],
        codes: dict[str, Array] | None = None,
        tables: dict[str, list[Any]] | None = None,
        sparse: dict[str, Sparse] | None = None,
    ) -> None:
        self.fixed = fixed
        self.length = len(next(iter(fixed.values()))) if fixed else 0
        self.codes = codes or {}  # groups, certainty: -1 is null
        self.tables = tables or {name: [] for name in CODED}
        self.sparse = {name: Sparse() for name in SPARSE} | (sparse or {})

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Array:
        if name in CODED:
            if name not in self.codes:
                self.codes[name] = np.full(self.length, -1, np.int32)
            return self.codes[name]
        return self.fixed[name]

    def __contains__(self, name: str) -> bool:
        return name in self.fixed

    def slice(self, start: int, end: int) -> Columns:
        """Rows start .. end - 1; arrays are shared."""
        out = Columns({name: array[start:end] for name, array in self.fixed.items()}, tables=self.tables)
        out.length = end - start
        out.codes = {name: array[start:end] for name, array in self.codes.items()}
        out.sparse = {name: column.slice(start, end) for name, column in self.sparse.items()}
        return out

    def row(self, k: int) -> Row:
        """Row k as a struct; columns that were not read are null."""
        values: dict[str, Any] = {}
        for name, (_, null) in FIXED.items():
            if name in self.fixed:
                value = int(self.fixed[name][k])
                values[name] = None if value == null else value
            elif null is None:
                values[name] = 0
        for name in CODED:
            code = int(self[name][k])
            values[name] = None if code < 0 else self.tables[name][code]
        values["members"], values["trans"] = self.sparse["members"].get(k), self.sparse["trans"].get(k)
        previous = self.sparse["previous"].get(k)
        if previous is not None:
            values["previous_seq"], values["previous_rep"] = previous
        values["detail"] = self.sparse["detail"].get(k)
        return Row(**values)

    def rows(self, which: Iterable[int] | None = None) -> list[Row]:
        return [self.row(int(k)) for k in (range(self.length) if which is None else which)]


def too_many(kinds: Array, counts: Array) -> Array:
    """Which rows have more messages than a row can have."""
    out: Array = counts > FRAME_MESSAGES_MAX
    if out.any():
        out &= np.isin(kinds, FRAME_KINDS) | (counts > SUBMIT_COUNT_MAX)
    return out


def from_rows(rows: Sequence[Row]) -> Columns:
    """The columns of rows, which must be sorted."""
    fixed: dict[str, Array] = {}
    for name, (kind, null) in FIXED.items():
        values = [getattr(row, name) for row in rows]
        if null is not None:
            values = [null if value is None else value for value in values]
        fixed[name] = np.array(values, kind)
    codes: dict[str, Array] = {}
    tables: dict[str, list[Any]] = {}
    for name in CODED:
        codes[name], tables[name] = coded([getattr(row, name) for row in rows])
    sparse: dict[str, Sparse] = {}
    for name in ("members", "trans", "detail"):
        sparse[name] = _sparse([(k, getattr(row, name)) for k, row in enumerate(rows)])
    previous = [(k, (row.previous_seq, row.previous_rep)) for k, row in enumerate(rows) if row.previous_seq is not None]
    sparse["previous"] = _sparse(previous)
    return Columns(fixed, codes, tables, sparse)


def coded(values: Sequence[Any]) -> tuple[Array, list[Any]]:
    """Codes into a table of distinct values; null is -1."""
    table: dict[Any, int] = {}
    codes = [-1 if value is None else table.setdefault(value, len(table)) for value in values]
    return np.array(codes, np.int32), list(table)


def _sparse(pairs: list[tuple[int, Any]]) -> Sparse:
    pairs = [(k, value) for k, value in pairs if value is not None]
    return Sparse(np.array([k for k, _ in pairs], np.int64), [value for _, value in pairs])


def sorted_columns(columns: Columns) -> Columns:
    """The same rows by (member, incarnation, index)."""
    member, incarnation, index = columns["member"], columns["incarnation"], columns["index"]
    if len(columns) < 2:
        return columns
    step = (member[1:] > member[:-1]) | (
        (member[1:] == member[:-1])
        & ((incarnation[1:] > incarnation[:-1]) | ((incarnation[1:] == incarnation[:-1]) & (index[1:] >= index[:-1])))
    )
    if step.all():
        return columns
    return take(columns, np.lexsort((index, incarnation, member)))


def take(columns: Columns, order: Array) -> Columns:
    """Rows in another order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    out = Columns({name: array[order] for name, array in columns.fixed.items()}, tables=columns.tables)
    out.codes = {name: array[order] for name, array in columns.codes.items()}
    for name, column in columns.sparse.items():
        new = place[column.rows]
        by = np.argsort(new, kind="stable")
        out.sparse[name] = Sparse(new[by], [column.values[int(k)] for k in by])
    return out


def joined(parts: Sequence[Columns]) -> Columns:
    """Rows of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    fixed = {name: np.concatenate([part.fixed[name] for part in parts]) for name in parts[0].fixed}
    starts = np.cumsum([0, *map(len, parts)])
    codes: dict[str, Array] = {}
    tables: dict[str, list[Any]] = {}
    for name in CODED:
        table: dict[Any, int] = {}
        pieces = []
        for part in parts:
            known = np.array([table.setdefault(value, len(table)) for value in part.tables[name]] + [-1], np.int32)
            pieces.append(known[part[name]])
        codes[name], tables[name] = np.concatenate(pieces), list(table)
    sparse = {}
    for name in SPARSE:
        rows = [part.sparse[name].rows + start for part, start in zip(parts, starts, strict=False)]
        values = [value for part in parts for value in part.sparse[name].values]
        sparse[name] = Sparse(np.concatenate(rows), values)
    return Columns(fixed, codes, tables, sparse)
