"""Another key for a running group, without a stop: add it everywhere, use it, drop the old one.

Each step is a datagram of the drivers to all members, sealed as any other, which names a key and never carries it: its
bytes are in a file that the operator puts beside each member's configuration (`find` looks there).  Between add and
drop both keys open datagrams, so steps need no place in the order of messages; they are repeated until every member of
the view has answered, and each can be taken twice.  Who comes back is told what the others speak with when it is let
in; the higher number counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ordercast.contract import Packet
from ordercast.drivers.keyring import KeyRing
from ordercast.limits import KEYS_MAX
from ordercast.types import MemberId, Nanoseconds
from ordercast.wire.seal import GroupKey

NUMBER_MAX = 2**32  # of changes; what is heard of others is bounded
Step = Literal["add", "use", "drop"]
Name = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


class Keys(Packet, frozen=True, gc=False, tag="keys"):
    """A step to take ("have": none, this is how it is here), and what its sender has."""

    step: Literal["add", "use", "drop", "have"]
    key: Name  # that the step is about
    sends: Name
    holds: Annotated[tuple[Name, ...], Meta(max_length=KEYS_MAX)]
    number: Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
    why: Annotated[str, Meta(max_length=512)] = ""  # the last step could not be taken


_decoder = msgspec.msgpack.Decoder(Keys)


def decode(body: bytes | memoryview) -> Keys | None:
    """What a member says of its keys; None if it is something else."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OverflowError):
        return None


class Rotation:
    """Of one life.  `find` gives the key of a name, or says why there is none; `changed`: the ring is to be stored."""

    def __init__(self, ring: KeyRing, find: Callable[[str], GroupKey | str], changed: Callable[[], None]) -> None:
        self.ring, self._find, self._changed = ring, find, changed
        self.others: dict[MemberId, Keys] = {}  # what each said last
        self.lacks: str = ""  # the key that others speak with and this member has not

    def have(self, why: str = "") -> Keys:
        ring = self.ring
        return Keys("have", ring.sends.name, ring.sends.name, ring.names, ring.number, why[:512])

    def say(self, step: Step, key: str) -> Keys:
        return msgspec.structs.replace(self.have(), step=step, key=key)

    def heard(self, now: Nanoseconds, member: MemberId, said: Keys) -> Keys | None:
        """A member said this; what is answered, if anything."""
        self.others[member] = said
        if said.step == "have":
            if said.number > self.ring.number:
                self.take("use", said.sends, said.number)
            return None
        return self.have(self.take(said.step, said.key, said.number))

    def take(self, step: Step, name: str, number: int) -> str:
        """Carry a step out; why that cannot be, or nothing."""
        ring = self.ring
        before = ring.names, ring.sends.name, ring.number
        why = self._hold(name) if step != "drop" else ring.drop(name)
        if step == "use" and not why and number >= ring.number:
            why = ring.use(name, number)
        if step == "use":
            self.lacks = name if why else ""
        if (ring.names, ring.sends.name, ring.number) != before:
            self._changed()
        return why

    def _hold(self, name: str) -> str:
        if self.ring.named(name) is not None:
            return ""
        key = self._find(name)
        return key if isinstance(key, str) else self.ring.add(key)

    def missing(self, step: Step, name: str, members: Collection[MemberId]) -> dict[MemberId, str]:
        """Of these, who has not taken a step as far as is known, and why."""
        return {
            member: self._words(self.others.get(member)) for member in members if not self._took(step, name, member)
        }

    def _took(self, step: Step, name: str, member: MemberId) -> bool:
        said = self.others.get(member)
        if said is None:
            return False
        if step == "drop":
            return name not in said.holds
        return name in said.holds if step == "add" else name == said.sends

    def _words(self, said: Keys | None) -> str:
        return "has not answered" if said is None else said.why or f"speaks with key {said.sends}"
