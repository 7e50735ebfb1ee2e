"""ABCAST and TOMP: a total order by stamps, agreed, in views that change.  One core; TOMP anticipates."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ordercast.contract import Setup
from ordercast.protocols.layered import GROUP_PROBES, ORDERED, described, ordered
from ordercast.protocols.tomp.layer import Acks, Sent, Stamping, Validations
from ordercast.registry import ProtocolInfo
from ordercast.stack import Stack


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
    return ordered(setup, Stamping(setup, anticipate=anticipate))


def _info(name: str, summary: str, factory: Callable[[Setup], Stack], *probes: str) -> ProtocolInfo:
    return described(
        name, summary, "TOMP: A Total Ordering Multicast Protocol (Dasser)", factory, StampOptions,
        Sent | Validations, Acks, promises={"agreed": ORDERED}, measures=("order",),
        probes=("finish", "unicast again", *probes, *GROUP_PROBES),
    )  # fmt: skip


PROTOCOLS = {
    "abcast": _info("abcast", "Everybody stamps a frame, its sender decides by the greatest; no member is special.",
                    abcast),
    "tomp": _info("tomp", "As abcast; decisions also tell of other frames what they get at least, so less waiting.",
                  tomp, "anticipate"),
}  # fmt: skip
