"""Small runs of the known-bad protocols, for all forms of the checkers."""

from __future__ import annotations

from tests.mutants import MUTANTS

from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.trace import Trace

# known-bad protocol -> the promise that names its fault
BAD = {
    "delivers_twice": "S2",
    "swaps_two": "S17",
    "loses_one": "S19",
    "invents_one": "S1",
    "breaks_fifo": "S15",
    "alters_payload": "S1",
    "silent_member": "L3",
    "canary": "S2",
}


def trace_of(name: str) -> Trace:
    """A short, faultless run of the variant; nothing named: of the sound protocol."""
    scenario = Scenario(
        protocol="token_site", members=3, messages=24, seed=7, load=Load(rate=400.0), heal_ms=80.0, closing=3
    )
    outcome = run(scenario, level="full", maker=MUTANTS[name].maker if name else None)
    outcome.trace.header.run = name or "sound"
    return outcome.trace
