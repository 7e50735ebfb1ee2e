"""`group.toml`: what a group is, in one file that every member reads.

All faults are found at once and told in one sentence each (ConfigError.faults); nothing is half-applied.  A key may
also come from the environment (``ORDERCAST_TIMEOUT_MS``, ``ORDERCAST_NET_PORT``, ...); where file and environment
disagree, that is a fault too: neither wins in silence.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ordercast import interfaces, registry, toml_input
from ordercast.errors import ConfigError
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK, DATAGRAM_BYTES_MAX, GROUP_NAME_BYTES_MAX, MEMBERS_MAX
from ordercast.toml_input import Places, Table, boolean, kind, shown, string, to_toml, whole, word
from ordercast.words import near, short

MTU_MIN = 576
UDP_HEADER_BYTES = 28
TIMEOUT_MS_LOOPBACK, TIMEOUT_MS, TIMEOUT_MS_MAX = 200, 1000, 600_000
PORT = 7400
MULTICAST_ADDRESS = "239.192.74.0"
MODES = ("multicast", "unicast")
LEVELS = ("off", "deliver", "full", "record")
PARTITION = "evs-all-continue"
PARTITION_LATER = ("primary-majority", "keep-oldest", "static-quorum", "primary-weight")
PREFIX = "ORDERCAST_"


class Member(Struct, frozen=True):
    """One member and where its unicast socket is."""

    id: int
    address: str
    port: int


class NetConfig(Struct, frozen=True):
    mode: str = "multicast"
    address: str = MULTICAST_ADDRESS  # the multicast group; not used in unicast mode
    port: int = PORT  # of the multicast group, and of members whose address names none
    interface: str = "127.0.0.1"  # address of the interface that multicasts leave and arrive by


class TraceConfig(Struct, frozen=True):
    level: str = "deliver"
    dir: str = "trace"


class GroupConfig(Struct, frozen=True, kw_only=True):
    """A checked configuration.  Directories are as written: relative ones start at `base`, the file's directory."""

    group: str
    protocol: str
    members: tuple[Member, ...]  # by id
    options: Any  # an instance of the protocol's options
    timeout_ms: int
    datagram_bytes: int
    packet_bytes: int = 0  # the largest packet; above datagram_bytes it travels in several datagrams; 0: the default
    net: NetConfig = NetConfig()
    state_dir: str = "state"
    trace: TraceConfig = TraceConfig()
    partition: str = PARTITION
    insecure: bool = True
    base: Path = Path()

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(member.id for member in self.members)

    @property
    def trace_path(self) -> Path:
        return self.base / self.trace.dir

    @property
    def timeout_ns(self) -> int:
        return self.timeout_ms * 1_000_000

    def member(self, me: int) -> Member:
        return next(member for member in self.members if member.id == me)

    def state_path(self, me: int) -> Path:
        return self.base / self.state_dir / f"member-{me}"


def packet_default(datagram_bytes: int) -> int:
    """Large packets are what throughput comes from, whatever the path takes at a time."""
    return max(datagram_bytes, DATAGRAM_BYTES_LOOPBACK)


# ----------------------------------------------------------------------------------------------------------- reading


def load(path: str | Path, me: int | None = None, environ: Mapping[str, str] | None = None) -> GroupConfig:
    """Read and check a file; `me` must be one of its members, with an address of this machine."""
    path = Path(path)
    data, place = toml_input.read(path)
    if not data:
        raise ConfigError([f"{path}: is empty: expected at least group, [[member]] and insecure = true"])
    return _build(data, place, path.parent, me, os.environ if environ is None else environ)


def make(data: Mapping[str, Any], me: int | None = None, base: Path | None = None) -> GroupConfig:
    """The same from Python: a dict of the file's shape, checked as the file is; the environment is not looked at."""
    return _build(dict(data), Places("configuration", {}), base or Path.cwd(), me, {})


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


def _protocol(value: Any) -> str:
    known = registry.names()
    if not registry.known(string(value)):
        close = near(value, known).partition("; ")[2]
        raise ValueError(f"expected one of {', '.join(known)}" + (f"; {close}" if close else ""))
    return str(value)


