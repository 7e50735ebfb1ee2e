"""Machines of papers, as cost functions: what a step keeps a host busy, fitted to what was published.

Only ratios and shapes that come out of them are evidence, never the figures themselves.
"""

from __future__ import annotations

from ordercast.sim.host import CostFunction

MESSAGE_BYTES = 700  # the paper's messages have 1000 bytes, its reports far fewer
MESSAGE_NS, REPORT_NS, DELIVERY_NS, PAIR_NS = 750_000, 450_000, 50_000, 400


def dpg_paper(what: str, size: int, messages: int, work: int) -> tuple[int, int]:
    """PCs of the nineties on a 10 Mb/s LAN; linearising rescans all pairs of vertices (a core notes their square)."""
    if what in ("receive", "transmit"):
        return MESSAGE_NS if size >= MESSAGE_BYTES else REPORT_NS, 0
    if what == "deliver":
        return DELIVERY_NS, 0
    return (PAIR_NS * work, 0) if what == "work" else (0, 0)


MODELS: dict[str, CostFunction] = {"dpg-paper": dpg_paper}
