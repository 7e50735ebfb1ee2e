"""The rings of a scenario as a picture: processors on their networks, gateways between them."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

from ordercast.pipeline.plots import COLOURS, INK, SOFT, _draw


def draw_rings(name: str, rings: Sequence[Sequence[int]], pure: Sequence[int]) -> str:
    """One circle a network, side by side; who sits on two stands between them."""
    joins = {member for ring in rings for member in ring if sum(member in other for other in rings) > 1}
    width = 2.6 * len(rings)

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_xlim(-1.5, 3 * (len(rings) - 1) + 1.5)
        axes.set_ylim(-1.55, 1.5)
        at = {}
        for k, ring in enumerate(rings):
            middle = 3.0 * k
            angles = [2 * pi * step / 72 for step in range(73)]
            axes.plot([middle + cos(a) for a in angles], [sin(a) for a in angles], color=SOFT, linewidth=1)
            axes.text(middle, 0, f"ring {k + 1}", ha="center", va="center", color=SOFT)
            plain = [member for member in ring if member not in joins]
            free = 2 * pi * (0.72 if joins else 1.0)
            for place, member in enumerate(plain):
                angle = pi / 2 + free * ((place + 0.5) / len(plain) - 0.5) * (1 if k == 0 else -1)
                if joins and 0 < k < len(rings) - 1:  # gateways on both sides
                    angle = (pi / 2 if place % 2 == 0 else -pi / 2) + 0.5 * (place - len(plain) / 2 + 0.5)
                elif joins:
                    angle += pi / 2 if k == 0 else -pi / 2
                at[member] = middle + cos(angle), sin(angle)
        for member in sorted(joins):
            first, second = (k for k, ring in enumerate(rings) if member in ring)
            at[member] = 1.5 * (first + second), 0.0
            for side in (first, second):
                edge = 3.0 * side + (1 if side == first else -1)
                axes.plot([at[member][0], edge], [0, 0], color=SOFT, linewidth=1)
        for member, (x, y) in at.items():
            colour = COLOURS[1] if member in joins else COLOURS[0]
            axes.plot([x], [y], marker="s" if member in joins else "o", markersize=15, color=colour)
            axes.text(x, y, str(member), ha="center", va="center", color="white", fontsize=8)
        if joins:
            words = "square: a gateway" + (", which sends nothing of its own" if set(joins) <= set(pure) else "")
            axes.text(1.5 * (len(rings) - 1), -1.45, words, ha="center", color=INK, fontsize=8)

    return _draw(f"rings-{name}", paint, width, 2.6)
