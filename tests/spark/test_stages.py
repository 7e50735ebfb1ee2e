"""Each stage on Spark against its twin without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from bad_traces import BAD, live_directory, trace
from stages import make_data

from ordercast.cli import main
from ordercast.pipeline import here, ingest, measure
from ordercast.pipeline.verify import UNREADABLE, judge_plain, summarise, summarise_rows, verify_paths
from ordercast.trace.find import find
from ordercast.trace.parquet import write


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    make_data(directory)
    return directory


def test_verdicts_are_those_of_the_plain_checkers(spark: Any, data: Path) -> None:
    verdicts = verify_paths(spark, [data])
    rows = verdicts.toArrow().to_pylist()
    plain = [row for unit in find([data]) for row in judge_plain(unit, None)]
    assert {(row["run"], row["promise"]): row["state"] for row in rows} == {
        (row["run"], row["promise"]): row["state"] for row in plain
    }
    assert all(row["example"] and row["text"] for row in rows if row["state"] == "broken")
    by_spark, by_hand = summarise(verdicts), summarise_rows(rows)
    assert by_spark == by_hand
    assert by_spark.broken_total >= 10 and not by_spark.ok


def test_measures_are_those_without_spark(spark: Any, data: Path) -> None:
    expected = here.measure_here([data])
    found = measure.collect(measure.measure_paths(spark, [data]))
    assert found.keys() == expected.keys()
    for name, rows in expected.items():
        assert found[name] == rows, name


def test_all_bad_files_at_once_on_spark(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "good.parquet", [trace(1)])
    for k, (spoil, _) in enumerate(BAD.values()):
        write(tmp_path / f"bad-{k}.parquet", [trace(2)])
        spoil(tmp_path / f"bad-{k}.parquet")
    rows = verify_paths(spark, [tmp_path]).toArrow().to_pylist()
    bad = sorted(Path(row["path"]).name for row in rows if row["state"] == UNREADABLE)
    assert bad == sorted(f"bad-{k}.parquet" for k in range(len(BAD)))
    assert {row["state"] for row in rows if row["promise"]} == {"holds", "nothing to judge"}
    assert measure.measure_paths(spark, [tmp_path]).unreadable.count() == len(BAD)
    lines = ingest.ingest(spark, [tmp_path], tmp_path / "out").toArrow().to_pylist()
    assert sum(line["reason"] is None for line in lines) == 1
    assert sum(line["reason"] is not None for line in lines) == len(BAD)
    assert spark.read.parquet(str(tmp_path / "out" / "set-aside")).count() == len(BAD)


def test_a_live_run_through_all_stages(spark: Any, tmp_path: Path) -> None:
    of = trace()
    live_directory(tmp_path / "live", of)
    out = tmp_path / "out"
    lines = ingest.ingest(spark, [tmp_path / "live"], out).toArrow().to_pylist()
    assert [(line["run"], line["rows"], line["reason"]) for line in lines] == [(of.header.run, len(of.rows), None)]
    for path in (tmp_path / "live", out):
        states = {row["state"] for row in verify_paths(spark, [path]).toArrow().to_pylist()}
        assert states == {"holds", "nothing to judge"}
    live, tables = (here.measure_here([path]) for path in (tmp_path / "live", out))
    assert live["latency"] == tables["latency"]


def test_commands(spark: Any, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands use the session that is open; exit codes and the one JSON object are as elsewhere."""

    def call(*arguments: object) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*map(str, arguments), "--json"])
        return code, msgspec.json.decode(capsys.readouterr().out)

    code, said = call("verify", data, "--promises", "s2,S17", "--out", tmp_path / "verdicts")
    assert code == 1 and [line["promise"] for line in said["promises"]] == ["S2", "S17"] and said["broken"][0]["rows"]
    assert said["engine"] == "spark" and (tmp_path / "verdicts" / "tables" / "verdicts").is_dir()
    experiment = tmp_path / "x.toml"
    base = "protocol = 'token_site', messages = 40, load = { regime = 'poisson', rate = 15.0 }"
    experiment.write_text(f"name = 'x'\nrepetitions = 3\nbase = {{ {base} }}\n")
    code, said = call("sweep", experiment, "--out", tmp_path / "sweep", "--keep")
    assert code == 0 and said["ok"] == 3
    code, said = call("report", tmp_path / "sweep", "--out", tmp_path / "report")
    assert code == 0 and said["runs"] == 3 and "Every promise" in Path(said["report"]).read_text()
    protocols = ["--protocol", "token_site", "--protocol", "fifo", "--messages", 40, "--members", 2, "--seeds", "1:3"]
    compared = [
        call("compare", *protocols, *more, "--out", tmp_path / f"compare{len(more)}") for more in ((), ("--plain",))
    ]
    assert [code for code, _ in compared] == [0, 0] and compared[0][1]["protocols"] == compared[1][1]["protocols"]
