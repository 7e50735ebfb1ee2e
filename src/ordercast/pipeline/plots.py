"""Plots of measures as SVG text, by matplotlib, to be put into a page as they are."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

INK, SOFT, GRID = "#22303c", "#5b6b79", "#e3e8ec"
COLOURS = ("#2f6fb0", "#d1772b", "#3f9b65", "#b14a6b", "#7a63b8", "#7d7f35", "#2d9aa0", "#a3552f")
Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]  # label -> x, y


def available() -> bool:
    return find_spec("matplotlib") is not None


def _draw(name: str, paint: Callable[[Any], None], width: float = 7.6, height: float = 3.2) -> str:
    """One figure as SVG.  The same numbers give the same text."""
    import matplotlib
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
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if largest_ns >= factor:
            return factor, unit
    return 1.0, "ns"


def distribution(name: str, series: Series, label: str = "latency") -> str:
    """Shares of messages by latency, from weighted buckets: (lower bounds in ns, messages)."""
    low, high = _middle(series)
    factor, unit = _time_unit(high)

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for word, (held, counted) in series.items():
            bounds, weights = _with_gaps(held, counted)
            total = float(sum(weights)) or 1.0
            x = [max(bound, 1) / factor for bound in bounds]
            share = [100 * weight / total for weight in weights]
            left.step(x, share, where="post", label=word, linewidth=1.3)
            if len(series) == 1:
                left.fill_between(x, share, step="post", alpha=0.18)
            running, upto = 0.0, []
            for part in share:
                running += part
                upto.append(running)
            right.step(x, upto, where="post", linewidth=1.4)
        for axes in (left, right):
            axes.set_xlabel(f"{label} ({unit})")
            if high > 4 * low:
                axes.set_xscale("log")
            axes.set_xlim(low / factor, high / factor)
            axes.set_ylim(bottom=0)
        left.set_ylabel("% of deliveries")
        right.set_ylabel("% delivered within")
        right.set_ylim(0, 102)
        if len(series) > 1:
            figure.legend(loc="outside lower center", fontsize=8, ncols=columns)

    columns = 1 if len(series) > 4 or max(map(len, series), default=0) > 50 else 2  # long words need the whole width
    return _draw(name, paint, 8.4, 2.9 + (0.22 * len(series) if len(series) > 1 else 0))


def _with_gaps(bounds: Sequence[float], weights: Sequence[float]) -> tuple[list[float], list[float]]:
    """The buckets (sixteen to an octave) with a zero behind each whose neighbour is empty, and is not in the list."""
    xs: list[float] = []
    ys: list[float] = []
    for k, (bound, weight) in enumerate(zip(bounds, weights, strict=True)):
        end = bound + 2 ** max(int(bound).bit_length() - 5, 0)
        xs.append(bound)
        ys.append(weight)
        if k + 1 == len(bounds) or bounds[k + 1] > end:
            xs.append(end)
            ys.append(0.0)
    return xs, ys


def _middle(series: Series) -> tuple[float, float]:
    """Where all but a few thousandths lie, and all that is slow."""
    low, high = float("inf"), 1.0
    for bounds, weights in series.values():
        total, running = sum(weights), 0.0
        for bound, weight in zip(bounds, weights, strict=True):
            running += weight
            if running * 200 >= total:
                low = min(low, bound)
                break
        high = max(high, *bounds) if bounds else high
    low = max(low if low < float("inf") else 1.0, 1.0, high / 30_000)
    return low / 1.1, max(high * 1.1, low * 1.2)


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
            axes.set_ylim(0, 1.12 * max((value for _, ys in series.values() for value in ys), default=1.0))
        if len(series) > 1:
            figure.legend(loc="outside lower center", fontsize=8)

    return _draw(name, paint, 5.4, 3.1 + (0.2 * len(series) if len(series) > 1 else 0))


def rate_over_time(name: str, series: Series, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Messages a second over a run's time in seconds; `marks`: moments worth a line (views, crashes)."""

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for word, (xs, ys) in series.items():
            axes.plot(xs, ys, linewidth=1.2, label=word)
        for k, (at, word) in enumerate(marks):
            axes.axvline(at, color="#b03a3a", linewidth=0.9, linestyle=(0, (4, 3)))
            where = {"xycoords": ("data", "axes fraction"), "xytext": (3, -2), "textcoords": "offset points"}
            axes.annotate(word, (at, 1.0 - 0.1 * (k % 4)), fontsize=8, color="#b03a3a", va="top", **where)
        axes.set_xlabel("seconds into the run")
        axes.set_ylabel("messages delivered / s")
        axes.set_ylim(bottom=0)
        if len(series) > 1:
            figure.legend(loc="outside lower center", fontsize=8, ncols=min(8, len(series)))

    return _draw(name, paint, 8.4, 2.8)


def side_by_side(
    name: str, labels: Sequence[str], spans: Sequence[tuple[float, float, float]], costs: Sequence[float]
) -> str:
    """A lane for each label: (median, mean, 99 %) of a latency in ns, beside it what a message costs in datagrams."""
    factor, unit = _time_unit(max(mean for _, mean, _ in spans))

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        places = range(len(labels))
        for place, (median, mean, high) in zip(places, spans, strict=True):
            left.plot([median / factor, high / factor], [place, place], color=COLOURS[0], linewidth=5, alpha=0.45,
                      solid_capstyle="butt")  # fmt: skip
            left.plot([mean / factor], [place], "o", color=COLOURS[0], markersize=5)
        right.barh(places, costs, height=0.5, color=COLOURS[1])
        for place, cost in zip(places, costs, strict=True):
            right.annotate(f"{cost:.3g}", (cost, place), (3, 0), textcoords="offset points", va="center", fontsize=8)
        left.set_yticks(places, labels)
        left.invert_yaxis()
        if max(map(max, spans)) > 12 * max(1, min(map(min, spans))):
            left.set_xscale("log")
        else:
            left.set_xlim(left=0)
        right.set_xlim(0, 1.15 * max([*costs, 1e-9]))
        left.set_xlabel(f"latency ({unit})")
        right.set_xlabel("datagrams / message")
        for axes in (left, right):
            axes.grid(visible=False, axis="y")

    return _draw(name, paint, 8.4, 1.0 + 0.34 * len(labels))
