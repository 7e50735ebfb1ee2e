"""ToTo, and all-ack beside it: a total order without a leader, from the votes that messages are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

from msgspec import Struct, structs

from ordercast.contract import Setup
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.membership import PRIMARY_PROBES
from ordercast.membership import PROBES as MEMBERSHIP_PROBES
from ordercast.protocols.toto.core import Null, Sent, Toto
from ordercast.registry import Draw, ProtocolInfo
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis import PROBES as LINK_PROBES
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
from ordercast.types import POLICIES, Service
from ordercast.words import short

SHARE = "a share of the members, from 1/2 to below 1, such as 0.5 or 5/8"


class AllackOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of all-ack."""

    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells


class TotoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of ToTo."""

    phi: Annotated[str | float, Draw("5/8", "2/3", "9/10", legal=SHARE)] = "1/2"  # a win needs more than this share
    strict: bool = True  # deliver only what is known to be at n - Q + 1 members
    crash_hint: bool = True  # as of all-ack

    def __post_init__(self) -> None:
        """phi is exact, and written in one way: 0.6 is 3/5."""
        try:
            phi = Fraction(str(self.phi))
        except (ValueError, ZeroDivisionError):
            phi = Fraction(0)
        if not Fraction(1, 2) <= phi < 1:
            raise ValueError(f"phi is {short(self.phi)}: expected {SHARE}")
        structs.force_setattr(self, "phi", str(phi))

    def quorum(self, n: int) -> int:
        return int(Fraction(self.phi) * n) + 1


def _stack(setup: Setup, core: Toto) -> Stack:
    """Process groups over framing over the order over the view-synchronous layer."""
    link = Link(setup, crash_hint=setup.options.crash_hint)
    return chain(Groups(setup.identity.me), Framing(), Seam(), core, link)


def toto(setup: Setup) -> Stack:
    return _stack(setup, Toto(setup, setup.options.quorum, setup.options.strict))


def allack(setup: Setup) -> Stack:
    return _stack(setup, Toto(setup, lambda n: n + 1))


_AGREED = (
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S11", "S12", "S13", "S14", "S15", "S16", "S17", "S19"),
    *("S21", "S22", "L1", "L2", "L3", "L4", "L6", "L7", "L8", "L12", "L13"),
)


def _info(
    name: str, summary: str, factory: Callable[[Setup], Stack], options: type[Struct], probes: tuple[str, ...]
) -> ProtocolInfo:
    return ProtocolInfo(
        name=name,
        summary=summary,
        paper="Early delivery totally ordered multicast in asynchronous environments (Dolev, Kramer, Malki)",
        factory=factory,
        packets=packets(Sent | Null),
        provides=(Service.AGREED, Service.SAFE),
        promises={"agreed": _AGREED, "safe": (*_AGREED, "S20")},
        survives=frozenset(
            {
                *("loss", "duplication", "reordering", "delay", "clog", "corruption", "version", "replay", "partition"),
                *("crash", "pause", "leave", "slow", "drift", "clock", "disk", "overload", "permanent"),
            }
        ),
        needs=("the view-synchronous layer",),
        changes_views=True,
        partitions=POLICIES,
        judges_lives=True,
        options=options,
        measures=("index", "t_loss", "install"),
        probes=(
            *("null", "closing", *probes, "group state", "group state again"),
            *(*LINK_PROBES, *MEMBERSHIP_PROBES, *PRIMARY_PROBES),
        ),
    )


_EARLY = "Each message votes on those before it; more than half of the members order a message, without a leader."
_ALL = "Each message acknowledges those before it; a message is ordered when every member has acknowledged it."
PROTOCOLS = {
    "allack": _info("allack", _ALL, allack, AllackOptions, ()),
    "toto": _info("toto", _EARLY, toto, TotoOptions, ("beaten",)),
}
