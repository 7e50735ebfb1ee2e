"""The token-site family: one active process that numbers everything, all active, or roles that follow the load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ordercast.contract import Setup
from ordercast.limits import MEMBERS_MAX
from ordercast.protocols.hybrid.detector import DETECTORS
from ordercast.protocols.hybrid.layer import NULLS_PER_T, Fixed, Tickets
from ordercast.protocols.hybrid.numbers import Lamport, RateSynchronised
from ordercast.protocols.hybrid.packets import Null, Ping, Pong, Reassign, Role, Sent
from ordercast.protocols.hybrid.policy import Policy
from ordercast.protocols.hybrid.process import Process
from ordercast.protocols.hybrid.ways import Ways
from ordercast.protocols.layered import GROUP_PROBES, ORDERED, described, ordered
from ordercast.registry import Draw, ProtocolInfo
from ordercast.stack import Stack
from ordercast.types import U32, MemberId

TRIPS = 7  # round trips that count for a distance

Numbers = Literal["rate", "lamport"]
Ids = Annotated[tuple[U32, ...], Meta(max_length=MEMBERS_MAX), Draw([1], legal="ids of members, as [1, 3]")]


class TokenSiteOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the token-site protocol."""

    tickets_at_once: bool = True  # else they ride on the sequencer's next frame, or go after T_null
    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells


class SymmetricOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the symmetric protocol."""

    numbers: Numbers = "rate"  # rate-synchronised, or counted
    tickets_at_once: bool = True  # as of token_site
    crash_hint: bool = True  # as of token_site


class HybridOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the hybrid protocol."""

    active: Ids = ()  # who is, for good; nobody named: roles follow the load
    numbers: Numbers = "rate"  # as of symmetric
    detector: Literal["mean_shift", "window"] = "mean_shift"  # how a member tells how often it sends
    k: Annotated[int, Meta(ge=1, le=1_000), Draw(1, 3, 20)] = 7  # samples that the detector goes by
    threshold: Annotated[float, Meta(ge=0, le=1), Draw(0.0, 0.5)] = 0.2  # of the distance: less is no reason to change
    choice: Literal["own", "all"] = "own"  # whose messages count for a member's role
    tickets_at_once: bool = True  # as of token_site
    crash_hint: bool = True  # as of token_site

    def misfit(self, members: Sequence[MemberId]) -> str:
        """What is wrong with them in a group of these members."""
        strangers = [member for member in self.active if member not in members]
        known = ", ".join(map(str, members))
        return f"active names member {strangers[0]}: expected members of the group, {known}" if strangers else ""


def token_site(setup: Setup) -> Stack:
    return ordered(setup, tickets("token_site", setup))


def symmetric(setup: Setup) -> Stack:
    return ordered(setup, tickets("symmetric", setup))


def hybrid(setup: Setup) -> Stack:
    return ordered(setup, tickets("hybrid", setup))


def tickets(name: str, setup: Setup, layer: type[Tickets] = Tickets, process: type[Process] = Process) -> Tickets:
    """The ordering layer of a protocol of this family."""
    options, policy, ways = setup.options, None, Ways(TRIPS)
    fixed: Fixed | None = _highest
    if name == "token_site":
        return layer(setup, Lamport(), fixed, process=process)
    if name == "symmetric":
        fixed = tuple
    elif options.active:
        fixed = partial(_named, frozenset(options.active))
    else:
        detector, null_ns = DETECTORS[options.detector](options.k), setup.timeout_ns // NULLS_PER_T
        fixed, policy = None, Policy(detector, options.threshold, ways, null_ns, options.choice == "all")
    rate = options.numbers == "rate"
    numbers = RateSynchronised(ways.shortest) if rate else Lamport()
    measured = ways if rate or policy is not None else None
    return layer(setup, numbers, fixed, policy, measured, process)


def _highest(members: tuple[MemberId, ...]) -> Iterable[MemberId]:
    return members[-1:]


def _named(named: frozenset[MemberId], members: tuple[MemberId, ...]) -> Iterable[MemberId]:
    return [member for member in members if member in named] or _highest(members)


def _info(
    name: str,
    summary: str,
    factory: Callable[[Setup], Stack],
    options: type[Struct],
    bodies: Any,
    unicasts: Any = None,
    *,
    more: tuple[str, ...] = (),
    probes: tuple[str, ...] = (),
) -> ProtocolInfo:
    paper = "A dynamic hybrid protocol for total order in large-scale systems (Rodrigues, Fonseca, Verissimo)"
    return described(
        name, summary, paper, factory, options, bodies, unicasts, promises={"agreed": (*ORDERED, *more)},
        probes=("null", *probes, *GROUP_PROBES),
    )  # fmt: skip


_SITE = "One sequencer numbers all frames; the simplest total order, in views that change."
_ALL = "Every member numbers its own frames; a frame is ordered when all have promised larger numbers."
_ROLES = "Members that send often number their own frames, the others have a sequencer; roles follow the load."
_MEASURED = Ping | Pong
PROTOCOLS = {
    "token_site": _info("token_site", _SITE, token_site, TokenSiteOptions, Sent | Null, probes=("drain",)),
    "symmetric": _info("symmetric", _ALL, symmetric, SymmetricOptions, Sent | Null, _MEASURED),
    "hybrid": _info(
        "hybrid", _ROLES, hybrid, HybridOptions, Sent | Null | Role | Reassign, _MEASURED, more=("L10",),
        probes=("drain", "mode", "role kept", "reassign", "sequencer"),
    ),
}  # fmt: skip
