"""Experiment files: what they expand to, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.errors import ConfigError, UsageError
from ordercast.pipeline.experiment import from_dict, from_file, merge


def test_a_grid_is_every_combination_in_a_fixed_order() -> None:
    found = from_dict(
        {
            "name": "g",
            "seed": 10,
            "repetitions": 2,
            "base": {"messages": 7, "load": {"batch": 2}},
            "grid": {"members": [2, 3], "load": {"rate": [5.0, 6.0]}, "sizes": [10, [20, 30]]},
        }
    )
    assert len(found.points) == 16 and found.axes == ("members", "load.rate", "sizes")
    first, last = found.points[0], found.points[-1]
    assert first.run == "g-00" and last.run == "g-15" and [p.number for p in found.points] == list(range(16))
    assert first.scenario == {
        "messages": 7, "load": {"batch": 2, "rate": 5.0}, "members": 2, "sizes": [10], "seed": 10,
    }  # fmt: skip
    assert last.scenario["sizes"] == [20, 30] and last.scenario["seed"] == 11 and last.repetition == 1
    assert first.parameters == {"members": 2, "load.rate": 5.0, "sizes": 10}


def test_named_choices_and_cases_are_pieces_of_a_scenario() -> None:
    found = from_dict(
        {
            "choice": {"network": {"lan": {"nets": [{"model": "lan"}]}, "links": {"nets": [{"model": "links"}]}}},
            "case": [{"name": "calm"}, {"name": "lossy", "faults": [{"fault": "loss", "p": 0.1}]}],
            "seeds": [4, 9],
        }
    )
    assert len(found.points) == 8
    words = [(p.parameters["network"], p.parameters["case"], p.scenario["seed"]) for p in found.points]
    assert words[:4] == [("lan", "calm", 4), ("lan", "calm", 9), ("lan", "lossy", 4), ("lan", "lossy", 9)]


def test_the_digest_tells_experiments_apart() -> None:
    one, two = from_dict({"repetitions": 2}), from_dict({"repetitions": 2, "base": {"messages": 9}})
    assert one.digest == from_dict({"repetitions": 2}).digest != two.digest


def test_merging_replaces_all_but_tables() -> None:
    assert merge({"a": {"b": 1, "c": [1]}, "d": 2}, {"a": {"c": [2, 3]}}) == {"a": {"b": 1, "c": [2, 3]}, "d": 2}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"gird": {}}, "unknown key gird; did you mean grid?"),
        ({"grid": {"members": 3}}, "grid.members: 3: expected a list of values"),
        ({"grid": {"members": []}}, "grid.members: an empty array: expected a list of values"),
        ({"grid": {"members": [3, 900]}}, "run 1 (members = 900): members: 900: expected a whole number from 1 to 64"),
        ({"base": {"mesages": 3}}, "run 0: mesages: unknown key mesages; did you mean messages?"),
        ({"repetitions": 0}, "repetitions: 0: expected a whole number from 1 to 1000000"),
        ({"repetitions": "many"}, "repetitions: many: expected a whole number from 1 to 1000000"),
        ({"seeds": [1], "seed": 2}, "seeds: stands beside seed: expected one of the two"),
        ({"seeds": []}, "seeds: an empty array: expected at least one"),
        ({"limit_s": 0}, "limit_s: 0: expected a number above 0 and at most 86400"),
        ({"repetitions": 1000, "grid": {"members": list(range(1, 65)), "seed": list(range(100))}}, "6400000 runs"),
        ({"case": [{"name": 3}]}, "case[0].name: 3: expected a string"),
        ({"seed": -1}, "seed: -1: expected a whole number from 0 to 2^64 - 1"),
        ({"protocol": "totem"}, "protocol: is a scenario's key: expected it under [base]"),
        ({"repetitions": 2, "base": {"seed": "x"}}, "base.seed: x: expected a whole number"),
    ],
)
def test_mistakes(table: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as found:
        from_dict(table, "x.toml")
    assert words in str(found.value) and str(found.value).startswith("x.toml: ") and "\n" not in str(found.value)


def test_all_faults_of_the_file_are_told() -> None:
    table = {"nme": "x", "repetitions": "many", "limit_s": [], "gird": {}}
    with pytest.raises(ConfigError) as found:
        from_dict(table, "x.toml")
    assert found.value.faults == [
        "x.toml: repetitions: many: expected a whole number from 1 to 1000000",
        "x.toml: limit_s: an empty array: expected a number above 0 and at most 86400",
        "x.toml: nme: unknown key nme; did you mean name?",
        "x.toml: gird: unknown key gird; did you mean grid?",
    ]
    with pytest.raises(ConfigError) as found:
        from_dict({"repetitions": 0, "limit_s": 0, "grid": {"members": 3, "load": {"rate": []}}}, "x.toml")
    assert [text.split(": ")[1] for text in found.value.faults] == [
        "repetitions", "limit_s", "grid.members", "grid.load.rate",
    ]  # fmt: skip


def test_all_faults_of_the_runs_are_told_once_each() -> None:
    table = {"base": {"mesages": 3, "load": {"rate": "x"}}, "grid": {"members": [3, 900]}, "repetitions": 3}
    with pytest.raises(ConfigError) as found:
        from_dict(table, "x.toml")
    assert found.value.faults == [
        "x.toml: run 0 (members = 3): load.rate: x: expected a number from 0.000001 to 1000000000",
        "x.toml: run 0 (members = 3): mesages: unknown key mesages; did you mean messages?",
        "x.toml: run 3 (members = 900): members: 900: expected a whole number from 1 to 64",
    ]
    with pytest.raises(ConfigError) as found:
        from_dict({"grid": {"members": list(range(100, 200))}}, "x.toml")
    assert len(found.value.faults) == 21 and found.value.faults[-1] == "x.toml: and 80 more"


def test_faults_of_the_runs_have_the_line_they_were_written_in(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(
        """
        nme = "x"
        """
    )
    with pytest.raises(ConfigError) as found:
        from_file(path)
    assert found.value.faults == [f"{path}: line 2: nme: unknown key nme; did you mean name?"]
    path.write_text(
        """
        [base]
        mesages = 3
        load.rate = "x"
        [grid]
        members = [3, 900]
        [choice.network.lan]
        nets = [{model = "lan"}]
        [choice.network.odd]
        nets = 3
        [[case]]
        name = "calm"
        [[case]]
        name = "early"
        timeout_ms = 0
        """
    )
    with pytest.raises(ConfigError) as found:
        from_file(path)
    places = [sentence.removeprefix(f"{path}: ").partition(": run")[0] for sentence in found.value.faults]
    assert places == ["line 4", "line 3", "line 15", "line 10", "line 6"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    bad, broken = tmp_path / "bad.toml", tmp_path / "broken.toml"
    bad.write_bytes(b"\xff\xfe")
    broken.write_text("grid = [")
    for path, words in ((tmp_path / "none", "No such file"), (tmp_path, "directory"), (bad, "UTF-8"), (broken, "TOML")):
        with pytest.raises(UsageError, match=words):
            from_file(path)
    good = tmp_path / "good.toml"
    good.write_text("\ufeffrepetitions = 2\n[base]\nmessages = 3\n", encoding="utf-8")
    assert len(from_file(good).points) == 2
