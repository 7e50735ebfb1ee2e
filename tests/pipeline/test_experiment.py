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
        ({"grid": {"members": 3}}, "grid.members: expected a list of values"),
        ({"grid": {"members": []}}, "grid.members: expected a list of values"),
        ({"grid": {"members": [3, 900]}}, "run 1 (members = 900): members: expected 1 to 64, got 900"),
        ({"base": {"mesages": 3}}, "unknown key 'mesages'; did you mean messages?"),
        ({"repetitions": 0}, "repetitions: expected 1 to 1000000, got 0"),
        ({"repetitions": "many"}, "repetitions"),
        ({"seeds": [1], "seed": 2}, "seeds and seed exclude each other"),
        ({"seeds": []}, "seeds: expected at least one"),
        ({"limit_s": 0}, "limit_s: expected above 0"),
        ({"repetitions": 1000, "grid": {"members": list(range(1, 65)), "seed": list(range(100))}}, "6400000 runs"),
        ({"case": [{"name": 3}]}, "case[0].name: expected text"),
        ({"seed": -1}, "seed: expected 0 to"),
        ({"protocol": "totem"}, "protocol: is a scenario's key: expected it under [base]"),
        ({"repetitions": 2, "base": {"seed": "x"}}, "base.seed: expected a whole number"),
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
        "x.toml: unknown key nme; did you mean name?",
        "x.toml: unknown key gird; did you mean grid?",
        "x.toml: repetitions: expected int | null, got str",
        "x.toml: limit_s: expected float, got array",
    ]
    with pytest.raises(ConfigError) as found:
        from_dict({"repetitions": 0, "limit_s": 0, "grid": {"members": 3, "load": {"rate": []}}}, "x.toml")
    assert [text.split(": ")[1] for text in found.value.faults] == [
        "repetitions", "grid.members", "grid.load.rate", "limit_s",
    ]  # fmt: skip


def test_all_faults_of_the_runs_are_told_once_each() -> None:
    table = {"base": {"mesages": 3, "load": {"rate": "x"}}, "grid": {"members": [3, 900]}, "repetitions": 3}
    with pytest.raises(ConfigError) as found:
        from_dict(table, "x.toml")
    assert found.value.faults == [
        "x.toml: run 0 (members = 3): unknown key 'mesages'; did you mean messages?",
        "x.toml: run 0 (members = 3): load.rate: expected float, got str",
    ]
    with pytest.raises(ConfigError) as found:
        from_dict({"grid": {"members": list(range(100, 200))}}, "x.toml")
    assert len(found.value.faults) == 21 and found.value.faults[-1] == "x.toml: and 80 more"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    bad, broken = tmp_path / "bad.toml", tmp_path / "broken.toml"
    bad.write_bytes(b"\xff\xfe")
    broken.write_text("grid = [")
    for path, words in ((tmp_path / "none", "no such file"), (tmp_path, "directory"), (bad, "UTF-8"), (broken, "TOML")):
        with pytest.raises(UsageError, match=words):
            from_file(path)
    good = tmp_path / "good.toml"
    good.write_text("\ufeffrepetitions = 2\n[base]\nmessages = 3\n", encoding="utf-8")
    assert len(from_file(good).points) == 2
