"""ToTo's tables and figures, quickly: shapes and signs; and that a wrong quorum makes a shape wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ordercast.papers import book, reproduce
from ordercast.papers.judge import EXPLAINED, OUTSIDE, WITHIN
from ordercast.papers.toto import N, formula_1, formula_2
from ordercast.pipeline.experiment import merge


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, reproduce.Result]:
    chosen = book.choose(["toto"], [], [], [])
    found = reproduce.run(chosen, tmp_path_factory.mktemp("papers"), quick=True, workers=1)
    return {result.item.id: result for result in found}


def test_shapes_and_signs_hold(results: dict[str, reproduce.Result]) -> None:
    bad = [(name, line.name, line.ours) for name, result in results.items() for line in result.lines
           if line.verdict == OUTSIDE]  # fmt: skip
    assert bad == [] and not any(result.failed or result.broken for result in results.values())
    judged = reproduce.tally(results.values())
    assert judged[WITHIN] > 25, judged


def test_every_item_has_something_that_is_judged_quickly(results: dict[str, reproduce.Result]) -> None:
    silent = [name for name, result in results.items() if not (result.count(WITHIN) or result.count(EXPLAINED))]
    assert silent == ["listing2", "listing3", "listing4"]


def test_a_quorum_of_all_is_seen(tmp_path: Path) -> None:
    """phi = 7/8 of eight: a message is ordered when all have voted, and nothing is won over all-ack."""

    def plant(paper: str, scenario: dict[str, Any]) -> dict[str, Any]:
        if scenario.get("protocol") != "toto":
            return scenario
        return merge(scenario, {"options": {"phi": "7/8"}})

    chosen = book.choose(["toto"], [2], [5], [])
    results = reproduce.run(chosen, tmp_path, quick=True, workers=1, plant=plant)
    wrong = [line.name for result in results for line in result.lines if line.verdict == OUTSIDE]
    assert {"ToTo is sooner at every load", "tau stays below six", "5 or 6 in two of three, 50/s"} <= set(wrong)
    assert not all(result.ok for result in results)


def test_the_formulas() -> None:
    """All-ack with nobody speaking at the same time: everybody else's next message, of seven, is waited for."""
    assert formula_1({"8,1": 1.0}, 160.0) == pytest.approx(160 * sum(1 / k for k in range(1, N)))
    assert formula_2({"8,1": 1.0}, 160.0) == pytest.approx(140)
    assert formula_2({"5,1": 0.5, "6,2": 0.5}, 80.0) == pytest.approx(80 * (0.5 * 4 / 8 + 0.5 * 4 / 7))
