"""`group.toml`: what a group is, in one file that every member reads.

All faults are found at once and told in one sentence each (ConfigError.faults); nothing is half-applied.  A key may
also come from the environment (``ORDERCAST_TIMEOUT_MS``, ``ORDERCAST_NET_PORT``, ...); where file and environment
disagree, that is a fault too: neither wins in silence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import tomli_w
from msgspec import Meta, Struct

from ordercast import addresses, interfaces, places, registry
from ordercast.contract import TAGGER
from ordercast.environment import overlay
from ordercast.errors import ConfigError
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK, DATAGRAM_BYTES_MAX, GROUP_NAME_BYTES_MAX, MEMBERS_MAX
from ordercast.nets import MULTICAST_ADDRESS as MULTICAST_ADDRESS
from ordercast.nets import MULTICAST_ADDRESS_IPV6 as MULTICAST_ADDRESS_IPV6
from ordercast.nets import PORT as PORT
from ordercast.nets import Member as Member
from ordercast.nets import NetConfig as NetConfig
from ordercast.nets import Ring as Ring
from ordercast.nets import RingEntry, RingMember, elsewhere, net_of, rings_of, written_member, written_net, written_ring
from ordercast.toml_input import Need, Rule, Source, string, word
from ordercast.types import ALL_CONTINUE, POLICIES
from ordercast.words import meant, short

MTU_MIN = 576
UDP_HEADER_BYTES, UDP_HEADER_BYTES_IPV6 = 28, 48
TIMEOUT_MS_LOOPBACK, TIMEOUT_MS, TIMEOUT_MS_MAX = 200, 1000, 600_000
LEVELS = ("off", "deliver", "full", "record")
PARTITION_LATER = ("keep-oldest", "static-quorum", "primary-weight")
KEY_ITSELF = re.compile(r"[0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?")
ONE_EACH = "one [[member]] table with id and address for each member"


# ------------------------------------------------------------------------------------------------- what may be written


def _group(value: Any) -> str:
    name = string(value)
    if not name or len(name.encode()) > GROUP_NAME_BYTES_MAX or not name.isprintable():
        raise ValueError(f"expected a printable name of 1 to {GROUP_NAME_BYTES_MAX} bytes")
    return name


def _directory(value: Any) -> str:
    name = string(value)
    if not name or not name.isprintable():
        raise ValueError("expected the name of a directory")
    return name


def _key(value: Any) -> str:
    name = string(value)
    if not name or not name.isprintable():
        raise ValueError("expected the name of a file")
    return name


def _protocol(value: Any) -> str:
    known = registry.names()
    if not registry.known(string(value)):
        raise ValueError(f"expected one of {', '.join(known)}{meant(value, known)}")
    return str(value)


def _partition(value: Any) -> str:
    if value in PARTITION_LATER:
        raise ValueError(f"this policy is not built yet: expected {' or '.join(POLICIES)}")
    return str(word(*POLICIES).make(value))


Bytes = Annotated[int, Meta(ge=MTU_MIN, le=DATAGRAM_BYTES_MAX)]
Directory = Annotated[str, Rule(_directory)]


class TraceConfig(Struct, frozen=True):
    level: Annotated[str, word(*LEVELS)] = "deliver"
    dir: Directory = "trace"
    keep_mb: Annotated[int, Meta(ge=0, le=2**20)] = 0  # of each member; 0: everything


class MemberEntry(Struct, frozen=True):
    """A [[member]]."""

    id: Annotated[int, Meta(ge=1, le=2**32 - 1), Need()] = 0
    address: Annotated[
        tuple[str, int], Rule(addresses.host_and_port), Need("an address such as 127.0.0.1:7401")
    ] = ("", 0)  # fmt: skip
    bind: Annotated[tuple[str, int], Rule(addresses.bind)] = ("", 0)  # where its socket is, if that is not `address`


class TaggerConfig(Struct, frozen=True):
    """[tagger]: who numbers datagrams for a group that needs it, and is no member."""

    address: Annotated[tuple[str, int], Rule(addresses.host_and_port), Need("an address such as 127.0.0.1:7499")] = (
        "", 0,
    )  # fmt: skip


class GroupFile(Struct, frozen=True):
    """The file; 0: it depends on where the members are."""

    group: Annotated[str, Rule(_group), Need('a name, such as group = "demo"')] = ""
    protocol: Annotated[str, Rule(_protocol)] = "totem"
    timeout_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)] = 0
    datagram_bytes: Bytes = 0
    packet_bytes: Bytes = 0
    state_dir: Directory = "state"
    partition: Annotated[str, Rule(_partition)] = ALL_CONTINUE
    key: Annotated[str, Rule(_key)] = ""
    insecure: bool = False
    options: dict[str, Any] = {}
    net: NetConfig = NetConfig()
    trace: TraceConfig = TraceConfig()
    tagger: TaggerConfig | None = None
    member: Annotated[list[MemberEntry], Need(ONE_EACH)] = []


class RingsFile(GroupFile, frozen=True):
    """The file of a group on several networks."""

    net: list[RingEntry] = []  # type: ignore[assignment]
    member: Annotated[list[RingMember], Need(ONE_EACH)] = []  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------------- what follows from it


class GroupConfig(Struct, frozen=True, kw_only=True):
    """A configuration; `load` and `make` give checked ones.  Relative directories start at `base`, the file's own."""

    group: str
    protocol: str
    members: tuple[Member, ...]  # by id
    options: Any  # an instance of the protocol's options
    timeout_ms: int
    datagram_bytes: int
    packet_bytes: int = 0  # the largest packet; above datagram_bytes it travels in several datagrams; 0: the default
    net: NetConfig = NetConfig()
    rings: tuple[Ring, ...] = ()  # by number; none: one network, `net`
    pure: tuple[int, ...] = ()  # gateways without an application
    state_dir: str = "state"
    trace: TraceConfig = TraceConfig()
    partition: str = ALL_CONTINUE
    key: str = ""  # the file's name
    insecure: bool = False
    tagger: Member | None = None  # who numbers, and is none
    base: Path = Path()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(member.id for member in self.members)

    @property
    def trace_path(self) -> Path:
        return self.base / self.trace.dir

    @property
    def key_path(self) -> Path | None:
        return self.base / self.key if self.key else None

    @property
    def ipv6(self) -> bool:
        return places.ipv6(self.everybody, self.net.address if self.net.mode == "multicast" else "")

    @property
    def timeout_ns(self) -> int:
        return self.timeout_ms * 1_000_000

    def member(self, me: int) -> Member:
        return next(member for member in self.everybody if member.id == me)

    @property
    def everybody(self) -> tuple[Member, ...]:
        """The members, and the tagger where there is one."""
        return self.members if self.tagger is None else (*self.members, self.tagger)

    def state_path(self, me: int) -> Path:
        return self.base / self.state_dir / f"member-{me}"


