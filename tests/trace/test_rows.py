"""Row files: what was written is read back, by the process itself, while it grows, and after kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.errors import RunError, TraceError
from ordercast.trace import rows as rows_module
from ordercast.trace.reader import RowReader
from ordercast.trace.rows import HEAD, ROW, RowFile
from ordercast.trace.schema import Header, Kind, Row

HEADER = Header("r1", "token_site", "agreed", (1, 2), ("S1",), live=True)

SAMPLES = [
    Row(1, 9, 1, 5, 6, int(Kind.START)),
    Row(1, 9, 2, -5, 2**62, int(Kind.VIEW), view_seq=4, view_rep=1, view_kind=1, members=(1, 2), trans=(), detail={}),
    Row(1, 9, 3, 7, 8, int(Kind.DELIVER), 2, 2**63, 1, 40, 2**64 - 1, 0, 0, 0, 0, 3, None, 4, 1, 1),
    Row(1, 9, 4, 7, 8, int(Kind.DELIVER), 2, 1, 1, 40, 0, 0, 0, 0, 0, 3, ("a", "ö"), 4, 1, 1),
    Row(1, 9, 5, 7, 8, int(Kind.DELIVER), 2, 1, 1, 40, 0, 0, 0, 0, 0, 3, ("a", "ö"), 4, 1, 1),
    Row(1, 9, 6, 7, 8, int(Kind.DELIVER), 2, 1, 1, 40, certainty="late"),
    Row(1, 9, 7, 7, 8, int(Kind.DELIVER), 2, 1, 1, 40, certainty="some other word"),
    Row(1, 9, 8, 7, 8, int(Kind.NOTE), detail={"name": "x", "list": [1, None, {"y": 2.5}]}),
    Row(1, 9, 9, 7, 8, int(Kind.VIEW), members=(1,), trans=(1,), previous_seq=4, previous_rep=0),
]


def write(directory: Path, rows: list[Row] = SAMPLES, **options: int) -> Path:
    file = RowFile(directory, HEADER, 1, 9, **options)
    for row in rows:
        file.append(row)
    file.close()
    return file.path


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    reader = RowReader(write(tmp_path))
    assert reader.rows() == SAMPLES
    assert (reader.header, reader.member, reader.incarnation) == (HEADER, 1, 9)
    assert reader.rows(7) == SAMPLES[7:]


def test_the_fast_way_writes_the_same_row(tmp_path: Path) -> None:
    row = SAMPLES[2]
    file = RowFile(tmp_path, HEADER, 1, 9)
    file.deliver(1, 7, 8, 2, 2**63, 1, 40, 2**64 - 1, 0, 0, 0, 0, 3, 4, 1, 1)
    [read] = RowReader(file.path).rows()
    assert read == Row(row.member, row.incarnation, 1, *[getattr(row, n) for n in Row.__struct_fields__[3:]])


def test_it_grows_and_can_be_read_meanwhile(tmp_path: Path) -> None:
    file = RowFile(tmp_path, HEADER, 1, 9, chunk_rows=8)
    reader, seen = RowReader(file.path), []
    for k in range(1, 101):
        file.append(Row(1, 9, k, k, k, int(Kind.NOTE), detail={"name": str(k)}))
        if k % 7 == 0:
            seen += reader.rows(len(seen))
            assert len(seen) == k
    assert [r.index for r in reader.rows()] == list(range(1, 101))


def test_a_killed_process_leaves_its_rows(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from ordercast.trace.rows import RowFile\n"
        "from ordercast.trace.schema import *\n"
        "f = RowFile(sys.argv[1], Header('r', 'p', 'agreed', (1,), ()), 1, 9)\n"
        "k = 0\n"
        "while True:\n"
        "    k += 1\n"
        "    f.append(Row(1, 9, k, k, k, int(Kind.NOTE), detail={'name': str(k)}))\n"
        "    if k == 500: print('go', flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"go\n"
        os.kill(child.pid, signal.SIGKILL)
    rows = RowReader(tmp_path / "member-1-9.rows").rows()
    assert len(rows) >= 500
    assert [r.index for r in rows] == list(range(1, len(rows) + 1))
    assert all(r.detail == {"name": str(r.index)} for r in rows)


def test_a_torn_row_is_no_row(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = bytearray(path.read_bytes())
    data[-8:] = bytes(8)  # everything of the last row but the word that makes it valid
    path.write_bytes(data)
    assert RowReader(path).rows() == SAMPLES[:-1]
    path.write_bytes(data[:-50])
    assert RowReader(path).rows() == SAMPLES[:-1]


def damaged(path: Path, at: int, new: bytes) -> TraceError:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        RowReader(path).rows()
    return caught.value


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        (0, b"PAR1", "not a trace"),
        (8, b"\x02\x00", "newer"),
        (HEAD.size, b"[", "header is damaged"),
        (4096 + 2 * ROW.size - 8, b"\x01", "row 2 of member 1: local index 2 was expected, found 1"),
        (4096 + 2 * ROW.size - 8, b"\x03", "row 2 of member 1: local index 2 was expected, found 3"),
        (4096 + 2 * ROW.size - 8, b"\x00", "row 2 of member 1: local index 2 was expected, found 0"),
        (4096 + 1 * ROW.size - 8 - 4 - 2 - 3, b"\x63", "unknown event 99"),
    ],
)
def test_a_damaged_file_says_where_and_why(tmp_path: Path, at: int, new: bytes, why: str) -> None:
    error = damaged(write(tmp_path), at, new)
    assert why in error.why and error.path.endswith("member-1-9.rows")


def test_empty_missing_and_short_files(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(TraceError, match="No such file"):
        RowReader(tmp_path / "absent.rows")
    whole = path.read_bytes()
    for size, why in ((0, "empty"), (5, "inside its head"), (HEAD.size + 3, "cut short")):
        path.write_bytes(whole[:size])
        with pytest.raises(TraceError, match=why):
            RowReader(path)


def test_a_missing_or_damaged_side_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    side = path.with_suffix(".side")
    side.write_bytes(b"?" + side.read_bytes()[1:])
    with pytest.raises(TraceError, match="damaged"):
        RowReader(path).rows()
    side.unlink()
    with pytest.raises(TraceError, match="missing"):
        RowReader(path).rows()


def test_a_second_writer_and_a_full_disk_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)
    with pytest.raises(RunError, match="File exists"):
        write(tmp_path)

    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    file = RowFile(tmp_path / "other", HEADER, 1, 9, chunk_rows=2)
    monkeypatch.setattr(rows_module.os, "posix_fallocate", full)
    with pytest.raises(RunError, match="No space left"):
        for row in SAMPLES:
            file.append(row)
