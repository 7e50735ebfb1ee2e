"""Variants of ABCAST and TOMP: the literal readings of their paper, the traps of stamps and flushes, plain blunders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs
from tests.mutants.parts import stamping
from tests.mutants.registry import mutant

from ordercast.contract import Action, Body, Event, Flush, Received, Setup
from ordercast.protocols.tomp import layer
from ordercast.protocols.tomp.closing import Mid, Part
from ordercast.protocols.tomp.layer import Ack, Acks, Stamping
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes
from ordercast.stack import Stack
from ordercast.types import Frame, MemberId, Nanoseconds

AREA = "stamps"


def with_parts(book: type[Book] = Book, votes: type[Votes] = Votes) -> type[Stamping]:
    """The core with another queue, or other votes, in every view."""

    class Patched(Stamping):
        def _reset(self, members: tuple[MemberId, ...]) -> None:
            super()._reset(members)
            self.book = book(self.me, len(members))

        def _carry(self, frame: Frame) -> list[Action]:
            out = super()._carry(frame)
            self.votes[self.n] = votes(self.members)
            return out

    return Patched


# ---------------------------------------------------------------------------------------------------------- the errata


class NoJump(Book):
    """E1: the clock counts receptions only."""

    def decide(self, rank: int, n: int, final: Stamp) -> None:
        clock = self.clock
        super().decide(rank, n, final)
        self.clock = clock


@mutant("e1_no_jump", "tomp", AREA, "the clock does not jump to a final stamp (E1)")
def e1_no_jump(setup: Setup) -> Stack:
    return stamping(setup, with_parts(book=NoJump))


@mutant("e1_no_jump_abcast", "abcast", AREA, "the clock does not jump to a final stamp (E1)", scenario="light_load")
def e1_no_jump_abcast(setup: Setup) -> Stack:
    return stamping(setup, with_parts(book=NoJump), anticipate=False)


@mutant("e2_over_all", "tomp", AREA, "a bound is the greatest stamp anybody gives next, whoever received what (E2)")
def e2_over_all(setup: Setup) -> Stack:
    class OverAll(Votes):
        __slots__ = ()

        def add(self, host: MemberId, number: int, next_mid: Sequence[int]) -> bool:
            told = max([*self.max_next_ts[:1], (number + 1, host)])
            done = super().add(host, number, next_mid)
            self.max_next_ts = [told] * len(next_mid)
            return done

    return stamping(setup, with_parts(votes=OverAll))


@mutant("e2_greatest_id", "tomp", AREA, "a validation names the greatest id expected next, not the least (E2)")
def e2_greatest_id(setup: Setup) -> Stack:
    class Greatest(Votes):
        __slots__ = ()

        def add(self, host: MemberId, number: int, next_mid: Sequence[int]) -> bool:
            return super().add(host, number, [-mid for mid in next_mid])

    class Negated(with_parts(votes=Greatest)):  # type: ignore[misc]
        def _vote(self, host: MemberId, ack: Ack) -> None:
            count = len(self.finals)
            super()._vote(host, ack)
            self.finals[count:] = [
                structs.replace(final, min_next_mid=tuple(max(1, -mid - 1) for mid in final.min_next_mid))
                for final in self.finals[count:]
            ]

    return stamping(setup, Negated)


# -------------------------------------------------------------------------------------------------------- stamps, votes


@mutant("stamp_one_more", "tomp", AREA, "the bound of the frame that is expected next counts one frame too many")
def stamp_one_more(setup: Setup) -> Stack:
    class OneMore(Book):
        def anticipate(self, min_next_mid: Sequence[int], max_next_ts: Sequence[Stamp]) -> bool:
            return super().anticipate(min_next_mid, [(number + 1, host) for number, host in max_next_ts])

    return stamping(setup, with_parts(book=OneMore))


@mutant("stamp_old_snapshot", "tomp", AREA, "an answer carries the ids expected before the frame, with its newer clock")
def stamp_old_snapshot(setup: Setup) -> Stack:
    class Old(Stamping):
        def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
            before, sender = tuple(self.book.next_mid), event.sender
            out = super()._receive(now, event)
            if self.acks.get(sender) and before != tuple(self.book.next_mid):
                self.acks[sender][-1] = structs.replace(self.acks[sender][-1], next_mid=before)
            return out

    return stamping(setup, Old)


@mutant("stamp_without_the_last", "abcast", AREA, "a source decides when one answer is still missing")
def stamp_without_the_last(setup: Setup) -> Stack:
    class Hasty(Votes):
        __slots__ = ()

        def add(self, host: MemberId, number: int, next_mid: Sequence[int]) -> bool:
            done = super().add(host, number, next_mid)
            return len(self.missing) == 1 or (done and number == self.final[0] == 1 and not self.missing)

    class Forgiving(with_parts(votes=Hasty)):  # type: ignore[misc]
        def _acknowledged(self, source: MemberId, body: Body) -> list[Action]:
            known = tuple(ack for ack in body.acks if ack.n in self.votes)  # type: ignore[attr-defined]
            return super()._acknowledged(source, Acks(known)) if known else []  # type: ignore[no-any-return]

    return stamping(setup, Forgiving, anticipate=False)


@mutant("stamp_least_is_final", "abcast", AREA, "the least of the proposals is the final stamp")
def stamp_least_is_final(setup: Setup) -> Stack:
    class Least(Votes):
        __slots__ = ()

        def add(self, host: MemberId, number: int, next_mid: Sequence[int]) -> bool:
            before = self.final
            done = super().add(host, number, next_mid)
            self.final = min(before, (number, host)) if before[0] else (number, host)
            return done

    class Believes(with_parts(votes=Least)):  # type: ignore[misc]
        def _disbelief(self, sender: MemberId, rank: int, final: Any) -> str:
            return ""

    return stamping(setup, Believes, anticipate=False)


@mutant("stamp_never_waits", "tomp", AREA, "a decided frame is delivered though an undecided one may come before it")
def stamp_never_waits(setup: Setup) -> Stack:
    class Eager(Book):
        def deliverable(self) -> list[tuple[Stamp, int, int]]:
            out, self.ready = sorted(self.ready), []
            return out

    return stamping(setup, with_parts(book=Eager))


@mutant("stamp_ties_by_number", "abcast", AREA, "stamps are compared by their numbers alone")
def stamp_ties_by_number(setup: Setup) -> Stack:
    class Numbers(Book):
        def deliverable(self) -> list[tuple[Stamp, int, int]]:
            least = min(self.heads)[0]
            out = sorted((entry for entry in self.ready if entry[0][0] <= least), key=lambda e: (e[0][0], e[1], e[2]))
            self.ready = sorted(entry for entry in self.ready if entry[0][0] > least)
            return out

    return stamping(setup, with_parts(book=Numbers), anticipate=False)


@mutant("stamp_second_only", "tomp", AREA, "after a decision the sender's next frame holds nobody up")
def stamp_second_only(setup: Setup) -> Stack:
    class Forgets(Book):
        def decide(self, rank: int, n: int, final: Stamp) -> None:
            super().decide(rank, n, final)
            self.heads[rank] = (2**64, 0)

    return stamping(setup, with_parts(book=Forgets))


# ---------------------------------------------------------------------------------------------------- the end of a view


class OtherKeys(Stamping):
    """With another rule for what is undecided."""

    def keys(
        self,
        parts: Mapping[int, Part],
        messages: Iterable[Mid],
        finals: Mapping[Mid, Stamp],
        before: Mapping[int, Stamp],
    ) -> dict[Mid, Stamp]:
        raise NotImplementedError

    def _flush(self, event: Flush) -> list[Action]:
        self.rule, layer.flush_keys = layer.flush_keys, self.keys
        try:
            return super()._flush(event)
        finally:
            layer.flush_keys = self.rule


@mutant("flush_by_own_stamps", "tomp", AREA, "what is undecided goes by this member's own stamps", scenario="lacked")
def flush_by_own_stamps(setup: Setup) -> Stack:
    class Own(OtherKeys):
        def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
            return self.rule({p: part for p, part in parts.items() if p == self.me}, messages, finals, before)

    return stamping(setup, Own)


class NoFloor(OtherKeys):
    """The keys of one sender's frames need not ascend.  Under TOMP anticipation does what the floor does: whoever has
    the validation of one frame has raised its sender's next above it."""

    def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
        return {mid: self.rule(parts, [mid], finals, {})[mid] for mid in messages}