def _partition(value: Any) -> str:
    if value in PARTITION_LATER:
        raise ValueError(f"this policy is not built yet: expected {PARTITION}")
    return word(PARTITION)(value)


def _ipv4(value: Any) -> ipaddress.IPv4Address:
    text = string(value)
    try:
        address = ipaddress.ip_address(re.sub(r"^\[(.*)\](:\d*)?$", r"\1", text).partition("%")[0])
    except ValueError:
        raise ValueError("expected an IPv4 address such as 127.0.0.1") from None
    if isinstance(address, ipaddress.IPv6Address):
        raise ValueError("IPv6 is not supported: expected an IPv4 address such as 127.0.0.1")
    return address


def _multicast(value: Any) -> str:
    address = _ipv4(value)
    if not address.is_multicast or address in ipaddress.ip_network("224.0.0.0/24"):
        raise ValueError("expected an IPv4 multicast address from 224.0.1.0 to 239.255.255.255")
    return str(address)


def _interface(value: Any) -> str:
    name = string(value)
    if re.fullmatch(r"[A-Za-z][\w.@-]{0,14}", name):
        address = interfaces.address_of(name)
        if address is None:
            known = ", ".join(interfaces.addresses())
            raise ValueError(f"no such interface with an IPv4 address here: expected one of {known}, or its address")
        return address
    host = str(_ipv4(value))
    if not interfaces.is_local(host):
        raise ValueError("not an address of this machine: expected an interface's name or IPv4 address")
    return host


def _host_and_port(port: int) -> Callable[[Any], tuple[str, int]]:
    def rule(value: Any) -> tuple[str, int]:
        text = string(value)
        host, colon, tail = text.rpartition(":") if text.count(":") == 1 else (text, "", "")
        address = _ipv4(host)
        if address.is_multicast or address.is_unspecified or address == ipaddress.IPv4Address("255.255.255.255"):
            raise ValueError("expected the address of one machine, such as 10.0.0.1 or 10.0.0.1:7401")
        if not colon:
            return str(address), port
        if not (tail.isascii() and tail.isdigit() and len(tail) <= 5 and 1 <= int(tail) <= 65535):
            raise ValueError("expected a port from 1 to 65535")
        return str(address), int(tail)

    return rule


# ---------------------------------------------------------------------------------------------------------- building


def _build(data: dict[str, Any], place: Places, base: Path, me: int | None, environ: Mapping[str, str]) -> GroupConfig:
    faults: list[str] = []
    data = _overlay(data, place, faults, environ)
    table = Table(data, place, faults)
    group = table.need("group", _group, "", 'a name, such as group = "demo"')
    protocol = table.take("protocol", _protocol, "totem")
    partition = table.take("partition", _partition, PARTITION)
    state_dir = table.take("state_dir", _directory, "state")
    net_table = Table(table.take("net", lambda value: value, {}), place, faults, "net")
    port = net_table.take("port", whole(1, 65535), PORT)
    members = _members(table, port)
    loopback = all(interfaces.is_loopback(member.address) for member in members)
    net = _net(net_table, port, loopback)
    loopback = loopback and interfaces.is_loopback(net.interface)
    trace_table = Table(table.take("trace", lambda value: value, {}), place, faults, "trace")
    level = trace_table.take("level", word(*LEVELS), "deliver")
    trace = TraceConfig(level, trace_table.take("dir", _directory, "trace"))
    trace_table.finish()
    timeout_ms = table.take("timeout_ms", whole(1, TIMEOUT_MS_MAX), TIMEOUT_MS_LOOPBACK if loopback else TIMEOUT_MS)
    mtu = interfaces.mtu_of(net.interface or next((m.address for m in members if m.id == me), ""))
    largest = min(mtu - UDP_HEADER_BYTES, DATAGRAM_BYTES_LOOPBACK)
    datagram_bytes = table.take("datagram_bytes", whole(MTU_MIN, DATAGRAM_BYTES_MAX), largest)
    packet_bytes = table.take("packet_bytes", whole(MTU_MIN, DATAGRAM_BYTES_MAX), packet_default(datagram_bytes))
    options = _options(table, protocol if table.data.get("protocol", protocol) == protocol else None)
    _insecure(table, members, net, loopback)
    table.finish()
    _own(me, members, place, faults)
    for key, name in (("state_dir", state_dir), ("trace.dir", trace.dir)):
        if (base / name).exists() and not (base / name).is_dir():
            faults.append(f"{place.of(key)}: {short(base / name)}: is not a directory")
    if faults:
        raise ConfigError(faults)
    return GroupConfig(
        group=group,
        protocol=protocol,
        members=members,
        options=options,
        timeout_ms=timeout_ms,
        datagram_bytes=datagram_bytes,
        packet_bytes=packet_bytes,
        net=net,
        state_dir=state_dir,
        trace=trace,
        partition=partition,
        base=base,
    )


