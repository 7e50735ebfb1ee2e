"""The same rows, whoever computes them: local[1], local[2], a cluster of two workers, any cut, any order of files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster import two_workers
from stages import all_stages, make_data

HERE = Path(__file__).parent
pytestmark = pytest.mark.timeout(1200)  # three starts of Spark, perhaps on a busy machine


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    make_data(directory)
    return directory


@pytest.fixture(scope="module")
def expected(spark: Any, data: Path) -> dict[str, Any]:
    """By the session of all tests, local[2]."""
    return all_stages(spark, data)


def elsewhere(master: str, data: Path, out: Path) -> dict[str, Any]:
    """The stages in another process, with another master."""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(HERE), *filter(None, sys.path)]))
    done = subprocess.run(
        [sys.executable, str(HERE / "stages.py"), master, str(data), str(out)],
        env=env, capture_output=True, text=True, timeout=1100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name


def test_there_is_something_to_compare(expected: dict[str, Any]) -> None:
    states = {row["state"] for row in expected["verdicts"]}
    assert {"holds", "broken"} <= states
    assert sum(row["ok"] for row in expected["sweep"]) == 8 and len(expected["sweep"]) == 16
    assert all("no_such_protocol" in row["error"] for row in expected["sweep"] if not row["ok"])
    assert all(expected[name] for name in ("runs", "throughput", "latency", "histogram", "skew_free", "notes"))


def test_files_named_in_any_order_and_cut_differently(
    spark: Any, data: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    for k, file in enumerate(sorted(data.glob("*.parquet"), reverse=True)):
        (tmp_path / f"{k}").mkdir()
        shutil.copy(file, tmp_path / f"{k}" / file.name)
    same(all_stages(spark, tmp_path, tasks=1), expected)


def test_one_core(data: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    same(elsewhere("local[1]", data, tmp_path / "out.json")["stages"], expected)


# ------------------------------------------------------------------------------------------------------- the cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    with two_workers(tmp_path) as address:
        yield address


def test_a_cluster_of_two_workers(cluster: str, data: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    found = elsewhere(cluster, data, tmp_path / "out.json")
    assert all(".zip" in file for file in found["packages"]), found["packages"]
    same(found["stages"], expected)
