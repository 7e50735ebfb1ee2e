"""Datagrams become packets: whose they are, trains put together, decoded; what is wrong with one is counted by reason.

With a guard a datagram is opened first (guard.py).  One that is not used changes nothing: a life is remembered only
after its first packet was well-formed.  What was lost before a datagram is told with the next packet that reaches the
core on that net, whatever became of those between; one of the own group that is not used is lost, too: others may use
it, and a core that infers from silence that nothing was said would be wrong.  Terms (terms.py) are read here and go no
further; a life is let in by them.  So is what members say of their keys (rotation.py).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

from ordercast.contract import Packet
from ordercast.drivers import rotation, terms
from ordercast.drivers.admission import Admission
from ordercast.drivers.guard import TOO_MANY, Guard
from ordercast.drivers.rotation import Keys, Rotation
from ordercast.drivers.terms import Agreement, Terms
from ordercast.errors import WireError
from ordercast.types import MemberId, Nanoseconds, NetId, Peer
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES, PREFIX_BYTES
from ordercast.wire.train import MARK, Station, joined, whole

Bytes = bytes | memoryview
Clock = Callable[[], Nanoseconds]
Receive = Callable[[Nanoseconds, NetId, Peer, Packet, int, Bytes], None]  # the int: datagrams lost before this one
Dropped = Callable[[Nanoseconds, WireError], None]
Say = Callable[[NetId, MemberId, Terms | Keys], None]
_counter = struct.Struct("<Q")
NOBODYS = frozenset(  # reasons to refuse what no member takes for a packet of its group, or what was heard before
    ("own", "group", "magic", "version", "short", "long", "sender", "replay", "earlier incarnation")
)


class Incoming:
    """Hands every packet to `receive`, and what was wrong with any other datagram to `dropped`.

    With an `agreement` only lives with the same terms are let in; what it wants said is handed to `say`.
    """

    def __init__(
        self,
        codec: Codec,
        admission: Admission,
        trains: int,
        clock: Clock,
        receive: Receive,
        dropped: Dropped,
        agreement: Agreement | None = None,
        say: Say = lambda net, to, said: None,
        guard: Guard | None = None,
        rotation: Rotation | None = None,
    ) -> None:
        self.agreement, self._say, self.guard, self.rotation = agreement, say, guard, rotation
        self.admission, self.station = admission, Station(trains)
        self._codec, self._clock, self._receive, self._dropped = codec, clock, receive, dropped
        self.drops: Counter[str] = Counter()  # datagrams not used, by reason
        self.datagrams = self.bytes = 0  # used
        self.refused = 0  # by the guard
        self.untold: dict[NetId, int] = {}  # datagrams lost here, of which the core has not heard

    def one(
        self, net: NetId, datagram: memoryview, drops: int, source: Any = None, opened: Bytes | None = None
    ) -> None:
        """One datagram: open it unless that was done, check its header, put trains together, decode its packet."""
        now = self._clock()
        if drops:
            self._lost(net, drops)
        body: Bytes | None = opened
        if self.guard is None:
            body = datagram[HEADER_BYTES:]
        elif body is None and (body := self._open(now, net, datagram, source)) is None:
            return
        known = peer = None
        try:
            prefix = bytes(datagram[:PREFIX_BYTES])
            known = self.admission.known.get(prefix)
            peer = self.admission.stranger(datagram) if known is None else known
            if not body:
                raise WireError("short")
            if body[0] == MARK:
                packet = self.station.take(now, prefix, _counter.unpack_from(datagram, PREFIX_BYTES)[0], body)
                if packet is None:
                    self.datagrams += 1
                    self.bytes += len(datagram)
                    return
                body = packet
            decoded = self._codec.decode(body)
        except WireError as why:
            self._no_packet(now, net, peer or self.admission.outsider(datagram, why), body, why)
            return
        if known is None:
            if not self._same_terms(now, net, peer):
                return
            self._remember(now, net, peer, prefix)
        self.datagrams += 1
        self.bytes += len(datagram)
        self._receive(now, net, peer, decoded, self.untold.pop(net, 0) if self.untold else 0, body)

    def _open(self, now: Nanoseconds, net: NetId, datagram: memoryview, source: Any) -> Bytes | None:
        """What is in a sealed datagram; None, and counted, if nobody who has the key wrote it now."""
        guard = self.guard
        assert guard is not None
        try:
            return guard.open(now, net, datagram, source)
        except WireError as why:
            self.refused += 1
            self.drops[why.reason] += 1
            self._lost(net, why.reason not in NOBODYS)
            if why is not TOO_MANY and guard.rows.take(now):  # a flood is counted, not written down
                self._dropped(now, why)
            return None

    def several(self, net: NetId, datagrams: memoryview, segment: int, drops: int, source: Any = None) -> None:
        """Datagrams that the kernel joined: all of one size but the last.  Mostly they are one train."""
        data = bytes(datagrams)
        self._lost(net, drops)
        if self.guard is not None:
            self._several_sealed(net, data, segment, source)
            return
        packet = whole(data, segment, PREFIX_BYTES)
        peer = None if packet is None else self.admission.known.get(data[:PREFIX_BYTES])
        if packet is None or peer is None:
            view = memoryview(data)
            for start in range(0, len(data), segment):
                self.one(net, view[start : start + segment], 0)
            return
        self._train(self._clock(), net, peer, packet, len(data), -(-len(data) // segment))

    def _several_sealed(self, net: NetId, data: bytes, segment: int, source: Any) -> None:
        """Each is opened for itself, so that none is kept which no member wrote; then they are one train, or not."""
        now = self._clock()
        view = memoryview(data)
        datagrams = [view[start : start + segment] for start in range(0, len(data), segment)]
        bodies = [None if (body := self._open(now, net, d, source)) is None else bytes(body) for d in datagrams]
        peer = self.admission.known.get(data[:PREFIX_BYTES])
        packet = None if peer is None else joined(datagrams, bodies, PREFIX_BYTES)
        if packet is not None and peer is not None:
            self._train(now, net, peer, packet, len(data), len(datagrams))
            return
        for datagram, body in zip(datagrams, bodies, strict=True):
            if body is not None:
                self.one(net, datagram, 0, source, body)

    def _train(self, now: Nanoseconds, net: NetId, peer: Peer, packet: bytes, size: int, count: int) -> None:
        """The packet of a whole train of somebody known."""
        try:
            decoded = self._codec.decode(packet)
        except WireError as why:
            self._no_packet(now, net, peer, packet, why)
            return
        self.station.arrived += 1
        self.datagrams += count
        self.bytes += size
        self._receive(now, net, peer, decoded, self.untold.pop(net, 0) if self.untold else 0, packet)

    def decoded(self, net: NetId, peer: Peer, packet: Packet, drops: int) -> None:
        """One that was never bytes (simulated): the same checks of its sender's life."""
        now = self._clock()
        self._lost(net, drops)
        if self.admission.last.get(peer.id) != peer:
            try:
                self.admission.check(peer)
            except WireError as why:
                self._refuse(now, net, why)
                return
            if not self._same_terms(now, net, peer):
                return
            self._remember(now, net, peer)
        self.datagrams += 1
        self._receive(now, net, peer, packet, self.untold.pop(net, 0) if self.untold else 0, b"")

    def _no_packet(self, now: Nanoseconds, net: NetId, peer: Peer | None, body: Bytes, why: WireError) -> None:
        """A datagram with no packet of this protocol: its sender's terms, or of one with other terms, or damaged."""
        said = terms.decode(body) if self.agreement is not None and peer is not None else None
        if said is not None:
            assert self.agreement is not None and peer is not None
            self._answer(net, peer, self.agreement.heard(now, peer, said))
        elif self.rotation is not None and peer is not None and self._of_keys(now, net, peer, body):
            return
        elif peer is None or why.reason != "packet" or self._same_terms(now, net, peer):
            self._refuse(now, net, why)

    def _of_keys(self, now: Nanoseconds, net: NetId, peer: Peer, body: Bytes) -> bool:
        """Whether it is what a member says of its keys."""
        said = rotation.decode(body)
        if said is None or self.rotation is None or self.agreement is None or not self.agreement.same(peer):
            return False
        self._answer(net, peer, self.rotation.heard(now, peer.id, said))
        return True

    def _same_terms(self, now: Nanoseconds, net: NetId, peer: Peer) -> bool:
        """Whether a life not let in yet may be; one that may not, or of which nothing is known, is told our terms."""
        agreement = self.agreement
        if agreement is None or agreement.same(peer):
            return True
        other = agreement.differs(peer)
        if other is None and peer.id == self.admission.me.id:
            self._drop(now, WireError("second claimant", f"another process says it is member {peer.id}"))
        elif other is None:
            agreement.early += 1
        else:
            self._drop(now, WireError("terms", str(other)))
        self._lost(net, 1)
        self._answer(net, peer, agreement.tell(now, peer))
        return False

    def _answer(self, net: NetId, peer: Peer, said: Terms | Keys | None) -> None:
        if said is not None:
            self._say(net, peer.id, said)

    def _remember(self, now: Nanoseconds, net: NetId, peer: Peer, prefix: bytes = b"") -> None:
        try:
            self.admission.remember(peer, prefix)
            if self.guard is not None:
                self.guard.let_in(peer, self.admission.known)
            if self.rotation is not None and peer != self.admission.me:
                self._say(net, peer.id, self.rotation.have())
        except WireError as why:
            self._drop(now, why)

    def _lost(self, net: NetId, drops: int) -> None:
        if drops:
            self.untold[net] = self.untold.get(net, 0) + drops

    def _refuse(self, now: Nanoseconds, net: NetId, why: WireError) -> None:
        self._drop(now, why)
        self._lost(net, why.reason not in NOBODYS)

    def _drop(self, now: Nanoseconds, why: WireError) -> None:
        self.drops[why.reason] += 1
        self._dropped(now, why)
