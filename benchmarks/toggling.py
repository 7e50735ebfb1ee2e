"""One member of twenty that comes and goes, under totem and under dpg: time halted and messages a second, with a plot.

`ordercast sweep examples/experiments/toggling.toml --plain --keep --out out/toggling`, then
`python benchmarks/toggling.py out/toggling/trace [--plot docs/img/toggling.svg]`: the table of docs/protocols/dpg.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src")]

from ordercast.pipeline.halts import halts  # noqa: E402
from ordercast.trace.columns import Columns  # noqa: E402
from ordercast.trace.load import load_columns  # noqa: E402
from ordercast.trace.schema import Kind  # noqa: E402

WINDOW_NS = 50_000_000
WATCHED = 1  # a member that is there all the time


def delivered(c: Columns) -> tuple[Any, Any]:
    """Seconds since the load began, and messages a second at one member, window by window."""
    rows = np.flatnonzero((c["kind"] == int(Kind.DELIVER)) & (c["member"] == WATCHED))
    begin = int(c["time_ns"][c["kind"] == int(Kind.SUBMIT)].min())
    edges = np.arange(begin, int(c["time_ns"][rows].max()) + WINDOW_NS, WINDOW_NS)
    counts = np.histogram(c["time_ns"][rows], edges, weights=c["count"][rows])[0]
    return (edges[:-1] - begin) / 1e9, counts * 1e9 / WINDOW_NS


def plot(curves: dict[str, tuple[Any, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ordercast"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(curves), 1, figsize=(8.5, 4.2), sharex=True, layout="constrained")
    for axis, (name, (at, rate)) in zip(axes, curves.items(), strict=True):
        axis.step(at, rate, where="post", color="#30507a" if name == "dpg" else "#b5541c")
        axis.set_title(name, loc="left", fontsize=10)
        axis.set_ylim(0, max(float(rate.max()) for _, rate in curves.values()) * 1.05)
        axis.set_ylabel("messages/s")
        for k in range(1, 5):
            axis.axvspan(k, k + 0.5, color="#dddddd", zorder=0)
    axes[-1].set_xlabel("seconds; grey: member 20 stands still")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--plot", type=Path)
    given = options.parse_args()
    curves = {}
    print("| | time halted, members that are present | messages/s | windows below 60 % |\n|---|---|---|---|")
    for header, columns in load_columns(given.trace):
        quiet, whole = halts(columns)
        at, rate = curves[header.protocol] = delivered(columns)
        inside = rate[(at > 0.5) & (at < 4.5)]
        low = int((inside < 0.6 * np.median(inside)).sum())
        print(f"| {header.protocol} | {quiet / whole:.1%} | {inside.mean():.0f} | {low} of {len(inside)} |")
    if given.plot:
        plot(curves, given.plot)


if __name__ == "__main__":
    main()
