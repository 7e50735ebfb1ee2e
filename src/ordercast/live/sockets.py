"""The sockets of one member on one net: datagrams out, datagrams in, in as few system calls as the kernel allows.

In multicast mode there are two sockets: one bound to the group's address, which only receives, and one bound to the
member's own address, which receives unicasts and sends everything.  In unicast mode there is only the second, and a
datagram to everybody is sent to each member.  Sends may block for a moment when the kernel's buffer is full (that is
the only back-pressure a UDP socket has), all together no longer than a turn of the event loop has patience for; a
buffer that did not drain meanwhile is not waited for again before it takes something.  Receives never block.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from msgspec import Struct

from ordercast.contract import TAGGER
from ordercast.errors import RunError, UsageError
from ordercast.limits import RECEIVE_BUFFER_BYTES
from ordercast.types import MemberId

Address = tuple[str, int]
One = Callable[[memoryview, int], None]  # a datagram, and how many this socket lost before it
Several = Callable[[memoryview, int, int], None]  # datagrams joined by the kernel, the size of each but the last, lost
Unreachable = Callable[[MemberId], None]
Control = tuple[tuple[int, int, bytes], ...]

UDP_SEGMENT = 103
UDP_GRO = 104
SO_RXQ_OVFL = 40
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
SO_MEMINFO = 55
IP_RECVERR = 11
MSG_ERRQUEUE = 0x2000
_DONTWAIT = socket.MSG_DONTWAIT
_READ_BYTES = 65_536
_CONTROL_BYTES = 128
JOINED_BYTES_MAX = 65_000  # of one send with segmentation offload
JOINED_MAX = 64
SINGLES = 16  # after so many datagrams that came alone only every so manieth read asks for a second one
_SEND_TIMEOUT_US = 5_000  # for one send
PATIENCE_NS = 50_000_000
_NO_OFFLOAD = (errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP)  # of this kernel, device or path
_U16 = struct.Struct("=H")
_I32 = struct.Struct("=i")
_EXTENDED_ERROR = struct.Struct("=IBBBBII")
_MEMINFO = struct.Struct("=9I")  # the last: what the socket dropped
_WRAP = 2**32  # of the kernel's count
_clock = time.monotonic_ns


class NetAddresses(Struct, frozen=True):
    """Where one net's traffic goes."""

    me: MemberId
    addresses: Mapping[MemberId, Address]  # every member's own (unicast) address
    group: Address | None = None  # the multicast address, or None for unicast fan-out
    interface: str = "127.0.0.1"  # address of the local interface that multicasts leave through
    hears_self: bool = False
    hears_group: bool = True  # false: it only sends to the multicast address


class _Port:
    """What is remembered of one socket."""

    __slots__ = ("lost", "said", "singles")

    def __init__(self) -> None:
        self.singles = 0  # reads in a row that found one datagram and no more
        self.lost = 0  # datagrams that found its buffer full, and were told
        self.said: list[tuple[int, int, bytes]] = []  # by the kernel beside the last datagram: mostly the same again


class Patience:
    """How long sends may still block in this turn of the event loop, on all nets together."""

    __slots__ = ("left_ns", "turn_ns")

    def __init__(self, turn_ns: int = PATIENCE_NS) -> None:
        self.turn_ns = self.left_ns = turn_ns

    def renew(self) -> None:
        self.left_ns = self.turn_ns


