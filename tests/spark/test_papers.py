"""The papers on Spark: the same files, byte for byte, as without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ordercast.papers import book, page, reproduce


def tables(out: Path) -> dict[str, bytes]:
    """Every CSV and JSON file of a paper."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.glob("*/*.csv")) + sorted(out.glob("*/*.json"))
    }


def test_the_same_bytes_as_without_spark(spark: Any, tmp_path: Path) -> None:
    chosen = book.choose(["toto"], [1, 2], [], [])
    found = {}
    for name, how in (("spark", {"spark": spark, "tasks": 3}), ("plain", {"workers": 1})):
        out = tmp_path / name
        results = reproduce.run(chosen, out, quick=True, **how)
        assert all(result.ok for result in results)
        written = [path for result in results for path in page.write_item(out, result)]
        written.append(page.write_page(out, results))
        found[name] = {str(path.relative_to(out)): path.read_bytes() for path in written}
    assert found["spark"] == found["plain"] and len(found["plain"]) == 6


@pytest.mark.timeout(600)  # another start of Spark, perhaps on a busy machine
def test_a_whole_paper_on_one_core_on_two_and_without_spark(spark: Any, tmp_path: Path) -> None:
    """One core by the command, in another process.  A cluster, and all papers: benchmarks/papers_same.py."""
    command = [sys.executable, "-m", "ordercast", "papers", "tomp", "--quick", "--master", "local[1]"]
    done = subprocess.run([*command, "--out", str(tmp_path / "one")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, how in (("two", {"spark": spark}), ("plain", {"workers": 1})):
        for result in reproduce.run(book.choose(["tomp"], [], [], []), tmp_path / name, quick=True, **how):
            page.write_item(tmp_path / name, result)
    one, two, plain = (tables(tmp_path / name) for name in ("one", "two", "plain"))
    assert len(plain) == 10 and one == plain and two == plain
