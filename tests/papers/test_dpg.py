"""DPG's figure and claims, quickly: shapes and signs; and that a site which marks too little makes a shape wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.papers import book, reproduce
from ordercast.papers.judge import OUTSIDE, WITHIN
from ordercast.pipeline.experiment import merge


def test_shapes_and_signs_hold(tmp_path: Path) -> None:
    found = reproduce.run(book.choose(["dpg"], [], [], []), tmp_path, quick=True, workers=1)
    bad = [(result.item.id, line.name, line.ours) for result in found for line in result.lines
           if line.verdict == OUTSIDE]  # fmt: skip
    assert bad == [] and not any(result.failed or result.broken for result in found)
    assert reproduce.tally(found)[WITHIN] >= 5


def test_marks_off_are_seen(tmp_path: Path) -> None:
    """Without Suspended Delivery everywhere nothing falls when it is switched off."""

    def plant(paper: str, scenario: dict[str, Any]) -> dict[str, Any]:
        return merge(scenario, {"options": {"marks": "off", "deliv_cycle": 120}})

    (result,) = reproduce.run(book.choose(["dpg"], [], [3], []), tmp_path, quick=True, workers=1, plant=plant)
    wrong = [line.name for line in result.lines if line.verdict == OUTSIDE]
    assert "without falls" in wrong and not result.ok