class NetSockets:
    """One net's sockets.  `prefix` is the beginning of every datagram of our own; the kernel drops what begins so."""

    def __init__(
        self, plan: NetAddresses, prefix: bytes, unreachable: Unreachable, patience: Patience | None = None
    ) -> None:
        self.plan = plan
        self.unreachable = unreachable
        self._patience = Patience() if patience is None else patience
        self._stuck = False  # the kernel's buffer was waited for in vain
        self.sent: Counter[str] = Counter()  # datagrams, bytes, calls, full, refused
        self._view = memoryview(bytearray(_READ_BYTES))
        self._buffers = (self._view,)
        self._ports: defaultdict[socket.socket, _Port] = defaultdict(_Port)
        self._filtered = 0  # own multicasts that the kernel dropped for us, which it counts as lost
        self._member_at = {address: member for member, address in plan.addresses.items() if member != plan.me}
        fan_out = [address for member, address in sorted(plan.addresses.items()) if member not in (plan.me, TAGGER)]
        if plan.hears_self:
            fan_out.append(plan.addresses[plan.me])
        self.targets: tuple[Address, ...] = (plan.group,) if plan.group else tuple(fan_out)
        self._multicast: socket.socket | None = None
        self._closed = False
        self._segments = True
        self._filters = False
        self._unicast = self._bind(plan.addresses[plan.me])
        try:
            self._unicast.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
            self._unicast.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, _SEND_TIMEOUT_US))
            if plan.group and not plan.hears_group:
                self._leave_by(plan.interface)
            elif plan.group:
                self._multicast = self._join(plan.group, plan.interface)
                if not plan.hears_self:
                    self._filters = _drop_own(self._multicast, prefix)
        except BaseException:
            self.close()
            raise

    # -------------------------------------------------------------------------------------------------------- setup

    def _bind(self, address: Address) -> socket.socket:
        sock = _socket()
        try:
            sock.bind(address)
        except OSError as why:
            sock.close()
            raise _bind_error(address, why) from None
        return sock

    def _join(self, group: Address, interface: str) -> socket.socket:
        own = socket.inet_aton(interface)
        sock = _socket()
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(group)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + own)
            self._leave_by(interface)
        except OSError as why:
            sock.close()
            if why.errno in (errno.ENODEV, errno.EADDRNOTAVAIL):
                raise UsageError(
                    f"interface {interface}: no interface of this machine has this address; expected a local one"
                ) from None
            raise _bind_error(group, why) from None
        return sock

    def _leave_by(self, interface: str) -> None:
        """Multicasts of our own go out there, and are heard on this machine too."""
        self._unicast.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        self._unicast.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """In the order in which they are to be read: multicasts, which are mostly data, before unicasts."""
        return (self._unicast,) if self._multicast is None else (self._multicast, self._unicast)

    def close(self) -> None:
        self._closed = True
        for sock in self.sockets:
            sock.close()

    # ------------------------------------------------------------------------------------------------------ receive

    def read(self, upto: socket.socket, one: One, several: Several, limit: int) -> int:
        """Hand over what has arrived at `upto` and the sockets before it, at most about `limit` datagrams; how many."""
        done = 0
        if upto is self._unicast and self._multicast is not None:
            done = self._read(self._multicast, one, several, limit)
        port = self._ports[upto]
        if port.singles < SINGLES or port.singles % SINGLES == 0:
            found = self._read(upto, one, several, limit - done)
        else:  # it was one at a time: do not ask whether there is another, if there is the event loop will tell
            found = self._read(upto, one, several, 1)
        port.singles = port.singles + 1 if found == 1 else 0
        return done + found

    def _read(self, sock: socket.socket, one: One, several: Several, limit: int) -> int:
        receive, buffers, view, port = sock.recvmsg_into, self._buffers, self._view, self._ports[sock]
        done = 0
        while done < limit and not self._closed:
            try:
                size, control, _, _ = receive(buffers, _CONTROL_BYTES, _DONTWAIT)
            except BlockingIOError:
                break
            except OSError:  # an answer to an earlier send (no such port, no way there): it waits in the error queue
                self.read_errors(sock)
                limit -= 1
                continue
            drops = segment = 0
            if control and control != port.said:
                for _, kind, data in control:
                    if kind == UDP_GRO:
                        segment = _I32.unpack_from(data)[0]
                    elif kind == SO_RXQ_OVFL:
                        drops = self._drops(sock, _I32.unpack_from(data)[0])
                        port.lost += drops
                if not segment:
                    port.said = control
            if segment and segment < size:
                several(view[:size], segment, drops)
                done += -(-size // segment)
            else:
                one(view[:size], drops)
                done += 1
        return done

    def _drops(self, sock: socket.socket, counted: int) -> int:
        """Losses of this socket that were not told before.

        The kernel's number also holds what our own filter dropped.  It was stamped on a datagram when that came, so it
        may not know of what we sent since: then a loss is told with a later one.
        """
        own = self._filtered if sock is self._multicast else 0
        new = (counted - own - self._ports[sock].lost) % _WRAP
        return new if new < _WRAP // 2 else 0

    def read_errors(self, sock: socket.socket) -> None:
        """A socket can be readable for nothing but an error that waits: port unreachable, nobody is there any more."""
        for _ in range(64):
            try:
                _, control, _, target = sock.recvmsg(64, 512, MSG_ERRQUEUE | _DONTWAIT)
            except OSError:
                return
            for _, kind, data in control:
                if kind == IP_RECVERR and len(data) >= _EXTENDED_ERROR.size:
                    number = _EXTENDED_ERROR.unpack_from(data)[0]
                    member = self._member_at.get(target)
                    if number == errno.ECONNREFUSED and member is not None:
                        self.unreachable(member)

    # --------------------------------------------------------------------------------------------------------- send

    def address(self, member: MemberId) -> tuple[Address, ...]:
        """Where one member is; nowhere, if it is not of this group."""
        address = self.plan.addresses.get(member)
        return () if address is None else (address,)

    def send(self, datagrams: bytes | bytearray, segment: int, to: tuple[Address, ...]) -> None:
        """One datagram, or several of `segment` bytes each (the last may be shorter), to each address."""
        size = len(datagrams)
        count = -(-size // segment)
        self.sent["datagrams"] += count * len(to)
        self.sent["bytes"] += size * len(to)
        if count == 1:
            for address in to:
                self._send(datagrams, address)
            return
        most = max(1, min(JOINED_MAX, JOINED_BYTES_MAX // segment)) * segment
        for address in to:
            if size <= most:
                self._send_joined(datagrams, segment, address)
            else:
                with memoryview(datagrams) as view:
                    for start in range(0, size, most):
                        with view[start : start + most] as part:
                            self._send_joined(part, segment, address)

    def _send_joined(self, datagrams: bytes | bytearray | memoryview, segment: int, address: Address) -> None:
        if self._segments:
            control = ((socket.IPPROTO_UDP, UDP_SEGMENT, _U16.pack(segment)),)
            try:
                self._unicast.sendmsg((datagrams,), control, _DONTWAIT, address)
                self._went(address)
                return
            except ConnectionRefusedError:
                self.sent["refused"] += 1
            except BlockingIOError:
                self._wait_and_send(datagrams, segment, control, address)
                return
            except OSError as why:
                self.sent[f"error {why.errno}"] += 1
                self._segments = why.errno not in _NO_OFFLOAD  # then plain datagrams from now on
        with memoryview(datagrams) as view:
            for start in range(0, len(view), segment):
                with view[start : start + segment] as datagram:
                    self._send(datagram, address)

    def _send(self, datagram: bytes | bytearray | memoryview, address: Address) -> None:
        for _ in range(3):
            try:
                self._unicast.sendto(datagram, _DONTWAIT, address)
            except BlockingIOError:
                self._wait_and_send(datagram, len(datagram), (), address)
            except ConnectionRefusedError:  # about an earlier datagram; this one was not sent
                self.sent["refused"] += 1
                continue
            except OSError as why:  # also mostly about an earlier one: no way to its host; else this one is lost
                self.sent[f"error {why.errno}"] += 1
                continue
            else:
                self._went(address)
            return

    def _went(self, address: Address) -> None:
        self.sent["calls"] += 1
        self._stuck = False
        if self._filters and address is self.plan.group:
            self._filtered += 1

    def _wait_and_send(
        self, datagrams: bytes | bytearray | memoryview, segment: int, control: Control, address: Address
    ) -> None:
        """The kernel's buffer is full.  What finds no room is lost, as on any network: the protocol repeats it."""
        if self._patience.left_ns > 0 and not self._stuck:
            before = _clock()
            try:
                self._unicast.sendmsg((datagrams,), control, 0, address)
            except OSError as why:
                self._stuck = isinstance(why, BlockingIOError)
            else:
                self._went(address)
                return
            finally:
                self._patience.left_ns -= _clock() - before
        self.sent["full"] += -(-len(datagrams) // segment)

    @property
    def joins(self) -> bool:
        """Whether joined datagrams go out as one call."""
        return self._segments

    @property
    def lost(self) -> int:
        """Datagrams that found a receive buffer full; such as the kernel had joined, or not yet cut, count as one."""
        lost = sum(port.lost for port in self._ports.values())
        for sock in self.sockets:
            with contextlib.suppress(OSError):  # closed, or a kernel that does not tell: what is known must do
                counts = _MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size))
                lost += self._drops(sock, counts[-1])
        return lost


def _socket() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
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


def _drop_own(sock: socket.socket, prefix: bytes) -> bool:
    """Let the kernel drop our own looped datagrams: a classic packet filter that compares their first words."""
    assert len(prefix) % 4 == 0
    words = [int.from_bytes(prefix[k : k + 4], "big") for k in range(0, len(prefix), 4)]
    program = [(0x20, 0, 0, 8 + 4 * k) for k in range(len(words))]  # load word k behind the UDP header
    code: list[tuple[int, int, int, int]] = []
    for k, load in enumerate(program):
        left = 2 * (len(words) - k - 1)
        code += [load, (0x15, 0, left + 1, words[k])]  # equal: go on; else: accept
    code += [(0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)]
    data = b"".join(struct.pack("=HBBI", *line) for line in code)
    import ctypes

    buffer = ctypes.create_string_buffer(data)
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(code), ctypes.addressof(buffer)))
    except OSError:
        return False
    return True


def _bind_error(address: Address, why: OSError) -> Exception:
    host, port = address
    if why.errno == errno.EADDRINUSE:
        return UsageError(f"port {port} at {host} is in use by another process; expected a free one")
    if why.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"address {host} is not local to this machine; expected the address of an interface here")
    if why.errno == errno.EACCES:
        return UsageError(f"port {port} at {host} may not be bound by this user; expected one from 1024 to 65535")
    return RunError(f"cannot bind {host}:{port}: {os.strerror(why.errno or 0).lower()}")
