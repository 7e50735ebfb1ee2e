"""Scenes (ordercast.trace.spacetime) as SVG and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from ordercast.trace.schema import Kind, Row

if TYPE_CHECKING:
    from ordercast.trace.spacetime import Arrow, Band, Event, Scene

SLOT, LANE, LEFT, TOP = 34, 96, 108, 86  # pixels
_SENDERS = ("#2563a8", "#c2541b", "#2e7d4f", "#8a3f9c", "#b08900", "#0e7f8c", "#b3365b", "#5a5f3a")
_TINTS = ("#e8f0fa", "#fdf0e3", "#e9f5ec", "#f4eaf7", "#fbf5dc", "#e3f4f5", "#fbe9ef", "#f0f1e8")
_STYLE = """
.spacetime text{font:12px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#22272e}
.spacetime .title{font-size:17px;font-weight:600}
.spacetime .who{font-size:14px;font-weight:600}
.spacetime .small{font-size:10px;fill:#4a525c}
.spacetime .band{font-size:11px;fill:#39424d}
.spacetime .axis{font-size:10px;fill:#6b7480}
.spacetime .number{font-weight:700;fill:#fff;text-anchor:middle}
.spacetime .lane{stroke:#39424d;stroke-width:1.6}
.spacetime .gone{stroke:#c3c9d1;stroke-width:1.4;stroke-dasharray:2 5}
.spacetime .way{fill:none;stroke-width:1.3;opacity:.62}
.spacetime .world{stroke:#b7791f;stroke-dasharray:5 4;stroke-width:1.2}
.spacetime .small,.spacetime .band{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.spacetime .mark{fill:none;stroke:#d3202c;stroke-width:2.6}
""".replace("\n", "")


def draw(scene: Scene) -> str:
    """The picture, ready for a browser or an HTML page."""
    width = max(680, LEFT + scene.slots * SLOT + 24)
    height = TOP + len(scene.members) * LANE + 84
    views = {band.view.row.view_seq: None for band in scene.bands if band.regular}
    tint = {seq: _TINTS[k % len(_TINTS)] for k, seq in enumerate(views)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'class="spacetime" role="img" aria-label="{escape(scene.title)}"><style>{_STYLE}</style>',
        "<title>Space-time picture of a run</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<defs><pattern id="between" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="7" height="7" fill="#f6f7f9"/><path d="M0 0V7" stroke="#c9d0d9" stroke-width="3"/></pattern>',
        *(_arrow_head(k) for k in range(len(_SENDERS))),
        "</defs>",
        f'<text class="title" x="20" y="28">{escape(scene.title)}</text>',
        f'<text class="axis" x="20" y="45">{escape(scene.subtitle)}</text>',
        *(_band(band, tint) for band in scene.bands),
        *_lanes(scene),
        *_world(scene, height),
        *(_way(arrow) for arrow in scene.arrows),
        *(_event(event) for event in scene.events),
        *_axis(scene, height),
        _legend(scene, height),
        "</svg>",
    ]
    return "".join(parts)


def _x(slot: float) -> float:
    return LEFT + (slot + 0.5) * SLOT


def _y(lane: int) -> float:
    return TOP + (lane - 0.5) * LANE


def _colour(row: Row) -> int:
    return ((row.sender or 1) - 1) % len(_SENDERS)


def view_name(row: Row) -> str:
    """A view's id; of long numbers (made from a clock) the end will do."""
    seq = row.view_seq or 0
    return f"{seq if seq < 10**6 else f'…{seq % 10**4:04}'}.{row.view_rep}"


def _label(row: Row) -> str:
    first, count = row.counter or 0, row.count or 1
    return f"{row.sender}:{first}" if count == 1 else f"{row.sender}:{first}–{first + count - 1}"


def _arrow_head(k: int) -> str:
    return (
        f'<marker id="to{k}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0.6L8 4L0 7.4z" fill="{_SENDERS[k]}"/></marker>'
    )


def _band(band: Band, tint: dict[int | None, str]) -> str:
    x, y = _x(band.first) - SLOT / 2, _y(band.lane) - LANE / 2 + 6
    width = max(SLOT, (band.last - band.first) * SLOT) - 3
    fill = tint.get(band.view.row.view_seq, "#f1f3f5") if band.regular else "url(#between)"
    words = _short(band.words, (width - 8) / 6.1)
    return (
        f'<g><title>{escape(band.words)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{LANE - 14}" rx="7" fill="{fill}" stroke="#d5dbe3"/>'
        f'<text class="band" x="{x + 6:.1f}" y="{y + 14:.1f}">{escape(words)}</text></g>'
    )


def _short(words: str, room: float) -> str:
    """As much as there is room for; nothing rather than two letters."""
    if len(words) <= room:
        return words
    return words[: int(room) - 1] + "…" if room >= 8 else ""


def _lanes(scene: Scene) -> list[str]:
    out = []
    for lane, member in enumerate(scene.members, 1):
        y = _y(lane)
        out.append(f'<text class="who" x="20" y="{y + 5:.1f}">member {member}</text>')
        out.append(f'<path class="gone" d="M{LEFT} {y:.1f}H{_x(scene.slots)}"/>')
    for life in scene.lives:
        y = _y(life.lane)
        out.append(f'<path class="lane" d="M{_x(life.first - 0.5):.1f} {y:.1f}H{_x(life.last - 0.5):.1f}"/>')
        if not life.ended:
            x = _x(life.last - 0.5)
            out.append(f'<path d="M{x:.1f} {y - 4:.1f}l8 4l-8 4z" fill="#39424d"/>')
    return out


def _world(scene: Scene, height: int) -> list[str]:
    """What was done to the run: lines across all lanes, their words staggered."""
    out, row = [], 0
    for event in scene.events:
        if event.lane or event.kind not in (Kind.FAULT, Kind.STABLE):
            continue
        x, detail = _x(event.slot), event.row.detail or {}
        words = "stable" if event.kind == Kind.STABLE else f"{detail.get('class', 'fault')} {detail.get('state', '')}"
        row = (row + 1) % 2
        out.append(f'<path class="world" d="M{x:.1f} {TOP - 4}V{height - 76}"/>')
        out.append(f'<text class="small" x="{x + 3:.1f}" y="{TOP - 10 - 13 * row}">{escape(words.strip())}</text>')
    return out


def _way(arrow: Arrow) -> str:
    x, y, k = _x(arrow.source.slot), _y(arrow.source.lane), _colour(arrow.source.row)
    to_x, to_y = _x(arrow.target.slot), _y(arrow.target.lane)
    radius = 13 if arrow.target.kind == Kind.DELIVER else 6
    length = max(1.0, ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5)
    to_x, to_y = to_x - (to_x - x) / length * radius, to_y - (to_y - y) / length * radius
    return (
        f'<path class="way" stroke="{_SENDERS[k]}" marker-end="url(#to{k})" '
        f'd="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"/>'
    )


def _event(event: Event) -> str:
    x, y, row = _x(event.slot), _y(event.lane), event.row
    ring = f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="15"/>' if event.marked else ""
    match event.kind:
        case Kind.ORIGINATE:
            colour = _SENDERS[_colour(row)]
            shape = f'<rect x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12" rx="2.5" fill="{colour}"/>'
            shape += _below(event, 22)
            words = f"member {row.member} multicasts {_label(row)}"
        case Kind.DELIVER:
            colour = _SENDERS[_colour(row)]
            shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{colour}" stroke="#fff" stroke-width="1.5"/>'
            shape += f'<text class="number" x="{x:.1f}" y="{y + 4.2:.1f}">{event.number}</text>'
            shape += _below(event, 24)
            words = f"member {row.member} delivers {_label(row)} as number {event.number}"
        case Kind.RECEIVE:
            colour = _SENDERS[_colour(row)]
            shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#fff" stroke="{colour}" stroke-width="2"/>'
            words = f"member {row.member} receives {_label(row)}"
        case Kind.VIEW:
            shape = f'<path d="M{x - SLOT / 2:.1f} {y - 13:.1f}v26" stroke="#39424d" stroke-width="3"/>'
            words = f"member {row.member} installs view {view_name(row)}"
        case Kind.CRASH:
            shape = f'<path d="M{x - 9:.1f} {y - 9:.1f}l18 18m0 -18l-18 18" stroke="#d3202c" stroke-width="4"/>'
            shape += f'<text class="small" x="{x:.1f}" y="{y + 25:.1f}" text-anchor="middle">crash</text>'
            words = f"member {row.sender or row.member} crashes"
        case Kind.FAULT | Kind.STABLE:
            return ""
        case _:
            shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="#fff" stroke="#39424d" stroke-width="2"/>'
            shape += f'<text class="small" x="{x:.1f}" y="{y + 22:.1f}" text-anchor="middle">{event.kind.word}</text>'
            words = f"member {row.sender or row.member}: {event.kind.word}"
    return f"<g><title>{escape(words)}, {_time(row.time_ns)}</title>{shape}{ring}</g>"


def _below(event: Event, down: float) -> str:
    """The frame's name under its mark; long ones in two rows, so that neighbours stay readable."""
    label = _label(event.row)
    y = _y(event.lane) + down + (11 if len(label) > 5 and event.slot % 2 else 0)
    return f'<text class="small" x="{_x(event.slot):.1f}" y="{y:.1f}" text-anchor="middle">{label}</text>'


def _time(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


def _axis(scene: Scene, height: int) -> list[str]:
    first: dict[int, int] = {}
    for event in scene.events:
        first.setdefault(event.slot, event.row.time_ns - scene.begin_ns)
    y = height - 64
    out = [f'<path d="M{LEFT} {y - 12}H{_x(scene.slots):.1f}" stroke="#c9d0d9"/>']
    free = -1.0
    for slot, time in sorted(first.items()):
        if slot >= free:
            out.append(f'<path d="M{_x(slot):.1f} {y - 12}v4" stroke="#8b95a1"/>')
            out.append(f'<text class="axis" x="{_x(slot):.1f}" y="{y + 3}" text-anchor="middle">{_time(time)}</text>')
            free = slot + 2
    return out


def _legend(scene: Scene, height: int) -> str:
    y = height - 28
    more = f"; {scene.left_out} more events follow" if scene.left_out else ""
    return (
        f'<g><rect x="20" y="{y - 10}" width="12" height="12" rx="2.5" fill="#6b7480"/>'
        f'<text x="38" y="{y}">multicast</text>'
        f'<circle cx="114" cy="{y - 4}" r="4" fill="#fff" stroke="#6b7480" stroke-width="2"/>'
        f'<text x="124" y="{y}">received</text><circle cx="198" cy="{y - 4}" r="9" fill="#6b7480"/>'
        f'<text class="number" x="198" y="{y}">n</text>'
        f'<text x="213" y="{y}">delivered as the n-th frame of this life</text>'
        f'<rect x="454" y="{y - 11}" width="22" height="14" rx="4" fill="url(#between)" stroke="#d5dbe3"/>'
        f'<text x="482" y="{y}">between two views</text>'
        f'<text class="axis" x="20" y="{y + 17}">a:b is message b of member a, in that member’s colour. '
        f"Equal numbers, equal messages: one order{escape(more)}.</text></g>"
    )


# --------------------------------------------------------------------------------------------------------------- text


def table(scene: Scene) -> str:
    """Lines of text: the time, then one column per member."""
    width = 17
    head = " " * 12 + "".join(f"member {member}".ljust(width) for member in scene.members)
    lines = [scene.title, "", head.rstrip()]
    by_line: dict[tuple[int, int], dict[int, str]] = {}
    for event in scene.events:
        time = event.row.time_ns - scene.begin_ns
        by_line.setdefault((event.slot, time), {})[event.lane] = ("!" if event.marked else "") + _words(event)
    for (_, time), cells in sorted(by_line.items()):
        line = _time(time).rjust(10) + "  "
        line += "".join(_cell(cells.get(lane, "·"), width) for lane in range(1, len(scene.members) + 1))
        lines.append((line + (f"  ({cells[0]})" if 0 in cells else "")).rstrip())
    lines += ["", "> multicast   - received   #n delivered as n-th   | view   X crash   ! see the verdict"]
    if scene.left_out:
        lines.append(f"{scene.left_out} more events follow")
    return "\n".join(lines)


def _cell(words: str, width: int) -> str:
    return (words if len(words) < width else words[: width - 2] + "…").ljust(width)


def _words(event: Event) -> str:
    row, kind = event.row, event.kind
    match kind:
        case Kind.ORIGINATE:
            return f"> {_label(row)}"
        case Kind.RECEIVE:
            return f"- {_label(row)}"
        case Kind.DELIVER:
            return f"#{event.number} {_label(row)}"
        case Kind.VIEW:
            members = ",".join(map(str, row.members or ()))
            return f"| {'view' if row.view_kind == 1 else 'trans'} {view_name(row)} {{{members}}}"
        case Kind.CRASH:
            return "X crash"
        case Kind.FAULT:
            return f"{(row.detail or {}).get('class', 'fault')} {(row.detail or {}).get('state', '')}".strip()
        case _:
            return kind.word
