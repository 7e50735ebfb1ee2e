"""Whose datagram this is: every check of a header, done once per life of a member.

A datagram begins with 24 bytes that name the group, the member and its life.  Those of a life that was heard of before
are recognised by a look into a table; anything else passes all checks first.
"""

from __future__ import annotations

from ordercast.errors import WireError
from ordercast.types import Identity, MemberId, Peer
from ordercast.wire import header

PREFIX_BYTES = 24  # magic .. incarnation, which name a sender's life; the datagram's counter follows
INCARNATION_MAX = 2**63 - 1


class Lives:
    """The lives of members that this one has heard of."""

    def __init__(self, identity: Identity, hears_self: bool) -> None:
        self.identity, self.hears_self = identity, hears_self
        self.group = header.group_id(identity.group)
        self.prefix = header.pack(self.group, identity.me, identity.incarnation, 0)[:PREFIX_BYTES]  # of my own life
        self.known: dict[bytes, Peer] = {}  # by the prefix of their datagrams
        self._newest: dict[MemberId, int] = {identity.me: identity.incarnation}  # incarnation heard of each member
        self._members = frozenset(identity.members)

    def stranger(self, datagram: memoryview) -> Peer:
        """Who a datagram of a life not heard of before is from: every check of the header, in order."""
        head, me = header.unpack(datagram, self.group), self.identity
        sender, incarnation = head.sender, head.incarnation
        if sender not in self._members:
            raise WireError("sender", f"member {sender} is not in this group")
        if sender == me.me and incarnation == me.incarnation and not self.hears_self:
            raise WireError("own")
        if incarnation > INCARNATION_MAX:
            raise WireError("incarnation", str(incarnation))
        newest = self._newest.get(sender, 0)
        if incarnation < newest:
            raise WireError("earlier incarnation", f"member {sender}")
        if sender == me.me and incarnation > newest:
            raise WireError("second claimant", f"another process says it is member {sender}")
        return Peer(sender, incarnation)

    def remember(self, prefix: bytes, peer: Peer) -> None:
        """A life whose first packet was well-formed to its end; its earlier lives are over."""
        self._newest[peer.id] = peer.incarnation
        self.known = {old: known for old, known in self.known.items() if known.id != peer.id}
        self.known[prefix] = peer
