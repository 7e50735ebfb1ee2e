"""Pictures of the errata that are neither causal orders nor schedules: precedence graphs, frames on a wire, steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ordercast.papers.book import PlotData
from ordercast.papers.draw import plot
from ordercast.papers.points import Curve
from ordercast.pipeline.plots import COLOURS, GRID, INK, SOFT

WRONG = "#a32f2f"
STEP, PANEL, RADIUS = 86, 138, 16
Arc = tuple[Any, Any, str]  # plain, marked, excused; with `wrong` behind: it is not so
Panel = tuple[str, Sequence[Any], Sequence[Arc]]


def _frame(name: str, width: int, height: int, body: list[str], notes: Sequence[str]) -> str:
    width = max([width, *(round(7.3 * len(line)) + 16 for line in notes)])
    tips = "".join(
        f'<marker id="{name}-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="11" markerHeight="11" '
        f'orient="auto" markerUnits="userSpaceOnUse"><path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        for kind, colour in (("tip", INK), ("bad", WRONG))
    )
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 14 + 18 * len(notes)}" '
           f'width="{width}" role="img" font-family="sans-serif" font-size="13">',
           f"<defs>{tips}</defs>", *body]  # fmt: skip
    for k, line in enumerate(notes):
        indent = 8 + 6 * (len(line) - len(line.lstrip()))
        out.append(f'<text x="{indent}" y="{height + 12 + 18 * k}" fill="{INK}">{escape(line.strip())}</text>')
    return "\n".join([*out, "</svg>"])


def precedence(name: str, panels: Sequence[Panel], notes: Sequence[str] = ()) -> str:
    """Precedence graphs below each other, their vertices in the order of the network."""
    width, body = 0, []
    for k, (title, vertices, arcs) in enumerate(panels):
        y = PANEL * k + 84
        width = max(width, STEP * (len(vertices) + 1), round(7.3 * len(title)) + 16)
        body.append(f'<text x="8" y="{y - 62}" fill="{SOFT}">{escape(title)}</text>')
        place = {vertex: STEP * (at + 1) - 30 for at, vertex in enumerate(vertices)}
        body += [_arc(name, place[x], place[z], y, kind) for x, z, kind in arcs]
        for vertex, x in place.items():
            body.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="#e8eef7" stroke="#30507a"/>')
            body.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="{INK}">{escape(str(vertex))}</text>')
    return _frame(name, width, PANEL * len(panels) + 4, body, notes)


def _arc(name: str, x: int, z: int, y: int, kind: str) -> str:
    bad = "wrong" in kind
    thick = 3.5 if "marked" in kind or "excused" in kind else 1.2
    style = (f'fill="none" stroke="{WRONG if bad else INK}" stroke-width="{thick}" '
             f'marker-end="url(#{name}-{"bad" if bad else "tip"})"')  # fmt: skip
    if "excused" in kind:
        style += ' stroke-dasharray="8 4"'
    if x == z:
        return f'<path d="M{x - 9},{y - 14} C{x - 26},{y - 44} {x + 26},{y - 44} {x + 9},{y - 15}" {style}/>'
    if z == x + STEP:
        return f'<path d="M{x + RADIUS + 1},{y} L{z - RADIUS - 2},{y}" {style}/>'
    side = 1 if z > x else -1  # backward ones above
    bend = 20 + 12 * abs(z - x) // STEP
    return (f'<path d="M{x + 11 * side},{y + 12 * side} Q{(x + z) // 2},{y + (bend + 14) * side} '
            f'{z - 12 * side},{y + 13 * side}" {style}/>')  # fmt: skip


def wire(
    name: str,
    spans: Mapping[Any, tuple[int, int]],
    verdicts: Sequence[tuple[str, Sequence[bool]]],
    notes: Sequence[str],
) -> str:
    """Frames on a wire, time in us to the right; a row of verdicts on each but the first, for each reading."""
    scale, left = 1.4, 128
    end = max(stop for _, stop in spans.values())
    body = [f'<line x1="{left}" y1="62" x2="{left + scale * end:.0f}" y2="62" stroke="{GRID}"/>']
    body.append(f'<text x="8" y="52" fill="{SOFT}">on the wire, us</text>')
    for frame, (start, stop) in spans.items():
        x, width = round(left + scale * start), round(scale * (stop - start))
        body.append(f'<rect x="{x}" y="32" width="{width}" height="30" fill="#e8eef7" stroke="#30507a"/>')
        body.append(f'<text x="{x + width // 2}" y="52" text-anchor="middle" fill="{INK}">{frame}</text>')
        body.append(f'<text x="{x}" y="26" text-anchor="middle" font-size="11" fill="{SOFT}">{start}</text>')
    for k, (title, found) in enumerate(verdicts):
        y = 88 + 24 * k
        body.append(f'<text x="8" y="{y}" fill="{INK}">{escape(title)}</text>')
        for (start, stop), good in list(zip(spans.values(), found, strict=True))[1:]:
            x = round(left + scale * (start + stop) / 2)
            word = "right after" if good else "after"
            body.append(f'<text x="{x}" y="{y}" text-anchor="middle" fill="{INK}">{word}</text>')
    return _frame(name, round(left + scale * end) + 20, 78 + 24 * len(verdicts) + 10, body, notes)


def beats(name: str, lanes: Sequence[tuple[str, Sequence[int], bool]], counts: int, unit: str) -> str:
    """A dot wherever something happened, count by count; (title, counts, by the letter)."""
    step, left = 24, 150
    body = []
    for k, (title, found, letter) in enumerate(lanes):
        y = 30 + 26 * k
        body.append(f'<text x="8" y="{y + 4}" fill="{INK}">{escape(title)}</text>')
        body.append(f'<line x1="{left}" y1="{y}" x2="{left + step * counts}" y2="{y}" stroke="{GRID}"/>')
        for at in found:
            colour = WRONG if letter else COLOURS[0]
            body.append(f'<circle cx="{left + step * at + step // 2}" cy="{y}" r="6" fill="{colour}"/>')
    y = 30 + 26 * len(lanes)
    for at in range(0, counts + 1, 5):
        x = left + step * at + step // 2
        body.append(f'<text x="{x}" y="{y + 6}" text-anchor="middle" font-size="11" fill="{SOFT}">{at}</text>')
    body.append(f'<text x="{left + step * counts // 2}" y="{y + 24}" text-anchor="middle" fill="{SOFT}">{unit}</text>')
    return _frame(name, left + step * (counts + 1), y + 34, body, ())


def curves(name: str, x: str, y: str, found: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """Lines by the letter and here, as on the papers' pages; without the declaration that a file of its own has."""
    series = {label: Curve(list(map(float, xs)), list(map(float, ys))) for label, (xs, ys) in found.items()}
    return plot(name, PlotData(name=name, x=x, y=y), series)
