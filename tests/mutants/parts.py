"""The stacks put together from parts that mutants replace."""

from __future__ import annotations

from typing import Any

from ordercast.contract import Note, Setup
from ordercast.framing import Framing, Inbox
from ordercast.groups import Groups
from ordercast.membership import Committed, Membership
from ordercast.membership.sight import Sight
from ordercast.outbox import Outbox
from ordercast.protocols.hybrid import TokenSite
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.recovery import Exchange
from ordercast.protocols.totem.ring import Ring
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.turning import Turning
from ordercast.sender import Sender
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link
from ordercast.types import MemberId, ViewId


def token_site(
    setup: Setup,
    *,
    framing: type[Framing] = Framing,
    sender: type[Sender] = Sender,
    outbox: type[Outbox] = Outbox,
    inbox: type[Inbox] = Inbox,
    order: type[TokenSite] = TokenSite,
    link: type[Link] = Link,
) -> Stack:
    """As the shipped factory, with other classes."""
    top, middle = framing(), order(setup)
    top.inbox = inbox()
    middle.sender.__class__ = sender
    middle.sender.outbox.__class__ = outbox
    return chain(top, middle, link(setup))


def totem(
    setup: Setup,
    *,
    groups: type[Groups] = Groups,
    sender: type[Sender] = Sender,
    inbox: type[Inbox] = Inbox,
    outbox: type[Outbox] = Outbox,
    layer: type[RingLayer] = RingLayer,
    turn: type[Turning] = Turning,
    rings: type[Rings] = Rings,
    ring: type[Ring] | None = None,
    exchange: type[Exchange] | None = None,
    membership: type[Membership] | None = None,
    sight: type[Sight] | None = None,
    **parts: type[Any],
) -> Stack:
    """As the shipped factory; `parts` replace evidence and table of the membership, and all that it holds by name."""
    framing, bottom = Framing(), layer(setup, setup.options)
    framing.inbox = inbox()
    bottom.turn.__class__ = turn
    bottom.sender.__class__ = sender
    bottom.sender.outbox.__class__ = outbox

    class Patched(rings):  # type: ignore[misc, valid-type]
        def _make(self, id: ViewId, members: tuple[MemberId, ...]) -> Ring:
            made: Ring = super()._make(id, members)
            if ring is not None:
                made.__class__ = ring
            return made

        def begin(self, committed: Committed) -> Note:
            note: Note = super().begin(committed)
            if exchange is not None:
                self.attempt.exchange.__class__ = exchange
            return note

    bottom.rings.__class__ = Patched
    bottom.membership.commit.entry = bottom.rings.entry  # bound before, to the shipped one
    if ring is not None:
        bottom.rings.ring.__class__ = ring
    if membership is not None:
        bottom.membership.__class__ = membership
    if sight is not None:
        bottom.membership.sight.__class__ = sight
    for name, kind in parts.items():
        owner = bottom.membership.sight if name in ("evidence", "table") else bottom.membership
        getattr(owner, name).__class__ = kind
    return chain(groups(setup.identity.me), framing, bottom)
