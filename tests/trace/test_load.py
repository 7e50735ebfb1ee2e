"""Traces come back the same through every form; what is damaged, foreign or mixed is refused with its place."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast.errors import TraceError, UsageError
from ordercast.limits import FRAME_MESSAGES_MAX
from ordercast.trace import load, load_columns, parquet
from ordercast.trace.columns import from_rows, joined
from ordercast.trace.reader import RowReader
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace


def header(run: str = "r1", **more: object) -> Header:
    return Header(run, "token_site", "agreed", (1, 2), ("S1", "S2"), **more)  # type: ignore[arg-type]


def some_rows(member: int, incarnation: int = 9, count: int = 30, seed: int = 1) -> list[Row]:
    pick = random.Random(seed * 1000 + member)
    rows = [Row(member, incarnation, 1, 0, 0, int(Kind.START))]
    rows.append(
        Row(member, incarnation, 2, 1, 1, int(Kind.VIEW), position=0, view_seq=4, view_rep=1, view_kind=1,
            members=(1, 2), trans=(), previous_seq=2, previous_rep=7, detail={"cause": "start ö"})
    )  # fmt: skip
    for k in range(3, count):
        rows.append(
            Row(member, incarnation, k, k * 10, k * 11, int(Kind.DELIVER), pick.randint(1, 2), 9, k, 2,
                pick.getrandbits(64), 2 * k, 0, k, 0, 3, pick.choice([None, ("a",), ("a", "b")]), 4, 1, 1,
                certainty=pick.choice([None, "late", "odd"]), detail=pick.choice([None, {"altered": k}]))
        )  # fmt: skip
    return rows


def write_live(directory: Path, head: Header, rows: list[Row]) -> list[Path]:
    files: dict[tuple[int, int], RowFile] = {}
    for row in rows:
        key = (row.member, row.incarnation)
        if key not in files:
            files[key] = RowFile(directory, head, *key)
        files[key].append(row)
    for file in files.values():
        file.close()
    return [file.path for file in files.values()]


ROWS = [*some_rows(1), *some_rows(2), *some_rows(2, 10), *some_rows(4)]


def test_a_live_directory(tmp_path: Path) -> None:
    write_live(tmp_path / "trace", header(), ROWS)
    [trace] = load(tmp_path)
    assert trace.rows == ROWS and trace.header.run == "r1"
    [(head, columns)] = load_columns(tmp_path)
    assert columns.rows() == ROWS and head.run == "r1"
    [alone] = load(tmp_path / "trace" / "member-1-9.rows")
    assert alone.rows == some_rows(1)


def test_parquet_of_many_runs(tmp_path: Path) -> None:
    traces = [Trace(header(f"r{k}", seed=k), [*some_rows(1, seed=k), *some_rows(2, seed=k)]) for k in (3, 1, 2)]
    with parquet.Writer(tmp_path / "t.parquet", group_rows=100) as file:
        for trace in traces:
            file.add(trace.header, trace.rows)
    read = {trace.header.run: trace for trace in load(tmp_path / "t.parquet")}
    assert sorted(read) == ["r1", "r2", "r3"]
    for trace in traces:
        assert read[trace.header.run].rows == trace.rows and read[trace.header.run].header == trace.header
    names = ["sender", "counter", "members", "previous_seq", "groups"]
    few = dict((h.run, c) for h, c in load_columns(tmp_path, names))
    assert few["r2"]["counter"].tolist() == from_rows(read["r2"].rows)["counter"].tolist()
    assert few["r2"].row(1).members == (1, 2) and few["r2"].row(1).previous_seq == 2 and "digest" not in few["r2"]


def both_ways(tmp_path: Path, rows: list[Row]) -> list[list[Row]]:
    """What is read back from a live directory and from the Parquet file that its columns are written to."""
    write_live(tmp_path / "live", header(), rows)
    [(head, columns)] = load_columns(tmp_path / "live")
    with parquet.Writer(tmp_path / "t.parquet") as file:
        file.add(head, columns)
    [again] = load(tmp_path / "t.parquet")
    return [columns.rows(), again.rows]


def test_names_of_groups_may_hold_any_character(tmp_path: Path) -> None:
    names = [("a\x1fb",), ("a", "b"), ("a b", "c"), ("a", "b c"), ("\x00", "\x1e", ","), ("a\nb", "ö")]
    rows = [Row(1, 9, k, k, k, int(Kind.DELIVER), 1, 9, k, 1, groups=some) for k, some in enumerate(names, 1)]
    assert both_ways(tmp_path, rows) == [rows, rows]


def test_a_batch_may_be_of_any_length_and_a_frame_may_not(tmp_path: Path) -> None:
    rows = [Row(1, 9, 1, 1, 1, int(Kind.SUBMIT), 1, 9, 1, 2**20 + 1)]
    rows.append(Row(1, 9, 2, 2, 2, int(Kind.ORIGINATE), 1, 9, 1, FRAME_MESSAGES_MAX))
    assert both_ways(tmp_path / "good", rows) == [rows, rows]
    rows.append(Row(1, 9, 3, 3, 3, int(Kind.DELIVER), 1, 9, 1, FRAME_MESSAGES_MAX + 1))
    write_live(tmp_path / "bad", header(), rows)
    bad: list[TraceError] = []
    assert list(load_columns(tmp_path / "bad", bad=bad)) == []
    assert "row 3 of member 1: 16385 messages in one frame" in str(bad[0])
    parquet.write(tmp_path / "bad.parquet", [Trace(header(), rows)])
    with pytest.raises(TraceError, match="16385 messages in row 2"):
        list(load(tmp_path / "bad.parquet"))


def test_columns_are_the_rows() -> None:
    columns = from_rows(ROWS)
    assert columns.rows() == ROWS
    assert columns.slice(20, 70).rows() == ROWS[20:70]
    assert joined([columns.slice(0, 40), columns.slice(40, 41), columns.slice(41, len(ROWS))]).rows() == ROWS
    assert from_rows([]).rows() == []


def test_a_directory_of_everything(tmp_path: Path) -> None:
    write_live(tmp_path / "a" / "trace", header("r1"), some_rows(1))
    parquet.write(tmp_path / "b.parquet", [Trace(header("r2"), some_rows(1))])
    (tmp_path / "loop").symlink_to(tmp_path)
    assert sorted(trace.header.run for trace in load(tmp_path)) == ["r1", "r2"]


def test_bad_files_are_named_or_put_aside(tmp_path: Path) -> None:
    write_live(tmp_path, header(), ROWS)
    (tmp_path / "member-3-1.rows").write_bytes(b"")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TraceError, match=r"member-3-1.rows: at byte 0: the file is empty"):
        load(tmp_path)
    bad: list[TraceError] = []
    [trace] = load(tmp_path, bad)
    assert trace.rows == ROWS and sorted(Path(b.path).name for b in bad) == ["member-3-1.rows", "x.parquet"]
    bad.clear()
    assert len(list(load_columns(tmp_path, bad=bad))) == 1 and len(bad) == 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\x1f\x8b123", "gzip"),
        (b"(\xb5/\xfdxx", "zstd"),
        (b"hello", "neither"),
        (b"PAR1xx", "Parquet"),
    ],
)
def test_foreign_files(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "x").write_bytes(data)
    for read in (load, lambda path: list(load_columns(path))):
        with pytest.raises(TraceError, match=why):
            read(tmp_path / "x")


def test_absent_and_empty_directories_and_symlink_loops(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, why in ((tmp_path / "absent", "no such file"), (tmp_path, "no trace"), (tmp_path / "loop", "symbolic")):
        with pytest.raises(TraceError, match=why):
            load(path)


def test_mixed_runs_and_two_headers(tmp_path: Path) -> None:
    write_live(tmp_path, header(), some_rows(1))
    other = tmp_path / "other"
    [path] = write_live(other, header("r2"), some_rows(2))
    for file in (path, path.with_suffix(".side")):
        file.rename(tmp_path / file.name)
    with pytest.raises(TraceError, match="runs are mixed"):
        load(tmp_path)
    for file in (path, path.with_suffix(".side")):
        (tmp_path / file.name).unlink()
    head = header(timeout_ns=5)
    write_live(tmp_path, head, some_rows(2))
    with pytest.raises(TraceError, match="two headers: timeout_ns"):
        load(tmp_path)
    copy = tmp_path / "copy.rows"
    (tmp_path / "member-2-9.rows").unlink()
    copy.write_bytes((tmp_path / "member-1-9.rows").read_bytes())
    with pytest.raises(TraceError, match="same incarnation"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[:5] + rows[6:], "local index 6 of member 1 was expected, found 7"),
        (lambda rows: rows[:5] + rows[4:], "local index 6 of member 1 was expected, found 5"),
        (lambda rows: [*rows[:5], Row(1, 9, 6, 1, 1, 5)], "row 6 of member 1 in run 'r1': time goes backwards"),
    ],
)
def test_rows_that_do_not_follow_each_other(tmp_path: Path, change: object, why: str) -> None:
    rows = change(some_rows(1))  # type: ignore[operator]
    parquet.write(tmp_path / "t.parquet", [Trace(header(), rows)])
    with pytest.raises(TraceError, match=why):
        load(tmp_path / "t.parquet")


def test_a_parquet_file_that_is_no_trace_or_newer(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(TraceError, match="no ordercast headers"):
        load(tmp_path / "a.parquet")
    parquet.write(tmp_path / "t.parquet", [Trace(header(), some_rows(1))])
    table = pq.read_table(tmp_path / "t.parquet")
    metadata = dict(table.schema.metadata or {}) | pq.read_metadata(tmp_path / "t.parquet").metadata
    pq.write_table(table.replace_schema_metadata(metadata | {parquet.SCHEMA: b"3"}), tmp_path / "n.parquet")
    with pytest.raises(TraceError, match="newer"):
        load(tmp_path / "n.parquet")
    pq.write_table(table.replace_schema_metadata(metadata).drop_columns(["digest"]), tmp_path / "d.parquet")
    with pytest.raises(TraceError, match="digest is missing"):
        load(tmp_path / "d.parquet")
    kinds = pa.array([99] * table.num_rows, pa.uint8())
    strange = table.set_column(table.schema.names.index("kind"), "kind", kinds).replace_schema_metadata(metadata)
    pq.write_table(strange, tmp_path / "k.parquet")
    with pytest.raises(TraceError, match="unknown event 99"):
        load(tmp_path / "k.parquet")


def test_what_others_see_in_parquet_and_files_of_the_first_version(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet.write(tmp_path / "t.parquet", [Trace(header(), ROWS)])
    table = pq.read_table(tmp_path / "t.parquet")
    metadata = pq.read_metadata(tmp_path / "t.parquet").metadata
    assert not [field.name for field in table.schema if field.type == pa.uint64()]
    assert table["kind"].to_pylist() == [Kind(row.kind).word for row in ROWS]
    digests = [None if row.digest is None else row.digest - (row.digest >> 63 << 64) for row in ROWS]
    assert table["digest"].to_pylist() == digests
    wide = ("incarnation", "index", "sender_incarnation", "counter", "digest", "view_seq", "previous_seq")
    old = table.set_column(table.schema.names.index("kind"), "kind", pa.array([r.kind for r in ROWS], pa.uint8()))
    for name in wide:
        column = pa.array([getattr(row, name) for row in ROWS], pa.uint64())
        old = old.set_column(old.schema.names.index(name), name, column)
    del metadata[b"ARROW:schema"]
    pq.write_table(old.replace_schema_metadata(metadata | {parquet.SCHEMA: b"1"}), tmp_path / "old.parquet")
    plain = table.set_column(table.schema.names.index("kind"), "kind", table["kind"].cast(pa.string()))
    pq.write_table(plain.replace_schema_metadata(metadata), tmp_path / "plain.parquet")  # as other tools write words
    for name in ("t", "old", "plain"):
        [(_, columns)] = parquet.ParquetFile(tmp_path / f"{name}.parquet").runs()
        assert columns.rows() == ROWS, name


def test_a_cut_parquet_file(tmp_path: Path) -> None:
    parquet.write(tmp_path / "t.parquet", [Trace(header(), some_rows(1))])
    data = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(TraceError, match="cannot be read as Parquet"):
        load(tmp_path)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), parquet.Writer(tmp_path / "t.parquet"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="own name"), parquet.Writer(tmp_path / "t.parquet") as file:
        file.add(header(), some_rows(1))
        file.add(header(), some_rows(1))


def test_a_file_that_grows(tmp_path: Path) -> None:
    file = RowFile(tmp_path, header(), 1, 9)
    rows = some_rows(1)
    for k, row in enumerate(rows, 1):
        file.append(row)
        assert len(load(tmp_path)[0].rows) == k
        [(_, columns)] = load_columns(tmp_path)
        assert len(columns) == k
    assert RowReader(file.path).rows() == rows
