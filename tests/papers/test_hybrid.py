"""The hybrid paper's figures, quickly; and the group they are made with."""

from __future__ import annotations

from pathlib import Path

from ordercast.papers import book, reproduce
from ordercast.papers.distant import Group, Load
from ordercast.papers.judge import OUTSIDE
from ordercast.papers.ways import MS


def test_shapes_and_signs_hold(tmp_path: Path) -> None:
    results = reproduce.run(book.choose(["hybrid"], [], [], []), tmp_path, quick=True, workers=1)
    bad = [(result.item.words, line.name, line.ours) for result in results for line in result.lines
           if line.verdict == OUTSIDE]  # fmt: skip
    assert bad == [] and all(result.ok for result in results)


def test_a_token_site_takes_the_way_there_and_the_way_to_the_farthest() -> None:
    """Constant ways: 10 ms between 1 and 3, the site, 20 between 2 and 3, 30 between 1 and 2."""
    ways = {frozenset((1, 3)): 10.0, frozenset((2, 3)): 20.0, frozenset((1, 2)): 30.0}
    group = Group("token_site", {}, lambda chance, a, b: ways[frozenset((a, b))], [Load((20.0, 20.0, 20.0), 2.0)],
                  source="quasi", nulls_ms=0.0, seed=1)  # fmt: skip
    group.run()
    waits: dict[int, set[int]] = {}
    for (sender, _), message in group.messages.items():
        if message.sent < group.end:
            waits.setdefault(sender, set()).add(round((message.last - message.sent) / MS))
    assert waits == {1: {30}, 2: {40}, 3: {20}}
