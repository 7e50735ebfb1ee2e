"""The networks of a group as its file names them: one, or several rings, each with members of its own.

All faults of several rings are found at once: numbers, addresses, members that are strangers or on no ring, rings that
do not hang together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Protocol

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from ordercast import addresses, interfaces, places, registry
from ordercast.limits import CONFIGURATION_MAX, MEMBERS_MAX, RINGS_MAX
from ordercast.toml_input import Need, Rule, Source, word

PORT = 7400
MULTICAST_ADDRESS, MULTICAST_ADDRESS_IPV6 = "239.192.74.0", "ff15::6f63:7400"
MODES = ("multicast", "unicast")

Port = Annotated[int, Meta(ge=1, le=65535)]


class NetConfig(Struct, frozen=True):
    mode: Annotated[str, word(*MODES)] = "multicast"
    address: Annotated[str, Rule(addresses.multicast)] = MULTICAST_ADDRESS  # not used in unicast mode
    port: Port = PORT  # of the multicast group, and of members whose address names none
    interface: Annotated[str, Rule(addresses.interface)] = "127.0.0.1"  # that multicasts leave and arrive by


class RingEntry(NetConfig, frozen=True):
    """A [[net]], for a protocol that joins rings."""

    ring: Annotated[int, Meta(ge=1, le=RINGS_MAX), Need("the number of this ring, 1 to 16")] = 0
    members: Annotated[list[int], Need("the ids of who is on it, such as [1, 2, 3]")] = []


def _address(value: Any) -> tuple[str, int]:
    host, port = addresses.host_and_port(value)
    if addresses.is_name(host):
        raise ValueError("names are looked up in groups on one network only: expected an address")
    return host, port


def _addresses(value: Any) -> tuple[tuple[str, int], ...]:
    return tuple(map(_address, value if isinstance(value, list | tuple) and value else [value]))


class RingMember(Struct, frozen=True):
    """A [[member]] beside [[net]]: an address on each ring it is on, in the order of these."""

    id: Annotated[int, Meta(ge=1, le=2**32 - 1), Need()] = 0
    address: Annotated[
        tuple[tuple[str, int], ...], Rule(_addresses), Need("an address on each of its rings")
    ] = ()  # fmt: skip
    pure: bool = False  # only joins rings: nobody sends from it or reads there


class Member(Struct, frozen=True):
    """One member and where its unicast socket is."""

    id: int
    address: str  # or its name
    port: int
    bind: str = ""  # where its socket is, if that is not where others find it
    bind_port: int = 0


class Ring(Struct, frozen=True):
    """One network of several: its number, where it is, and each member's address on it."""

    number: int
    net: NetConfig
    addresses: dict[int, tuple[str, int]]


class RingsWritten(Protocol):
    """The part of a file that is read here."""

    @property
    def protocol(self) -> str: ...

    @property
    def net(self) -> list[RingEntry]: ...

    @property
    def member(self) -> list[RingMember]: ...


def net_of(source: Source, path: str, written: Any, net: NetConfig, members: Sequence[Member]) -> NetConfig:
    """One network with what follows from where its members are; every fault in it."""
    if not isinstance(written, dict):
        return net
    if net.mode == "multicast" and "address" not in written and places.ipv6(members, ""):
        net = replace(net, address=MULTICAST_ADDRESS_IPV6)
    if net.mode == "unicast" and "address" in written:
        words = 'is a multicast group, which mode = "unicast" does not use: remove one of the two'
        source.fault(f"{path}.address", words)
    if "interface" not in written and not all(interfaces.is_loopback(member.address) for member in members):
        if net.mode == "multicast":
            words = "is missing: expected the name or address of the interface multicasts leave by"
            source.fault(f"{path}.interface", words)
        net = replace(net, interface="")
    places.one_kind(source, members, net.address if net.mode == "multicast" else "", net.interface, path)
    return net


def elsewhere(source: Source, file: RingsWritten, me: int | None, here: bool) -> None:
    """Interfaces of rings that `me` is not on are other machines'; none is this one's if no member is to run here."""
    others = [k for k, entry in enumerate(file.net) if not here or (me is not None and me not in entry.members)]
    paths = [f"net[{k}].interface" for k in others]
    source.faults = [fault for fault in source.faults if fault[0] not in paths]


