"""Damaged bytes: a reader gives rows or a TraceError, never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast.errors import TraceError
from ordercast.trace import load, load_columns, parquet, record
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace
from ordercast.verify import check
from ordercast.verify.columns import check as check_columns

HEADER = Header("r", "p", "agreed", (1, 2), ("S1", "S2", "S5", "S17", "L3"), level="full", timeout_ns=1000)


def rows() -> list[Row]:
    out = [Row(1, 9, 1, 0, 0, int(Kind.VIEW), view_seq=1, view_rep=1, view_kind=1, members=(1, 2), detail={"a": 1})]
    for k in range(2, 30):
        kind = Kind.DELIVER if k % 2 else Kind.ORIGINATE
        out.append(
            Row(1, 9, k, k, k, int(kind), 1, 9, k // 2, 1, k // 2, service=3, groups=("g",) if k % 5 == 0 else None)
        )
    return out


def damage(data: bytes, pick: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(pick.choice([1, 1, 3, 20])):
        if not out:
            break
        k = pick.randrange(len(out))
        match pick.randrange(4):
            case 0:
                out[k] ^= 1 << pick.randrange(8)
            case 1:
                out[k : k + 8] = pick.randbytes(8)
            case 2:
                del out[k : k + pick.randint(1, 50)]
            case 3:
                del out[k:]
    return bytes(out)


def judged(directory: Path) -> None:
    for trace in load(directory):
        check(trace)
    for header, columns in load_columns(directory):
        check_columns(columns, header)


def tolerated(directory: Path) -> bool:
    try:
        judged(directory)
    except TraceError:
        return False
    bad: list[TraceError] = []
    assert load(directory, bad) and not bad
    return True


@pytest.mark.parametrize("victim", ["member-1-9.rows", "member-1-9.side"])
def test_damaged_row_files(tmp_path: Path, victim: str) -> None:
    file = RowFile(tmp_path, HEADER, 1, 9)
    for row in rows():
        file.append(row)
    file.close()
    good = (tmp_path / victim).read_bytes()
    pick = random.Random(1)
    results = set()
    for _ in range(120):
        (tmp_path / victim).write_bytes(damage(good, pick))
        results.add(tolerated(tmp_path))
    assert False in results


def test_damaged_parquet_files(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write(path, [Trace(HEADER, rows())])
    good, pick = path.read_bytes(), random.Random(2)
    for _ in range(60):
        path.write_bytes(damage(good, pick))
        tolerated(tmp_path)


def test_damaged_recordings(tmp_path: Path) -> None:
    path = tmp_path / "x.inputs"
    recorded = record.Recorded(HEADER, 1, 9, {}, 1000, 1000, (0,), [3, [1], None])
    writer = record.RecordWriter(tmp_path, recorded)
    for k in range(20):
        writer.append(record.Received(k, 0, 2, 9, 0, b"abc"), [])
    writer.close()
    good, pick = writer.path.read_bytes(), random.Random(3)
    for _ in range(300):
        path.write_bytes(damage(good, pick))
        try:
            list(record.RecordReader(path))
        except TraceError as why:
            assert why.why
