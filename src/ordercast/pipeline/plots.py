"""Plots of measures as SVG text, by matplotlib, to be put into a page as they are."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordercast.errors import UsageError

INK, SOFT, GRID = "#22303c", "#5b6b79", "#e3e8ec"
COLOURS = ("#2f6fb0", "#d1772b", "#3f9b65", "#b14a6b", "#7a63b8", "#7d7f35", "#2d9aa0", "#a3552f")
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # label -> x, y


def _draw(name: str, paint: Callable[[Any], None], width: float = 7.6, height: float = 3.2) -> str:
    """One figure as SVG.  The same numbers give the same text."""
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError(f"plots need matplotlib ({error}): install it with pip install 'ordercast[plots]'") from error
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": "sans-serif",
        "font.size": 9.5,
        "axes.edgecolor": GRID,
        "axes.labelcolor": SOFT,
        "axes.titlecolor": INK,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "axes.grid": True,
        "grid.color": GRID,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    }
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        paint(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 role="img"', text, count=1)
    return _own_ids(text, re.sub(r"\W+", "-", name))


def _own_ids(text: str, name: str) -> str:
    """Several figures share a page: each id gets the figure's name."""
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)


def _time_unit(largest_ns: float) -> tuple[float, str]:
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if largest_ns >= factor:
            return factor, unit
    return 1.0, "ns"


def distribution(name: str, series: Series, label: str = "latency") -> str:
    """Shares of messages by latency, from weighted buckets: (lower bounds in ns, messages)."""
    largest = max((max(x, default=0) for x, _ in series.values()), default=0)
    factor, unit = _time_unit(largest)

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for word, (bounds, weights) in series.items():
            total = float(sum(weights)) or 1.0
            x = [bound / factor for bound in bounds]
            left.step(x, [100 * w / total for w in weights], where="post", label=word, linewidth=1.4)
            running, share = 0.0, []
            for weight in weights:
                running += weight
                share.append(100 * running / total)
            right.step(x, share, where="post", linewidth=1.4)
        for axes in (left, right):
            axes.set_xlabel(f"{label} ({unit})")
            if largest > 0:
                axes.set_xscale("log")
        left.set_ylabel("% of deliveries")
        right.set_ylabel("% delivered within")
        right.set_ylim(0, 101)
        if len(series) > 1:
            left.legend(fontsize=8)

    return _draw(name, paint)


def lines(name: str, series: Series, x: str, y: str, *, log_x: bool = False, zero: bool = True) -> str:
    """Curves with points, one per label."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for word, (xs, ys) in series.items():
            axes.plot(xs, ys, marker="o", markersize=3.5, linewidth=1.4, label=word)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if log_x:
            axes.set_xscale("log")
        if zero:
            axes.set_ylim(bottom=0)
        if len(series) > 1:
            axes.legend(fontsize=8)

    return _draw(name, paint, 5.2, 3.0)


def rate_over_time(name: str, series: Series, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Messages a second over a run's time in seconds; `marks`: moments worth a line (views, crashes)."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for word, (xs, ys) in series.items():
            axes.plot(xs, ys, linewidth=1.2, label=word)
        for at, word in marks:
            axes.axvline(at, color="#b03a3a", linewidth=0.9, linestyle=(0, (4, 3)))
            axes.annotate(word, (at, 1.0), xycoords=("data", "axes fraction"), fontsize=8, color="#b03a3a",
                          xytext=(3, -2), textcoords="offset points", va="top")  # fmt: skip
        axes.set_xlabel("seconds into the run")
        axes.set_ylabel("messages delivered / s")
        axes.set_ylim(bottom=0)
        if len(series) > 1:
            axes.legend(fontsize=8, ncols=min(4, len(series)))

    return _draw(name, paint, 7.6, 2.6)


def bars(name: str, values: Sequence[tuple[str, float]], x: str) -> str:
    """Horizontal bars, one per label."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        words = [word for word, _ in values]
        axes.barh(words, [value for _, value in values], height=0.62)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(x)

    return _draw(name, paint, 5.2, 0.7 + 0.34 * max(1, len(values)))
