"""The door: a datagram is opened before anything in it is looked at, and work for strangers is bounded.

In order: size, magic, version, rate, sender's address, group, key, tag, replay.  Nothing is parsed, kept or answered
before the tag has verified.  Datagrams of a life heard before, from where it was heard before, are not limited; what
else comes is, per address and in all, before any cryptography.  Who forges a member's own address as well costs one tag
each, no more.  What is known of a life (its sub-keys, the window of counters seen) is kept apart for lives that were
let in (admission.py) and those that were not yet, so that recorded datagrams of old lives push out nobody.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Collection, Mapping
from typing import Any

from ordercast.drivers.keyring import KeyRing
from ordercast.drivers.rates import SECOND, Rate, Rates
from ordercast.errors import WireError
from ordercast.limits import DATAGRAM_BYTES_MAX, MEMBERS_MAX, STRANGERS_MAX, STRANGERS_PER_S, UNOPENED_PER_S
from ordercast.types import Identity, MemberId, Nanoseconds, NetId, Peer
from ordercast.wire import header
from ordercast.wire.header import HEADER_BYTES, PREFIX_BYTES, Header
from ordercast.wire.seal import EPOCH_BITS, LARGE_BYTES, TAG_BYTES, Aead, GroupKey, InvalidTag, nonce, sub_key

WINDOW = 4_096  # counters of a life; what is further behind the newest one is taken for seen
LIVES_MAX = 4 * MEMBERS_MAX  # that opened and were not let in yet
LACKS_MAX = 8
ROWS_PER_S = 100  # of drops before the tag: these are written to the trace
LEAST_BYTES = HEADER_BYTES + TAG_BYTES
_BEGIN = header.MAGIC + bytes([header.VERSION])
TOO_MANY = WireError("rate")  # made once: in a flood it is raised for almost every datagram
_life_and_counter = struct.Struct(f"<{PREFIX_BYTES}sQ")


class Window:
    """The counters of a life that were seen: a place for each of the last 4096, in which the counter itself stands."""

    __slots__ = ("slots", "top")

    def __init__(self) -> None:
        self.slots = array("Q", bytes(8 * WINDOW))
        self.top = 0

    def see(self, counter: int) -> bool:
        """Whether it is seen for the first time; what is behind the window counts as seen."""
        if counter > self.top:  # mostly
            self.slots[counter % WINDOW] = self.top = counter
            return True
        slots, slot = self.slots, counter % WINDOW
        if counter <= self.top - WINDOW or slots[slot] == counter or not counter:
            return False
        slots[slot] = counter
        return True


class Life:
    """What opens the datagrams of one life on one net under one key, and which of them came."""

    __slots__ = ("code", "codes", "epoch", "key", "key_id", "peer", "seen", "source")

    def __init__(self, peer: Peer, key: GroupKey, head: Header, code: Aead, seen: Window, source: Any) -> None:
        self.peer, self.key, self.key_id, self.seen, self.source = peer, key, head.key_id, seen, source
        self.epoch, self.code = head.counter >> EPOCH_BITS, code  # the newest
        self.codes = {self.epoch: code}


class Guard:
    """Opens datagrams.  `hosts`: where members must speak from, of those with a fixed address."""

    def __init__(
        self, ring: KeyRing, identity: Identity, hears_self: bool, hosts: Mapping[MemberId, Collection[str]]
    ) -> None:
        self.ring, self._group, self._hosts = ring, identity.group, hosts
        self._group_id = header.group_id(identity.group)
        own = header.pack(self._group_id, identity.me, identity.incarnation, 0)[4:PREFIX_BYTES]
        self._own = b"" if hears_self else own  # what own datagrams have behind the key's id
        self._let_in: dict[tuple[NetId, bytes], Life] = {}
        self._others: dict[tuple[NetId, bytes], Life] = {}
        self.places: frozenset[Any] = frozenset()  # (host, port) of the members, which share no rate with anybody
        self._members = Rates(STRANGERS_PER_S, SECOND, STRANGERS_MAX)
        self._strangers = Rates(STRANGERS_PER_S, UNOPENED_PER_S, STRANGERS_MAX)
        self._buffer = memoryview(bytearray(DATAGRAM_BYTES_MAX))
        self.rows = Rate(ROWS_PER_S, ROWS_PER_S)
        self.lacks: dict[int, Nanoseconds] = {}  # ids of keys that are not here, and when each was last heard

    def open(self, now: Nanoseconds, net: NetId, datagram: memoryview, source: Any = None) -> bytes | memoryview:
        """What was sealed.  Raise WireError, and change nothing, for what no holder of the key wrote just now.

        A large one is opened into a buffer of ours, which the next one overwrites.
        """
        if len(datagram) <= LEAST_BYTES:
            header.begin(datagram)  # says what is wrong
            raise WireError("short", f"{len(datagram)} bytes")
        prefix, counter = _life_and_counter.unpack_from(datagram)
        at = (net, prefix)
        life = self._let_in.get(at) or self._others.get(at)
        if life is None:
            return self._first(now, at, datagram, source)
        if source != life.source:
            self._room(now, source)
            self._may(life.peer, source)
        epoch = counter >> EPOCH_BITS
        code = life.code if epoch == life.epoch else self._other(life, net, epoch)
        body = self._opened(code, counter, datagram)
        if not life.seen.see(counter):
            raise WireError("replay", f"member {life.peer.id}, datagram {counter}")
        if epoch > life.epoch:
            life.codes = {life.epoch: life.code, epoch: code}
            life.epoch, life.code = epoch, code
        life.source = source
        return body

    def _first(
        self, now: Nanoseconds, at: tuple[NetId, bytes], datagram: memoryview, source: Any
    ) -> bytes | memoryview:
        """A datagram of a life not heard before, or not under this key."""
        if len(datagram) > DATAGRAM_BYTES_MAX or at[1][:3] != _BEGIN:
            header.begin(datagram)  # says what is wrong
        if at[1][4:] == self._own:
            raise WireError("own")
        self._room(now, source)
        head = header.begin(datagram)
        peer = Peer(head.sender, head.incarnation)
        self._may(peer, source)
        if head.group_id != self._group_id:
            raise WireError("group")
        key = self._key(now, head)
        code = sub_key(key, self._group, head.key_id, peer, at[0], head.counter >> EPOCH_BITS)
        body = self._opened(code, head.counter, datagram)
        known, lives = self._same_life(at[0], peer)
        seen = Window() if known is None else known.seen
        if not seen.see(head.counter):
            raise WireError("replay", f"member {peer.id}, datagram {head.counter}")
        lives[at] = Life(peer, key, head, code, seen, source)
        if len(self._others) > LIVES_MAX:
            del self._others[next(iter(self._others))]
        return body

    def _opened(self, code: Aead, counter: int, datagram: memoryview) -> bytes | memoryview:
        head, sealed = datagram[:HEADER_BYTES], datagram[HEADER_BYTES:]
        try:
            if len(sealed) < LARGE_BYTES:
                return code.decrypt(nonce(counter), sealed, head)
            body = self._buffer[: len(sealed) - TAG_BYTES]
            code.decrypt_into(nonce(counter), sealed, head, body)
        except InvalidTag:
            raise WireError("tag") from None
        return body

    def _room(self, now: Nanoseconds, source: Any) -> None:
        """From where nothing of this life was heard before: is there room for a stranger?"""
        if source is None:
            return  # simulated: nobody forges addresses there
        place = source[:2]
        members = place in self.places
        if not (self._members.take(now, place) if members else self._strangers.take(now, source[0])):
            raise TOO_MANY.with_traceback(None)

    def _may(self, peer: Peer, source: Any) -> None:
        """Whether a member may speak from there."""
        if source is not None and source[0] not in self._hosts.get(peer.id, source):
            raise WireError("address", f"member {peer.id} from {source[0]}")

    def _key(self, now: Nanoseconds, head: Header) -> GroupKey:
        key = self.ring.find(head.key_id)
        if key is None:
            if head.key_id and (head.key_id in self.lacks or len(self.lacks) < LACKS_MAX):
                self.lacks[head.key_id] = now
            raise WireError("key", str(head.key_id))
        return key

    def _other(self, life: Life, net: NetId, epoch: int) -> Aead:
        """The sub-key before the newest that is known of a life, or the next one."""
        if epoch == life.epoch + 1:
            return sub_key(life.key, self._group, life.key_id, life.peer, net, epoch)
        code = life.codes.get(epoch)
        if code is None:
            raise WireError("counter", f"member {life.peer.id}")
        return code

    # --------------------------------------------------------------------------------------------------------- lives

    def let_in(self, peer: Peer, known: Mapping[bytes, Peer]) -> None:
        """A life was admitted; those of its member that admission has forgotten are strangers again."""
        for at in [at for at, life in self._others.items() if life.peer == peer and at[1] in known]:
            self._let_in[at] = self._others.pop(at)
        for at in [at for at, life in self._let_in.items() if life.peer.id == peer.id and at[1] not in known]:
            self._others[at] = self._let_in.pop(at)

    def let_in_from(self) -> frozenset[Any]:
        """(host, port) from where lives that were let in were last heard."""
        return frozenset(life.source[:2] for life in self._let_in.values() if life.source is not None)

    def forget_key(self, key_id: int) -> None:
        """Nothing is opened with it any more."""
        for lives in (self._let_in, self._others):
            for at in [at for at in lives if header.key_of(at[1]) == key_id]:
                del lives[at]

    def _same_life(self, net: NetId, peer: Peer) -> tuple[Life | None, dict[tuple[NetId, bytes], Life]]:
        """This life as it was heard under another key, and the table it belongs into."""
        for lives in (self._let_in, self._others):
            for at, life in lives.items():
                if at[0] == net and life.peer == peer:
                    return life, lives
        return None, self._others