def packet_default(datagram_bytes: int) -> int:
    """Large packets are what throughput comes from, whatever the path takes at a time."""
    return max(datagram_bytes, DATAGRAM_BYTES_LOOPBACK)


# ----------------------------------------------------------------------------------------------------------- reading


def load(
    path: str | Path, me: int | None = None, environ: Mapping[str, str] | None = None, *, here: bool = True
) -> GroupConfig:
    """Read and check a file; `me` must be one of its members, with an address of this machine.

    here: no member is to run here if false, so it does not matter which interfaces and addresses this machine has.
    """
    path = Path(path)
    source = Source.of_file(path, "group.toml")
    if not source.data:
        raise ConfigError([f"{path}: is empty: expected at least group, [[member]] and key"])
    return _build(source, path.parent, me, os.environ if environ is None else environ, here)


def make(
    given: Mapping[str, Any] | GroupConfig, me: int | None = None, base: Path | None = None, *, here: bool = True
) -> GroupConfig:
    """The same from Python, checked as a file is: a dict of its shape, or a configuration put together by hand.

    The environment is not looked at.
    """
    if isinstance(given, GroupConfig):
        base, given = Path(given.base), _written(given)
    return _build(Source("configuration", dict(given)), base or Path.cwd(), me, {}, here)


# ---------------------------------------------------------------------------------------------------------- building


