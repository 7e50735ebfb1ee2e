"""Variants whose runs depend on something else than the seed: only a second run of it shows them."""

from __future__ import annotations

import time

from tests.mutants.parts import token_site
from tests.mutants.registry import mutant

from ordercast.contract import Action, SetTimer, Setup
from ordercast.protocols.hybrid import Ticket, TokenSite
from ordercast.stack import Stack
from ordercast.transis.link import Link
from ordercast.types import Nanoseconds

AREA = "determinism"


@mutant("hash_order", "token_site", AREA, "waiting tickets are sorted by a hash of words", by="determinism")
def hash_order(setup: Setup) -> Stack:
    class Hashed(TokenSite):
        def _outgoing(self) -> tuple[Ticket, ...]:
            numbers = [number for number, _, _ in self.LT]
            self.LT.sort(key=lambda ticket: (ticket[2], hash(f"member {ticket[1]}")))
            self.LT[:] = [(n, sender, c) for n, (_, sender, c) in zip(numbers, self.LT, strict=True)]
            return super()._outgoing()

    return token_site(setup, order=Hashed)


@mutant("wall_clock", "token_site", AREA, "timers are set a little off, by the wall clock", by="determinism")
def wall_clock(setup: Setup) -> Stack:
    class Clocked(Link):
        def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
            off = time.time_ns() % 1000
            out = super().timer(now, name, due)
            return [SetTimer(a.name, a.at + off) if isinstance(a, SetTimer) else a for a in out]

    return token_site(setup, link=Clocked)


@mutant("set_in_a_packet", "token_site", AREA, "the gaps a request names come out of a set of words", by="determinism")
def set_in_a_packet(setup: Setup) -> Stack:
    class Unordered(Link):
        def _ask(self, now: Nanoseconds) -> list[Action]:
            gaps = self.repair.gaps
            words = {f"{q}:{k}" for q, k in gaps}
            self.repair.gaps = {key: gaps[key] for key in (tuple(map(int, w.split(":"))) for w in words)}  # type: ignore[misc, index]
            return super()._ask(now)

    return token_site(setup, link=Unordered)
