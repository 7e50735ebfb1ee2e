"""DPG: quasi order without membership; violations are rare and counted, and each delivery says how certain it is."""

from __future__ import annotations

from ordercast.contract import Setup
from ordercast.framing import Framing
from ordercast.protocols.dpg.layer import Dpg
from ordercast.protocols.dpg.options import DpgOptions
from ordercast.protocols.dpg.packets import PACKETS
from ordercast.protocols.dpg.tagger import Tagger
from ordercast.registry import ProtocolInfo
from ordercast.stack import Stack, chain
from ordercast.types import Service


def dpg(setup: Setup) -> Stack:
    """Framing over the site."""
    return chain(Framing(views=False), Dpg(setup))


def tagger(setup: Setup) -> Stack:
    return chain(Tagger(setup))


PROTOCOLS = {
    "dpg": ProtocolInfo(
        name="dpg",
        summary="A precedence graph grown from what each site hears; quasi order that no coming or going halts.",
        paper="Membership-insensitive totally ordered multicast: properties and performance (Konorski)",
        factory=dpg,
        tagger=tagger,
        on_a_bus={"channel": "lan"},
        packets=PACKETS,
        provides=(Service.QUASI,),
        promises={"quasi": ("S1", "S2", "S3", "Q1", "L6", "L7", "L11", "L12")},
        survives=frozenset(
            {
                *("loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay", "partition"),
                *("crash", "pause", "leave", "slow", "drift", "clock", "overload"),
            }
        ),
        needs=("one order of all datagrams, with a detector of gaps: a tagger, or a LAN",),
        views=False,
        exact=False,
        judges_lives=True,
        one_datagram=True,
        hears_self=True,
        options=DpgOptions,
        probes=("late", "dummy", "seizure", "excused", "split", "conflict", "waiver", "return", "stray", "skipped"),
    )
}
