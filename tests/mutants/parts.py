"""The stacks put together from parts that mutants replace."""

from __future__ import annotations

from typing import Any

from ordercast.contract import Note, Setup
from ordercast.framing import Framing, Inbox, Outbox
from ordercast.groups import Groups
from ordercast.membership import Committed, Membership
from ordercast.membership.sight import Sight
from ordercast.protocols.hybrid import TokenSite
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.recovery import Exchange
from ordercast.protocols.totem.ring import Ring
from ordercast.protocols.totem.rings import Rings
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link, window_frames
from ordercast.types import MemberId, Service, ViewId


def token_site(
    setup: Setup,
    *,
    framing: type[Framing] = Framing,
    outbox: type[Outbox] = Outbox,
    inbox: type[Inbox] = Inbox,
    order: type[TokenSite] = TokenSite,
    link: type[Link] = Link,
) -> Stack:
    """As the shipped factory, with other classes."""
    identity = setup.identity
    waiting = outbox(identity.me, identity.incarnation, setup.frame_bytes)
    below = link(setup.timeout_ns, window_frames(setup.frame_bytes))
    top = framing(waiting, (Service.AGREED,), setup.outbox_bytes)
    top.inbox = inbox()
    return chain(top, order(setup, waiting, below, setup.options), below)


def totem(
    setup: Setup,
    *,
    groups: type[Groups] = Groups,
    inbox: type[Inbox] = Inbox,
    layer: type[RingLayer] = RingLayer,
    rings: type[Rings] = Rings,
    ring: type[Ring] | None = None,
    exchange: type[Exchange] | None = None,
    membership: type[Membership] | None = None,
    sight: type[Sight] | None = None,
    **parts: type[Any],
) -> Stack:
    """As the shipped factory; `parts` replace evidence and table of the membership, and all that it holds by name."""
    identity = setup.identity
    outbox = Outbox(identity.me, identity.incarnation, setup.frame_bytes)
    framing = Framing(outbox, (Service.AGREED, Service.SAFE), setup.outbox_bytes)
    framing.inbox = inbox()
    bottom = layer(setup, outbox, setup.options)

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
    return chain(groups(identity.me, framing), framing, bottom)
