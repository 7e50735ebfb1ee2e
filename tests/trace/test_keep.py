"""Traces of bounded size: the oldest files go, what is left is read as before, and nobody judges what is not whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.errors import TraceError
from ordercast.pipeline import ingest
from ordercast.trace import load, load_columns
from ordercast.trace.find import find
from ordercast.trace.history import history
from ordercast.trace.keep import FILES, Keep
from ordercast.trace.reader import RowReader
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Kind, Row
from ordercast.verify import check
from ordercast.verify.columns import check as check_columns
from ordercast.verify.verdict import CANNOT_JUDGE

from .test_fuzz import damage

HEADER = Header("r", "totem", "agreed", (1, 2), ("S1", "S2", "S5", "S17", "L3"), live=True, timeout_ns=1000)
KEEP = 1 << 20
WALL = 1_794_960_000_000_000_000


def rows(count: int, member: int = 1, life: int = 9, big: int = 0) -> list[Row]:
    """A life: every 500th row installs a view, every `big`th one has a long detail."""
    out = [Row(member, life, 1, 50, 50, int(Kind.START), detail={"wall_ns": WALL})]
    for k in range(2, count + 1):
        if k % 500 == 2:
            out.append(
                Row(member, life, k, k * 100, k * 100, int(Kind.VIEW), view_seq=k, view_rep=1, view_kind=1,
                    members=(1, 2), trans=(1,), detail={"cause": "start"})
            )  # fmt: skip
        else:
            detail = {"name": "x" * 3_000} if big and k % big == 0 else None
            kind = Kind.NOTE if detail else Kind.DELIVER
            out.append(Row(member, life, k, k * 100, k * 100, int(kind), 1, 9, k, 1, k, k, detail=detail))
    return out


def write(directory: Path, told: list[Row], keep: int = KEEP, most: bool = False) -> RowFile:
    member, life = told[0].member, told[0].incarnation
    file = RowFile(directory, HEADER, member, life, keep=Keep(directory, HEADER, member, life, keep))
    for row in told:
        file.append(row)
        if most and row.index % 97 == 0:
            assert sum(path.stat().st_size for path in directory.iterdir()) <= keep
    file.close()
    return file


@pytest.mark.parametrize("big", [0, 7, 1])
def test_the_newest_rows_are_kept_and_no_more(tmp_path: Path, big: int) -> None:
    told = rows(30_000 if big != 1 else 3_000, big=big)
    write(tmp_path, told, most=True)
    (trace,) = load(tmp_path)
    assert 0 < len(trace.rows) < len(told) and trace.rows == told[-len(trace.rows) :]
    held = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert KEEP * (FILES - 2) / FILES <= held <= KEEP
    ((header, columns),) = load_columns(tmp_path)
    assert columns.rows() == trace.rows
    oldest = min(tmp_path.glob("*.rows")).name
    assert header.gone == trace.header.gone == {"1": oldest}
    verdicts = [*check(trace), *check_columns(columns, header)]
    assert {verdict.state for verdict in verdicts} == {CANNOT_JUDGE} and len(verdicts) == 2 * len(HEADER.promises)
    said = f"what was written before {oldest} of member 1 is no longer kept"
    assert all(said in verdict.text for verdict in verdicts)


def test_several_files_are_one_life_while_nothing_is_gone(tmp_path: Path) -> None:
    told = rows(5_000)
    write(tmp_path / "kept", told)
    assert len(list((tmp_path / "kept").glob("*.rows"))) > 3
    whole = RowFile(tmp_path / "whole", HEADER, 1, 9)
    for row in told:
        whole.append(row)
    whole.close()
    (kept,), (other,) = load(tmp_path / "kept"), load(tmp_path / "whole")
    assert kept.rows == other.rows == told and not kept.header.gone
    assert [(v.promise, v.state) for v in check(kept)] == [(v.promise, v.state) for v in check(other)]
    assert history(find([tmp_path / "kept"])) == history(find([tmp_path / "whole"]))


def test_the_fast_way_goes_on_in_the_next_file(tmp_path: Path) -> None:
    file = RowFile(tmp_path, HEADER, 1, 9, keep=Keep(tmp_path, HEADER, 1, 9, KEEP))
    for k in range(1, 4_001):
        file.deliver(k, k, k, 1, 9, k, 1, k, k, 0, 0, 0, 3, 4, 1, 1)
    file.close()
    (trace,) = load(tmp_path)
    assert [row.index for row in trace.rows] == list(range(1, 4_001)) and len(list(tmp_path.glob("*.rows"))) > 3


def test_earlier_lives_go_first_and_later_ones_remember(tmp_path: Path) -> None:
    write(tmp_path, other := rows(300, member=2))
    for life in (9, 10, 11):
        write(tmp_path, rows(6_000, life=life))
    assert min(path.name for path in tmp_path.glob("member-1-*.rows")) > "member-1-10", "the first life is gone, whole"
    write(tmp_path, rows(5, life=12))
    (trace,) = load(tmp_path)
    assert set(trace.header.gone) == {"1"}
    assert RowReader(tmp_path / "member-1-12.rows").header.gone, "nothing went when it began, but it is told again"
    assert [row for row in trace.rows if row.member == 2] == other, "each member has its own share"
    assert {verdict.state for verdict in check(trace)} == {CANNOT_JUDGE}


def test_a_life_killed_while_its_oldest_file_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, killed = rows(30_000), []

    def unlink(path: Path, missing_ok: bool = False) -> None:
        killed.append(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, told)
    (trace,) = load(tmp_path)
    assert killed[0].exists() and trace.header.gone, "told before it goes"
    assert trace.rows == told[: len(trace.rows)]


def test_a_hole_in_the_middle_is_damage(tmp_path: Path) -> None:
    write(tmp_path, rows(5_000))
    files = sorted(tmp_path.glob("*.rows"))
    first, last = RowReader(files[2]).before + 1, RowReader(files[3]).before
    files[2].unlink()
    for read in (load, lambda path: list(load_columns(path))):
        with pytest.raises(TraceError, match=f"rows {first} to {last} of member 1 are missing before this file"):
            read(tmp_path)
    copy = tmp_path / "member-1-9.000099.rows"
    copy.write_bytes(files[1].read_bytes())
    with pytest.raises(TraceError, match="in the same incarnation"):
        load(tmp_path)


def test_one_file_alone_can_be_read(tmp_path: Path) -> None:
    told = rows(5_000)
    write(tmp_path, told)
    path = sorted(tmp_path.glob("*.rows"))[2]
    reader = RowReader(path)
    assert reader.rows() == told[reader.before : reader.before + len(reader.rows())]
    assert reader.rows(reader.before + 7) == reader.rows()[7:]
    (trace,) = load(path)
    assert trace.rows == reader.rows() and {v.state for v in check(trace)} == {CANNOT_JUDGE}


def test_ingest_and_the_history_of_views(tmp_path: Path) -> None:
    told = rows(30_000)
    write(tmp_path / "trace", told)
    bad: list[TraceError] = []
    (unit,) = find([tmp_path / "trace"])
    ((header, columns),) = ingest.read(unit, bad)
    assert not bad and header.gone and columns.rows() == load(tmp_path / "trace")[0].rows
    changes = history([unit])
    views = [row for row in columns.rows() if row.kind == Kind.VIEW]
    assert [change.wall_ns for change in changes] == [WALL - 50 + row.time_ns for row in views] and views
    from ordercast.trace.parquet import Writer

    with Writer(tmp_path / "t.parquet") as file:
        file.add(header, columns)
    assert history(find([tmp_path / "t.parquet"])) == changes


def test_files_that_go_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = rows(5_000)
    write(tmp_path, told)
    first, second, third, *rest = sorted(tmp_path.glob("*.rows"), key=lambda path: RowReader(path).before)
    open_file, read = RowReader.__init__, RowReader.read

    def late(reader: RowReader, path: Path) -> None:
        first.unlink(missing_ok=True)  # before it was opened
        open_file(reader, path)
        if path == rest[-1]:
            second.unlink(missing_ok=True)  # and one that was opened, before it was read

    def later(reader: RowReader, *args: object, **more: object) -> object:
        life = read(reader, *args, **more)
        if reader.path == third:
            rest[0].unlink(missing_ok=True)  # one that others came before
        return life

    monkeypatch.setattr(RowReader, "__init__", late)
    monkeypatch.setattr(RowReader, "read", later)
    (trace,) = load(tmp_path)
    assert trace.rows == told[-len(trace.rows) :] and {v.state for v in check(trace)} == {CANNOT_JUDGE}
    assert history(find([tmp_path]))[-1].seq == max(row.view_seq or 0 for row in told)
    bad: list[TraceError] = []
    assert list(ingest.read(find([tmp_path])[0], bad)) and not bad


def test_damaged_files(tmp_path: Path) -> None:
    write(tmp_path, rows(4_000, big=50))
    pick, results = random.Random(5), set()
    for path in sorted(tmp_path.iterdir()):
        good = path.read_bytes()
        for _ in range(6):
            path.write_bytes(damage(good, pick))
            try:
                (trace,) = load(tmp_path)
                check(trace)
                for header, columns in load_columns(tmp_path):
                    check_columns(columns, header)
                history(find([tmp_path]))
                results.add(True)
            except TraceError:
                results.add(False)
            bad: list[TraceError] = []
            list(ingest.read(find([tmp_path])[0], bad))
        path.write_bytes(good)
    assert False in results


def test_verify_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, rows(30_000))
    assert main(["verify", "--plain", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "is no longer kept" in out and "broken" not in out.replace("a promise was broken", "")