def rings_of(source: Source, file: RingsWritten) -> tuple[tuple[Ring, ...], tuple[Member, ...]]:
    """The networks of a group that has several, and each member's place on each of its; every fault in them."""
    if not source.faulty("protocol") and not registry.get(file.protocol).rings:
        source.fault("net", f"several networks, which {file.protocol} does not join: expected one [net], or multiring")
    if len(file.net) > RINGS_MAX or (not file.net and not source.faulty("net")):
        source.fault("net", f"{len(file.net)} rings: expected 1 to {RINGS_MAX}")
    if len(file.member) > CONFIGURATION_MAX:
        source.fault("member", f"{len(file.member)} members: expected at most {CONFIGURATION_MAX}")
    ids = [entry.id for entry in file.member]
    for k, id in enumerate(ids):
        if id and id in ids[:k]:
            source.fault(f"member[{k}].id", f"{id}: another member has this id: expected each once")
    for k, entry in enumerate(file.net):
        if not entry.members and not source.told(f"net[{k}].members"):
            source.fault(f"net[{k}].members", "is empty: expected the ids of who is on it, such as [1, 2, 3]")
    unread = not file.net or any(source.told(f"net[{k}].members") for k in range(len(file.net)))
    for k, entry in enumerate(file.net):
        _ring(source, f"net[{k}]", entry, file.net[:k], ids)
    for k, member in enumerate(file.member):
        on = sum(member.id in entry.members for entry in file.net)
        if unread:  # who is on which ring is not known
            continue
        if not on:
            source.fault(f"member[{k}]", f"member {member.id} is on no ring: expected its id in members of a [[net]]")
        if member.pure and on == 1:
            source.fault(f"member[{k}].pure", f"member {member.id} is on one ring: expected a gateway, on two or more")
        if on and len(member.address) != on and not source.told(f"member[{k}].address"):
            source.fault(
                f"member[{k}].address", f"{len(member.address)} addresses: expected one for each of {on} rings"
            )
    for k in [] if unread else apart([entry.members for entry in file.net]):
        words = "shares no member with the others: expected a gateway on it and another"
        source.fault("net", f"ring {file.net[k].ring} {words}")
    if source.faulty("net", "member"):
        return (), ()
    left = {member.id: list(member.address) for member in file.member}
    found, at = [], []
    for k, entry in enumerate(file.net):
        here = [
            Member(id, host, port or entry.port) for id in sorted(entry.members) for host, port in [left[id].pop(0)]
        ]
        net = net_of(
            source, f"net[{k}]", source.data["net"][k],
            NetConfig(entry.mode, entry.address, entry.port, entry.interface), here,
        )  # fmt: skip
        found.append(Ring(entry.ring, net, {member.id: (member.address, member.port) for member in here}))
        at += here
    _places(source, at)
    return tuple(sorted(found, key=lambda ring: ring.number)), tuple(sorted(at, key=lambda member: member.id))


def _places(source: Source, at: list[Member]) -> None:
    """No two sockets in one place."""
    taken: dict[tuple[str, int], int] = {}
    for member in at:
        place = (member.address, member.port)
        if place in taken:
            words = f"{addresses.written(*place)}: given twice, to members {taken[place]} and {member.id}"
            source.fault("member", f"{words}: expected an address and port for each member on each ring")
        taken[place] = member.id


def _ring(source: Source, path: str, entry: RingEntry, before: list[RingEntry], ids: list[int]) -> None:
    strangers = [id for id in entry.members if id not in ids]
    if strangers:
        source.fault(f"{path}.members", f"member {strangers[0]} is not listed: expected ids of [[member]] tables")
    if twice := [id for k, id in enumerate(entry.members) if id in entry.members[:k]]:
        source.fault(f"{path}.members", f"member {twice[0]} is named twice: expected each once")
    if len(set(entry.members)) > MEMBERS_MAX:
        source.fault(f"{path}.members", f"{len(set(entry.members))} members: expected at most {MEMBERS_MAX}")
    for other in before:
        if entry.ring and other.ring == entry.ring:
            source.fault(f"{path}.ring", f"{entry.ring}: another net has this number: expected each once")
        if entry.mode == "multicast" and (other.address, other.port) == (entry.address, entry.port):
            words = f"{entry.address}:{entry.port}: ring {other.ring} has this address and port: give each its own"
            source.fault(f"{path}.address", words)


def apart(nets: Sequence[Collection[int]]) -> list[int]:
    """Of nets, given by their members: those that do not hang together with the first."""
    reached, todo = set(nets[0]) if nets else set(), list(range(1, len(nets)))
    while joined := [k for k in todo if reached.intersection(nets[k])]:
        todo = [k for k in todo if k not in joined]
        reached.update(member for k in joined for member in nets[k])
    return todo


def written_net(net: dict[str, Any]) -> dict[str, Any]:
    unused = {"address": net.get("mode") == "unicast", "interface": not net.get("interface")}
    return {key: value for key, value in net.items() if not unused.get(key)}


def written_ring(ring: Ring) -> dict[str, Any]:
    return written_net(asdict(ring.net)) | {"ring": ring.number, "members": list(ring.addresses)}


def written_member(id: int, rings: tuple[Ring, ...], pure: bool) -> dict[str, Any]:
    at = [ring.addresses[id] for ring in rings if id in ring.addresses]
    return {"id": id, "address": [addresses.written(*place) for place in at]} | ({"pure": True} if pure else {})