def _build(source: Source, base: Path, me: int | None, environ: Mapping[str, str], here: bool = True) -> GroupConfig:
    several = isinstance(source.data.get("net"), list)
    shape = RingsFile if several else GroupFile
    overlay(source, shape, environ)
    if KEY_ITSELF.fullmatch(str(source.data.get("key", ""))):
        source.data["key"] = "group.key"  # told here, where it is not repeated
        source.fault("key", "expected the name of a file, never the key itself")
    file: Any = source.part(source.data, shape)
    if several:
        elsewhere(source, file, me, here)
    options = None
    if not source.faulty("protocol", "options"):
        info = registry.get(file.protocol)
        options = source.part(file.options, info.options, "options")
    rings: tuple[Ring, ...] = ()
    tagger: Member | None = None
    if several:
        rings, at = rings_of(source, file)  # where members are: on each network
        net = rings[0].net if rings else NetConfig()
        if file.tagger is not None:
            source.fault("tagger", "a group on several networks has no use for one: remove it")
    else:
        at = _members(source, file)
        tagger = _tagger(source, file, options, at)
        at = at if tagger is None else (*at, tagger)
        net = net_of(source, "net", source.data.get("net", {}), file.net, at)
    nets = [ring.net for ring in rings] or [net]
    members = tuple({m.id: m for m in reversed(at)}[id] for id in sorted({m.id for m in at if m is not tagger}))
    loopback = all(map(interfaces.is_loopback, [*(m.address for m in at), *(each.interface for each in nets)]))
    own = next((m.bind or m.address for m in at if m.id == me), "")
    mtu = min(interfaces.mtu_of(each.interface or own) for each in nets)
    ipv6 = places.ipv6(at, net.address if net.mode == "multicast" else "")
    head = UDP_HEADER_BYTES_IPV6 if ipv6 else UDP_HEADER_BYTES
    datagram_bytes = file.datagram_bytes or min(mtu - head, DATAGRAM_BYTES_LOOPBACK)
    fits = options is None or source.faulty("options", "member")
    if not fits and (wrong := info.misfit(options, [m.id for m in members])):
        source.fault("options", wrong)
    if not source.faulty("protocol", "partition") and (wrong := registry.get(file.protocol).without(file.partition)):
        source.fault("partition", wrong)
    if here:
        places.sealed_or_not(source, file.insecure, file.key, base, at, net.interface, loopback)
    else:
        source.faults = [fault for fault in source.faults if not re.fullmatch(r"net(\[\d+\])?\.interface", fault[0])]
    places.own(source, me, at)
    if file.trace.keep_mb and file.trace.level == "record":
        words = 'level = "record" needs all that was written: remove one of the two'
        source.fault("trace.keep_mb", f"{file.trace.keep_mb}: {words}")
    for key, name in (("state_dir", file.state_dir), ("trace.dir", file.trace.dir)):
        if (base / name).exists() and not (base / name).is_dir():
            source.fault(key, f"{short(base / name)}: is not a directory")
    source.refuse()
    return GroupConfig(
        group=file.group,
        protocol=file.protocol,
        members=members,
        options=options,
        timeout_ms=file.timeout_ms or (TIMEOUT_MS_LOOPBACK if loopback else TIMEOUT_MS),
        datagram_bytes=datagram_bytes,
        packet_bytes=file.packet_bytes or packet_default(datagram_bytes),
        net=net,
        rings=rings,
        pure=tuple(entry.id for entry in file.member if entry.pure) if several else (),
        state_dir=file.state_dir,
        trace=file.trace,
        partition=file.partition,
        key=file.key,
        insecure=file.insecure,
        tagger=tagger,
        base=base,
    )


