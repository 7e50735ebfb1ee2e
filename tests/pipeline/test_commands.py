"""verify, measure, report and sweep without Spark: answers, exit codes, one sentence for each mistake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bad_traces import trace
from synthetic import Shape, inject, make_run
from synthetic import write as write_made_up

from ordercast.cli import main
from ordercast.trace.parquet import write


@pytest.fixture
def good(tmp_path: Path) -> Path:
    write(tmp_path / "good" / "x.parquet", [trace()])
    return tmp_path / "good"


class Answer:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, dict[str, Any]]:
        self.capsys.readouterr()
        code = main([*map(str, arguments), "--json"])
        lines = self.capsys.readouterr().out.splitlines()
        assert len(lines) == 1
        return code, msgspec.json.decode(lines[0])


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Answer:
    return Answer(capsys)


def test_a_good_trace(good: Path, call: Answer, tmp_path: Path) -> None:
    code, said = call("verify", good, "--plain")
    assert code == 0 and said["ok"] and said["engine"] == "plain" and said["runs"] == 1 and said["version"] == 1
    code, said = call("measure", good, "--plain", "--out", tmp_path / "tables")
    to = {f"submit to {who}" for who in ("sender", "others", "last")}
    assert code == 0 and {row["name"] for row in said["latency"]} == {"submit", "originate", *to}
    assert (tmp_path / "tables" / "latency.csv").exists()
    code, said = call("report", good, "--plain", "--out", tmp_path / "report")
    assert code == 0 and said["ok"] and "Every promise" in Path(said["report"]).read_text()


def test_a_broken_one(call: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run("bad", 3, Shape(members=3, frames_mean=60, crash_share=0.0))
    write_made_up(tmp_path / "bad", [(run, inject(run, "delivers twice", 1))])
    code, said = call("verify", tmp_path / "bad", "--plain", "--promises", "s2, S15")
    assert code == 1 and [line["promise"] for line in said["promises"]] == ["S2", "S15"]
    assert said["broken"][0]["promise"] == "S2" and len(said["broken"][0]["rows"]) == 2
    assert main(["verify", str(tmp_path / "bad"), "--plain"]) == 1
    out = capsys.readouterr().out
    assert "S2   no duplication" in out and "broken" in out and "twice" in out


def test_one_cause_is_told_once_and_what_had_no_events_is_not_called_good(
    call: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run("bad", 3, Shape(members=3, frames_mean=60, crash_share=0.0, partition_share=0.0))
    write_made_up(tmp_path / "bad", [(run, inject(run, "swaps two", 1))])
    code, said = call("verify", tmp_path / "bad", "--plain", "--promises", "S11,S17,S18,S19")
    assert code == 1 and [found["promise"] for found in said["broken"]] == ["S18"] and said["broken_total"] == 1
    assert {line["promise"]: (line["broken"], line["nothing"]) for line in said["promises"]} == {
        "S11": (0, 1), "S17": (1, 0), "S18": (1, 0), "S19": (1, 0),
    }  # fmt: skip
    assert main(["verify", str(tmp_path / "bad"), "--plain"]) == 1
    out = capsys.readouterr().out
    assert out.count("bad: S") == 1 and re.search(r"virtual synchrony +nothing to judge", out)
    code, said = call("report", tmp_path / "bad", "--plain", "--out", tmp_path / "report")
    page = Path(said["report"]).read_text()
    assert page.count('<h3><span class="mark bad">') == 1 and "nothing to judge" in page


def test_a_file_that_cannot_be_read(good: Path, call: Answer, capsys: pytest.CaptureFixture[str]) -> None:
    (good / "y.parquet").write_bytes(b"")
    for command in ("verify", "measure"):
        assert main([command, str(good), "--plain"]) == 1
        assert "y.parquet: at byte 0: the file is empty" in capsys.readouterr().err
        code, said = call(command, good, "--plain", "--skip-bad")
        assert code == 0 and len(said["skipped"]) == 1


def test_a_sweep_goes_on_and_says_what_failed(call: Answer, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text('name = "x"\nseeds = [1, 2]\n[base]\nmessages = 10\n[grid]\nprotocol = ["token_site", "totm"]\n')
    code, said = call("sweep", file, "--plain", "--out", tmp_path / "out", "--keep")
    assert code == 1 and said["ok"] == 2 and said["failed"] == 2 and "totm" in said["errors"][0]["error"]
    before = (tmp_path / "out" / "results.parquet").read_bytes()
    code, said = call("sweep", file, "--plain", "--out", tmp_path / "out", "--keep")
    assert code == 1 and (tmp_path / "out" / "results.parquet").read_bytes() == before
    code, said = call("verify", tmp_path / "out", "--plain")
    assert code == 0 and said["runs"] == 2
    code, said = call("sweep", file, "--plain", "--out", tmp_path / "out", "--retry")
    assert said["failed"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify"], "missing argument PATH..."),
        (["verify", "nowhere"], "nowhere: cannot be read: no such file"),
        (["verify", "GOOD", "--promises", "S99"], "--promises S99: expected ids such as"),
        (["verify", "GOOD", "--promises", ","], "--promises ,: expected ids such as"),
        (["verify", "GOOD", "--plain", "--master", "local[1]"], "--plain runs without Spark"),
        (["measure", "GOOD", "--conf", "abc"], "--conf abc: expected KEY=VALUE"),
        (["measure", "EMPTY", "--plain"], "holds no trace"),
        (["report", "GOOD", "--plain", "--out", "EMPTY/x"], "cannot be written"),
        (["sweep", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["sweep", "GOOD/x.parquet"], "is not UTF-8: expected a TOML file"),
    ],
)
def test_mistakes(
    arguments: list[str], words: str, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    if "EMPTY/x" in arguments:
        (tmp_path / "empty" / "x").write_text("a file")
        words = "is not a directory"
    called = [part.replace("GOOD", str(good)).replace("EMPTY", str(tmp_path / "empty")) for part in arguments]
    assert main(called) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and not said.out
