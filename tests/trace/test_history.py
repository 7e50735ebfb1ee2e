"""The history of views: from row files a part at a time, and from Parquet, the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.errors import TraceError
from ordercast.pipeline import numbers
from ordercast.pipeline.report import write_run
from ordercast.sim.faults import Crash
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.trace import parquet, reader
from ordercast.trace.clock import utc
from ordercast.trace.columns import from_rows
from ordercast.trace.find import find
from ordercast.trace.history import history
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Kind, Row
from ordercast.trace.trace import Trace

HEADER = Header("r", "totem", "agreed", (1, 2), ("S1",), live=True)
NOON = 1_794_960_000_000_000_000


def view(member: int, index: int, at: int, seq: int, members: tuple[int, ...], cause: str, kind: int = 1) -> Row:
    return Row(
        member, 9, index, at, at, int(Kind.VIEW), view_seq=seq, view_rep=1, view_kind=kind, members=members,
        detail={"cause": cause},
    )  # fmt: skip


def deliver(member: int, index: int, at: int) -> Row:
    return Row(member, 9, index, at, at, int(Kind.DELIVER), 1, 9, index, 1, index, service=3)


def life(member: int, clock: int) -> list[Row]:
    """A life whose monotonic clock began at `clock`."""
    t = clock + 1_000 * member
    rows = [Row(member, 9, 1, t, t, int(Kind.START), detail={"wall_ns": NOON + 1_000 * member})]
    rows += [
        view(member, 2, t + 10, 4, (1, 2), "start"),
        deliver(member, 3, t + 100_000),
        deliver(member, 4, t + 200_000),
    ]
    rows += [view(member, 5, t + 500_000, 8, (1,), "x", kind=2), view(member, 6, t + 500_000, 8, (1,), "silence of 2")]
    rows += [view(member, 7, t + 600_000, 12, (1, 2), "merge"), deliver(member, 8, t + 900_000 + member)]
    return rows


ROWS = [*life(1, 5_000_000), *life(2, 77_000_000)]


def write(directory: Path, rows: list[Row]) -> Path:
    files: dict[int, RowFile] = {}
    for row in rows:
        if row.member not in files:
            files[row.member] = RowFile(directory, HEADER, row.member, 9)
        files[row.member].append(row)
    for file in files.values():
        file.close()
    return directory


@pytest.mark.parametrize("block", [1, 2, 3, 1 << 16])
def test_when_who_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reader, "BLOCK_ROWS", block)
    monkeypatch.setattr(reader.RowReader, "read", None)  # a file is never read whole
    changes = history(find([write(tmp_path, ROWS)]))
    assert [(c.id, c.members, c.cause) for c in changes] == [
        ("4.1", (1, 2), "start"), ("8.1", (1,), "silence of 2"), ("12.1", (1, 2), "merge"),
    ]  # fmt: skip
    assert [c.wall_ns for c in changes] == [NOON + 1_000 + at for at in (10, 500_000, 600_000)], "member 1 was first"
    assert changes[0].when() == utc(NOON + 1_010) and changes[0].at == {1: 5_001_010, 2: 77_002_010}
    assert [c.standstill_ns for c in changes] == [None, 700_002, 700_002]


def test_parquet_tells_the_same(tmp_path: Path) -> None:
    parquet.write(tmp_path / "t.parquet", [Trace(HEADER, ROWS)])
    assert history(find([tmp_path / "t.parquet"])) == history(find([write(tmp_path / "rows", ROWS)]))


def test_standstills_are_those_of_measure(tmp_path: Path) -> None:
    scenario = Scenario(
        protocol="totem", members=4, messages=400, seed=5, faults=(Crash(member=3, at_ms=30, down_ms=80),)
    )
    trace = run(scenario).trace
    parquet.write(tmp_path / "t.parquet", [trace])
    changes = history(find([tmp_path]))
    views = {(row.view_seq, row.view_rep) for row in trace.rows if row.kind == Kind.VIEW and row.view_kind == 1}
    assert {(c.seq, c.rep) for c in changes} == views and len(views) >= 3
    assert [c.time_ns for c in changes] == sorted(c.time_ns for c in changes) and changes[0].wall_ns is None
    longest = max(numbers.standstills(from_rows(trace.rows)).tolist())
    assert max(c.standstill_ns or 0 for c in changes) == longest > 0


def test_the_command_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "trace", ROWS)
    assert main(["views", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"{utc(NOON + 501_000)}  view 8.1 of 1: silence of 2 (delivery stood still for 0.7 ms)"
    assert main(["views", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["views"]
    assert [each["id"] for each in told] == ["4.1", "8.1", "12.1"] and told[1]["standstill_ms"] == 0.7
    assert told[0]["time"] == utc(NOON + 1_010) and told[0]["installed_ns"] == {"1": 5_001_010, "2": 77_002_010}
    ids = "\n".join(f'[[member]]\nid = {k}\naddress = "10.9.0.{k}:7400"' for k in (1, 2))
    (tmp_path / "group.toml").write_text(f'group = "g"\ninsecure = true\n[net]\ninterface = "veth9"\n{ids}\n')
    assert main(["views", "--config", str(tmp_path / "group.toml")]) == 0
    assert capsys.readouterr().out.splitlines() == lines
    page = write_run(tmp_path / "page.html", [tmp_path / "trace"], verdicts=[], engine="plain").read_text()
    assert utc(NOON + 501_000) in page and "silence of 2" in page


def test_damage_is_told(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    side = tmp_path / "member-1-9.side"
    side.write_bytes(side.read_bytes().replace(b"silence", b"violence"[:7]))
    with pytest.raises(TraceError, match="row 6 of member 1: its detail in the side file"):
        history(find([tmp_path]))
    side.unlink()
    with pytest.raises(TraceError, match="row 1 of member 1: its detail cannot be read"):
        history(find([tmp_path]))
