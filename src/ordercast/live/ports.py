"""Sockets as they are made: with their buffers, bound to the own address, or joined to a multicast group."""

from __future__ import annotations

import errno
import os
import socket
import struct

from ordercast import interfaces
from ordercast.errors import RunError, UsageError
from ordercast.limits import RECEIVE_BUFFER_BYTES

Address = tuple[str, int]

UDP_GRO = 104
SO_RXQ_OVFL = 40
SO_RCVBUFFORCE = 33
IP_RECVERR, IPV6_RECVERR = 11, 25


def bound(address: Address) -> socket.socket:
    """The socket that sends everything, and receives what is for this member alone; it tells of dead ports."""
    try:
        sock = _socket(address)
    except OSError as why:
        raise _bind_error(address, why) from None
    try:
        sock.bind(address)
    except OSError as why:
        sock.close()
        raise _bind_error(address, why) from None
    ipv6 = sock.family is socket.AF_INET6
    sock.setsockopt(*((socket.IPPROTO_IPV6, IPV6_RECVERR) if ipv6 else (socket.IPPROTO_IP, IP_RECVERR)), 1)
    return sock


def speaks_by(sock: socket.socket, interface: str) -> None:
    """What it multicasts leaves through this interface, and is heard on this machine too."""
    try:
        if sock.family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interfaces.index_of(interface))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    except OSError as why:
        raise _interface_error(interface, why) from None


def joined(group: Address, interface: str) -> socket.socket:
    """The socket that hears a multicast group through an interface."""
    sock = _socket(group)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(group)
        if sock.family is socket.AF_INET6:
            wanted = socket.inet_pton(socket.AF_INET6, group[0]) + struct.pack("@I", interfaces.index_of(interface))
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, wanted)
        else:
            wanted = socket.inet_aton(group[0]) + socket.inet_aton(interface)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, wanted)
    except OSError as why:
        sock.close()
        if why.errno in (errno.ENODEV, errno.EADDRNOTAVAIL):
            raise _interface_error(interface, why) from None
        raise _bind_error(group, why) from None
    return sock


def _interface_error(interface: str, why: OSError) -> Exception:
    if why.errno in (errno.ENODEV, errno.EADDRNOTAVAIL):
        return UsageError(f"interface {interface}: no interface of this machine has this address; expected a local one")
    return RunError(f"cannot multicast by {interface}: {os.strerror(why.errno or 0).lower()}")


def _socket(address: Address) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM)
    if sock.family is socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BUFFER_BYTES)
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    except PermissionError:  # then as much as net.core.rmem_max allows; `ordercast doctor` tells if that is little
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    for level, option in ((socket.SOL_SOCKET, SO_RXQ_OVFL), (socket.IPPROTO_UDP, UDP_GRO)):
        try:
            sock.setsockopt(level, option, 1)
        except OSError as why:
            if why.errno not in (errno.ENOPROTOOPT, errno.EINVAL, errno.EOPNOTSUPP):
                raise
    return sock


def _bind_error(address: Address, why: OSError) -> Exception:
    host, port = address
    if why.errno == errno.EAFNOSUPPORT:
        return UsageError(f"address {host}: this machine has no IPv6; expected IPv4 addresses")
    if why.errno == errno.EADDRINUSE:
        return UsageError(f"port {port} at {host} is in use by another process; expected a free one")
    if why.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"address {host} is not local to this machine; expected the address of an interface here")
    if why.errno == errno.EACCES:
        return UsageError(f"port {port} at {host} may not be bound by this user; expected one from 1024 to 65535")
    return RunError(f"cannot bind {host}:{port}: {os.strerror(why.errno or 0).lower()}")
