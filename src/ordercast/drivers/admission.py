"""Whose datagram this is: every check of a header, done once per life of a member.

A datagram begins with 24 bytes that name the group, the member and its life.  Those of a life that was heard of before
are recognised by a look into a table; anything else passes all checks first.  A simulated datagram comes with its Peer
and is recognised by that.  Of several lives of a member the newest counts, unless the core judges that itself: a number
that no clock gave, once believed here, would shut the member out.
"""

from __future__ import annotations

from ordercast.contract import TAGGER
from ordercast.errors import WireError
from ordercast.types import Identity, MemberId, Peer
from ordercast.wire import header
from ordercast.wire.header import PREFIX_BYTES

INCARNATION_MAX = 2**63 - 1
LIVES_MAX = 4  # of one member that are recognised; more are checked each time


class Admission:
    """The lives of members that this one has heard of."""

    def __init__(
        self, identity: Identity, hears_self: bool, all_lives: bool, sealed: bool = False, tagger: bool = False
    ) -> None:
        self.me, self.hears_self, self.all_lives = Peer(identity.me, identity.incarnation), hears_self, all_lives
        self._sealed = sealed  # then the key and the group were checked with the tag
        self.group = header.group_id(identity.group)
        self.prefix = header.pack(self.group, self.me.id, self.me.incarnation, 0)[:PREFIX_BYTES]  # of my own life
        self.known: dict[bytes, Peer] = {}  # by the prefix of their datagrams
        self.last: dict[MemberId, Peer] = {}  # life that each member was last heard in
        self._members = frozenset((TAGGER, *identity.members) if tagger else identity.members)

    def stranger(self, datagram: memoryview) -> Peer:
        """Who a datagram of a life not heard of before is from: every check of the header, in order."""
        peer = self._named(datagram)
        self.check(peer)
        return peer

    def outsider(self, datagram: memoryview, why: WireError) -> Peer | None:
        """Who sent what was refused because its sender is no member of this group, which its own terms may explain."""
        if why.reason != "sender":
            return None
        return self._named(datagram)

    def _named(self, datagram: memoryview) -> Peer:
        head = header.begin(datagram) if self._sealed else header.unpack(datagram, self.group)
        return Peer(head.sender, head.incarnation)

    def check(self, peer: Peer) -> None:
        """Raise WireError for one that is not admitted."""
        if peer.id not in self._members:
            raise WireError("sender", f"member {peer.id} is not in this group")
        if peer == self.me and not self.hears_self:
            raise WireError("own")
        if peer.incarnation > INCARNATION_MAX:
            raise WireError("incarnation", str(peer.incarnation))
        if not self.all_lives:
            newest = self.me if peer.id == self.me.id else self.last.get(peer.id, peer)
            if peer.incarnation < newest.incarnation:
                raise WireError("earlier incarnation", f"member {peer.id}")

    def remember(self, peer: Peer, prefix: bytes = b"") -> None:
        """A life whose first packet was well-formed to its end.

        Raise WireError for another life of this very member, which stays a stranger: each of its packets is counted,
        and the core is shown them nevertheless, as only the core can say what follows.
        """
        if peer.id == self.me.id and peer != self.me:
            if peer.incarnation < self.me.incarnation:
                raise WireError("earlier incarnation", f"member {peer.id}")
            raise WireError("second claimant", f"another process says it is member {peer.id}")
        self.last[peer.id] = peer
        if prefix:
            lives = [old for old, known in self.known.items() if known.id == peer.id]
            for old in lives[: 1 - LIVES_MAX] if self.all_lives else lives:
                del self.known[old]
            self.known[prefix] = peer

    def forget_key(self, key_id: int) -> None:
        """A key that is dropped: those heard under it are strangers until they are heard under another."""
        self.known = {prefix: peer for prefix, peer in self.known.items() if header.key_of(prefix) != key_id}
