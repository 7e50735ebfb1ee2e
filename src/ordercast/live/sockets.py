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
import socket
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

from ordercast.contract import TAGGER
from ordercast.live import filters, ports
from ordercast.live.filters import Line
from ordercast.live.ports import IP_RECVERR, IPV6_RECVERR, SO_RXQ_OVFL, UDP_GRO, Address
from ordercast.types import MemberId, NetId

One = Callable[[memoryview, int], None]  # a datagram, and how many this socket lost before it
Several = Callable[[memoryview, int, int], None]  # datagrams joined by the kernel, the size of each but the last, lost
Unreachable = Callable[[MemberId], None]
Control = tuple[tuple[int, int, bytes], ...]

UDP_SEGMENT = 103
SO_MEMINFO = 55
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
    addresses: Mapping[MemberId, Address]  # each member's own (unicast) address, once it is known
    group: Address | None = None  # the multicast address, or None for unicast fan-out
    interface: str = "127.0.0.1"  # name or address of the local interface that multicasts leave through
    hears_self: bool = False
    hears_group: bool = True  # false: it only sends to the multicast address
    number: NetId = 0
    bind: Address | None = None  # where the own socket is, if that is not where others find it


class _Port:
    """What is remembered of one socket."""

    __slots__ = ("lost", "said", "sieved", "singles")

    def __init__(self) -> None:
        self.singles = 0  # reads in a row that found one datagram and no more
        self.lost = 0  # datagrams that found its buffer full, and were told
        self.sieved = 0  # such, and those the kernel refused, while a sieve was on
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
        self.source: tuple[str, int] | tuple[str, int, int, int] | None = None  # where the last datagram came from
        self._addresses: dict[MemberId, Address] = {}
        self.move(plan.addresses)
        self._multicast: socket.socket | None = None
        self._closed = False
        self._segments = True
        self._filters: list[Line] = []  # what drops our own multicasts
        self._sieving = False
        self._unicast = ports.bound(plan.bind or plan.addresses[plan.me])
        try:
            self._unicast.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, _SEND_TIMEOUT_US))
            if plan.group:
                ports.speaks_by(self._unicast, plan.interface)
            if plan.group and plan.hears_group:
                self._multicast = ports.joined(plan.group, plan.interface)
                if not plan.hears_self and filters.attach(self._multicast, filters.own(prefix)):
                    self._filters = filters.own(prefix)
        except BaseException:
            self.close()
            raise

    # -------------------------------------------------------------------------------------------------------- setup

    def move(self, addresses: Mapping[MemberId, Address]) -> None:
        """These members are here from now on."""
        plan = self.plan
        self._addresses = addresses = {**self._addresses, **addresses}
        self._member_at = {address: member for member, address in addresses.items() if member != plan.me}
        fan_out = [address for member, address in sorted(addresses.items()) if member not in (plan.me, TAGGER)]
        if plan.hears_self:
            fan_out.append(addresses[plan.me])
        self.targets: tuple[Address, ...] = (plan.group,) if plan.group else tuple(fan_out)

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
                size, control, _, self.source = receive(buffers, _CONTROL_BYTES, _DONTWAIT)
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
                        self._count(port, drops)
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
        port = self._ports[sock]
        new = (counted - own - port.lost - port.sieved) % _WRAP
        return new if new < _WRAP // 2 else 0

    def _count(self, port: _Port, drops: int) -> None:
        if self._sieving:
            port.sieved += drops
        else:
            port.lost += drops

    def sieve(self, places: Collection[Address] | None, one_of: int) -> None:
        """Let the kernel refuse what comes from elsewhere, but one of so many; None: no more.

        What it counted before is told to nobody else: who must hear of every loss has no sieve.
        """
        for sock, untold in self._untold().items():
            self._count(self._ports[sock], untold)
        for sock in self.sockets:
            code = self._filters if sock is self._multicast else []
            if places is not None:
                code = code + filters.elsewhere(sock.family, places, one_of)
            filters.attach(sock, code)
        self._sieving = places is not None

    def _untold(self) -> dict[socket.socket, int]:
        """What the kernel has counted by now, and has not told with a datagram."""
        found = {}
        for sock in self.sockets:
            with contextlib.suppress(OSError):  # closed, or a kernel that does not tell: what is known must do
                counts = _MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, _MEMINFO.size))
                found[sock] = self._drops(sock, counts[-1])
        return found

    def read_errors(self, sock: socket.socket) -> None:
        """A socket can be readable for nothing but an error that waits: port unreachable, nobody is there any more."""
        for _ in range(64):
            try:
                _, control, _, target = sock.recvmsg(64, 512, MSG_ERRQUEUE | _DONTWAIT)
            except OSError:
                return
            for _, kind, data in control:
                if kind in (IP_RECVERR, IPV6_RECVERR) and len(data) >= _EXTENDED_ERROR.size:
                    number = _EXTENDED_ERROR.unpack_from(data)[0]
                    member = self._member_at.get(target[:2])
                    if number == errno.ECONNREFUSED and member is not None:
                        self.unreachable(member)

    # --------------------------------------------------------------------------------------------------------- send

    def address(self, member: MemberId) -> tuple[Address, ...]:
        """Where one member is; nowhere, if it is not of this group, or not found yet."""
        address = self._addresses.get(member)
        return () if address is None else (address,)

    @property
    def places(self) -> Iterable[Address]:
        """Where all members are."""
        return self._addresses.values()

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
        untold = 0 if self._sieving else sum(self._untold().values())
        return sum(port.lost for port in self._ports.values()) + untold

    @property
    def sieved(self) -> int:
        """Datagrams that the kernel refused, or found no room for, while a sieve was on."""
        untold = sum(self._untold().values()) if self._sieving else 0
        return sum(port.sieved for port in self._ports.values()) + untold
