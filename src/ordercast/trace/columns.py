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
from ordercast.trace.reader import Life
from ordercast.trace.schema import CELLS, CODED, COLUMNS, FRAME_KINDS, NULLABLE, SPARSE, Row

# column -> (type, the value that means null; None: never null)
FIXED: dict[str, tuple[str, int | None]] = {name: (cell.memory, cell.null) for name, cell in CELLS.items()}
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

    def raw(self, places: Sequence[int]) -> list[Any]:
        """The values at these places, as they are kept: a detail perhaps as JSON."""
        if hasattr(self.values, "take"):
            out: list[Any] = self.values.take(np.array(places, np.int64)).to_pylist()
            return out
        return [self.values[k] for k in places]

    def tuples(self, rows: Array) -> list[tuple[Any, ...]]:
        """The lists of these rows (ascending); without one: empty."""
        places = np.searchsorted(self.rows, rows)
        there = places < len(self.rows)
        there[there] = self.rows[places[there]] == rows[there]
        found = iter(self.raw(places[there].tolist()))
        return [tuple(next(found)) if is_there else () for is_there in there.tolist()]

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
        self.tables = {name: [] for name in CODED} if tables is None else tables
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
        return self.rows([k])[0]

    def rows(self, which: Iterable[int] | None = None) -> list[Row]:
        chosen = np.arange(self.length) if which is None else np.array(list(which), np.int64)
        return list(map(Row, *(self._values(name, chosen) for name in COLUMNS)))

    def _values(self, name: str, chosen: Array) -> list[Any]:
        """A column's values as rows have them."""
        if name in CODED:
            table = [*self.tables[name], None]
            return [table[code] for code in self[name][chosen].tolist()]
        if name in SPARSE:
            return list(map(self.sparse[name].get, chosen.tolist()))
        null = CELLS[name].null
        if name not in self.fixed:
            return [0 if null is None else None] * len(chosen)
        values: list[Any] = self.fixed[name][chosen].tolist()
        return values if null is None else [None if value == null else value for value in values]


def too_many(kinds: Array, counts: Array) -> Array:
    """Which rows have more messages than a frame can have; a submission may have any number."""
    out: Array = counts > FRAME_MESSAGES_MAX
    if out.any():
        out &= np.isin(kinds, FRAME_KINDS)
    return out


def from_rows(rows: Sequence[Row]) -> Columns:
    """The columns of rows, which must be sorted."""
    values = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    fixed: dict[str, Array] = {}
    for name, (kind, null) in FIXED.items():
        fixed[name] = np.array([null if value is None else value for value in values[name]], kind)
    return _columns(fixed, {name: enumerate(values[name]) for name in (*CODED, *SPARSE)})


def from_life(life: Life) -> Columns:
    """The columns of a row file."""
    null, fixed = np.asarray(life.column("null")), dict[str, Array]()
    for name, (kind, absent) in FIXED.items():
        if CELLS[name].at < 0:
            fixed[name] = np.full(len(life), getattr(life, name), CELLS[name].disk).astype(kind)
            continue
        fixed[name] = np.asarray(life.column(name)).astype(kind)
        if name in NULLABLE:
            fixed[name][(null >> NULLABLE.index(name)) & 1 == 1] = absent
    return _columns(fixed, {name: life.beside(name) for name in (*CODED, *SPARSE)})


def _columns(fixed: dict[str, Array], beside: dict[str, Iterable[tuple[int, Any]]]) -> Columns:
    """Columns of fixed width, and (row, value) of the others."""
    out = Columns(fixed, tables={})
    for name, told in beside.items():
        pairs = [(k, value) for k, value in told if value is not None]
        rows = np.array([k for k, _ in pairs], np.int64)
        if name in SPARSE:
            out.sparse[name] = Sparse(rows, [value for _, value in pairs])
            continue
        table: dict[Any, int] = {}
        out.codes[name] = np.full(out.length, -1, np.int32)
        out.codes[name][rows] = [table.setdefault(value, len(table)) for _, value in pairs]
        out.tables[name] = list(table)
    return out


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
