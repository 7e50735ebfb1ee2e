"""The token-site stack put together from parts that mutants replace."""

from __future__ import annotations

from ordercast.contract import Setup
from ordercast.framing import Framing, Inbox, Outbox
from ordercast.protocols.hybrid import TokenSite
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link, window_frames
from ordercast.types import Service


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
