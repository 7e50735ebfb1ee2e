"""Addresses as they are written in a configuration: each function gives the address, or says what was expected."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ordercast import interfaces
from ordercast.toml_input import string

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
MULTICAST = "expected a multicast address from 224.0.1.0 to 239.255.255.255, or of ff15::/16"
MACHINE = "expected the address of one machine, such as 10.0.0.1, 10.0.0.1:7401 or [2001:db8::1]:7401, or its name"
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")


def ip(text: str) -> Ip | None:
    """The address that stands there, if one does."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def is_name(host: str) -> bool:
    """Whether a host is known by name, which is looked up, and may mean another address tomorrow."""
    return ip(host) is None


def is_ipv6(host: str) -> bool:
    return isinstance(ip(host), ipaddress.IPv6Address)


def multicast(value: Any) -> str:
    address = ip(string(value))
    if isinstance(address, ipaddress.IPv6Address):
        good = address in ipaddress.ip_network("ff15::/16")
    else:
        good = address is not None and address.is_multicast and address not in ipaddress.ip_network("224.0.0.0/24")
    if not good:
        raise ValueError(MULTICAST)
    return str(address)


def interface(value: Any) -> str:
    """Its IPv4 address if it has one, else its name."""
    name = string(value)
    if re.fullmatch(r"[A-Za-z][\w.@-]{0,14}", name):
        address = interfaces.address_of(name) or (name if name in interfaces.names() else None)
        if address is None:
            raise ValueError(f"no such interface here: expected one of {', '.join(interfaces.names())}, or its address")
        return address
    if ip(name) is None:
        raise ValueError("expected an interface's name or address")
    if not interfaces.is_local(name):
        raise ValueError("not an address of this machine: expected an interface's name or address")
    return str(ip(name))


def host_and_port(value: Any) -> tuple[str, int]:
    """The address or name of one machine; port 0 where none is written."""
    host, port = _split(string(value))
    address = ip(host)
    if address is None:
        numeric = host.rpartition(".")[2].isdigit()
        if numeric or ":" in host or len(host) > 253 or not _NAME.fullmatch(host):
            raise ValueError(MACHINE)
        return host.lower().rstrip("."), port
    if address.is_multicast or address.is_unspecified or address == ipaddress.IPv4Address("255.255.255.255"):
        raise ValueError(MACHINE)
    if isinstance(address, ipaddress.IPv6Address) and (address.is_link_local or address.ipv4_mapped):
        raise ValueError("is known on one link only, or is an IPv4 address: expected the address of one machine")
    return str(address), port


def bind(value: Any) -> tuple[str, int]:
    """An address to listen at: one of this machine, or all of them (0.0.0.0, ::)."""
    host, port = _split(string(value))
    address = ip(host)
    if address is None or address.is_multicast:
        raise ValueError("expected an address to listen at, such as 0.0.0.0, 10.0.0.1:7401 or [::]:7401")
    return str(address), port


def written(host: str, port: int) -> str:
    """The two as they are written."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split(text: str) -> tuple[str, int]:
    bracketed = re.fullmatch(r"\[([^\[\]]*)\](:(.*))?", text)
    if bracketed:
        host, colon, tail = bracketed[1], bracketed[2], bracketed[3] or ""
    elif text.count(":") == 1:
        host, colon, tail = text.partition(":")
    else:
        host, colon, tail = text, "", ""
    if not host:
        raise ValueError(MACHINE)
    if colon and not (tail.isascii() and tail.isdigit() and len(tail) <= 5 and 1 <= int(tail) <= 65535):
        raise ValueError("expected a port from 1 to 65535")
    return host, int(tail or 0)
