"""Draws a precedence graph before and after it is linearised, as the shipped code does it."""

from __future__ import annotations

from ordercast.protocols.dpg.graph import MARKED, Graph, Mark

STEP, TOP, LANE = 90, 64, 150
HEARD: tuple[tuple[str, tuple[tuple[int, int, Mark], ...]], ...] = (
    ("member 1 heard 1, 2, 4, 5", ((1, 2, MARKED), (2, 4, None), (4, 5, MARKED))),
    ("member 2 heard 2, 3, 5", ((2, 3, MARKED), (3, 5, None))),
)


def picture() -> str:
    """Three lanes: what two members heard, and what follows from both together."""
    together = Graph(range(1, 6), [arc for _, arcs in HEARD for arc in arcs])
    together.linearise()
    lanes = [*HEARD, ("together: 3 is before 5, nothing is between 4 and 5, so 3 is before 4", tuple(together.arcs()))]
    height = TOP + LANE * len(lanes)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {STEP * 6} {height}" font-family="sans-serif">',
        f'<rect width="{STEP * 6}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="11" markerHeight="11"'
        ' orient="auto" markerUnits="userSpaceOnUse">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#333333"/></marker></defs>',
        '<text x="16" y="26" font-size="16">A graph before and after linearising</text>',
        '<text x="16" y="46" font-size="12" fill="#555555">thick: marked, nothing was multicast between</text>',
    ]
    for lane, (title, arcs) in enumerate(lanes):
        y = TOP + LANE * lane + 80
        out.append(f'<text x="16" y="{y - 52}" font-size="13">{title}</text>')
        for x, z, mark in arcs:
            out.append(_arc(x, z, y, mark is not None))
        for vertex in sorted({end for x, z, _ in arcs for end in (x, z)}):
            out.append(f'<circle cx="{STEP * vertex}" cy="{y}" r="16" fill="#e8eef7" stroke="#30507a"/>')
            out.append(f'<text x="{STEP * vertex}" y="{y + 5}" font-size="14" text-anchor="middle">{vertex}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def _arc(x: int, z: int, y: int, marked: bool) -> str:
    style = f'fill="none" stroke="#333333" stroke-width="{3.5 if marked else 1.2}" marker-end="url(#end)"'
    if z == x + 1:
        return f'<path d="M{STEP * x + 17},{y} L{STEP * z - 18},{y}" {style}/>'
    return f'<path d="M{STEP * x + 12},{y + 12} Q{STEP * (x + z) // 2},{y + 58} {STEP * z - 13},{y + 13}" {style}/>'
