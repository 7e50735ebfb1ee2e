"""Seven protocols that break one promise each, visibly, and a canary that breaks one in every run that says anything.

They sit at the application's edge, over a token-site order that is sound: what they do is done after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace
from tests.mutants.parts import token_site
from tests.mutants.registry import mutant

from ordercast.contract import Action, Delivered, Event, Setup, Up
from ordercast.framing import Framing
from ordercast.stack import Stack
from ordercast.types import Identity, Nanoseconds

AREA = "known bad"


class Edge(Framing):
    """Deliveries pass through `alter`, which knows how many came before."""

    me = 0

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.kept: Delivered | None = None
        self.done = False  # the one bad deed

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        self.me = identity.me
        return []

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        out: list[Action] = []
        for action in super().up(now, event, child):
            if isinstance(action, Up) and isinstance(action.event, Delivered):
                self.seen += 1
                out += map(Up, self.alter(action.event))
            else:
                out.append(action)
        return out

    def alter(self, event: Delivered) -> list[Event]:
        return [event]


@mutant("delivers_twice", "token_site", AREA, "member 1 delivers its second frame twice")
def delivers_twice(setup: Setup) -> Stack:
    class Twice(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            return [event, event] if self.me == 1 and self.seen == 2 else [event]

    return token_site(setup, framing=Twice)


@mutant("swaps_two", "token_site", AREA, "member 1 delivers two frames of different senders the other way round")
def swaps_two(setup: Setup) -> Stack:
    class Swap(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            if self.me != 1 or self.done:
                return [event]
            before, self.kept = self.kept, event
            if before is None:
                return []
            if before.batch.sender == event.batch.sender:
                return [before]
            self.done, self.kept = True, None
            return [event, before]

    return token_site(setup, framing=Swap)


@mutant("loses_one", "token_site", AREA, "member 1 never delivers the second frame")
def loses_one(setup: Setup) -> Stack:
    class Lose(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            return [] if self.me == 1 and self.seen == 2 else [event]

    return token_site(setup, framing=Lose)


@mutant("invents_one", "token_site", AREA, "member 1 delivers a message that nobody submitted")
def invents_one(setup: Setup) -> Stack:
    class Invent(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            if self.me != 1 or self.seen != 2:
                return [event]
            batch = replace(
                event.batch, counter=event.batch.counter + 1_000_000, count=1, lengths=b"\1\0\0\0", data=b"x"
            )
            return [event, replace(event, batch=batch)]

    return token_site(setup, framing=Invent)


@mutant("breaks_fifo", "token_site", AREA, "all members deliver the first frame of a sender after its second")
def breaks_fifo(setup: Setup) -> Stack:
    class Fifo(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            if self.done:
                return [event]
            if self.kept is None:
                self.kept = event
                return []
            if self.kept.batch.sender != event.batch.sender:
                return [event]
            self.done = True
            return [event, self.kept]

    return token_site(setup, framing=Fifo)


@mutant("alters_payload", "token_site", AREA, "member 1 turns a bit of the second frame it delivers")
def alters_payload(setup: Setup) -> Stack:
    class Alter(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            data = event.batch.data
            if self.me != 1 or self.done or self.seen < 2 or not data:
                return [event]
            self.done = True
            return [replace(event, batch=replace(event.batch, data=bytes([data[0] ^ 1]) + data[1:]))]

    return token_site(setup, framing=Alter)


@mutant("silent_member", "token_site", AREA, "member 1 never delivers anything")
def silent_member(setup: Setup) -> Stack:
    class Silent(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            return [] if self.me == 1 else [event]

    return token_site(setup, framing=Silent)


@mutant("canary", "token_site", AREA, "everything is delivered twice: a swarm that lets this live is no swarm")
def canary(setup: Setup) -> Stack:
    class Canary(Edge):
        def alter(self, event: Delivered) -> list[Event]:
            return [event, event]

    return token_site(setup, framing=Canary)
