"""Machines of papers, as cost functions: what a step keeps a host busy, fitted to what was published.

Only ratios and shapes that come out of them are evidence, never the figures themselves.

``totem-paper``: Sun workstations on 100 Mbit/s Ethernets, of "Performance engineering of the Totem group communication
system" (1998), section 3; gateways are other, faster machines there.  Times are those of the paper where it gives any
(a token visit 240 us, a send of 1 kB 110 us); the rest was fitted to its figures for one ring, and that of gateways to
those for two.  A sender is busy until its datagram is off the wire (``mbit = 100``).  Stalls of the system are left
out.
"""

from __future__ import annotations

from collections.abc import Callable

from ordercast.contract import TAGGER
from ordercast.sim.host import CostFunction, linear_cost
from ordercast.sim.scenario import Scenario

MESSAGE_BYTES = 700  # the paper's messages have 1000 bytes, its reports far fewer
MESSAGE_NS, REPORT_NS, DELIVERY_NS, PAIR_NS = 750_000, 450_000, 50_000, 400

TOKEN_NS = 228_000  # of the 240 us those that do not overlap with what the next member receives
SEND_NS, WIRE_NS_PER_BYTE, WIRE_BYTES = 19_300, 80, 66  # before the wire, and on it, with what is around a datagram
RECEIVE_NS, RECEIVE_NS_PER_BYTE, PACKED_NS = 130_600, 25.9, 720
HAND_OVER_NS = 175_000  # latency only


def dpg_paper(what: str, size: int, messages: int, work: int) -> tuple[int, int]:
    """PCs of the nineties on a 10 Mb/s LAN; linearising rescans all pairs of vertices (a core notes their square)."""
    if what in ("receive", "transmit"):
        return MESSAGE_NS if size >= MESSAGE_BYTES else REPORT_NS, 0
    if what == "deliver":
        return DELIVERY_NS, 0
    return (PAIR_NS * work, 0) if what == "work" else (0, 0)


def totem_paper(gateway: bool) -> CostFunction:
    receives, sends, visits = (0.66, 0.95, 0.8) if gateway else (1.0, 1.0, 1.0)

    def cost(what: str, size: int, messages: int, work: int) -> tuple[int, int]:
        if what == "receive" and not work:
            return int(TOKEN_NS * visits), 0
        if what == "receive":
            packed = PACKED_NS * max(0, messages - 1)
            return int((RECEIVE_NS + RECEIVE_NS_PER_BYTE * size + packed) * receives), 0
        if what == "transmit" and work:
            wire = WIRE_NS_PER_BYTE * (size + WIRE_BYTES)
            return int((SEND_NS + wire) * sends), -int(wire * sends)  # on the wire while its sender is busy with it
        return 0, HAND_OVER_NS if what == "deliver" else 0

    return cost


MODELS: dict[str, Callable[[bool], CostFunction]] = {  # by whether a host joins nets
    "dpg-paper": lambda gateway: dpg_paper,
    "totem-paper": totem_paper,
}


def costs(scenario: Scenario, everywhere: CostFunction | None) -> dict[int, CostFunction | None]:
    """Of each member's host; `everywhere`: instead of what the scenario says."""
    out: dict[int, CostFunction | None] = {}
    usual = everywhere or linear_cost(scenario.hosts)
    for id in (TAGGER, *scenario.ids) if scenario.tagger else scenario.ids:
        out[id] = usual
        if everywhere is None and scenario.hosts.model:
            out[id] = MODELS[scenario.hosts.model](len(scenario.nets_of(id)) > 1)
        for other in scenario.other_hosts if everywhere is None else ():
            if id in other.members:
                out[id] = linear_cost(other)
    return out
