"""The plots of the papers' items: ours as lines with their intervals, what was published as marks of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ordercast.papers.book import PlotData
from ordercast.papers.points import Curve
from ordercast.pipeline.plots import COLOURS, INK, _draw

MARKS = ("D", "s", "^", "v", "P", "X", "*", "h")


def plot(name: str, data: PlotData, series: Mapping[str, Curve]) -> str:
    """One plot as SVG; a published series has the colour of ours with the same label."""
    labels = list(series) + [each.label for each in data.published if each.label not in series]
    colour = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        bars = [label for label, curve in series.items() if curve.style == "bars"]
        for label, curve in series.items():
            if label in bars:
                _bars(axes, curve, bars.index(label), len(bars), colour[label], label)
                continue
            axes.plot(curve.x, curve.y, marker="o", markersize=3.5, linewidth=1.4, color=colour[label], label=label)
            if curve.low and curve.low != curve.y:
                axes.fill_between(curve.x, curve.low, curve.high, color=colour[label], alpha=0.15, linewidth=0)
        for each in data.published:
            mark = MARKS[labels.index(each.label) % len(MARKS)]
            axes.plot(each.x, each.y, linestyle="none", marker=mark, markersize=6.5, markerfacecolor="none",
                      markeredgewidth=1.5, color=colour[each.label] if each.label in series else INK,
                      label=f"{each.label}, published")  # fmt: skip
        axes.set_xlabel(data.x)
        axes.set_ylabel(data.y)
        if data.log_x:
            axes.set_xscale("log")
        if data.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=min(0.0, *(y for curve in series.values() for y in curve.y), 0.0))
        figure.legend(loc="outside lower center", fontsize=8, ncols=2 if len(labels) + len(data.published) > 3 else 1)

    shown = len(series) + len(data.published)
    return _draw(name, paint, 6.4, 3.2 + 0.2 * (-(-shown // 2) if shown > 3 else shown))


def _bars(axes: Any, curve: Curve, place: int, of: int, colour: str, label: str) -> None:
    """One of several series of bars, beside each other."""
    width = 0.8 / of
    at = [x + (place - (of - 1) / 2) * width for x in curve.x]
    axes.bar(at, curve.y, width=width * 0.92, color=colour, label=label)
    axes.set_xticks(sorted(set(axes.get_xticks()) & set(curve.x)) if place else curve.x)