def _members(table: Table, port: int) -> tuple[Member, ...]:
    listed = table.data.get("member")
    table.known.append("member")
    if not isinstance(listed, list) or not listed:
        words = "is missing" if "member" not in table.data else kind(listed)
        table.fault("member", f"{words}: expected one [[member]] table with id and address for each member")
        return ()
    if len(listed) > MEMBERS_MAX:
        table.fault("member", f"{len(listed)} members: expected at most {MEMBERS_MAX}")
        return ()
    found: list[Member] = []
    for number, entry in enumerate(listed, 1):
        own = Table(entry, table.place, table.faults, f"member[{number}]")
        if not isinstance(entry, dict):
            continue
        id = own.need("id", whole(1, 2**32 - 1), 0, "a whole number from 1")
        host, at = own.need("address", _host_and_port(port), ("", 0), "an address such as 127.0.0.1:7401")
        own.finish()
        for other in found:
            if id and other.id == id:
                own.fault("id", f"{id}: another member has this id: expected each once")
            if host and (other.address, other.port) == (host, at):
                own.fault("address", f"{host}:{at}: member {other.id} has this address and port: give each its own")
        found.append(Member(id, host, at))
    return tuple(sorted((m for m in found if m.id and m.address), key=lambda m: m.id))


def _net(table: Table, port: int, loopback: bool) -> NetConfig:
    mode = table.take("mode", word(*MODES), "multicast")
    address = table.take("address", _multicast, MULTICAST_ADDRESS)
    interface = table.take("interface", _interface, "127.0.0.1" if loopback else "")
    if mode == "unicast" and "address" in table.data:
        table.fault("address", 'is a multicast group, which mode = "unicast" does not use: remove one of the two')
    if mode == "multicast" and not loopback and "interface" not in table.data:
        table.fault("interface", "is missing: expected the name or address of the interface multicasts leave by")
    table.finish()
    return NetConfig(mode, address, port, interface)


def _options(table: Table, protocol: str | None) -> Any:
    given: Any = table.take("options", lambda value: value, {})
    if protocol is None:
        return None  # its name was faulty, which is told already
    shape = registry.get(protocol).options
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    own = Table(given, table.place, table.faults, "options")
    before = len(table.faults)
    for name, field in fields.items():
        own.known.append(name)
        if name in own.data:
            try:
                msgspec.convert(own.data[name], field.type)
            except msgspec.ValidationError as why:
                own.fault(name, f"{shown(own.data[name])}: {_plain(why)}")
        elif field.required:
            own.fault(name, f"is missing: {protocol} needs it")
    own.finish()
    if len(table.faults) > before:
        return None
    try:
        return msgspec.convert(own.data, shape)
    except msgspec.ValidationError as why:
        own.fault("", _plain(why))
        return None


def _plain(why: Exception) -> str:
    text = str(why).replace("`", "")
    return text[:1].lower() + text[1:]


