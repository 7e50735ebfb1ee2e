"""Traces as Parquet: whole runs, sorted by (run, member, incarnation, index), the runs' headers in the file's metadata.

A file holds one run or many; a row group always holds whole runs, so that a reader needs no more memory than its
largest group and no shuffle.  Anybody's tools can ask it: kinds are words, numbers of 64 bits are signed (a digest by
its bits), so that Spark sees strings and bigint.  Files of version 1, whose kinds were numbers and whose wide numbers
were unsigned, are read as well.  pyarrow and numpy come with the extra `ordercast[sweep]` (or `[spark]`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import TraceError, UsageError
from ordercast.trace.schema import ASIDE, CELLS, CODED, COLUMNS, SPARSE, Cell, Header, Kind, Row
from ordercast.trace.trace import Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from ordercast.trace.columns import Columns, Sparse

HEADERS = b"ordercast.headers"  # JSON: list of headers
SCHEMA = b"ordercast.schema"
VERSION = 2  # of this form of a trace; row files count for themselves
GROUP_ROWS = 1 << 20  # a row group is closed when it has this many
_DAMAGE = (KeyError, IndexError, TypeError, OverflowError, MemoryError)  # what pyarrow may raise beside its own
_headers = msgspec.json.Decoder(list[Header])
_ALWAYS = ("member", "incarnation", "index", "kind")  # read with every choice of columns
_DELTA = [name for name, cell in CELLS.items() if cell.packing == "delta"]
_WORDS = ["run", *(name for name, cell in CELLS.items() if cell.packing == "words"), "certainty"]


def arrow() -> Any:
    """pyarrow, or one sentence that says how to get it."""
    try:
        import numpy  # noqa: F401
        import pyarrow
        import pyarrow.parquet
    except ImportError as why:
        raise UsageError(
            f"Parquet traces need pyarrow and numpy, which are missing here ({why.name}): "
            "pip install 'ordercast[sweep]'"
        ) from None
    return pyarrow


def schema() -> pa.Schema:
    """The columns of a file, the run's name first."""
    pa = arrow()
    numbers = {"u1": pa.uint8(), "u2": pa.uint16(), "u4": pa.uint32(), "u8": pa.int64(), "i8": pa.int64()}
    types = numbers | {
        "word": pa.dictionary(pa.int32(), pa.string()), "json": pa.string(), "list<string>": pa.list_(pa.string()),
        "list<u4>": pa.list_(pa.uint32()),
    }  # fmt: skip
    kinds = {name: CELLS[name].disk if name in CELLS else ASIDE[name].arrow for name in COLUMNS} | {"kind": "word"}
    return pa.schema([("run", types["word"]), *((name, types[kind]) for name, kind in kinds.items())])


# ------------------------------------------------------------------------------------------------------------- write


