"""What linearising costs: from nothing, and in the usual case, a reception after the last one; beside a fixed loop.

`python benchmarks/dpg_linearise.py` prints a table; figures are the best of many, in microseconds.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src")]

from ordercast.protocols.dpg.graph import MARKED, Graph  # noqa: E402


def known(vertices: int) -> Graph:
    """A true order of which four of five neighbours are marked and some arcs lead further."""
    draw = random.Random(vertices)
    graph = Graph(range(vertices))
    for x in range(vertices - 1):
        graph.arc(x, x + 1, MARKED if draw.random() < 0.8 else None)
        if x + 4 < vertices and draw.random() < 0.3:
            graph.arc(x, x + draw.randint(2, 4), None)
    return graph


def best_us(make: Callable[[], Callable[[], None]], times: int = 300) -> float:
    found = []
    for _ in range(times):
        call = make()
        begun = time.perf_counter_ns()
        call()
        found.append(time.perf_counter_ns() - begun)
    return min(found) / 1e3


def usual(vertices: int) -> Callable[[], None]:
    graph = known(vertices)
    graph.linearise()
    return lambda: graph.receive(vertices, vertices - 1, MARKED)


def loop() -> None:
    sum(k * k for k in range(10_000))


def main() -> None:
    print("| vertices | a reception, us | from nothing, us |\n|---|---|---|")
    for vertices in (30, 60, 120):
        print(
            f"| {vertices} | {best_us(lambda n=vertices: usual(n)):.0f} | "  # type: ignore[misc]
            f"{best_us(lambda n=vertices: known(n).linearise):.0f} |"  # type: ignore[misc]
        )
    print(f"\nthe fixed loop: {best_us(lambda: loop):.0f} us")


if __name__ == "__main__":
    main()