def _insecure(table: Table, members: tuple[Member, ...], net: NetConfig, loopback: bool) -> None:
    given = table.take("insecure", boolean, False)
    if not given and isinstance(table.data.get("insecure", False), bool):
        table.fault("insecure", "datagrams are not sealed yet: expected insecure = true, on loopback or in a namespace")
    if not loopback and not interfaces.in_own_namespace():
        far = [f"member {m.id} at {m.address}" for m in members if not interfaces.is_loopback(m.address)]
        words = far[0] if far else f"interface {net.interface}"
        table.fault("insecure", f"{words}: expected 127.0.0.0/8, or a network namespace other than the host's")


def _own(me: int | None, members: tuple[Member, ...], place: Places, faults: list[str]) -> None:
    if me is None or not members:
        return
    own = [member for member in members if member.id == me]
    if not own:
        known = ", ".join(str(member.id) for member in members[:9]) + (", ..." if len(members) > 9 else "")
        faults.append(f"{place.source}: member {short(me)} is not listed: expected one of {known}")
    elif not interfaces.is_local(own[0].address):
        faults.append(f"{place.source}: member {me}: {own[0].address} is not an address of this machine")


# ------------------------------------------------------------------------------------------------------- environment

_ENVIRONMENT: dict[str, type] = {
    "group": str,
    "protocol": str,
    "timeout_ms": int,
    "datagram_bytes": int,
    "packet_bytes": int,
    "state_dir": str,
    "partition": str,
    "insecure": bool,
    "net.mode": str,
    "net.address": str,
    "net.port": int,
    "net.interface": str,
    "trace.level": str,
    "trace.dir": str,
}


def variable(path: str) -> str:
    """The environment variable of a key: net.port -> ORDERCAST_NET_PORT."""
    return PREFIX + path.replace(".", "_").upper()


def _overlay(data: dict[str, Any], place: Places, faults: list[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The file's keys and those of the environment; two different values for one key are a fault."""
    paths = {variable(path): path for path in _ENVIRONMENT}
    data = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        if name not in paths:
            faults.append(f"environment: unknown variable {near(name, paths)}")
            continue
        path, value = paths[name], _typed(environ[name], _ENVIRONMENT[paths[name]])
        head, _, key = path.rpartition(".")
        table = data.setdefault(head, {}) if head else data
        if not isinstance(table, dict):
            continue  # told when the table is read
        if key not in table:
            table[key] = value
            place.environment[path] = name
        elif table[key] != value:
            faults.append(f"{place.of(path)}: {shown(table[key])} here but {shown(value)} in {name}: remove one")
    return data


def _typed(text: str, kind: type) -> Any:
    """What the text means as TOML where a number or boolean is expected; else the text, for the rule to refuse."""
    if kind is int and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if kind is bool and text in ("true", "false"):
        return text == "true"
    return text


# ----------------------------------------------------------------------------------------------------------- writing


def dump(config: GroupConfig) -> str:
    """The file that `load` reads back as the same configuration."""
    lines = [
        f"group = {to_toml(config.group)}",
        f"protocol = {to_toml(config.protocol)}",
        f"timeout_ms = {config.timeout_ms}",
        f"datagram_bytes = {config.datagram_bytes}",
        f"packet_bytes = {config.packet_bytes or packet_default(config.datagram_bytes)}",
        f"state_dir = {to_toml(config.state_dir)}",
        f"partition = {to_toml(config.partition)}",
        f"insecure = {to_toml(config.insecure)}",
    ]
    options = {k: v for k, v in msgspec.to_builtins(config.options).items() if v is not None} if config.options else {}
    if options:
        lines += ["", "[options]", *(f"{key} = {to_toml(value)}" for key, value in options.items())]
    lines += ["", "[net]", f"mode = {to_toml(config.net.mode)}"]
    if config.net.mode == "multicast":
        lines.append(f"address = {to_toml(config.net.address)}")
    lines.append(f"port = {config.net.port}")
    if config.net.interface:
        lines.append(f"interface = {to_toml(config.net.interface)}")
    lines += ["", "[trace]", f"level = {to_toml(config.trace.level)}", f"dir = {to_toml(config.trace.dir)}"]
    for member in config.members:
        lines += ["", "[[member]]", f"id = {member.id}", f'address = "{member.address}:{member.port}"']
    return "\n".join(lines) + "\n"
