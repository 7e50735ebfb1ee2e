"""Variants of the reliable causal layer: gaps, duplicates, repair, stability, back-pressure."""

from __future__ import annotations

from typing import Any

from tests.mutants.order import SkipMissing
from tests.mutants.parts import causal, link_with, token_site
from tests.mutants.registry import mutant

from ordercast.contract import Action, Body, SetTimer, Setup, Up, Window
from ordercast.protocols.hybrid import Process
from ordercast.stack import Stack
from ordercast.transis.packets import Data, Nack, Status
from ordercast.transis.reception import Reception
from ordercast.transis.repair import Repair
from ordercast.transis.stability import Key, Stability
from ordercast.transis.traffic import Traffic
from ordercast.types import MemberId, Nanoseconds

AREA = "reliable layer"


def with_parts(setup: Setup, *, process: type[Process] = Process, **parts: type[Any]) -> Stack:
    """The token-site stack over a layer with parts replaced."""
    return token_site(setup, link=link_with(**parts), process=process)


@mutant("fifo_gap_ignored", "token_site", AREA, "a message that skips numbers of its sender is inserted at once")
def fifo_gap_ignored(setup: Setup) -> Stack:
    class Hasty(Reception[Data[Body]]):
        def offer(self, rank: int, seq: int, vec: tuple[int, ...], item: Any) -> list[tuple[int, int, Any]] | None:
            if seq <= self.have[rank]:
                return None
            self.have[rank] = seq
            return [(rank, seq, item)]

    return with_parts(setup, reception=Hasty)


class NotCausal(Reception[Data[Body]]):
    def offer(self, rank: int, seq: int, vec: tuple[int, ...], item: Any) -> list[tuple[int, int, Any]] | None:
        own_line = tuple(seq if q == rank else 0 for q in range(len(vec)))
        return super().offer(rank, seq, own_line, item)


@mutant("causal_past_ignored", "causal", AREA, "only the sender's own line is waited for, not what it followed")
def causal_past_ignored(setup: Setup) -> Stack:
    return causal(setup, link=link_with(reception=NotCausal))


@mutant("not_causal_and_skips", "token_site", AREA,
        "as before, and a ticket whose frame is not here yet is dropped: else the order hides it")  # fmt: skip
def not_causal_and_skips(setup: Setup) -> Stack:
    return with_parts(setup, reception=NotCausal, process=SkipMissing)


@mutant("duplicates_pass", "token_site", AREA, "the duplicate filter is gone")
def duplicates_pass(setup: Setup) -> Stack:
    class Again(Reception[Data[Body]]):
        def offer(self, rank: int, seq: int, vec: tuple[int, ...], item: Any) -> list[tuple[int, int, Any]] | None:
            if seq <= self.have[rank]:
                return [(rank, seq, item)]
            return super().offer(rank, seq, vec, item)

    return with_parts(setup, reception=Again)


@mutant("held_forgotten", "token_site", AREA, "what waits for a predecessor is not looked at when that comes")
def held_forgotten(setup: Setup) -> Stack:
    class Forgets(Reception[Data[Body]]):
        def _insert(self, rank: int, seq: int, item: Any) -> list[tuple[int, int, Any]]:
            self.have[rank] = seq
            return [(rank, seq, item)]

    return with_parts(setup, reception=Forgets)


@mutant("released_when_received", "token_site", AREA, "a message is released when it is here, not when all have it")
def released_when_received(setup: Setup) -> Stack:
    class Eager(Stability[Data[Body]]):
        def acked(self, rank: int) -> list[int]:
            return [max(row) for row in zip(*map(super().acked, range(len(self.stable))), strict=True)]

    return with_parts(setup, stability=Eager)


@mutant("stable_one_too_far", "token_site", AREA, "one message more than all have is released")
def stable_one_too_far(setup: Setup) -> Stack:
    class OneMore(Stability[Data[Body]]):
        def advance(self) -> list[Key]:
            released = super().advance()
            for q, k in enumerate(self.stable):
                if self.buffer.pop((q, k + 1), None) is not None:
                    released.append((q, k + 1))
            return released

    return with_parts(setup, stability=OneMore)


