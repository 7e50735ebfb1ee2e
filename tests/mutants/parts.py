"""The stacks put together from parts that mutants replace."""

from __future__ import annotations

from typing import Any

from ordercast.contract import Note, Setup
from ordercast.framing import Framing, Inbox
from ordercast.groups import Groups
from ordercast.membership import Committed, Membership
from ordercast.membership.sight import Sight
from ordercast.outbox import Outbox
from ordercast.protocols.causal import Unordered
from ordercast.protocols.hybrid import Process, Tickets, tickets
from ordercast.protocols.tomp.layer import Stamping
from ordercast.protocols.totem.layer import RingLayer
from ordercast.protocols.totem.recovery import Exchange
from ordercast.protocols.totem.ring import Ring
from ordercast.protocols.totem.rings import Rings
from ordercast.protocols.totem.turning import Turning
from ordercast.seam import Seam
from ordercast.sender import Sender
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link
from ordercast.transis.reception import Reception
from ordercast.transis.repair import Repair
from ordercast.transis.stability import Stability
from ordercast.transis.talk import Talk
from ordercast.transis.traffic import Traffic
from ordercast.transis.unicast import Unicasts
from ordercast.types import MemberId, Nanoseconds, Service, ViewId


def link_with(
    link: type[Link] = Link,
    *,
    traffic: type[Traffic] | None = None,
    unicasts: type[Unicasts] | None = None,
    reception: type[Reception[Any]] | None = None,
    stability: type[Stability[Any]] | None = None,
    repair: type[Repair] | None = None,
) -> type[Link]:
    """The layer, in every view of which these parts are replaced."""

    class Patched(link):  # type: ignore[misc, valid-type]
        def _talk(self, now: Nanoseconds, id: ViewId, members: tuple[MemberId, ...]) -> Talk:
            talk: Talk = super()._talk(now, id, members)
            made, n = talk.traffic, len(members)
            made.__class__ = traffic or Traffic
            talk.unicasts.__class__ = unicasts or Unicasts
            made.reception = (reception or Reception)(n, made.rank, made.unstable_max, made.causal)
            made.stability = (stability or Stability)(n)
            made.repair = (repair or Repair)(made.rank, n, self.timeout_ns)
            return talk

    return Patched


def token_site(
    setup: Setup,
    *,
    groups: type[Groups] = Groups,
    seam: type[Seam] = Seam,
    framing: type[Framing] = Framing,
    sender: type[Sender] = Sender,
    outbox: type[Outbox] = Outbox,
    inbox: type[Inbox] = Inbox,
    order: type[Tickets] = Tickets,
    process: type[Process] = Process,
    link: type[Link] = Link,
    protocol: str = "token_site",
) -> Stack:
    """As the shipped factories of this family, with other classes."""
    top, middle = framing(), tickets(protocol, setup, order, process)
    top.inbox = inbox()
    middle.sender.__class__ = sender
    middle.sender.outbox.__class__ = outbox
    return chain(groups(setup.identity.me), top, seam(), middle, link(setup))


def stamping(setup: Setup, order: type[Stamping], *, anticipate: bool = True) -> Stack:
    """TOMP, or ABCAST, with another core."""
    middle = order(setup, anticipate=anticipate)
    return chain(Groups(setup.identity.me), Framing(), Seam(), middle, Link(setup))


def causal(setup: Setup, link: type[Link], seam: type[Seam] = Seam) -> Stack:
    """Plain causal order over another layer."""
    return chain(Framing(), seam(), Unordered(setup, Service.CAUSAL), link(setup))


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
