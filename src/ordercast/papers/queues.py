"""Pictures of TOMP's paper: reception queues step by step, and the two parts of a message's latency."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

_FONT = "font-family=\"system-ui,'Segoe UI','DejaVu Sans',sans-serif\""
_FILL = {"ud": "#eceff3", "dl": "#bfe3c6", "up": "#ffffff"}
Entry = tuple[str, str, str]  # message, stamp, ud | dl


def _text(x: float, y: float, words: str, size: int = 12, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="#22272e">{escape(words)}</text>'
    )


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" {_FONT}><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def queues(title: str, steps: Sequence[tuple[str, Sequence[tuple[Sequence[Entry], Sequence[str]]]]]) -> str:
    """Of each step: its name, and for every host its queue, head first, and what it delivers then."""
    box, gap, left, line = 54, 34, 16, 86
    hosts = len(steps[0][1])
    column = 3 * box + gap
    parts = [_text(left + k * column + 1.5 * box, 20, f"host{k + 1}", 13, "middle", "600") for k in range(hosts)]
    for row, (name, states) in enumerate(steps):
        top = 34 + row * line
        parts.append(_text(left, top + 10, name, 11))
        for k, (entries, delivered) in enumerate(states):
            for place, (message, stamp, state) in enumerate(entries):
                x = left + k * column + place * box
                edge = "#2e7d3c" if message in delivered else "#8a94a0"
                parts.append(
                    f'<rect x="{x}" y="{top + 16}" width="{box - 3}" height="40" fill="{_FILL[state]}" stroke="{edge}" '
                    f'stroke-width="{2 if message in delivered else 1}"/>'
                )
                middle = x + (box - 3) / 2
                parts.append(_text(middle, top + 32, message, 12, "middle", "600"))
                parts.append(_text(middle, top + 48, f"{stamp} {state}", 11, "middle"))
            if delivered:
                words = "delivers " + ", ".join(delivered)
                parts.append(_text(left + k * column, top + 70, words, 11))
    return _svg(2 * left + hosts * column - gap, 44 + len(steps) * line, parts, title)


Span = tuple[float, float, float]  # ms: received, final stamp known, delivered


def spans(title: str, lanes: Sequence[tuple[str, Span]], sent_ms: float) -> str:
    """Of one message: t1 and t2 at each host; the axis begins when it was sent."""
    left, width, line = 130, 560, 52
    end = max(span[2] for _, span in lanes) - sent_ms
    scale = width / end
    parts = []
    for row, (name, (came, decided, delivered)) in enumerate(lanes):
        y = 40 + row * line
        x0, x1, x2 = (left + (at - sent_ms) * scale for at in (came, decided, delivered))
        parts.append(_text(12, y + 15, name, 12, weight="600"))
        parts.append(f'<line x1="{left}" x2="{x2:.1f}" y1="{y + 11}" y2="{y + 11}" stroke="#c9d0d8"/>')
        for a, b, fill, label in ((x0, x1, "#bcd3ee", "t1"), (x1, x2, "#e8b98a", "t2")):
            parts.append(f'<rect x="{a:.1f}" y="{y}" width="{max(b - a, 0):.1f}" height="22" fill="{fill}"/>')
            if b - a > 70:
                parts.append(_text((a + b) / 2, y + 15, f"{label} = {(b - a) / scale:.2f} ms", 11, "middle"))
        parts.append(
            f'<line x1="{x2:.1f}" x2="{x2:.1f}" y1="{y - 4}" y2="{y + 26}" stroke="#22272e" stroke-width="2"/>'
        )
        small = f"t2 = {(x2 - x1) / scale:.2f} ms" if x2 - x1 <= 70 else ""
        parts.append(_text(min(x2, left + width) + 5, y + 15, small, 11))
    y = 40 + len(lanes) * line
    for k in range(5):
        at = end * k / 4
        parts.append(_text(left + at * scale, y + 10, f"{at:.1f}", 10, "middle"))
    parts.append(_text(left + width / 2, y + 26, "ms since it was sent", 11, "middle"))
    parts.append(_text(left, 20, "reception to final stamp: t1; from there to delivery (bar): t2", 11))
    return _svg(left + width + 110, y + 36, parts, title)