@mutant("flush_no_floor", "abcast", AREA, "the keys of one sender's frames need not ascend", scenario="floor")
def flush_no_floor(setup: Setup) -> Stack:
    return stamping(setup, NoFloor, anticipate=False)


@mutant(
    "flush_finals_forgotten",
    "tomp",
    AREA,
    "a validation that came with the exchange counts for nothing",
    scenario="late_validation",
)
def flush_finals_forgotten(setup: Setup) -> Stack:
    class Deaf(Stamping):
        def _flush(self, event: Flush) -> list[Action]:
            self.told = {}
            return super()._flush(event)

    return stamping(setup, Deaf)


@mutant(
    "flush_drops_undecided", "tomp", AREA, "undecided frames of the departed are discarded", scenario="late_validation"
)
def flush_drops_undecided(setup: Setup) -> Stack:
    class Drops(OtherKeys):
        def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
            found = self.rule(parts, messages, finals, before)
            decided = {(self.members[rank], n) for _, rank, n in self.book.ready}  # not what came with the exchange
            return {mid: key for mid, key in found.items() if mid[0] not in self.gone or mid in decided}

    return stamping(setup, Drops)


@mutant(
    "flush_lacked_are_first", "tomp", AREA, "who had not received a frame proposes nothing for it", scenario="lacked"
)
def flush_lacked_are_first(setup: Setup) -> Stack:
    class Silent(OtherKeys):
        def keys(self, parts: Any, messages: Any, finals: Any, before: Any) -> dict[Mid, Stamp]:
            return self.rule({p: Part(q.base, q.stamps, ()) for p, q in parts.items()}, messages, finals, before)

    return stamping(setup, Silent)


