"""The services of the view-synchronous layer itself: FIFO order per sender, and causal order.

Paper: Y. Amir, D. Dolev, S. Kramer, D. Malki, "Total ordering of messages in broadcast domains": its causal multicast.
Provides: fifo, or causal.  Needs below: the view-synchronous layer, with the same service.
A frame goes up when it comes; members agree on what was delivered in a view, and in which view, but not on one order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ordercast.contract import Action, Body, Crash, Event, Layer, Ordered, Receive, Received, Setup, Up, dropped
from ordercast.framing import Framing
from ordercast.protocols.layered import UNORDERED, described
from ordercast.registry import ProtocolInfo
from ordercast.seam import Seam
from ordercast.sender import LEAVE, Sender
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link
from ordercast.types import Frame, Nanoseconds, Service


class LayerOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of fifo and causal."""

    crash_hint: bool = True  # believe a port that answers that nobody is there; false: only silence tells


class Sent(Body, frozen=True, gc=False, tag=1):
    """A frame."""

    frame: Frame

    def check(self) -> None:
        self.frame.check()


class Unordered(Layer):
    """Frames as they come."""

    name = "unordered"

    def __init__(self, setup: Setup, service: Service) -> None:
        self.sender = Sender(setup, (service,), tuple, carry=self._carry)

    def _carry(self, frame: Frame) -> list[Action]:
        return [self.sender.multicast(Sent(frame))]

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        return self.sender.down(now, event)

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Received:
            frame = event.body.frame  # type: ignore[attr-defined]
            if frame.sender != event.sender:  # type: ignore[attr-defined]
                return [dropped("origin", member=event.sender)]  # type: ignore[attr-defined]
            out: list[Action] = [] if event.told else [Receive(frame)]  # type: ignore[attr-defined]
            out.append(Up(Ordered(frame, event.sender, event.seq)))  # type: ignore[attr-defined]
            return out + self.sender.settle(now) if self.sender.leaving else out
        if kind is Crash:
            return []
        return self.sender.up(now, event)

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        assert name == LEAVE
        return self.sender.timer(now)

    def status(self) -> dict[str, Any]:
        waits = "the window of the layer below" if self.sender else self.sender.waits()
        return {"sender": self.sender.status(), "queues": {"outbox": self.sender.outbox.waiting()}, "waits": waits}


def fifo(setup: Setup) -> Stack:
    """Framing over frames in FIFO order."""
    return chain(
        Framing(),
        Seam(),
        Unordered(setup, Service.FIFO),
        Link(setup, causal=False, crash_hint=setup.options.crash_hint),
    )


def causal(setup: Setup) -> Stack:
    """Framing over frames in causal order."""
    return chain(Framing(), Seam(), Unordered(setup, Service.CAUSAL), Link(setup, crash_hint=setup.options.crash_hint))


def _info(name: str, summary: str, factory: Callable[[Setup], Stack], *more: str) -> ProtocolInfo:
    paper = "Total ordering of messages in broadcast domains (Amir, Dolev, Kramer, Malki)"
    return described(name, summary, paper, factory, LayerOptions, Sent, promises={name: (*UNORDERED, *more)})


_LEAST = "Each sender's messages in its order, the same set in every view; the least that views promise."
_CAUSAL = "A message comes after all that its sender had delivered; the same set in every view, no total order."
PROTOCOLS = {"fifo": _info("fifo", _LEAST, fifo), "causal": _info("causal", _CAUSAL, causal, "S16")}
