"""Where the members of a configuration are, and whether that may be: kinds of addresses, the own one, key or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ordercast import addresses, interfaces, keyfiles
from ordercast.contract import TAGGER
from ordercast.toml_input import Source
from ordercast.words import short

ANY, ANY_IPV6 = "0.0.0.0", "::"


class Place(Protocol):
    """A member, as far as it matters here."""

    @property
    def id(self) -> int: ...

    @property
    def address(self) -> str: ...

    @property
    def bind(self) -> str: ...


def _who(member: int) -> str:
    return f"member {member}" if member != TAGGER else "the tagger"


def ipv6(members: Sequence[Place], multicast: str) -> bool:
    """Whether a group is on IPv6: where any address is; one of names alone is on IPv4."""
    hosts = [host for member in members for host in (member.address, member.bind) if host]
    return any(addresses.is_ipv6(host) for host in [*hosts, multicast])


def one_kind(source: Source, members: Sequence[Place], multicast: str, interface: str, path: str = "net") -> None:
    """IPv4 and IPv6 addresses do not hear each other; `path`: of the network."""
    if not ipv6(members, multicast):
        return
    for member in members:
        for host in (member.address, member.bind):
            if host and not addresses.is_name(host) and not addresses.is_ipv6(host):
                words = (
                    f"{_who(member.id)} at {host}, while others are on IPv6: expected one kind of address in a group"
                )
                source.fault("member" if member.id != TAGGER else "tagger", words)
                return
    if multicast and not addresses.is_ipv6(multicast):
        source.fault(f"{path}.address", f"{multicast}: the members are on IPv6: expected an address of ff15::/16")
    elif multicast and interfaces.is_loopback(interface):
        source.fault(
            f"{path}.mode", 'multicast: loopback has none of IPv6: expected mode = "unicast", or another interface'
        )


def sealed_or_not(
    source: Source, insecure: bool, key: str, base: Path, members: Sequence[Place], interface: str, loopback: bool
) -> None:
    """A key, or the word that there is none, which is believed only where no stranger comes."""
    if key and insecure:
        source.fault("insecure", "true, and a key is given: remove one of the two")
    elif key and not source.faulty("key"):
        if why := keyfiles.fault(base / key):
            source.fault("key", f"{short(key)}: {why}")
    elif not key and not insecure and not source.faulty("insecure", "key"):
        words = f'expected key = "group.key" ({keyfiles.MAKE.format("group.key")}), or insecure = true on loopback'
        source.fault("key", f"is missing: {words}")
    if insecure and not key and not loopback and not interfaces.in_own_namespace():
        far = [f"{_who(m.id)} at {m.address}" for m in members if not interfaces.is_loopback(m.address)]
        words = far[0] if far else f"interface {interface}"
        source.fault("insecure", f"{words}: expected 127.0.0.0/8, or a network namespace other than the host's")


def own(source: Source, me: int | None, members: Sequence[Place]) -> None:
    """The member that is to run here is one of them, at an address of this machine."""
    if me is None or not members:
        return
    found = [member for member in members if member.id == me]
    if not found and me == TAGGER:
        if not source.faulty("tagger"):
            source.fault("tagger", "is missing: this group has none, and no use for one")
        return
    if not found:
        if source.faulty("member") and any(isinstance(e, dict) and e.get("id") == me for e in source.data["member"]):
            return  # its own entry is there, and was told to be wrong
        ids = [member.id for member in members if member.id != TAGGER]
        known = ", ".join(map(str, ids[:9])) + (", ..." if len(ids) > 9 else "")
        source.fault("", f"member {short(me)} is not listed: expected one of {known}")
        return
    for host in [member.bind or member.address for member in found]:
        if not addresses.is_name(host) and not interfaces.is_local(host):
            source.fault("", f"{_who(me)}: {host} is not an address of this machine")
