"""Addresses as they are written in a configuration: each function gives the address, or says what was expected."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from ordercast import interfaces
from ordercast.toml_input import string


def ipv4(value: Any) -> ipaddress.IPv4Address:
    text = string(value)
    try:
        address = ipaddress.ip_address(re.sub(r"^\[(.*)\](:\d*)?$", r"\1", text).partition("%")[0])
    except ValueError:
        raise ValueError("expected an IPv4 address such as 127.0.0.1") from None
    if isinstance(address, ipaddress.IPv6Address):
        raise ValueError("IPv6 is not supported: expected an IPv4 address such as 127.0.0.1")
    return address


def multicast(value: Any) -> str:
    address = ipv4(value)
    if not address.is_multicast or address in ipaddress.ip_network("224.0.0.0/24"):
        raise ValueError("expected an IPv4 multicast address from 224.0.1.0 to 239.255.255.255")
    return str(address)


def interface(value: Any) -> str:
    name = string(value)
    if re.fullmatch(r"[A-Za-z][\w.@-]{0,14}", name):
        address = interfaces.address_of(name)
        if address is None:
            known = ", ".join(interfaces.addresses())
            raise ValueError(f"no such interface with an IPv4 address here: expected one of {known}, or its address")
        return address
    host = str(ipv4(value))
    if not interfaces.is_local(host):
        raise ValueError("not an address of this machine: expected an interface's name or IPv4 address")
    return host


def host_and_port(value: Any) -> tuple[str, int]:
    """The address of one machine; port 0 where none is written."""
    text = string(value)
    host, colon, tail = text.rpartition(":") if text.count(":") == 1 else (text, "", "")
    address = ipv4(host)
    if address.is_multicast or address.is_unspecified or address == ipaddress.IPv4Address("255.255.255.255"):
        raise ValueError("expected the address of one machine, such as 10.0.0.1 or 10.0.0.1:7401")
    if colon and not (tail.isascii() and tail.isdigit() and len(tail) <= 5 and 1 <= int(tail) <= 65535):
        raise ValueError("expected a port from 1 to 65535")
    return str(address), int(tail or 0)