def _tagger(source: Source, file: GroupFile, options: Any, members: tuple[Member, ...]) -> Member | None:
    """Where the tagger is; a protocol that needs one must be told, any other must not."""
    if options is None:
        return None
    if getattr(options, "channel", "") != "tagger":
        if getattr(options, "channel", "") == "wan":
            source.fault("options.channel", "wan needs clocks that run together, which only the simulator has")
        if getattr(options, "channel", "") == "lan" and file.net.mode != "multicast":
            source.fault("options.channel", 'lan needs one order for all: expected [net] mode = "multicast"')
        if file.tagger is not None:
            source.fault("tagger", f"{file.protocol} has no use for one here: remove it")
        return None
    if file.tagger is None or not file.tagger.address[0]:
        words = 'is missing: expected [tagger] with its address, such as address = "127.0.0.1:7499"'
        if not source.faulty("tagger"):
            source.fault("tagger", words)
        return None
    own = Member(TAGGER, file.tagger.address[0], file.tagger.address[1] or file.net.port)
    for other in members:
        if (other.address, other.port) == (own.address, own.port):
            place = addresses.written(own.address, own.port)
            source.fault("tagger.address", f"{place}: member {other.id} has this address and port: give each its own")
    return own


def _members(source: Source, file: GroupFile) -> tuple[Member, ...]:
    if source.data.get("member") == []:
        source.wrong("member", [], ONE_EACH)
    if len(file.member) > MEMBERS_MAX:
        source.fault("member", f"{len(file.member)} members: expected at most {MEMBERS_MAX}")
        return ()
    found: list[Member] = []
    for k, entry in enumerate(file.member):
        port, (host, bound) = entry.address[1] or file.net.port, entry.bind
        own = Member(entry.id, entry.address[0], port, host, (bound or port) if host else 0)
        for other in found:
            if own.id and other.id == own.id:
                source.fault(f"member[{k}].id", f"{own.id}: another member has this id: expected each once")
            if own.address and (other.address, other.port) == (own.address, own.port):
                place = addresses.written(own.address, own.port)
                words = f"{place}: member {other.id} has this address and port: give each its own"
                source.fault(f"member[{k}].address", words)
        found.append(own)
    return tuple(sorted((m for m in found if m.id and m.address), key=lambda m: m.id))


# ----------------------------------------------------------------------------------------------------------- writing


def dump(config: GroupConfig) -> str:
    """The file that `load` reads back as the same configuration."""
    return tomli_w.dumps(_written(config))


def _written(config: GroupConfig) -> dict[str, Any]:
    """A configuration as a table of the file's shape; what is not what it should be stays, for `_build` to judge."""
    net, options, members = _table(config.net), _table(config.options), config.members
    if config.rings:
        net = [written_ring(ring) for ring in config.rings]
        members = [written_member(m.id, config.rings, m.id in config.pure) for m in config.members]  # type: ignore[assignment]
    if isinstance(net, dict):
        net = written_net(net)
    if isinstance(options, dict):
        options = {key: value for key, value in options.items() if value is not None}
    if isinstance(members, list | tuple):
        members = [_entry(member) if isinstance(member, Member) else member for member in members]  # type: ignore
    written = {
        "group": config.group,
        "protocol": config.protocol,
        "timeout_ms": config.timeout_ms,
        "datagram_bytes": config.datagram_bytes,
        "packet_bytes": config.packet_bytes,
        "state_dir": config.state_dir,
        "partition": config.partition,
        "key": config.key,
        "insecure": config.insecure,
        "member": members,
        "options": options,
        "net": net,
        "trace": _table(config.trace),
    }
    if config.tagger is not None:
        written["tagger"] = {"address": addresses.written(config.tagger.address, config.tagger.port)}
    left_out = {"packet_bytes": 0, "key": ""}
    return {key: value for key, value in written.items() if key not in left_out or value != left_out[key]}


def _table(part: Any) -> Any:
    return msgspec.structs.asdict(part) if isinstance(part, Struct) else {} if part is None else part


def _entry(member: Member) -> dict[str, Any]:
    entry = {"id": member.id, "address": addresses.written(member.address, member.port)}
    return entry | ({"bind": addresses.written(member.bind, member.bind_port)} if member.bind else {})
