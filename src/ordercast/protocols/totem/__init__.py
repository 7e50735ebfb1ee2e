"""The token ring (Totem): total order on one network, agreed and safe, through crashes, partitions and merges."""

from __future__ import annotations

from ordercast.contract import Setup
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import PACKETS as MEMBERSHIP_PACKETS
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.packets import PACKETS
from ordercast.registry import ProtocolInfo
from ordercast.stack import Stack, chain
from ordercast.types import POLICIES, Service


def totem(setup: Setup) -> Stack:
    """Process groups over framing over the ring."""
    return chain(Groups(setup.identity.me), Framing(), RingLayer(setup, setup.options))


_AGREED = (
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S18"),
    *("S19", "S21", "S22", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8", "L12", "L13"),
)

PROTOCOLS = {
    "totem": ProtocolInfo(
        name="totem",
        summary="A token ring numbers all frames; agreed and safe order that survives crashes, partitions and merges.",
        paper="Performance engineering of the Totem group communication system (Budhia, Moser, Melliar-Smith, 1998)",
        factory=totem,
        packets=(*PACKETS, *MEMBERSHIP_PACKETS),
        provides=(Service.AGREED, Service.SAFE),
        promises={"agreed": _AGREED, "safe": (*_AGREED, "S20")},
        survives=frozenset(
            {
                *("loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay", "partition"),
                *("crash", "pause", "leave", "slow", "drift", "clock", "disk", "overload", "permanent"),
            }
        ),
        changes_views=True,
        partitions=POLICIES,
        judges_lives=True,
        options=TotemOptions,
        measures=("rotation", "t_loss", "install"),
        probes=(
            *("retransmit", "request", "duplicate", "hold", "linger", "hold cancel", "stuck", "gather", "recovery"),
            *("recovery again", "install", "group state", "group state again"),
            *MEMBERSHIP_PROBES,
            *PRIMARY_PROBES,
        ),
    )
}
