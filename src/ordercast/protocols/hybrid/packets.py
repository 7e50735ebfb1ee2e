"""What members of the token-site family say to each other, in the packets of the layer below.

To all: Sent, Null, Role, Reassign.  To one, to measure the way to it: Ping and its answer, Pong.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ordercast.contract import Body
from ordercast.errors import WireError
from ordercast.types import U32, U63, Frame

TICKETS_MAX = 1_024  # in one packet of their own
TICKETS_RIDING_MAX = 4  # with a frame, so that the packet fits a datagram
TICKET_BYTES = 24  # at most, encoded
NUMBER_MAX = 2**62  # of a ticket

Ticket = tuple[U63, U32, U63]  # number, sender and c of the message; its issuer is the packet's sender
Tickets = Annotated[tuple[Ticket, ...], Meta(max_length=TICKETS_MAX)]
Sequencer = tuple[U32, U32]  # pid, role number
C = Annotated[int, Meta(ge=1, le=2**62)]


class Sent(Body, frozen=True, gc=False, tag=1):
    """A frame, message c of its sender in this view, to be ticketed by `sequencer`."""

    c: U63
    sequencer: Sequencer
    frame: Frame
    tickets: Tickets = ()
    promise: U63 = 0

    def check(self) -> None:
        if self.c == 0:
            raise WireError("counter", "c counts from 1")
        self.frame.check()


class Null(Body, frozen=True, gc=False, tag=2):
    """Tickets and a promise without a frame."""

    tickets: Tickets
    promise: U63


class Role(Body, frozen=True, gc=False, tag=3):
    """Message c of its sender: it wants to be active (goingToActive), or passive (goingToPassive, with its own ticket);
    it is when this is delivered."""

    c: C
    sequencer: Sequencer
    active: bool
    tickets: Tickets = ()
    promise: U63 = 0


class Reassign(Body, frozen=True, gc=False, tag=4):
    """Messages first to last of its sender are to be ticketed by `sequencer` from now on."""

    first: C
    last: C
    sequencer: Sequencer

    def check(self) -> None:
        if self.last < self.first:
            raise WireError("range", "empty or backward")


class Ping(Body, frozen=True, gc=False, tag=1):
    """Answer at once."""

    number: U63


class Pong(Body, frozen=True, gc=False, tag=2):
    """The answer."""

    number: U63
