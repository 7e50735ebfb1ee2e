"""What this machine's network looks like: interfaces, their addresses and sizes, and whose namespace we are in."""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import socket
import struct
from pathlib import Path

_SIOCGIFADDR = 0x8915
_FIRST_NAMESPACE = 0xEFFFFFF9  # number of the host's network namespace, fixed since Linux 6.18
ETHERNET_MTU = 1500


def addresses() -> dict[str, str]:
    """Interface name -> its first IPv4 address; interfaces without one are left out."""
    found: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue
            found[name] = socket.inet_ntoa(answer[20:24])
    return found


def address_of(interface: str) -> str | None:
    """The IPv4 address of an interface given by name or by that address; None if there is no such thing here."""
    known = addresses()
    if interface in known:
        return known[interface]
    return interface if is_local(interface) else None


def names() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def index_of(interface: str) -> int:
    """The number of an interface given by name or by an address of it; OSError if there is no such thing here."""
    return socket.if_nametoindex(_name_of(interface))


def mtu_of(interface: str) -> int:
    """Its largest packet; Ethernet's where it cannot be known here."""
    try:
        return int((Path("/sys/class/net") / _name_of(interface) / "mtu").read_text())
    except (OSError, ValueError):
        return ETHERNET_MTU


def one_processor(interface: str, base: Path = Path("/sys/class/net")) -> bool:
    """Whether receive steering puts all that comes in by it on one processor, so that all sockets hear one order."""
    masks = set()
    for queue in (base / _name_of(interface) / "queues").glob("rx-*/rps_cpus"):
        try:
            masks.add(int(queue.read_text().strip().replace(",", ""), 16))
        except (OSError, ValueError):
            return False
    return len(masks) == 1 and masks.pop().bit_count() == 1


def _name_of(interface: str) -> str:
    """The name of an interface given by name or by an address of it."""
    if ":" in interface:
        wanted = ipaddress.ip_address(interface)
        return next((name for name, address in _ipv6() if address == wanted), interface)
    return next((name for name, address in addresses().items() if interface in (name, address)), interface)


def _ipv6() -> list[tuple[str, ipaddress.IPv6Address]]:
    """Interface name and each of its IPv6 addresses."""
    try:
        lines = Path("/proc/net/if_inet6").read_text().split("\n")
    except OSError:
        return []
    return [(line.split()[5], ipaddress.IPv6Address(bytes.fromhex(line[:32]))) for line in lines if line]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("lo", "localhost")


def is_local(address: str) -> bool:
    """Can a socket of this machine have this address?"""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def in_own_namespace() -> bool:
    """Are we in a network namespace other than the host's?  In doubt: no."""
    try:
        own = os.stat("/proc/self/ns/net").st_ino
        version = re.match(r"(\d+)\.(\d+)", os.uname().release)
        if version and (int(version[1]), int(version[2])) >= (6, 18):
            return own != _FIRST_NAMESPACE
        return own != os.stat("/proc/1/ns/net").st_ino
    except OSError:
        return False
