"""Throughput and latency of one, two, three and four rings on the machines of the paper, simulated.

    python benchmarks/rings_of_the_paper.py [throughput latency] [--ms 500] [--seeds 1]

"Performance engineering of the Totem group communication system" (1998), figures 8, 11 and 12: nine Suns on one ring,
eight on two with a gateway, nine on three with two gateways, 1 kB messages, by the probability that a message crosses
to the next ring; and 40 processors on 1, 2 and 4 rings, 2000 messages/s, probability 0.6.  The cost of each step is
that of ``[hosts] model = "totem-paper"``; for each probability the best of some windows counts, as in the paper.  Until
the groups of all are known everything is forwarded, so the first 300 ms do not count.
Writes benchmarks/results/rings_of_the_paper.json and docs/img/rings_throughput.svg.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from here import here

from ordercast.pipeline import plots
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Hosts, Load, NamedGroup, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PLOT = ROOT / "benchmarks/results/rings_of_the_paper.json", ROOT / "docs/img/rings_throughput.svg"
SHAPES: dict[int, tuple[list[tuple[int, ...]], tuple[int, ...]]] = {  # rings, and who is a gateway without application
    1: ([tuple(range(1, 10))], ()),
    2: ([(1, 2, 3, 4, 9), (5, 6, 7, 8, 9)], (9,)),
    3: ([(1, 2, 3, 10), (4, 5, 6, 10, 11), (7, 8, 9, 11)], (10, 11)),
}
PUBLISHED = {1: 5364, 2: 7993, 3: 10086}  # messages/s at probability 0.1
PROBABILITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
WINDOWS = (7, 13)
BEGIN_MS, FORTY_MS = 300.0, 800.0  # forty slow machines take their time to find each other
ENDLESS = 10**6  # messages
HAND_OVER_MS = 0.175  # from a processor to its application, which takes nobody's time


def net(members: tuple[int, ...]) -> Net:
    return Net(members=members, mbit=100.0, delay=Delay("constant", mean_us=5.0), fifo=True)


def segments(rings: list[tuple[int, ...]], pure: tuple[int, ...], p: float) -> tuple[NamedGroup, ...]:
    """On a chain of rings, a group for each run of neighbours: a message crosses each gateway with probability p."""
    last, out = len(rings) - 1, []
    for first in range(last + 1):
        for end in range(first, last + 1):
            share = p ** (end - first) * (1 - p) ** ((first > 0) + (end < last))
            members = {member for ring in rings[first : end + 1] for member in ring} - set(pure)
            out.append(NamedGroup(name=f"rings{first + 1}to{end + 1}", members=tuple(sorted(members)), share=share))
    return tuple(out)


def loaded(rings: int, p: float, window: int, ms: float, seed: int) -> Scenario:
    members, pure = SHAPES[rings]
    several = rings > 1
    return Scenario(
        protocol="multiring" if several else "totem", members=max(map(max, members)), pure=pure, seed=seed,
        nets=tuple(net(each if several else ()) for each in members), sizes=(1000,), messages=ENDLESS,
        named_groups=segments(members, pure, p) if several else (), timeout_ms=1000.0, datagram_bytes=1800,
        options={"max_messages": window, "window_size": 2 * window * len(members[0])},
        hosts=Hosts(model="totem-paper", buffer_bytes=8192), load=Load(regime="saturate", window=64),
        limit_ms=BEGIN_MS + ms,
    )  # fmt: skip


def messages_per_second(scenario: Scenario) -> float:
    """New messages that came back to their senders."""
    begin = BEGIN_MS * 1e6
    own = (row for row in run(scenario).trace.rows if row.kind == Kind.DELIVER and row.sender == row.member)
    return sum(row.count or 0 for row in own if row.time_ns >= begin) / (scenario.limit_ms - BEGIN_MS) * 1e3


def throughput(ms: float, seeds: int) -> dict[str, Any]:
    def best(rings: int, p: float, windows: tuple[int, ...]) -> dict[str, Any]:
        found = {}
        for window in windows:
            rates = [messages_per_second(loaded(rings, p, window, ms, seed)) for seed in range(1, seeds + 1)]
            found[window] = statistics.mean(rates)
        window = max(found, key=lambda w: found[w])
        print(f"{rings} rings, p {p:g}: {found[window]:.0f}/s, window {window}", file=sys.stderr, flush=True)
        return {"p": p, "msgs_s": round(found[window]), "window": window}

    single = best(1, 0.0, (13,))
    return {"1": [single], **{str(rings): [best(rings, p, WINDOWS) for p in PROBABILITIES] for rings in (2, 3)}}


# ------------------------------------------------------------------------------------------------------------- latency


def forty(rings: int, p: float, service: str, ms: float, seed: int) -> Scenario:
    """40 processors that send; on two rings a gateway joins them, on four a cycle of gateways.

    A message is for its own ring or, with probability p, for the next one too; on a cycle everything goes everywhere.
    """
    each = 40 // rings
    members = [tuple(range(k * each + 1, (k + 1) * each + 1)) for k in range(rings)]
    pure = tuple(range(41, 41 + (0 if rings == 1 else 1 if rings == 2 else rings)))
    joined = [list(ring) for ring in members]
    for k, gateway in enumerate(pure):
        joined[k].append(gateway)
        joined[(k + 1) % rings].append(gateway)
    groups = segments([tuple(ring) for ring in members], (), p) if rings == 2 else ()
    if rings == 4:
        groups = tuple(
            NamedGroup(name=f"ring{k + 1}", members=ring, share=1 - p) for k, ring in enumerate(members)
        ) + tuple(
            NamedGroup(
                name=f"rings{k + 1}and{(k + 1) % 4 + 1}",
                members=tuple(sorted({*ring, *members[(k + 1) % 4]})),
                share=p / 2,
            )
            for k, ring in enumerate(members)
        )
    return Scenario(
        protocol="multiring" if rings > 1 else "totem", members=40 + len(pure), pure=pure, seed=seed, service=service,
        nets=tuple(net(tuple(ring) if rings > 1 else ()) for ring in joined), sizes=(1000,), messages=ENDLESS,
        named_groups=groups, timeout_ms=1000.0, datagram_bytes=1800, hosts=Hosts(model="totem-paper"),
        load=Load(regime="poisson", rate=2000 / 40, start_ms=FORTY_MS), limit_ms=FORTY_MS + BEGIN_MS + ms,
    )  # fmt: skip


def latency(ms: float) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for service in ("agreed", "safe"):
        for rings in (1, 2, 4):
            rows = run(forty(rings, 0.6, service, ms, 1)).trace.rows
            settled = (FORTY_MS + BEGIN_MS) * 1e6
            calls = (row for row in rows if row.kind == Kind.SUBMIT and row.time_ns > settled)
            sent = {(row.member, row.counter): row.time_ns for row in calls}
            taken = [
                (row.time_ns - sent[row.sender, row.counter]) / 1e6 + HAND_OVER_MS
                for row in rows
                if row.kind == Kind.DELIVER and (row.sender, row.counter) in sent
            ]
            figures = {"mean_ms": round(statistics.mean(taken), 2), "deviation_ms": round(statistics.pstdev(taken), 2)}
            out.setdefault(service, {})[str(rings)] = figures
            print(f"{rings} rings, {service}: {figures}", file=sys.stderr, flush=True)
    return out


def plot(figures: dict[str, Any]) -> str:
    def paint(figure: Any) -> None:
        axes = figure.subplots()
        single = figures["1"][0]["msgs_s"]
        axes.axhline(single, color=plots.SOFT, linestyle="--", linewidth=1, label="one ring of nine")
        for rings, words in (("2", "two rings, one gateway"), ("3", "three rings, two gateways")):
            points = figures[rings]
            axes.plot([point["p"] for point in points], [point["msgs_s"] for point in points], marker="o", label=words)
        axes.plot(
            [0.1, 0.1, 0.1], list(PUBLISHED.values()), "x", color=plots.INK, markersize=8, label="published, p = 0.1"
        )
        axes.set(xlabel="probability that a message crosses to the next ring", ylabel="messages/s", ylim=(0, None))
        axes.legend()

    return plots._draw("rings-throughput", paint)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["throughput", "latency"])
    parser.add_argument("--ms", type=float, default=500.0, help="simulated, of each run")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    figures: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    figures["here"] = here()
    if "throughput" in arguments.what:
        figures["throughput"] = throughput(arguments.ms, arguments.seeds)
        PLOT.write_text(plot(figures["throughput"]) + "\n", encoding="utf-8")
    if "latency" in arguments.what:
        figures["latency"] = latency(arguments.ms)
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
