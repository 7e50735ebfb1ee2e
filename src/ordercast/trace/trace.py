"""One run in memory: its header and its rows."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.trace.digest import run_digest
from ordercast.trace.schema import Header, Row


def row_key(row: Row) -> tuple[int, int, int]:
    """Rows of a run are sorted by this."""
    return row.member, row.incarnation, row.index


class Trace:
    """A run: `rows` sorted by (member, incarnation, index)."""

    __slots__ = ("header", "rows")

    def __init__(self, header: Header, rows: Iterable[Row]) -> None:
        self.header = header
        self.rows: list[Row] = sorted(rows, key=row_key)

    def digest(self) -> str:
        return run_digest(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Trace({self.header.run!r}, {self.header.protocol}, {len(self.rows)} rows)"


class MemorySink:
    """Keeps rows; several recorders may share one."""

    __slots__ = ("append", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.append = self.rows.append  # a bound method of the list: the cheapest call there is

    def close(self) -> None:
        """Nothing to do: the rows stay."""
