"""Terms: what all members must have alike, told in a datagram that is read whatever the protocol.

Members with another protocol, other options or another T cannot be one group; each would sit alone and hear junk.  So a
member says at its start what it runs with, and asks everybody for the same; a life is let in once it has said the same
as is said here.  Whoever says something else, or has said nothing yet, is told the own terms at most once per T, so
that both sides know which value differs and who has it.  Nothing else follows from another's terms, and a life that was
let in stays in: a forged datagram puts nobody out, and shuts nobody out for longer than its next answer takes.

Where datagrams are sealed, terms carry a challenge, and a life is let in once it has echoed one of ours: what was
recorded yesterday, however well sealed, lets nobody in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ordercast.contract import Packet
from ordercast.limits import MEMBERS_MAX
from ordercast.types import Incarnation, MemberId, Nanoseconds, Peer
from ordercast.version import __version__
from ordercast.words import short

TERMS_MAX = 128
VALUE_MAX = 1_024
LIVES_MAX = 4 * MEMBERS_MAX  # that are remembered as having said the same, or something
NOT_SAID = "nothing"
CHALLENGE_BYTES = 16
CHALLENGE_NS = 10_000_000_000  # so long, or ten times T, a challenge is said; its echo is taken for twice as long

Name = Annotated[str, Meta(max_length=64)]
Value = Annotated[str, Meta(max_length=VALUE_MAX)]


class Terms(Packet, frozen=True, gc=False, tag="terms"):
    """What its sender runs with, in words.  `asks`: it has not heard the receiver say the same."""

    values: Annotated[dict[Name, Value], Meta(max_length=TERMS_MAX)]
    asks: bool = False


class FreshTerms(Terms, frozen=True, gc=False, tag="fresh"):
    """Terms with the sender's challenge, and the receiver's one as the sender last heard it (none: not yet)."""

    challenge: Annotated[bytes, Meta(max_length=CHALLENGE_BYTES)] = b""
    echo: Annotated[bytes, Meta(max_length=CHALLENGE_BYTES)] = b""


_decoder: msgspec.msgpack.Decoder[Terms] = msgspec.msgpack.Decoder(Terms | FreshTerms)


def decode(body: bytes | memoryview) -> Terms | None:
    """The terms in a datagram's body; None if it is something else."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError):
        return None


def terms_of(
    protocol: str, options: Any, timeout_ns: Nanoseconds, members: Collection[MemberId], partition: str
) -> dict[str, str]:
    """The terms of a member."""
    own = msgspec.to_builtins(options)
    values = {
        "version": __version__,
        "protocol": protocol,
        "timeout_ms": f"{timeout_ns / 1e6:g}",
        "partition": partition,
        "members": ", ".join(map(str, sorted(members))),
        **{f"options.{name}"[:64]: msgspec.json.encode(own[name], order="sorted").decode() for name in sorted(own)},
    }
    return {name: _bounded(value) for name, value in values.items()}


def _bounded(value: str) -> str:
    """Short enough to be told, and still another one where the whole is."""
    if len(value) <= VALUE_MAX:
        return value
    return f"{value[: VALUE_MAX - 40]}... {blake2b(value.encode(), digest_size=16).hexdigest()}"


class Difference(Struct, frozen=True):
    """One term of which two members say different things."""

    term: str
    here: str
    there: str

    def __str__(self) -> str:
        return f"{short(self.term)} {short(self.there)}, here it is {short(self.here)}"


class Other(Struct, frozen=True):
    """A life that has other terms than this member."""

    member: MemberId
    incarnation: Incarnation
    differences: tuple[Difference, ...]
    since: Nanoseconds  # told so first

    def __str__(self) -> str:
        return f"member {self.member} has " + " and ".join(map(str, self.differences))


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> tuple[Difference, ...]:
    """In the order in which they are said here."""
    names = [*here, *sorted(there.keys() - here.keys())]
    pairs = [(name, here.get(name, NOT_SAID), there.get(name, NOT_SAID)) for name in names]
    return tuple(Difference(*pair) for pair in pairs if pair[1] != pair[2])


