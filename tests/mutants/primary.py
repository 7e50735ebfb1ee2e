"""Variants of the record of primary views, under the ring and under the layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace
from tests.mutants.parts import causal, totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Setup
from ordercast.membership.primary import Primary, Record, Ruling, holds, newest
from ordercast.stack import Stack
from ordercast.transis.link import Link

AREA = "primary"


def both(name: str, breaks: str, scenario: str) -> Callable[[type[Primary]], type[Primary]]:
    """The variant under the ring, and under the layer."""

    def enter(kind: type[Primary]) -> type[Primary]:
        class Other(Link):
            def __init__(self, setup: Setup) -> None:
                super().__init__(setup)
                if self.membership.primary is not None:
                    self.membership.primary.__class__ = kind

        @mutant(f"ring_{name}", "totem", AREA, breaks, scenario=f"{scenario}_ring")
        def of_ring(setup: Setup) -> Stack:
            return totem(setup, primary=kind) if setup.partition == "primary-majority" else totem(setup)

        @mutant(f"layer_{name}", "causal", AREA, breaks, scenario=f"{scenario}_layer")
        def of_layer(setup: Setup) -> Stack:
            return causal(setup, Other)

        return kind

    return enter


@both("primary_by_the_old_view", "half of the last primary view is enough, whatever may have come of it (F8)", "f8")
class OldView(Primary):
    def _rule(self, records: Mapping[int, Record]) -> Ruling:
        last = newest(records.values())
        counting = sum(1 << rank for rank, record in records.items() if record.last is not None)
        held = last is not None and holds(counting, last.bits)
        return Ruling(held or len(records) == len(self.configured), last, False)


@both("primary_pending_late", "a token that says finished goes on before that is stored", "finished_unstored")
class Late(Primary):
    @property
    def ready(self) -> bool:
        return True


@both("primary_left_forgotten", "who leaves an attempt unfinished does not tell", "left_unfinished")
class Forgets(Primary):
    def _change(self, record: Record) -> list[Action]:
        return super()._change(replace(record, left=()))


@both("primary_lost_record_counts", "a member without a record counts as if it had one", "record_lost")
class Counts(Primary):
    def _rule(self, records: Mapping[int, Record]) -> Ruling:
        last = newest(records.values())
        return super()._rule({rank: r if r.last is not None else Record(last) for rank, r in records.items()})