@mutant(
    "flush_bare_proposals",
    "tomp",
    AREA,
    "a flush goes by the bare proposals, not by the anticipated stamps",
    scenario="base",
)
def flush_bare_proposals(setup: Setup) -> Stack:
    class Bare(Book):
        def listed(self) -> list[tuple[int, int, Stamp]]:
            return [(rank, n, (number, self.me)) for rank, line in enumerate(self.lines)
                    for n, number in line.numbers.items()]  # fmt: skip

    return stamping(setup, with_parts(book=Bare))


class BaseIsTheClock(Book):
    """Anticipated stamps do not count."""

    def base(self) -> int:
        return self.clock


@mutant(
    "flush_base_is_the_clock", "tomp", AREA, "the base of a flush does not count anticipated stamps", scenario="base"
)
def flush_base_is_the_clock(setup: Setup) -> Stack:
    return stamping(setup, with_parts(book=BaseIsTheClock))


@mutant("flush_base_unguarded", "tomp", AREA, "as before, and keys of one sender need not ascend", scenario="base")
def flush_base_unguarded(setup: Setup) -> Stack:
    class Both(with_parts(book=BaseIsTheClock), NoFloor):  # type: ignore[misc]
        pass

    return stamping(setup, Both)


@mutant("flush_base_is_the_queue", "tomp", AREA, "the base of a flush counts only what is undecided", scenario="lacked")
def flush_base_is_the_queue(setup: Setup) -> Stack:
    class Queue(Book):
        def base(self) -> int:
            return max([0, *(stamp[0] for _, _, stamp in self.listed())])

    return stamping(setup, with_parts(book=Queue))


@mutant(
    "flush_acts_in_the_install",
    "tomp",
    AREA,
    "what is inserted during the install takes effect at once (F3)",
    scenario="late_validation",
)
def flush_acts_in_the_install(setup: Setup) -> Stack:
    class Acts(Stamping):
        def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
            out = super().up(now, event, child)
            self.frozen = False
            return out

    return stamping(setup, Acts)
