"""Sites that share a resource of equal units: an operation needs several of them at once.

Paper: "Membership-insensitive totally ordered multicast" (Konorski), section 2.  Control over units goes from site to
site by three messages, all multicast.  A *request* says how many units a site needs and stands in line; whoever
controls free units gives them, by *allocations*, to the first in line until it has enough; who has enough operates,
and its *release* takes its request out of the line.  Who collected some units and too few within a time-out releases
too, and requests anew: else two could wait for each other for ever.

As long as all see one order their lines are alike and one site after the other gets its units.  Where they are not,
two sites collect at the same time, and both may run into their time-outs.  That costs operations, nothing else: so the
application can do with an order that is only almost the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Units = Annotated[int, Meta(ge=1, le=1_000_000)]
Milliseconds = Annotated[float, Meta(ge=1, le=86_400_000)]


class Resource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is shared, and by what rules."""

    units: Units = 8
    need: tuple[Units, Units] = (3, 5)  # the least and the most that an operation needs
    work_ms: Milliseconds = 300.0  # what an operation takes, about
    patience_ms: Milliseconds = 2000.0  # the time-out of who has some units and too few
    violating: Annotated[float, Meta(ge=0, le=1)] = 0.0  # simulated: requests that half of the sites take late

    def wrong(self) -> str:
        low, high = self.need
        fits = low <= high <= self.units
        return "" if fits else f"[{low}, {high}]: expected the least and the most, at most {self.units} units"


Ticket = tuple[int, int]  # a site, and the number of its request


class Request(Struct, frozen=True, array_like=True, tag=1):
    number: int  # of the sender's requests
    need: int


class Allocation(Struct, frozen=True, array_like=True, tag=2):
    to: int
    number: int
    units: int


class Release(Struct, frozen=True, array_like=True, tag=3):
    number: int


class Start(Struct, frozen=True):
    """Not sent: there are enough units here, the operation begins."""


class Hold(Struct, frozen=True):
    """Not sent: the first units came, from here on the time-out runs."""


Message = Request | Allocation | Release
Step = Message | Start | Hold
_encode, _decoder = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    return _encode(message)


def decode(data: bytes) -> Message | None:
    """None: somebody else's bytes."""
    try:
        message: Message = _decoder.decode(data)
    except msgspec.DecodeError:
        return None
    return message


class Site:
    """One site's part.  What a method returns is to be sent, in this order, or to be done here."""

    def __init__(self, me: int, sites: Sequence[int], units: int) -> None:
        self.me = me
        each, more = divmod(units, len(sites))
        self.free = each + (sorted(sites).index(me) < more)  # units that it controls and does not need
        self.line: dict[Ticket, int] = {}  # what each request in line still lacks, the first one first
        self.number = 0  # of its last request
        self.need = 0  # units, of the request that stands; 0: there is none
        self.collected = 0
        self.operating = False

    def request(self, need: int) -> list[Step]:
        assert not self.need
        self.number, self.need = self.number + 1, need
        return [Request(self.number, need)]

    def heard(self, sender: int, message: Message) -> list[Step]:
        """A message in its place of the order, an own one too."""
        line, kind = self.line, type(message)
        if kind is Request:
            line[sender, message.number] = message.need  # type: ignore[union-attr]
            return self._serve()
        if kind is Release:
            line.pop((sender, message.number), None)
            return self._serve()
        assert isinstance(message, Allocation)
        if sender != self.me:
            self._gave((message.to, message.number), message.units)
        return self._got(message) if message.to == self.me else []

    def _serve(self) -> list[Step]:
        """Give what is free to the first in line."""
        out: list[Step] = []
        while self.free and self.line:
            first, lacks = next(iter(self.line.items()))
            units = min(self.free, lacks)
            self.free -= units
            self._gave(first, units)
            out.append(Allocation(*first, units))
        return out

    def _gave(self, ticket: Ticket, units: int) -> None:
        if ticket in self.line:
            self.line[ticket] -= units
            if self.line[ticket] <= 0:
                del self.line[ticket]

    def _got(self, given: Allocation) -> list[Step]:
        if given.number != self.number or not self.need or self.operating:
            self.free += given.units  # for a request that is over, or more than were needed
            return self._serve()
        self.collected += given.units
        if self.collected < self.need:
            return [Hold()] if self.collected == given.units else []
        self.free += self.collected - self.need
        self.collected, self.operating = self.need, True
        return [Start(), *self._serve()]

    def finished(self) -> list[Step]:
        """The operation is over."""
        assert self.operating
        self.operating = False
        return self._release()

    def expired(self, number: int) -> list[Step]:
        """The time-out of a request is over; nothing, if it has got its units by now."""
        return self._release() if number == self.number and self.need and not self.operating else []

    def _release(self) -> list[Step]:
        self.free += self.collected
        self.need = self.collected = 0
        self.line.pop((self.me, self.number), None)
        return [Release(self.number), *self._serve()]
