"""A sweep gives one row per run, whatever a run does, however the work is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.errors import UsageError
from ordercast.pipeline.experiment import Experiment, from_dict
from ordercast.pipeline.sweep import Options, done_count, run_points, sweep, sweep_here

ODD = Options(limit_s=10.0, work="odd_work:work")


def experiment(runs: int = 2000) -> Experiment:
    return from_dict({"name": "odd", "seed": 1, "repetitions": runs // 2, "base": {"messages": 5},
                      "grid": {"members": [2, 3]}})  # fmt: skip


def test_three_bad_runs_of_two_thousand(spark: Any, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    table = sweep(spark, from_dict({"name": "odd", "seed": 1, "repetitions": 2000}), tmp_path, options=ODD,
                  watch=lambda done, total: seen.append((done, total)))  # fmt: skip
    assert table.num_rows == 2000
    errors = {row["seed"]: row["error"] for row in table.to_pylist() if not row["ok"]}
    assert sorted(errors) == [501, 1000, 1500]
    assert errors[501].startswith("ArithmeticError: seed 501 is not liked")
    assert errors[1000] == "did not end within 10 s"
    assert errors[1500] == "its process was ended by SIGKILL"
    assert seen[-1] == (2000, 2000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_the_same_table_for_any_number_of_tasks_and_without_spark(spark: Any, tmp_path: Path) -> None:
    small = experiment(60)
    tables = [sweep(spark, small, tmp_path / str(tasks), options=ODD, tasks=tasks) for tasks in (1, 7)]
    tables.append(sweep_here(small, tmp_path / "here", options=ODD, workers=2))
    assert tables[0].num_rows == 60
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
    files = {(tmp_path / name / "results.parquet").read_bytes() for name in ("1", "7", "here")}
    assert len(files) == 1


def test_going_on_skips_what_is_done(spark: Any, tmp_path: Path) -> None:
    small = experiment(40)
    half = Experiment(small.name, small.points[:25], small.limit_s, small.axes)
    options = Options(limit_s=10.0, work="odd_work:work", out=str(tmp_path))
    (tmp_path / "experiment.json").write_text(f'{{"name":"odd","digest":"{small.digest}"}}')
    run_points(spark, half.points, options, 2).write.format("noop").mode("overwrite").save()
    assert done_count(tmp_path) == 25
    before = set((tmp_path / "parts").iterdir())
    table = sweep(spark, small, tmp_path, options=options)
    assert table["number"].to_pylist() == list(range(40))
    assert before < set((tmp_path / "parts").iterdir())
    with pytest.raises(UsageError, match="holds another experiment"):
        sweep(spark, experiment(42), tmp_path, options=options)
