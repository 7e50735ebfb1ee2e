"""The token ring (Totem): total order on one network, agreed and safe, through crashes, partitions and merges."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.contract import Setup
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import PACKETS as MEMBERSHIP_PACKETS
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.protocols.totem.feed import Feed
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.multiring import MultiRing
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.packets import PACKETS
from ordercast.protocols.totem.pure import Pure
from ordercast.registry import ProtocolInfo
from ordercast.stack import Node, Stack, chain
from ordercast.types import ALL_CONTINUE, POLICIES, Service


def totem(setup: Setup) -> Stack:
    """Process groups over framing over the ring."""
    return chain(Groups(setup.identity.me), Framing(), RingLayer(setup, setup.options))


def joined_rings(setup: Setup) -> Stack:
    """Process groups over framing over the layer that joins rings, over one ring per attached network."""
    lamport = Lamport()
    feeds = [Feed(child) for child in range(len(setup.nets))]
    rings = [
        Node(
            RingLayer(
                setup, setup.options, net=net, hold_safe=False, stamps=True, ring_number=net + 1, lamport=lamport,
                feed=feed,
            ),
            nets=(net,),
        )
        for net, feed in zip(setup.nets, feeds, strict=True)
    ]  # fmt: skip
    rotation = setup.options.limits(setup.frame_bytes).window_size
    joint = Node(MultiRing(setup, lamport, feeds, rotation), rings)
    top = Node(Groups(setup.identity.me, audience=True), [Node(Framing(), [joint])])
    return Stack(Node(Pure(), [top]) if setup.pure else top)


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

_SEVERAL = (*(id for id in _AGREED if id != "S10"), "S23")

PROTOCOLS["multiring"] = replace(
    PROTOCOLS["totem"],
    name="multiring",
    summary="Several token rings joined by gateways, one order over all of them; agreed and safe, any shape of rings.",
    factory=joined_rings,
    partitions=(ALL_CONTINUE,),
    rings=True,
    promises={"agreed": _SEVERAL, "safe": (*_SEVERAL, "S20")},
    probes=(
        *(probe for probe in PROTOCOLS["totem"].probes if probe not in ("linger", *PRIMARY_PROBES)),  # turning D3
        *("forward", "filtered", "duplicate on a cycle", "reroute", "sent again", "ring removed", "ring joined"),
        *("vector message", "topology", "hold of a ring by room"),
    ),
)
