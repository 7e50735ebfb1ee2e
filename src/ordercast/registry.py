"""The only list of protocols.  The conformance suite, the swarm, the CLI, sweeps and benchmarks iterate over it.

A protocol that lives elsewhere is named ``module:name`` wherever a protocol is asked for: `PROTOCOLS[name]` of a module
that Python can import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct, inspect, structs

from ordercast.contract import Packet, Setup
from ordercast.errors import UsageError
from ordercast.stack import Stack
from ordercast.types import ALL_CONTINUE, PRIMARY_MAJORITY, MemberId, Service
from ordercast.words import meant, one_of, short


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """A protocol without options."""


class Draw:
    """Beside the type of an option: values that lead into other branches, for the swarm to draw; and, where the type
    does not tell it, what is legal."""

    def __init__(self, *values: Any, legal: str = "") -> None:
        self.values, self.legal = values, legal


def draw_of(kind: Any) -> Draw | None:
    """What stands beside the type of an option."""
    return next((note for note in getattr(kind, "__metadata__", ()) if isinstance(note, Draw)), None)


@cache
def draws(options: type[Struct]) -> dict[str, tuple[Any, ...]]:
    """Option -> what may be drawn for it, in the order of the options: the values it names, else one of its words, true
    or false, or the bounds of its number; an option without any of these is left alone."""
    found: dict[str, tuple[Any, ...]] = {}
    for field in structs.fields(options):
        note, kind = draw_of(field.type), inspect.type_info(field.type)
        if note is not None:
            found[field.name] = note.values
        elif isinstance(kind, inspect.BoolType):
            found[field.name] = (False, True)
        elif isinstance(kind, inspect.LiteralType):
            found[field.name] = tuple(kind.values)
        elif isinstance(kind, inspect.IntType | inspect.FloatType) and kind.ge is not None and kind.le is not None:
            found[field.name] = (kind.ge, kind.le)
    return found


STATE = ("A1", "A2", "A3", "A4", "A5", "A6")  # promises of replicated state, over any protocol with views


class ProtocolInfo(Struct, frozen=True):
    """What the rest of the system knows of a protocol."""

    name: str
    summary: str  # one sentence for `ordercast protocols`
    paper: str
    factory: Callable[[Setup], Stack]
    packets: tuple[type[Packet], ...]  # what it puts on the wire
    provides: tuple[Service, ...]
    promises: dict[str, tuple[str, ...]]  # service word -> ids of the catalogue that its runs are judged by
    survives: frozenset[str] = frozenset()  # families of sim/faults.py, and `permanent`; the swarm draws only these
    needs: tuple[str, ...] = ()  # the layers below, in words
    views: bool = True  # delivers views
    changes_views: bool = False  # survives a crash of a member: `--kill` is allowed
    exact: bool = True  # total order with certainty (DPG: false)
    tagger: Callable[[Setup], Stack] | None = None  # what numbers for a group that asks for it, and is no member
    on_a_bus: dict[str, Any] = {}  # its options on one channel that all hear alike, which the swarm draws then, too
    one_datagram: bool = False  # its packets never travel as a train: a loss must be of one of them
    hears_self: bool = False  # wants its own datagrams back from the network
    rings: bool = False  # stands on several nets at once: the swarm draws them, a configuration may name them
    partitions: tuple[str, ...] = (ALL_CONTINUE,)  # what the parts of a split group may do: policies that it has
    judges_lives: bool = False  # is shown packets of every life of a member, and says which one counts; else the newest
    options: type[Struct] = NoOptions
    measures: tuple[str, ...] = ()  # Note names whose fields `measure` summarises
    probes: tuple[str, ...] = ()  # Note names of rare branches; a campaign reports those never reached

    @property
    def default_service(self) -> Service:
        return Service.AGREED if Service.AGREED in self.provides else self.provides[0]

    @property
    def replicates(self) -> bool:
        """Whether replicated state can stand on it: it has views that change, and one order."""
        return self.changes_views and Service.AGREED in self.provides

    def promised(self, service: str, partition: str = ALL_CONTINUE, state: bool = False) -> tuple[str, ...]:
        """The ids that runs with this service, under this policy, are judged by; `state`: one is replicated."""
        ids = self.promises.get(service, ())
        ids = (*ids, "S8") if ids and partition == PRIMARY_MAJORITY else ids
        return (*ids, *STATE) if ids and state else ids

    def misfit(self, options: Any, members: Sequence[MemberId]) -> str:
        """What is wrong with options in a group of these members, or nothing."""
        found: str = options.misfit(members) if hasattr(options, "misfit") else ""
        return found

    def without(self, partition: str) -> str:
        """Why it cannot run under a policy, or nothing."""
        if partition in self.partitions:
            return ""
        why = "does not have this policy" if self.views else "has no views"
        return f"{partition}: {self.name} {why}: expected {one_of(partition, self.partitions)}"


# name -> module that holds it in `PROTOCOLS`; modules are imported when asked for, so that `--help` stays fast
_MODULES: dict[str, str] = {
    "abcast": "ordercast.protocols.tomp",
    "allack": "ordercast.protocols.toto",
    "causal": "ordercast.protocols.causal",
    "dpg": "ordercast.protocols.dpg",
    "fifo": "ordercast.protocols.causal",
    "hybrid": "ordercast.protocols.hybrid",
    "multiring": "ordercast.protocols.totem",
    "symmetric": "ordercast.protocols.hybrid",
    "token_site": "ordercast.protocols.hybrid",
    "tomp": "ordercast.protocols.tomp",
    "totem": "ordercast.protocols.totem",
    "toto": "ordercast.protocols.toto",
}
_EXTRA: dict[str, ProtocolInfo] = {}


def names() -> list[str]:
    return sorted([*_MODULES, *_EXTRA])


def known(name: str) -> bool:
    """Whether it can be asked for; of one that lives elsewhere only `get` knows."""
    return name in _MODULES or name in _EXTRA or ":" in name


def get(name: str) -> ProtocolInfo:
    if name in _EXTRA:
        return _EXTRA[name]
    if ":" in name:
        return _elsewhere(name)
    if name not in _MODULES:
        raise UsageError(f"unknown protocol {name!r}: expected one of {', '.join(names())}{meant(name, names())}")
    infos: dict[str, Any] = import_module(_MODULES[name]).PROTOCOLS
    info: ProtocolInfo = infos[name]
    return info


def _elsewhere(name: str) -> ProtocolInfo:
    module, _, own = name.partition(":")
    try:
        infos: dict[str, ProtocolInfo] = import_module(module).PROTOCOLS
    except (ImportError, AttributeError, ValueError) as why:
        what = f"protocol {short(name)}: {short(why, 120)}"
        raise UsageError(f"{what}: expected module:name, PROTOCOLS[name] of a module Python can import") from None
    if own not in infos:
        raise UsageError(f"protocol {short(name)}: {module} has {', '.join(infos) or 'none'}")
    return structs.replace(infos[own], name=name)


def register(info: ProtocolInfo) -> None:
    """Add a protocol of your own (or a known-bad one in a test) for this process."""
    _EXTRA[info.name] = info


def unregister(name: str) -> None:
    _EXTRA.pop(name, None)
