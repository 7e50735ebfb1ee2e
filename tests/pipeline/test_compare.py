"""ordercast compare: one table and one plot of several protocols under one workload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.mutants.bad_runs import trace_of

from ordercast import registry
from ordercast.cli import main
from ordercast.pipeline import compare
from ordercast.pipeline.compare import Line
from ordercast.trace.parquet import write

SMALL = ["compare", "--plain", "--protocol", "totem", "--protocol", "abcast", "--members", "3", "--messages", "60"]


def test_a_table_a_page_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main([*SMALL, "--seeds", "4:6", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "lan: 3 members, 60 messages of 100 bytes, poisson; 2 runs of each." in text
    head, *rows = [line.split() for line in text.splitlines()[2:5]]
    assert head == ["protocol", "service", "mean", "p50", "p99", "datagrams/msg", "bytes/delivery", "promises"]
    assert {row[0] for row in rows} == {"totem", "abcast"} and all(row[-1] == "held" for row in rows)
    page = (out / "report.html").read_text()
    assert page.count("<svg") == 1 and "abcast" in page and "Latency and traffic" in page
    assert main([*SMALL, "--seeds", "4:6", "--out", str(out), "--force", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] and result["seeds"] == [4, 6] and Path(result["report"]).exists()
    first, second = result["protocols"]
    assert first["runs"] == 2 and first["mean_ns"] <= second["mean_ns"]
    for line in (first, second):
        assert 0 < line["p50_ns"] <= line["p99_ns"] and line["datagrams_per_message"] > 3
        assert line["bytes_per_delivery"] > 100 and line["holds"] > 20 and not line["broken"]


def test_the_workload_is_the_files_and_what_the_command_line_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text("protocol = 'toto'\nmembers = 2\nmessages = 20\nsizes = [7]\n[load]\nstart_ms = 100.0\n")
    more = ["--scenario", str(file), "--set", "load.regime=periodic", "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main(["compare", "--plain", "--protocol", "token_site", "--protocol", "causal", *more, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    services = {line["protocol"]: line["service"] for line in result["protocols"]}
    assert services == {"token_site": "agreed", "causal": "causal"}
    assert (
        "2 members, 20 messages of 7 bytes, periodic; 1 run of each" in (tmp_path / "out" / "report.html").read_text()
    )


def test_without_names_all_with_a_total_order_are_compared() -> None:
    names = compare.ordering()
    assert {"totem", "toto", "allack", "abcast", "tomp", "token_site"} <= set(names)
    assert not {"fifo", "causal", "dpg"} & set(names) and set(names) <= set(registry.names())
    table = {**compare.SCENES["wan"], "members": 2}
    points = compare.experiment(table, names, range(2), "wan").points
    assert [(point.scenario["protocol"], point.scenario["seed"]) for point in points[:3]] == [
        (names[0], 0), (names[0], 1), (names[1], 0),
    ]  # fmt: skip


def test_a_broken_promise_is_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Line("totem", "agreed", 1, broken=("S17",))
    monkeypatch.setattr(compare, "lines", lambda results, tables: [bad])
    monkeypatch.setattr(compare, "write", lambda path, found, **more: path)
    assert main([*SMALL, "--seeds", "1", "--messages", "5", "--out", str(tmp_path / "out")]) == 1
    assert "broken: S17" in capsys.readouterr().out


def test_lines_gather_what_broke_and_what_failed() -> None:
    row = {"protocol": "p", "service": "agreed", "run": "p-1", "ok": True, "error": None, "holds": 9}
    rows = [
        row | {"broken": "S17 S2", "cannot_judge": "L5"},
        row | {"broken": "S2", "cannot_judge": ""},
        {**row, "protocol": "q", "broken": None, "cannot_judge": None, "ok": False, "error": "took too long"},
    ]
    p, q = compare.lines(rows, {"latency": [], "throughput": []})
    assert (p.promises, p.ok, p.holds) == ("broken: S17 S2", False, 18)
    assert (q.promises, q.ok, q.errors) == ("1 of 1 runs failed", False, ("p-1: took too long",))


def test_the_page_shows_what_broke(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.mkdir()
    write(trace / "bad.parquet", [trace_of("swaps_two")])
    line = Line("totem", "agreed", 1, 1e6, 900_000, 2_000_000, 9.5, 140.0, broken=("S17",))
    page = compare.write(tmp_path / "report.html", [line], lead="x", traces=trace).read_text()
    assert "What broke" in page and "S17" in page and "broken: S17" in page


def test_what_a_protocol_cannot_be_asked_for_is_said_before_any_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "--plain", "--protocol", "totem", "--protocol", "tomp", "--set", "service=safe"]) == 2
    assert capsys.readouterr().err == "ordercast: compare: lan: service: tomp provides agreed, not safe\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "protocol=toto"], "--set protocol: expected --protocol NAME, which says it"),
        (["--set", "seed = 5"], "--set seed: expected --seeds A:B, which says it"),
        (["--scenario", "lann"], "--scenario lann; did you mean lan?: expected lan or wan, or a scenario file"),
        (["--scenario", "none.toml"], "none.toml: cannot be read: No such file or directory"),
    ],
)
def test_what_would_be_passed_over_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, *words]) == 2
    assert capsys.readouterr().err == f"ordercast: compare: {said}\n"
    assert not (tmp_path / "out").exists()
