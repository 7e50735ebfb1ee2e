"""ABCAST and TOMP: a total order by stamps, agreed, in views that change.  One core; TOMP anticipates."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ordercast.contract import Setup
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.protocols.tomp.layer import Acks, Sent, Stamping, Validations
from ordercast.registry import ProtocolInfo
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis import PROBES as LINK_PROBES
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
from ordercast.types import POLICIES, Service


class StampOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of abcast and tomp."""

    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells


def abcast(setup: Setup) -> Stack:
    """Process groups over framing over ABCAST over the view-synchronous layer."""
    return _stack(setup, anticipate=False)


def tomp(setup: Setup) -> Stack:
    """Process groups over framing over TOMP over the view-synchronous layer."""
    return _stack(setup, anticipate=True)


def _stack(setup: Setup, *, anticipate: bool) -> Stack:
    link = Link(setup, crash_hint=setup.options.crash_hint)
    return chain(Groups(setup.identity.me), Framing(), Seam(), Stamping(setup, anticipate=anticipate), link)


_AGREED = (
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S19"),
    *("S21", "S22", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "L12", "L13"),
)


def _info(name: str, summary: str, factory: Callable[[Setup], Stack], *probes: str) -> ProtocolInfo:
    return ProtocolInfo(
        name=name,
        summary=summary,
        paper="TOMP: A Total Ordering Multicast Protocol (Dasser)",
        factory=factory,
        packets=packets(Sent | Validations, Acks),
        provides=(Service.AGREED,),
        promises={"agreed": _AGREED},
        survives=frozenset({"loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay",
                            "partition", "crash", "pause", "leave", "slow", "drift", "clock", "disk", "overload",
                            "permanent"}),
        needs=("the view-synchronous layer",),
        changes_views=True,
        partitions=POLICIES,
        judges_lives=True,
        options=StampOptions,
        measures=("t_loss", "install", "order"),
        probes=("finish", "unicast again", "group state", "group state again", *probes, *LINK_PROBES,
                *MEMBERSHIP_PROBES, *PRIMARY_PROBES),
    )  # fmt: skip


PROTOCOLS = {
    "abcast": _info("abcast", "Everybody stamps a frame, its sender decides by the greatest; no member is special.",
                    abcast),
    "tomp": _info("tomp", "As abcast; decisions also tell of other frames what they get at least, so less waiting.",
                  tomp, "anticipate"),
}  # fmt: skip
