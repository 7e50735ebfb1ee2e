"""The bad-input table for trace files: what each becomes, with Spark (tests/spark) and without."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_traces import BAD, live_directory, member_file, trace

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline import here, ingest
from ordercast.pipeline.verify import UNREADABLE, judge_columns, judge_plain, summarise_rows
from ordercast.trace.find import find
from ordercast.trace.parquet import write
from ordercast.trace.rows import HEAD, ROW, SIDE_SUFFIX, RowFile
from ordercast.trace.schema import CELLS, Header, Kind
from ordercast.trace.trace import Trace


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_with_its_reason_and_the_rest_is_judged(name: str, tmp_path: Path) -> None:
    spoil, reason = BAD[name]
    write(tmp_path / "good.parquet", [trace(1)])
    write(tmp_path / "bad.parquet", [trace(2)])
    spoil(tmp_path / "bad.parquet")
    for judge in (judge_columns, judge_plain):
        rows = [row for unit in find([tmp_path]) for row in judge(unit, None)]
        bad = [row for row in rows if row["state"] == UNREADABLE]
        assert [Path(row["path"]).name for row in bad] == ["bad.parquet"], name
        assert reason in bad[0]["text"]
        summary = summarise_rows(rows)
        assert summary.runs == 1 and summary.ok and len(summary.unreadable) == 1
    found: list[dict[str, Any]] = []
    assert len(here.measure_here([tmp_path], found)["runs"]) == 1 and reason in found[0]["reason"]


# ----------------------------------------------------------------------------------------------------- live row files


def torn(path: Path, row: int, offset: int = ROW.size - 8, data: bytes = b"\0" * 8) -> None:
    """Change bytes inside a row (counted from 0)."""
    first = HEAD.unpack(path.read_bytes()[: HEAD.size])[3]
    with open(path, "r+b") as file:
        file.seek(first + row * ROW.size + offset)
        file.write(data)


def read_live(directory: Path) -> tuple[list[tuple[Header, Any]], list[TraceError]]:
    aside: list[TraceError] = []
    (unit,) = find([directory])
    return list(ingest.read(unit, aside)), aside


def test_a_live_run_is_read_whole(tmp_path: Path) -> None:
    of = trace()
    runs, aside = read_live(live_directory(tmp_path, of))
    assert not aside and len(runs) == 1
    assert runs[0][1].rows() == of.rows


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: torn(path, 5), "row 6 of member 2: local index 6 was expected, found 0"),
        (
            lambda path: torn(path, 5, data=(3).to_bytes(8, "little")),
            "local index 6 was expected, found 3",
        ),
        (
            lambda path: torn(path, 5, offset=ROW.size - 8 - 4 - 2 - 3, data=b"\xc8"),
            "member 2: unknown event 200",
        ),
        (
            lambda path: torn(path, 5, offset=CELLS["count"].at, data=(16_385).to_bytes(4, "little")),
            "16385 messages in one frame",
        ),
        (lambda path: path.write_bytes(path.read_bytes()[: -ROW.size // 2]), "the file ends inside it"),
        (lambda path: path.with_suffix(SIDE_SUFFIX).write_bytes(b"{}"), "detail"),
    ],
)
def test_a_bad_row_is_set_aside_and_the_rest_kept(spoil: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    of = trace()
    live_directory(tmp_path, of)
    spoil(member_file(tmp_path, 2))
    runs, aside = read_live(tmp_path)
    assert aside and all(entry.path.startswith(str(tmp_path / "member-2-")) and entry.offset > 0 for entry in aside)
    assert any(reason in entry.why for entry in aside)
    ((_, columns),) = runs
    assert len(of.rows) - len(columns) == len(aside)
    rows = [row for row in ingest_and_judge(runs) if row]
    assert "cannot judge" in rows and "broken" not in rows


def ingest_and_judge(runs: list[tuple[Header, Any]]) -> list[str]:
    from ordercast.verify.columns import check

    return [verdict.state for header, columns in runs for verdict in check(columns, header)]


def test_a_file_that_is_no_trace_is_set_aside(tmp_path: Path) -> None:
    live_directory(tmp_path)
    member_file(tmp_path, 3).write_bytes(b"nonsense" * 100)
    shutil.copy(member_file(tmp_path, 1), tmp_path / "member-1-7.rows")
    runs, aside = read_live(tmp_path)
    assert len(runs) == 1 and len(aside) == 2
    assert any("not a trace" in entry.why for entry in aside)
    assert any("same incarnation" in entry.why for entry in aside)


def test_two_runs_in_one_directory_are_told_apart(tmp_path: Path) -> None:
    one, two = trace(1), trace(2)
    two.header.run = "the other"
    live_directory(tmp_path, one)
    live_directory(tmp_path / "more", two)
    for file in (tmp_path / "more").iterdir():
        file.rename(tmp_path / f"other-{file.name}")
    runs, aside = read_live(tmp_path)
    assert sorted(header.run for header, _ in runs) == sorted([one.header.run, "the other"]) and not aside


def test_a_directory_that_grows_while_it_is_read(tmp_path: Path) -> None:
    """Every reading is a whole beginning of the run."""
    of = trace()
    files: dict[tuple[int, int], RowFile] = {}
    for row in of.rows:
        key = row.member, row.incarnation
        if key not in files:
            files[key] = RowFile(tmp_path, of.header, *key)
    over = threading.Event()

    def grow() -> None:
        for row in sorted(of.rows, key=lambda row: row.time_ns):
            files[row.member, row.incarnation].append(row)
        over.set()

    thread = threading.Thread(target=grow)
    thread.start()
    lengths = []
    while not over.is_set() or not lengths:
        ((_, columns),), aside = read_live(tmp_path)
        assert not aside
        found = columns.rows()
        mine = {(row.member, row.incarnation, row.index) for row in found}
        assert [row for row in of.rows if (row.member, row.incarnation, row.index) in mine] == found
        lengths.append(len(found))
    thread.join()
    ((_, columns),), _ = read_live(tmp_path)
    assert columns.rows() == of.rows and lengths == sorted(lengths)
    for file in files.values():
        file.close()


# --------------------------------------------------------------------------------------------------------- finding


def test_paths_that_cannot_be_meant(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path, why in (
        (tmp_path / "nowhere", "no such file"),
        (tmp_path / "empty", "holds no trace"),
        (loop, "cannot be read"),
    ):
        with pytest.raises(UsageError, match=why):
            find([path])


def test_links_that_go_round_end(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.parquet", [trace()])
    (tmp_path / "a" / "round").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "b").symlink_to(tmp_path / "a", target_is_directory=True)
    assert len(find([tmp_path])) == 1


def test_tables_of_ours_are_no_traces(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [trace()])
    for name in ("parts", "tables", "set-aside"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"a": [1]}), tmp_path / name / "y.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "results.parquet")
    assert [Path(unit.path).name for unit in find([tmp_path])] == ["x.parquet"]


def test_a_directory_without_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)  # root may read everything, so the refusal is played
    with pytest.raises(UsageError, match="cannot be read: permission denied"):
        find([tmp_path])


def test_missing_events_are_never_ok(tmp_path: Path) -> None:
    of = trace()
    rows = [row for row in of.rows if not (row.member == 2 and row.kind == Kind.DELIVER and row.index % 5 == 0)]
    write(tmp_path / "x.parquet", [Trace(of.header, rows)])
    (unit,) = find([tmp_path])
    assert {row["state"] for row in judge_columns(unit, None)} == {"cannot judge"}
