"""The plots of the papers' items: ours as lines with their intervals, what was published as marks of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ordercast.papers.book import PlotData
from ordercast.papers.points import Curve
from ordercast.pipeline.plots import COLOURS, INK, _draw

DECADE = 12  # a logarithmic axis that spans no more names what lies between powers of ten, too
TICKS_MAX = 12  # places of a logarithmic axis that are all named
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
            places = sorted({x for each in [*series.values(), *data.published] for x in each.x})
            if len(places) <= TICKS_MAX:
                axes.set_xticks(places, [f"{x:g}" for x in places])
                axes.set_xticks([], minor=True)
        if data.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
            low, high = axes.get_ylim()
            narrow = high < DECADE * low  # there may be no power of ten in it
            axes.yaxis.set_minor_formatter(lambda y, _: f"{y:g}" if narrow else "")
        elif data.zero:
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


# ------------------------------------------------------------------------------------------------------- causal orders

LANE, STEP, RADIUS = 92, 62, 19
FILL = {"done": "#e3e8ec", "candidate": "#d6e6f5", "wrong": "#fbeaea"}


def dag(
    name: str,
    lanes: Sequence[str],
    messages: Sequence[tuple[str, Sequence[str]]],
    marks: Mapping[str, str] | None = None,
    classes: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """A causal order: (message, what it acknowledges) in an order of arrival, a lane for each sender, time upwards.

    A message is named by the letter of its lane and a number.  `classes`: agreed ones are dashed, as in the paper.
    `notes`: lines of words below.
    """
    marks, classes = marks or {}, classes or {}
    letters = [lane.lower()[0] for lane in lanes]
    level: dict[str, int] = {}
    newest: dict[str, str] = {}
    for message, acks in messages:
        before = [level[each] for each in acks] + ([level[newest[message[0]]]] if message[0] in newest else [])
        level[message] = 1 + max(before, default=0)
        newest[message[0]] = message
    height = STEP * (max(level.values()) + 1)
    width = max([LANE * len(lanes), *(round(7.3 * len(line)) + 16 for line in notes)])
    place = {m: (LANE * letters.index(m[0]) + LANE // 2, height - STEP * level[m] + 12) for m in level}
    whole = height + 34 + 18 * len(notes)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" role="img" '
           f'font-family="sans-serif" font-size="13">',
           f'<defs><marker id="{name}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
           f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>']  # fmt: skip
    for k, lane in enumerate(lanes):
        x = LANE * k + LANE // 2
        out.append(f'<line x1="{x}" y1="20" x2="{x}" y2="{height + 4}" stroke="#e3e8ec"/>')
        out.append(f'<text x="{x}" y="{height + 22}" text-anchor="middle" fill="#5b6b79">{lane}</text>')
    for message, acks in messages:
        for each in acks:
            (x1, y1), (x2, y2) = place[message], place[each]
            far = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
            dx, dy = (x2 - x1) / far * (RADIUS + 2), (y2 - y1) / far * (RADIUS + 2)
            out.append(f'<line x1="{x1 + dx:.1f}" y1="{y1 + dy:.1f}" x2="{x2 - dx:.1f}" y2="{y2 - dy:.1f}" '
                       f'stroke="{INK}" stroke-width="1.2" marker-end="url(#{name}-tip)"/>')  # fmt: skip
    for message, (x, y) in place.items():
        dashed = ' stroke-dasharray="4 3"' if classes.get(message, "agreed") == "agreed" else ""
        fill = FILL.get(marks.get(message, ""), "#ffffff")
        out.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{INK}" stroke-width="1.3"{dashed}/>')
        out.append(f'<text x="{x}" y="{y + 4.5}" text-anchor="middle" fill="{INK}">{message}</text>')
    for k, line in enumerate(notes):
        indent = 8 + 6 * (len(line) - len(line.lstrip()))
        out.append(f'<text x="{indent}" y="{height + 46 + 18 * k}" fill="{INK}">{escape(line.strip())}</text>')
    return "\n".join([*out, "</svg>"])


# ------------------------------------------------------------------------------------------------------------ schedules

TIME, ROW = 46, 64
COLOUR = {"send": COLOURS[0], "recv": "#ffffff", "crash": "#a32f2f", "role": COLOURS[1]}


def schedule(
    name: str,
    lanes: Sequence[str],
    events: Sequence[tuple[int, int, str, str]],
    arrows: Sequence[tuple[int, int, int, int]],
    notes: Sequence[str] = (),
) -> str:
    """Steps of a run, time to the right: (step, lane, kind, word); arrows (step, lane) to (step, lane).

    kind: send, recv, role, crash; or `view`, a line through all lanes.
    """
    steps = 1 + max(step for step, *_ in events)
    width = max([90 + TIME * steps, *(round(7.3 * len(line)) + 16 for line in notes)])
    height = 30 + ROW * len(lanes)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 14 + 18 * len(notes)}" '
           f'width="{width}" role="img" font-family="sans-serif" font-size="13">',
           f'<defs><marker id="{name}-tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
           f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#5b6b79"/></marker></defs>']  # fmt: skip

    def at(step: int, lane: int) -> tuple[int, int]:
        return 76 + TIME * step, 44 + ROW * lane

    for k, title in enumerate(lanes):
        y = at(0, k)[1]
        out.append(f'<text x="8" y="{y + 4}" fill="#5b6b79">{escape(title)}</text>')
        out.append(f'<line x1="48" y1="{y}" x2="{60 + TIME * steps}" y2="{y}" stroke="#e3e8ec"/>')
    for step, lane, to_step, to_lane in arrows:
        (x1, y1), (x2, y2) = at(step, lane), at(to_step, to_lane)
        far = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / far * 7, (y2 - y1) / far * 7
        out.append(f'<line x1="{x1}" y1="{y1}" x2="{x2 - dx:.1f}" y2="{y2 - dy:.1f}" stroke="#5b6b79" '
                   f'marker-end="url(#{name}-tip)"/>')  # fmt: skip
    for step, lane, kind, word in events:
        x, y = at(step, lane)
        if kind == "view":
            out.append(f'<line x1="{x}" y1="24" x2="{x}" y2="{height - 6}" stroke="{COLOUR["crash"]}" '
                       f'stroke-dasharray="4 3"/>')  # fmt: skip
            out.append(f'<text x="{x}" y="16" text-anchor="middle" fill="{COLOUR["crash"]}">{escape(word)}</text>')
            continue
        out.append(f'<circle cx="{x}" cy="{y}" r="5.5" fill="{COLOUR[kind]}" stroke="{INK}"/>')
        if word:
            out.append(f'<text x="{x}" y="{y - 11}" text-anchor="middle" font-size="11.5" fill="{INK}">'
                       f"{escape(word)}</text>")  # fmt: skip
    for k, line in enumerate(notes):
        indent = 8 + 6 * (len(line) - len(line.lstrip()))
        out.append(f'<text x="{indent}" y="{height + 12 + 18 * k}" fill="{INK}">{escape(line.strip())}</text>')
    return "\n".join([*out, "</svg>"])
