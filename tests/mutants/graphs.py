"""Variants of DPG's parts held against small examples, for what no promise shows, or hardly a run comes to.

``dpg_graph``: messages 1, 2 and 3, of which only 1 is known to be first, and 4 right after 3: an arc that a longer way
implies goes.  ``dpg_lives``: number 2 of another tagger does not follow number 1 of the one before.
"""

from __future__ import annotations

import random

from tests.mutants.registry import Maker

from ordercast import registry
from ordercast.contract import Setup
from ordercast.protocols.dpg.graph import MARKED
from ordercast.protocols.dpg.layer import Dpg
from ordercast.protocols.dpg.packets import Message, Numbered, Numbers
from ordercast.protocols.dpg.ways import Tagged
from ordercast.types import Frame, Identity, Peer, Service

ONE = Peer(1, 10)


def graph(site: Dpg) -> tuple[str, str]:
    """E5: arcs of 1 to 2 and 3; 4 is heard after both, and right after 3."""
    drawn = type(site.site.graph)((1, 2, 3), ((1, 2, None), (1, 3, None)))
    drawn.receive(4, 3, MARKED)
    got, right = sorted(arc[:2] for arc in drawn.arcs()), [(1, 2), (2, 3), (3, 4)]
    return ("", "") if got == right else ("raises", f"arcs {got}, expected {right}")


def lives(site: Dpg) -> tuple[str, str]:
    way = site.way
    assert isinstance(way, Tagged)
    for serial in (1, 2):
        frame = Frame(ONE.id, ONE.incarnation, serial, 1, int(Service.QUASI), b"\1\0\0\0", b"x")
        way.order.put(0, ONE, Message(serial, serial, frame))
        tag = Numbered(way.order.group, ONE.id, ONE.incarnation, serial)
        way.order.numbered(0, Numbers(4 + serial, serial, (tag,)))
    marked = [turn.packet.serial for turn in way.order.turns(0) if turn.contiguous]
    return ("raises", f"{marked} looks contiguous with what another tagger numbered") if marked else ("", "")


CASES = {"dpg_graph": graph, "dpg_lives": lives}


def broken(title: str, maker: Maker) -> tuple[str, str]:
    """(promise, what broke it) of one case with this variant; empty if it does what it should."""
    setup = Setup(Identity(3, 30, (1, 2, 3)), 40_000_000, registry.get("dpg").options(), 1_000, random.Random(1))
    return CASES[title](next(node.layer for node in maker(setup).nodes if isinstance(node.layer, Dpg)))
