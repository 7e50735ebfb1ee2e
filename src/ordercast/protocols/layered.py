"""What all protocols above the view-synchronous layer share: their place in a stack, and what is known of them.

An order brings its core, its bodies, its options, and what it promises besides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ordercast.contract import Layer, Setup
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.registry import ProtocolInfo
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis import PROBES as LINK_PROBES
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
from ordercast.types import POLICIES, Service

UNORDERED = (  # in views, whatever the order
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15"),
    *("L1", "L2", "L3", "L4", "L6", "L7", "L8", "L12", "L13"),
)
ORDERED = (
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S19"),
    *("S21", "S22", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "L12", "L13"),
)
SURVIVES = frozenset(
    {
        *("loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay", "partition"),
        *("crash", "pause", "leave", "slow", "drift", "clock", "disk", "overload", "permanent"),
    }
)
GROUP_PROBES = ("group state", "group state again")


def ordered(setup: Setup, order: Layer) -> Stack:
    """Process groups over framing over a total order over the layer."""
    link = Link(setup, crash_hint=setup.options.crash_hint)
    return chain(Groups(setup.identity.me), Framing(), Seam(), order, link)


def described(
    name: str,
    summary: str,
    paper: str,
    factory: Callable[[Setup], Stack],
    options: type[Struct],
    bodies: Any,
    unicasts: Any = None,
    *,
    promises: dict[str, tuple[str, ...]],
    measures: tuple[str, ...] = (),
    probes: tuple[str, ...] = (),
) -> ProtocolInfo:
    """`bodies` and `unicasts`: what it sends inside the packets of the layer, a type or several joined by |."""
    return ProtocolInfo(
        name=name,
        summary=summary,
        paper=paper,
        factory=factory,
        packets=packets(bodies, unicasts),
        provides=tuple(Service[service.upper()] for service in promises),
        promises=promises,
        survives=SURVIVES,
        needs=("the view-synchronous layer",),
        changes_views=True,
        partitions=POLICIES,
        judges_lives=True,
        options=options,
        measures=(*measures, "t_loss", "install"),
        probes=(*probes, *LINK_PROBES, *MEMBERSHIP_PROBES, *PRIMARY_PROBES),
    )