class Writer:
    """Writes whole runs into one file; use it as a context."""

    def __init__(self, path: str | os.PathLike[str], group_rows: int = GROUP_ROWS) -> None:
        self._pa = arrow()
        self.path = Path(path)
        self.rows = 0
        self._group_rows, self._waiting = group_rows, 0
        self._tables: list[Any] = []
        self._headers: list[Header] = []
        self._part = self.path.with_name(self.path.name + ".part")  # renamed when whole: a cut file is never read
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._pa.parquet.ParquetWriter(
                self._part, schema(), compression="zstd", compression_level=3, use_dictionary=_WORDS,
                column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"), write_statistics=["run", "member"],
                write_page_checksum=True,
            )  # fmt: skip
        except OSError as why:
            raise UsageError(f"cannot write {path}: {why.strerror or why}") from why

    def add(self, header: Header, rows: Sequence[Row] | Columns) -> None:
        """One whole run."""
        from ordercast.trace.columns import Columns, from_rows, sorted_columns

        columns = sorted_columns(rows if isinstance(rows, Columns) else from_rows(rows))
        if any(known.run == header.run for known in self._headers):
            raise UsageError(f"{self.path} already holds a run named {header.run!r}: every run needs its own name")
        self._headers.append(header)
        self._tables.append(_table(self._pa, header.run, columns))
        self.rows += len(columns)
        self._waiting += len(columns)
        if self._waiting >= self._group_rows:
            self._flush()

    def _flush(self) -> None:
        if self._tables:
            order = sorted(range(len(self._tables)), key=lambda k: self._runs_waiting[k])
            table = self._pa.concat_tables([self._tables[k] for k in order]).unify_dictionaries()
            self._file.write_table(table, row_group_size=max(1, self._waiting))
            self._tables, self._waiting = [], 0

    @property
    def _runs_waiting(self) -> list[str]:
        return [header.run for header in self._headers[-len(self._tables) :]]

    def close(self) -> None:
        self._flush()
        self._file.add_key_value_metadata({HEADERS: msgspec.json.encode(self._headers), SCHEMA: str(VERSION).encode()})
        self._file.close()
        self._part.replace(self.path)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._file.close()
            self._part.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], traces: Iterable[Trace]) -> None:
    """Write runs into one file."""
    with Writer(path) as file:
        for trace in traces:
            file.add(trace.header, trace.rows)


def _table(pa: Any, run: str, columns: Columns) -> Any:
    """An Arrow table of one run."""
    import numpy as np

    of = schema()
    out = {"run": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(columns), np.int32)), pa.array([run]))}
    for name in COLUMNS:
        if name == "kind":
            codes = pa.array(columns[name].astype(np.int32) - 1)
            out[name] = pa.DictionaryArray.from_arrays(codes, pa.array([kind.word for kind in Kind]))
        elif name in CELLS:
            values, null = columns[name], CELLS[name].null
            values = values.view(np.int64) if values.dtype == np.uint64 else values
            out[name] = pa.array(values, mask=None if null is None else values == null).cast(of.field(name).type)
        elif name in CODED:
            out[name] = _decoded(pa, columns[name], columns.tables[name], of.field(name).type)
        else:
            encode = (lambda value: msgspec.json.encode(value).decode()) if ASIDE[name].arrow == "json" else None
            out[name] = _spread(pa, len(columns), columns.sparse[name], of.field(name).type, encode)
    return pa.table(out, schema=of)


def _decoded(pa: Any, codes: Any, table: list[Any], kind: Any) -> Any:
    """A column of codes into a table."""
    import numpy as np

    index = pa.array(np.where(codes < 0, 0, codes), mask=codes < 0)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(index.cast(kind.index_type), pa.array(table or [""], kind.value_type))
    return pa.array(table or [None], kind).take(index)


def _spread(pa: Any, n: int, column: Sparse, kind: Any, encode: Any) -> Any:
    """A sparse column over all rows."""
    import numpy as np

    values = [value if value is None or encode is None else encode(value) for _, value in column.items(0, n)]
    place = np.zeros(n, np.int64)
    none = np.ones(n, bool)
    place[column.rows], none[column.rows] = np.arange(len(values)), False
    return pa.array(values or [None], kind).take(pa.array(place, mask=none))


# -------------------------------------------------------------------------------------------------------------- read


