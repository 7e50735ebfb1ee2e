"""DPG on the machines of its paper, simulated: throughput, vertices, bytes of reports, violations, sites that toggle.

`python benchmarks/dpg_figures.py` prints the table of docs/protocols/dpg.md (some minutes); tests run parts of it.
Costs are fitted, so only ratios and shapes are evidence.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "src")]

from ordercast.contract import Note, Transmit  # noqa: E402
from ordercast.pipeline.halts import halts  # noqa: E402
from ordercast.sim.faults import Pause  # noqa: E402
from ordercast.sim.host import Host  # noqa: E402
from ordercast.sim.law import Delay  # noqa: E402
from ordercast.sim.scenario import Hosts, Load, Net, Scenario  # noqa: E402
from ordercast.sim.world import World  # noqa: E402
from ordercast.trace.columns import from_rows  # noqa: E402
from ordercast.trace.schema import Kind  # noqa: E402
from ordercast.verify.plain import quasi  # noqa: E402
from ordercast.verify.plain.model import Run  # noqa: E402
from ordercast.verify.quasi import Tally, bounds  # noqa: E402

START_S = 0.5  # load begins, after the cold start
OVERHEAD_BYTES = 66


class Figures(Struct):
    """Of one run, from a second after the load began."""

    rate: float  # messages a second and member that is there all the time
    vertices_50: int
    vertices_95: int
    report_bytes: float  # share
    report_frames: float
    misses: float  # share of datagrams lost at full buffers
    halted: float
    tally: Tally

    def words(self) -> str:
        low, high = bounds(self.tally.violating, self.tally.messages)
        return (
            f"{self.rate:.0f} messages/s, vertices {self.vertices_50} (p95 {self.vertices_95}), reports "
            f"{self.report_frames:.0%} of frames and {self.report_bytes:.1%} of bytes, misses {self.misses:.2%}, "
            f"halted {self.halted:.2%}; "
            f"{self.tally.violating} of {self.tally.messages} violate, {low:.2g} to {high:.2g}"
        )


def paper(
    offered: float, seconds: float, *, sites: int = 7, present: int = 0, toggle: tuple[int, ...] = (),
    period_s: float = 0.3, buffers: int = 20, seed: int = 1, **options: Any,
) -> Scenario:  # fmt: skip
    """Seven PCs on a 10 Mb/s LAN that do not hear themselves; `toggle` come and go, those beyond `present` are away."""
    present = present or sites
    end_ms = 1e3 * (START_S + seconds)
    away = [Pause(member=site, at_ms=0.0, for_ms=end_ms + 5e3) for site in range(present + 1, sites + 1)]
    for site in toggle:
        at = 1e3 * START_S + 100.0 + 37.0 * site
        while at + 1e3 * period_s < end_ms:
            away.append(Pause(member=site, at_ms=at, for_ms=1e3 * period_s))
            at += 2e3 * period_s
    senders = tuple(range(1, present + 1))
    return Scenario(
        protocol="dpg", members=sites, senders=senders, messages=int(offered * seconds), sizes=(1000,), seed=seed,
        options={"channel": "lan", "own": False, **options}, faults=tuple(away), timeout_ms=400.0,
        load=Load(regime="quasi", rate=offered / present, start_ms=1e3 * START_S),
        nets=(Net(delay=Delay("constant", mean_us=10.0), mbit=10.0, overhead_bytes=OVERHEAD_BYTES - 28),),
        hosts=Hosts(model="dpg-paper", buffer_packets=buffers), limit_ms=end_ms + 300.0,
        datagram_bytes=1472 if sites <= 17 else 1800,  # a message and what a large group adds fit into one
    )  # fmt: skip


def measured(scenario: Scenario) -> Figures:
    world = World(scenario, level="full")
    frames: Counter[str] = Counter()
    octets: Counter[str] = Counter()
    vertices: list[int] = []
    begin, end = int((START_S + 1) * 1e9), int(scenario.limit_ms * 1e6) - 300_000_000
    transmit, other = world.driver.transmit, world.driver._other_action

    def counting(host: Host, action: Transmit) -> None:
        kind = type(action.packet).__name__
        frames[kind] += 1
        octets[kind] += world.carrier.codec.size(action.packet) + OVERHEAD_BYTES
        transmit(host, action)

    def noting(host: Host, action: Any, kind: type) -> None:
        if kind is Note and action.name == "work" and world.schedule.time > begin:
            vertices.append(round(action.fields["units"] ** 0.5))
        other(host, action, kind)

    world.driver.transmit, world.driver._other_action = counting, noting  # type: ignore[method-assign]
    outcome = world.run()
    paused = {fault.named_members()[0] for fault in scenario.faults}
    steady = [site for site in scenario.ids if site not in paused]
    rows = outcome.trace.rows
    told = Counter(r.member for r in rows if r.kind == Kind.DELIVER and r.count and begin <= r.time_ns < end)
    halted, windows = halts(from_rows(rows), begin)
    vertices.sort()
    return Figures(
        rate=sum(told[site] for site in steady) / len(steady) / ((end - begin) / 1e9),
        vertices_50=vertices[len(vertices) // 2] if vertices else 0,
        vertices_95=vertices[len(vertices) * 95 // 100] if vertices else 0,
        report_bytes=octets["Report"] / max(1, octets.total()),
        report_frames=frames["Report"] / max(1, frames.total()),
        misses=outcome.drops["buffer"] / max(1, outcome.datagrams + outcome.drops["buffer"]),
        halted=halted / max(1, windows),
        tally=quasi.tally(Run(outcome.trace)),
    )


TABLE: dict[str, Scenario] = {
    "7 sites, 740 offered": paper(740, 30),
    "7 sites, 900 offered": paper(900, 6),
    "no marks while own messages have no place, deliv_cycle 120": paper(300, 8, marks="off", deliv_cycle=120),
    "no detector, deliv_cycle 120": paper(300, 8, marks="none", deliv_cycle=120),
    "the same as the first of these, deliv_cycle 200": paper(300, 8, marks="off", deliv_cycle=200),
    "two buffers, 500 offered": paper(500, 56, buffers=2),
    **{f"{present} of 7 present": paper(98 * present, 5, present=present) for present in range(6, 1, -1)},
    "1 of 7 toggles every 0.3 s, 640 offered": paper(640, 82, toggle=(7,)),
    "the same, members hear themselves": paper(640, 82, toggle=(7,), own=True),
    "3 of 7 toggle every 0.3 s": paper(600, 40, toggle=(5, 6, 7)),
    "17 sites, 700 offered": paper(700, 10, sites=17),
    "50 sites, 600 offered, deliv_cycle 60": paper(600, 5, sites=50, deliv_cycle=60),
}


def held() -> str:
    """What members hold at the end of a run, the tagger first."""
    from cores import memory

    found = memory("dpg")
    return "; ".join(f"after {k} messages {', '.join(map(str, found[k]))} bytes" for k in ("100000", "1000000"))


if __name__ == "__main__":
    if not sys.argv[1:] or "memory" in sys.argv[1:]:
        print(f"the tagger and four members: {held()}", flush=True)
    for name, scenario in TABLE.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            print(f"{name}: {measured(scenario).words()}", flush=True)