def _put(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Into a table of lives, from which the oldest goes when it is full."""
    if key not in table and len(table) >= LIVES_MAX:
        del table[next(iter(table))]
    table[key] = value


class Agreement:
    """What one member's life knows of the others' terms.  `found` is told of each that has other ones."""

    def __init__(
        self,
        me: Peer,
        members: Collection[MemberId],
        values: Mapping[str, str],
        timeout_ns: Nanoseconds,
        found: Callable[[Other], None] = lambda other: None,
        secret: bytes = b"",
    ) -> None:
        """`secret`: of this life, what its challenges are made from; empty where nothing is sealed."""
        self.me, self.values, self.timeout_ns, self.found = me, dict(values), timeout_ns, found
        self._secret = secret
        self._echoes: dict[Hashable, bytes] = {}  # the last challenge of each life
        self.others: dict[MemberId, Other] = {}
        self.early = 0  # datagrams not used because their sender's terms had not come yet
        self._members = frozenset(members)
        self._same: dict[Peer, None] = {}  # lives that said the same
        self._outsider: Nanoseconds | None = None  # when one that is no member of ours was last found
        self._told: dict[Hashable, tuple[Nanoseconds, bytes]] = {}  # when each was last told our terms, with which echo

    def first(self, now: Nanoseconds = 0) -> Terms:
        """Said to everybody at the start."""
        return self._terms(now, 0, asks=True)

    def same(self, peer: Peer) -> bool:
        """Whether this life may be let in.  Of another life of our own the core decides, if it is no recording."""
        return peer in self._same or (peer == self.me if self._secret else peer.id == self.me.id)

    def differs(self, peer: Peer) -> Other | None:
        """What is known of a life that may not."""
        other = self.others.get(peer.id)
        return other if other is not None and other.incarnation == peer.incarnation else None

    def heard(self, now: Nanoseconds, peer: Peer, terms: Terms) -> Terms | None:
        """A life said its terms; what is said to it, if anything."""
        if isinstance(terms, FreshTerms):
            _put(self._echoes, self._key(peer), terms.challenge)
        differing = differences(self.values, terms.values)
        if differing:
            if peer not in self._same:
                self._note(now, peer, differing)
            return self.tell(now, peer)
        if peer not in self._same:
            if not self._fresh(now, terms):
                return self.tell(now, peer)
            _put(self._same, peer, None)
        self.others.pop(peer.id, None)
        return self.tell(now, peer) if terms.asks else None

    def tell(self, now: Nanoseconds, peer: Peer) -> Terms | None:
        """Our own for somebody who has other ones, or whose have not come; nothing if it was told within T."""
        key = self._key(peer)
        last, said = self._told.get(key, (None, b""))
        echo = self._echoes.get(key, b"")
        if peer.id == self.me.id and not self._secret:
            return None
        if last is not None and now - last < self.timeout_ns and echo == said:
            return None  # a challenge that was not echoed yet is news
        _put(self._told, key, (now, echo))
        return self._terms(now, key, asks=peer not in self._same)

    def _key(self, peer: Peer) -> Hashable:
        """Who is told once per T: a member; sealed, each life, as the one that answers may be a recording."""
        return peer if self._secret else peer.id if peer.id in self._members else 0

    def _terms(self, now: Nanoseconds, key: Hashable, asks: bool) -> Terms:
        if not self._secret:
            return Terms(self.values, asks)
        return FreshTerms(self.values, asks, self._challenge(now), self._echoes.get(key, b""))

    def _challenge(self, now: Nanoseconds, before: int = 0) -> bytes:
        """Of now, or of a while before."""
        when = now // max(CHALLENGE_NS, 10 * self.timeout_ns) - before
        return blake2b(when.to_bytes(8, "little", signed=True), digest_size=CHALLENGE_BYTES, key=self._secret).digest()

    def _fresh(self, now: Nanoseconds, terms: Terms) -> bool:
        """Whether who says this has heard one of our challenges of late."""
        if not self._secret:
            return True
        echo = terms.echo if isinstance(terms, FreshTerms) else b""
        return echo in (self._challenge(now), self._challenge(now, before=1))

    def _note(self, now: Nanoseconds, peer: Peer, differing: tuple[Difference, ...]) -> None:
        before = self.others.get(peer.id)
        if before is not None and before.differences == differing and before.incarnation == peer.incarnation:
            return
        last = self._outsider if peer.id not in self._members else before.since if before is not None else None
        if last is not None and now - last < self.timeout_ns:
            return  # two that say they are one member, or a forger: once per T is enough
        if peer.id not in self._members:
            self._outsider = now
        if before is None and len(self.others) >= MEMBERS_MAX:
            del self.others[next(iter(self.others))]
        self.others[peer.id] = other = Other(peer.id, peer.incarnation, differing, now)
        self.found(other)

    def status(self, now: Nanoseconds) -> list[dict[str, Any]]:
        """Who has other terms, and which."""
        return [
            {"member": other.member, "term": short(d.term), "here": short(d.here), "there": short(d.there),
             "since_ms": (now - other.since) // 1_000_000}
            for _, other in sorted(self.others.items()) for d in other.differences
        ]  # fmt: skip

    def words(self) -> list[str]:
        """The same in sentences: why these are not in one group with this member."""
        return [str(other) for _, other in sorted(self.others.items())]
