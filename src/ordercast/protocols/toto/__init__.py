"""ToTo, and all-ack beside it: a total order without a leader, from the votes that messages are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

from msgspec import Struct, structs

from ordercast.contract import Setup
from ordercast.protocols.layered import GROUP_PROBES, ORDERED, described, ordered
from ordercast.protocols.toto.core import Null, Sent, Toto
from ordercast.registry import Draw, ProtocolInfo
from ordercast.stack import Stack
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


def toto(setup: Setup) -> Stack:
    return ordered(setup, Toto(setup, setup.options.quorum, setup.options.strict))


def allack(setup: Setup) -> Stack:
    return ordered(setup, Toto(setup, lambda n: n + 1))


def _info(
    name: str, summary: str, factory: Callable[[Setup], Stack], options: type[Struct], probes: tuple[str, ...]
) -> ProtocolInfo:
    paper = "Early delivery totally ordered multicast in asynchronous environments (Dolev, Kramer, Malki)"
    return described(
        name, summary, paper, factory, options, Sent | Null, promises={"agreed": ORDERED, "safe": (*ORDERED, "S20")},
        measures=("index",), probes=("null", "closing", *probes, *GROUP_PROBES),
    )  # fmt: skip


_EARLY = "Each message votes on those before it; more than half of the members order a message, without a leader."
_ALL = "Each message acknowledges those before it; a message is ordered when every member has acknowledged it."
PROTOCOLS = {
    "allack": _info("allack", _ALL, allack, AllackOptions, ()),
    "toto": _info("toto", _EARLY, toto, TotoOptions, ("beaten",)),
}
