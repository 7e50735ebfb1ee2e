"""Machines of papers: what a step keeps a host busy, fitted to what was published.

Only ratios and shapes that come out of them are evidence, never the figures themselves.  ``dpg-paper`` is a cost
function, here; ``totem-paper`` is more than that: `totem_paper`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.contract import TAGGER
from ordercast.sim.host import CostFunction, Machine, linear_cost
from ordercast.sim.scenario import Scenario
from ordercast.sim.totem_paper import Sun

MESSAGE_BYTES = 700  # the paper's messages have 1000 bytes, its reports far fewer
MESSAGE_NS, REPORT_NS, DELIVERY_NS, PAIR_NS = 750_000, 450_000, 50_000, 400


def dpg_paper(what: str, size: int, messages: int, work: int, packet: object) -> tuple[int, int]:
    """PCs of the nineties on a 10 Mb/s LAN; linearising rescans all pairs of vertices (a core notes their square)."""
    if what in ("receive", "transmit"):
        return MESSAGE_NS if size >= MESSAGE_BYTES else REPORT_NS, 0
    if what == "deliver":
        return DELIVERY_NS, 0
    return (PAIR_NS * work, 0) if what == "work" else (0, 0)


def machines(scenario: Scenario) -> dict[int, Machine]:
    """Of members whose hosts are more than a cost per step; who joins nets has another than the rest."""
    if scenario.hosts.model != "totem-paper":
        return {}
    return {
        id: Sun(len(scenario.nets_of(id)) > 1, scenario.generator(f"stalls/{id}"))
        for id in scenario.ids
        if not any(id in other.members for other in scenario.other_hosts)
    }


def costs(scenario: Scenario, machines: Mapping[int, Machine]) -> dict[int, CostFunction | None]:
    """Of each member's host."""
    out: dict[int, CostFunction | None] = {}
    usual = dpg_paper if scenario.hosts.model == "dpg-paper" else linear_cost(scenario.hosts)
    for id in (TAGGER, *scenario.ids) if scenario.tagger else scenario.ids:
        out[id] = machines[id].cost if id in machines else usual
        for other in scenario.other_hosts:
            if id in other.members:
                out[id] = linear_cost(other)
    return out
