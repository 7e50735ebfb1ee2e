"""Totem's paper in its quick form: shapes hold, and a window that is halved makes one wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.papers import book, reproduce
from ordercast.papers.judge import OUTSIDE, WITHIN
from ordercast.papers.points import Value
from ordercast.papers.totem import _crossing, _falling
from ordercast.pipeline.experiment import merge


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, reproduce.Result]:
    chosen = book.choose(["totem"], [], [], [])
    found = reproduce.run(chosen, tmp_path_factory.mktemp("papers"), quick=True, workers=1)
    return {result.item.id: result for result in found}


def test_shapes_and_signs_hold(results: dict[str, reproduce.Result]) -> None:
    bad = [(name, line.name, line.ours) for name, result in results.items() for line in result.lines
           if line.verdict == OUTSIDE]  # fmt: skip
    assert bad == [] and not any(result.failed or result.broken for result in results.values())


def test_every_figure_but_one_has_something_that_is_judged_quickly(results: dict[str, reproduce.Result]) -> None:
    without = [name for name, result in results.items() if not result.count(WITHIN) and result.item.kind == "figure"]
    assert without == ["figure12"], "which takes too long"


def test_a_window_that_is_halved_is_seen(tmp_path: Path) -> None:
    def plant(paper: str, scenario: dict[str, Any]) -> dict[str, Any]:
        return merge(scenario, {"options": {"max_messages": max(1, scenario["options"]["max_messages"] // 2)}})

    (result,) = reproduce.run(
        book.choose(["totem"], [], [4], []), tmp_path, quick=True, workers=1, plant=plant
    )  # fmt: skip
    assert "falls from 15 on" in [line.name for line in result.lines if line.verdict == OUTSIDE]
    assert not result.ok


def test_where_a_line_meets_a_level() -> None:
    line = [(0.1, Value(8.0)), (0.5, Value(6.0)), (0.7, Value(5.0))]
    assert _crossing(line, 5.5) == pytest.approx(0.6)
    assert _crossing(line, 4.0) is None
    assert _falling([3, 2, 1]) and not _falling([3, 3, 1])
