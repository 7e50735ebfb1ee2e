"""Figure 1 of the hybrid paper, simulated: `python -m tests.hybrid.figures [MESSAGES]` prints its table (minutes).

30 processes send 10 messages a second each, quasi-periodically; every way takes D, with a deviation of 1 %.  It shows
the mean time until the last process has delivered a message.  T is so long that no null is due.
"""

from __future__ import annotations

import sys
from typing import Any

from ordercast.sim.law import Delay
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

RATE, T_MS = 10.0, 10_000.0
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "token at once": ("token_site", {}),
    "symmetric, rate-synchronised": ("symmetric", {}),
    "symmetric, Lamport": ("symmetric", {"numbers": "lamport"}),
}


def latency_ms(variant: str, way_ms: float, n: int = 30, messages: int = 300, seed: int = 1) -> float:
    """The mean, without the first third, in which clocks come together, and the last tenth."""
    protocol, options = VARIANTS[variant]
    scale = 0.01 * way_ms * 1000 / 8**0.5  # chi-square of four degrees has the variance 8
    delay = Delay("chi_square", low_us=way_ms * 1000 - 4 * scale, degrees=4, scale_us=scale)
    scenario = Scenario(
        protocol=protocol, options=options, members=n, messages=messages, seed=seed, timeout_ms=T_MS,
        load=Load(regime="quasi", rate=RATE, start_ms=2 * T_MS), limit_ms=20 * T_MS,
        nets=(Net(model="links", delay=delay, mbit=0.0, fifo=True),),
    )  # fmt: skip
    sent: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}
    for row in run(scenario, level="deliver").trace.rows:
        for counter in range(row.counter or 0, (row.counter or 0) + (row.count or 0)):
            key = (row.sender or 0, counter)
            if row.kind == Kind.SUBMIT:
                sent[key] = row.time_ns
            elif row.kind == Kind.DELIVER:
                last[key] = max(row.time_ns, last.get(key, 0))
    begin, span = min(sent.values()), max(sent.values()) - min(sent.values())
    waits = [last[key] - at for key, at in sent.items() if 0.33 <= (at - begin) / span <= 0.9]
    return sum(waits) / len(waits) / 1e6


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    print("| D | 2 D | D + t | " + " | ".join(VARIANTS) + " |\n|---|---|---|" + "---|" * len(VARIANTS))
    for way in (20, 50, 100, 200):
        got = " | ".join(f"{latency_ms(variant, way, messages=count):.1f}" for variant in VARIANTS)
        print(f"| {way} | {2 * way} | {way + 1000 / RATE:.0f} | {got} |", flush=True)