class ParquetFile:
    """One file of runs."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        pa = arrow()
        self.path = Path(path)
        try:
            self._file = pa.parquet.ParquetFile(self.path, memory_map=True, page_checksum_verification=True)
            metadata = self._file.metadata.metadata or {}
        except (OSError, ValueError, pa.ArrowException, *_DAMAGE) as why:
            size = self.path.stat().st_size if self.path.is_file() else -1
            if size == 0:
                raise TraceError(path, 0, "the file is empty, a trace was expected") from None
            text = " ".join(str(why).split())[:160]
            raise TraceError(path, max(size, 0), f"cannot be read as Parquet: {text}") from None
        if HEADERS not in metadata:
            raise TraceError(path, 0, "this Parquet file is not a trace: it has no ordercast headers")
        version = int(metadata.get(SCHEMA, b"0")) if metadata.get(SCHEMA, b"0").isdigit() else 0
        if version > VERSION:
            raise TraceError(path, 0, f"schema {version} is newer than {VERSION}, the newest known here")
        try:
            headers = _headers.decode(metadata[HEADERS])
        except msgspec.MsgspecError as why:
            raise TraceError(path, 0, f"its headers cannot be understood: {why}") from None
        self.headers = {header.run: header for header in headers}
        if len(self.headers) != len(headers):
            raise TraceError(path, 0, "one run has two headers")
        lacking = set(schema().names) - set(self._file.schema_arrow.names)
        if lacking:
            raise TraceError(path, 0, f"the column {min(lacking)} is missing")

    def runs(self, names: Sequence[str] | None = None) -> Iterator[tuple[Header, Columns]]:
        """Run after run, with the columns named (None: all)."""
        for headers, cuts, columns in self.groups(names):
            for k, header in enumerate(headers):
                yield header, columns.slice(cuts[k], cuts[k + 1])

    def groups(self, names: Sequence[str] | None = None) -> Iterator[tuple[list[Header], list[int], Columns]]:
        """Several whole runs at once: run k is rows cuts[k] .. cuts[k + 1] - 1 of the columns."""
        from ordercast.trace.columns import joined

        seen: set[str] = set()
        held: tuple[list[str], list[int], Columns] | None = None
        for k in range(self._file.metadata.num_row_groups):
            words, cuts, columns = self._group(k, names)
            if not words:
                continue
            if held is not None and held[0][-1] == words[0]:  # a run that goes on in the next row group
                more = len(held[2])
                words = held[0] + words[1:]
                cuts = held[1][:-1] + [cut + more for cut in cuts[1:]]
                columns = joined([held[2], columns])
            elif held is not None:
                yield self._known(held[0], seen, k), held[1], held[2]
            held = (words, cuts, columns)
        if held is not None:
            yield self._known(held[0], seen, 0), held[1], held[2]
        for run in sorted(self.headers.keys() - seen):
            yield [self.headers[run]], [0, 0], _empty()

    def _known(self, words: list[str], seen: set[str], group: int) -> list[Header]:
        for word in words:
            if word not in self.headers:
                raise TraceError(self.path, group, f"run {word!r} has rows but no header")
            if word in seen:
                raise TraceError(self.path, group, f"the rows of run {word!r} are not together")
            seen.add(word)
        return [self.headers[word] for word in words]

    def _group(self, k: int, names: Sequence[str] | None) -> tuple[list[str], list[int], Columns]:
        """One row group: the names of its runs, where each begins and the last ends, and the rows."""
        import numpy as np

        from ordercast.trace.columns import too_many

        pa = arrow()
        wanted = None if names is None else list(dict.fromkeys(["run", *names, *_ALWAYS]))
        try:
            table = self._file.read_row_group(k, columns=wanted, use_threads=False)
            columns = _columns(pa, table)
        except (OSError, ValueError, pa.ArrowException, *_DAMAGE) as why:
            raise TraceError(self.path, k, f"row group {k} is damaged: {' '.join(str(why).split())[:160]}") from None
        if not table.num_rows:
            return [], [0], columns
        run = _dictionary(pa, table.column("run"))
        codes, words = run.indices.to_numpy(zero_copy_only=False), run.dictionary.to_pylist()
        cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        kinds = columns["kind"]
        if kinds.min() < 1 or kinds.max() > max(Kind):
            bad = int(np.flatnonzero((kinds < 1) | (kinds > max(Kind)))[0])
            said = table.column("kind")[bad].as_py()
            raise TraceError(self.path, bad, f"unknown event {str(said)[:40]} in row {bad} of row group {k}")
        many = too_many(kinds, columns["count"]) if "count" in columns else np.zeros(0, bool)
        if many.any():
            bad = int(np.flatnonzero(many)[0])
            raise TraceError(self.path, bad, f"{int(columns['count'][bad])} messages in row {bad} of row group {k}")
        return [words[codes[cut]] for cut in cuts[:-1]], cuts, columns


def _empty() -> Columns:
    from ordercast.trace.columns import from_rows

    return from_rows([])


def _whole(pa: Any, column: Any) -> Any:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # dictionaries that differ by chunk
        array = pa.concat_arrays(column.unify_dictionaries().chunks)
    return array


def _dictionary(pa: Any, column: Any) -> Any:
    array = _whole(pa, column)
    return array if pa.types.is_dictionary(array.type) else array.dictionary_encode()


def _columns(pa: Any, table: Any) -> Columns:
    from ordercast.trace.columns import Columns, Sparse

    out = Columns({}, {}, {name: [] for name in CODED})
    out.length = table.num_rows
    for name in table.schema.names:
        column = table.column(name)
        if name == "kind" and not pa.types.is_integer(column.type):
            out.fixed[name] = _kinds(pa, column)
        elif name in CELLS:
            out.fixed[name] = _numbers(pa, column, CELLS[name])
        elif name in ASIDE:
            values, rows = _present(pa, column)
            if name in SPARSE:
                out.sparse[name] = Sparse(rows, values)
            elif len(rows):
                out.codes[name], out.tables[name] = _coded(pa, values, rows, out.length)
    return out


_KINDS = {kind.word: int(kind) for kind in Kind}


def _kinds(pa: Any, column: Any) -> Any:
    """The numbers of kinds by their words; 0: unknown."""
    import numpy as np

    words = _dictionary(pa, column)
    numbers = np.array([*(_KINDS.get(word, 0) for word in words.dictionary.to_pylist()), 0], np.uint8)
    codes = words.indices.fill_null(len(numbers) - 1) if words.indices.null_count else words.indices
    return numbers.take(codes.to_numpy(zero_copy_only=False))


def _numbers(pa: Any, column: Any, cell: Cell) -> Any:
    """A column of fixed width, null as the cell says."""
    import numpy as np
    import pyarrow.compute as pc

    null = cell.null
    if column.null_count == len(column) and null is not None:
        return np.full(len(column), null, cell.memory)
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(null if null is None else _as_unsigned(column.type, null), column.type))
    array = column.to_numpy()
    return array if array.dtype == cell.memory else array.view(cell.memory)  # the same bits, signed or not


def _present(pa: Any, column: Any) -> tuple[Any, Any]:
    """What of a column is not null, and in which rows."""
    import numpy as np

    if column.null_count == len(column):
        return [], np.empty(0, np.int64)
    array = _whole(pa, column)
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    return array.take(pa.array(rows)), rows


def _coded(pa: Any, values: Any, rows: Any, length: int) -> tuple[Any, list[Any]]:
    """Codes of words, or of lists of names, and the table they are codes into."""
    import numpy as np
    import pyarrow.compute as pc

    out = np.full(length, -1, np.int32)
    if not pa.types.is_list(values.type):
        words = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        out[rows] = words.indices.to_numpy(zero_copy_only=False)
        return out, words.dictionary.to_pylist()
    names = values.flatten().dictionary_encode()  # lists of numbers of names can be joined, whatever is in a name
    numbers = pa.ListArray.from_arrays(values.offsets, names.indices.cast(pa.string()))
    lists = pc.binary_join(numbers, " ").dictionary_encode()
    out[rows] = lists.indices.to_numpy(zero_copy_only=False)
    known = names.dictionary.to_pylist()
    return out, [tuple(known[int(number)] for number in text.split()) for text in lists.dictionary.to_pylist()]


def _as_unsigned(kind: Any, null: int) -> int:
    """-1 in a column that is unsigned on disk and signed in memory."""
    return null % 2**64 if str(kind) == "uint64" else null
