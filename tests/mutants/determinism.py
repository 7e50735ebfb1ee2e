"""Variants whose runs depend on something else than the seed: only a second run of it shows them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.mutants.parts import token_site
from tests.mutants.registry import mutant

from ordercast.contract import Action, Ordered, SetTimer, Setup, Up
from ordercast.protocols.hybrid import Process
from ordercast.protocols.hybrid.packets import Ticket
from ordercast.stack import Stack
from ordercast.transis.link import Link
from ordercast.types import MemberId, Nanoseconds

AREA = "determinism"


@mutant("hash_order", "token_site", AREA, "waiting tickets are sorted by a hash of words", by="determinism")
def hash_order(setup: Setup) -> Stack:
    class Hashed(Process):
        def _all_tickets(self) -> tuple[Ticket, ...]:
            numbers = [number for number, _, _ in self.LT]
            self.LT.sort(key=lambda ticket: (ticket[2], hash(f"member {ticket[1]}")))
            self.LT[:] = [(n, sender, c) for n, (_, sender, c) in zip(numbers, self.LT, strict=True)]
            return super()._all_tickets()

    return token_site(setup, process=Hashed)


@mutant("wall_clock", "token_site", AREA, "timers are set a little off, by the wall clock", by="determinism")
def wall_clock(setup: Setup) -> Stack:
    class Clocked(Link):
        def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
            off = time.time_ns() % 1000
            out = super().timer(now, name, due)
            return [SetTimer(a.name, a.at + off) if isinstance(a, SetTimer) else a for a in out]

    return token_site(setup, link=Clocked)


@mutant("set_in_a_drain", "token_site", AREA, "what a flush drains comes out of a set of words", by="determinism")
def set_in_a_drain(setup: Setup) -> Stack:
    class Shuffled(Process):
        def close(self, gone: Iterable[MemberId]) -> list[Action]:
            out = super().close(gone)
            rest = {f"{a.event.frame.sender} {a.event.frame.counter}": a for a in out if _unticketed(a)}
            return [a for a in out if not _unticketed(a)] + [rest[word] for word in set(rest)]

    return token_site(setup, process=Shuffled)


def _unticketed(action: Action) -> bool:
    return isinstance(action, Up) and isinstance(action.event, Ordered) and not action.event.epoch
