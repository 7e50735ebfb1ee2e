"""Quasi order: tags used twice, reports that forget."""

from __future__ import annotations

from tests.mutants.registry import mutant

from ordercast.contract import Action, Setup
from ordercast.framing import Framing
from ordercast.protocols.dpg.layer import Dpg
from ordercast.protocols.dpg.site import Site, Telling
from ordercast.stack import Stack, chain
from ordercast.types import Nanoseconds


def _stack(layer: Dpg) -> Stack:
    return chain(Framing(views=False), layer)


class _Again(Dpg):
    def _return_if_absent(self, now: Nanoseconds) -> list[Action]:
        out = super()._return_if_absent(now)
        if out:
            self.counter = 0
        return out


@mutant("dpg_tags_again", "dpg", "quasi", "uses its tags again after an absence", scenario="dpg_returns")
def tags_again(setup: Setup) -> Stack:
    return _stack(_Again(setup))


class _Forgetful(Site):
    def make_report(self, clock: float, bodies: int = 2, most: int = 10**9) -> Telling:
        told = super().make_report(clock, bodies, most)
        left = {tag for tag in told.vertices if tag not in self.done}
        arcs = tuple(arc for arc in told.arcs if arc[0] in left and arc[1] in left)
        return Telling(told.undelivered, arcs, told.undelivered, told.l_deliv, told.lm, told.rm)


class _ForgetfulSite(Dpg):
    def _reset(self) -> None:
        super()._reset()
        self.site.__class__ = _Forgetful


@mutant("dpg_reports_forget", "dpg", "quasi", "what was delivered leaves its reports at once", scenario="dpg_deaf")
def reports_forget(setup: Setup) -> Stack:
    return _stack(_ForgetfulSite(setup))
