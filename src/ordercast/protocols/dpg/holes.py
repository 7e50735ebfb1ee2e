"""What reports have not: messages between two that one names, and messages that soon nobody will name.

A site keeps a delivered message in its reports for Rep_Keep.  One that lost it, and the reports of that time, would
never hear of it; and one that has just returned, and reports what little it knows, would keep the others from saying
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from ordercast.protocols.dpg.graph import Graph

Tag = Any


def between(graph: Graph, arcs: Iterable[tuple[Tag, Tag]]) -> set[Tag]:
    """All that is after the beginning of one of these arcs and before its end."""
    found: set[Tag] = set()
    for x, y in arcs:
        found |= _after(graph, x) & graph.ancestors((y,))
    return found


def _after(graph: Graph, vertex: Tag) -> set[Tag]:
    found: set[Tag] = set()
    todo = [vertex]
    while todo:
        fresh = graph.out[todo.pop()].keys() - found
        found |= fresh
        todo += fresh
    return found


def unsaid(named: Set[Tag], done: Mapping[Tag, float], recent: float, soon: float) -> bool:
    """Whether something delivered after `recent`, and not after `soon`, was never named."""
    return any(recent < at <= soon and tag not in named for tag, at in done.items())
