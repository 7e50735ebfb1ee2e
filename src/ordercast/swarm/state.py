"""Seeds with replicated state: the same group, load and faults, and calls on a ledger beside the messages."""

from __future__ import annotations

import random

from ordercast.sim.scenario import Scenario

LEAST, MOST = 10, 120  # calls


def with_state(scenario: Scenario) -> Scenario:
    draw = random.Random(f"swarm/{scenario.seed}/state")
    calls = round(LEAST * (MOST / LEAST) ** draw.random())
    return scenario.changed(calls=calls, durable=draw.choice((0.0, 0.0, 0.5, 1.0)))
