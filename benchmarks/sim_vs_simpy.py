"""How fast the simulator is: datagrams received per second of computing, beside a SimPy program.

One simulated token_site group with its whole stack at 1000 messages a second, tracing off; and a SimPy program that
receives the same datagrams at the same times and does nothing with them: one process and one Store per member, and a
network that puts each datagram, an event of its own, into its receiver's Store at its time.  Both run in turn, several
times, in one process, timed by its own processor time.  Prints one JSON object: the median rates, the median of the
rounds' ratios (the two runs of a round share what the machine was doing), and the functions with the largest shares of
our time (sampled).

    python benchmarks/sim_vs_simpy.py [--protocol token_site] [--members 5] [--messages 2000] [--rounds 9]
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections import Counter
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

from here import need

import ordercast
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import World

HOME = str(Path(ordercast.__file__).parent) + "/"
SAMPLE_S = 0.001


def arrivals(scenario: Scenario) -> list[tuple[int, int]]:
    """(time, member) of every datagram the run receives."""
    world = World(scenario, level="off")
    out: list[tuple[int, int]] = []
    receive = world.carrier.arrive_all

    def listen(hosts: tuple[Any, ...], datagram: Any) -> None:
        out.extend((world.schedule.time, host.id) for host in hosts)
        receive(hosts, datagram)

    world.carrier.arrive_all = listen
    outcome = world.run()
    assert len(out) == outcome.datagrams
    return out


def ours(scenario: Scenario) -> tuple[int, float]:
    """Datagrams received, seconds of processor time."""
    world = World(scenario, level="off")
    began = time.process_time()
    outcome = world.run()
    return outcome.datagrams, time.process_time() - began


def theirs(datagrams: list[tuple[int, int]], members: int) -> tuple[int, float]:
    """The same datagrams at the same times in SimPy."""
    import simpy

    env = simpy.Environment()
    stores = {member: simpy.Store(env) for member in range(1, members + 1)}
    received = dict.fromkeys(stores, 0)

    def member(id: int) -> Any:
        store = stores[id]
        while True:
            yield store.get()
            received[id] += 1

    def network() -> Any:
        for at, to in datagrams:
            yield env.timeout(at - env.now)
            stores[to].put(at)

    for id in stores:
        env.process(member(id))
    env.process(network())
    began = time.process_time()
    env.run()
    took = time.process_time() - began
    assert sum(received.values()) == len(datagrams)
    return len(datagrams), took


def profile(scenario: Scenario) -> dict[str, float]:
    """The five functions in which the processor was found most often, in percent."""
    found: Counter[str] = Counter()

    def look(number: int, frame: FrameType | None) -> None:
        if frame is not None:
            place = frame.f_code.co_filename.removeprefix(HOME)
            found[f"{place}:{frame.f_code.co_qualname}"] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    try:
        for _ in range(3):
            ours(scenario)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    total = sum(found.values()) or 1
    return {name: round(100 * hits / total, 1) for name, hits in found.most_common(5)}


def main() -> None:
    parser = argparse.ArgumentParser(description="The simulator's speed beside a SimPy program.")
    parser.add_argument("--protocol", default="token_site")
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second, of all members together")
    options = parser.parse_args()
    need("simpy")
    load = Load(rate=options.rate / options.members)
    scenario = Scenario(
        protocol=options.protocol, members=options.members, messages=options.messages, seed=7, load=load
    )
    datagrams = arrivals(scenario)
    rates: dict[str, list[float]] = {"ordercast": [], "simpy": []}
    for _ in range(options.rounds):
        for name, (received, took) in (("ordercast", ours(scenario)), ("simpy", theirs(datagrams, options.members))):
            rates[name].append(received / took)
    ratios = [a / b for a, b in zip(rates["ordercast"], rates["simpy"], strict=True)]
    result = {
        "protocol": options.protocol,
        "members": options.members,
        "messages": options.messages,
        "datagrams": len(datagrams),
        "messages_per_s": options.rate,
        "ordercast_datagrams_per_s": round(median(rates["ordercast"])),
        "simpy_datagrams_per_s": round(median(rates["simpy"])),
        "ratio": round(median(ratios), 3),
        "ratios_by_round": [round(ratio, 3) for ratio in ratios],
        "profile_percent": profile(scenario),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