@mutant("status_speaks_for_all", "token_site", AREA, "one member's report counts as everybody's")
def status_speaks_for_all(setup: Setup) -> Stack:
    class Votes(Traffic):
        def status(self, now: Nanoseconds, rank: int, status: Status) -> list[Action]:
            out = super().status(now, rank, status)
            if len(status.have) == self.n:
                for other in range(self.n):
                    self.stability.report(other, status.have)
            return out

    return with_parts(setup, traffic=Votes)


@mutant("status_is_reception", "token_site", AREA, "what a report says the others have counts as received here")
def status_is_reception(setup: Setup) -> Stack:
    class Believes(Traffic):
        def status(self, now: Nanoseconds, rank: int, status: Status) -> list[Action]:
            out = super().status(now, rank, status)
            if len(status.have) == self.n:
                self.reception.have = list(map(max, self.reception.have, status.have))
            return out

    return with_parts(setup, traffic=Believes)


@mutant("retransmission_dropped", "token_site", AREA, "nobody answers a request for a lost message")
def retransmission_dropped(setup: Setup) -> Stack:
    class Deaf(Traffic):
        def nack(self, now: Nanoseconds, asker: MemberId, nack: Nack) -> list[Action]:
            return []

    return with_parts(setup, traffic=Deaf)


@mutant("nack_once", "token_site", AREA, "a gap is asked for once, never again")
def nack_once(setup: Setup) -> Stack:
    class Once(Repair):
        def next_due(self) -> Nanoseconds | None:
            return min((gap.due for gap in self.gaps.values() if not gap.tries), default=None)

    return with_parts(setup, repair=Once)


@mutant(
    "tails_not_found", "token_site", AREA, "a report above what is here opens no gap: a lost last message stays lost"
)
def tails_not_found(setup: Setup) -> Stack:
    class NoTails(Traffic):
        def status(self, now: Nanoseconds, rank: int, status: Status) -> list[Action]:
            known = list(self.reception.known)
            super().status(now, rank, status)
            self.reception.known = known
            for key in [key for key in self.repair.gaps if key[1] > known[key[0]]]:
                del self.repair.gaps[key]
            return []

    return with_parts(setup, traffic=NoTails)


@mutant("no_heartbeat", "token_site", AREA, "the heartbeat stops after the first one")
def no_heartbeat(setup: Setup) -> Stack:
    class Silent(Traffic):
        def beat(self, now: Nanoseconds) -> list[Action]:
            out = super().beat(now)
            return [a for a in out if not (isinstance(a, SetTimer) and a.name == "heartbeat")]

    return with_parts(setup, traffic=Silent)


@mutant("never_stable", "token_site", AREA, "nothing is ever released: the window shuts for good")
def never_stable(setup: Setup) -> Stack:
    class Keeps(Stability[Data[Body]]):
        def advance(self) -> list[Key]:
            return []

    return with_parts(setup, stability=Keeps)


@mutant("back_pressure_stays", "token_site", AREA, "a window that fell because an application did not read never rises")
def back_pressure_stays(setup: Setup) -> Stack:
    class Stays(Traffic):
        def room(self, now: Nanoseconds, frames: int) -> list[Action]:
            return super().room(now, min(frames, self.windows[self.rank] * self.n))

    return with_parts(setup, traffic=Stays)


@mutant("window_ignored", "token_site", AREA, "a member originates whatever it has, however little the others can take")
def window_ignored(setup: Setup) -> Stack:
    class Floods(Traffic):
        def window(self) -> list[Action]:
            self.told = 2**40
            return [Up(Window(1_000_000))]

    return with_parts(setup, traffic=Floods)


@mutant("vector_by_arrival", "token_site", AREA, "a sender's number is read from the wrong place of the vector")
def vector_by_arrival(setup: Setup) -> Stack:
    class Shifted(Stability[Data[Body]]):
        def insert(self, rank: int, seq: int, vec: tuple[int, ...], item: Any) -> None:
            super().insert(rank, seq, (*vec[1:], vec[0]), item)

    return with_parts(setup, stability=Shifted)
