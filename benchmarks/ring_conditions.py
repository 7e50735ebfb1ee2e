"""A group under conditions that users meet: idle, beside a busy process, with a reader or a member that stops, growing.

    python benchmarks/ring_conditions.py [idle hog slow stopped growth] [--protocol totem]
        [--out benchmarks/results/ring_conditions.json] [--plot docs/img/growth.svg] [--seconds 60]

idle    no messages: processor share of the busiest member; then one every 250 ms: latency into an idle ring
hog     a flood beside one endless loop per core at equal priority: view changes (there should be none)
slow    a flood, and one application that does not read for half of --seconds: memory of each member, then all drains
stopped the same with a member that is stopped (SIGSTOP) for half of the time: the others go on without it
growth  2, 4, 8, 16 and 32 members: ordered messages a second (1 kB, all send), latency at 500 messages a second of one;
        live, where all share this machine's processors, and simulated, where each has one of its own
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from here import here
from msgspec import structs

import ordercast
from ordercast import config as configuration
from ordercast import registry
from ordercast.config import GroupConfig
from ordercast.errors import OrdercastError
from ordercast.lab.bench import BenchPlan, bench, make_config
from ordercast.sim.scenario import Clocks, Cost, Hosts, Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.types import Batch, Service, View

MEMBERS = 4
PROTOCOL = "totem"  # --protocol
SIZES = (2, 4, 8, 16, 32)
MIB = 2**20
FIGURES = ("msgs_s", "mb_s", "cpu_us_per_msg", "cpu_percent", "p50_us", "p99_us", "view_changes", "datagrams_lost",
           "same_order")  # fmt: skip


LATENESS = """
import json, sys, time
late, end = [], time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    before = time.monotonic_ns()
    time.sleep(0.005)
    late.append((time.monotonic_ns() - before) / 1e3 - 5000)
late.sort()
print(json.dumps({"p50_us": round(late[len(late) // 2]), "p99_us": round(late[len(late) * 99 // 100]),
                  "most_us": round(late[-1])}))
"""  # how late a plain sleep ends on this machine, whatever we do


def idle(seconds: float) -> dict[str, Any]:
    nothing = bench(BenchPlan(protocol=PROTOCOL, size=100, senders=1, rate=0.01, seconds=seconds / 3))
    beside = subprocess.Popen([sys.executable, "-c", LATENESS, str(seconds)], stdout=subprocess.PIPE)
    figures = pick(bench(BenchPlan(protocol=PROTOCOL, size=100, senders=MEMBERS, rate=4.0, seconds=seconds)))
    lateness = json.loads(beside.communicate()[0])
    return figures | {"cpu_percent_without_messages": nothing["cpu_percent"], "lateness_of_a_sleep": lateness}


def hog(seconds: float) -> dict[str, Any]:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        return pick(bench(BenchPlan(protocol=PROTOCOL, size=1000, senders=MEMBERS, seconds=seconds))) | {
            "hogs": len(hogs)
        }
    finally:
        for process in hogs:
            process.kill()
            process.wait()


def growth(seconds: float) -> dict[str, Any]:
    """Live and simulated; a size that this machine does not carry says why."""
    live: list[dict[str, Any]] = []
    for members in SIZES:
        try:
            flood = pick(bench(BenchPlan(members=members, size=1000, senders=members, seconds=seconds / 10, ahead=256)))
            calm = bench(BenchPlan(members=members, size=1000, senders=1, rate=500.0, seconds=seconds / 10))
            row = {**flood, "p50_us": calm["p50_us"], "p99_us": calm["p99_us"]}
        except OrdercastError as why:
            row = {"error": str(why)}
        live.append({"members": members, **row})
        print(f"live: {live[-1]}", file=sys.stderr, flush=True)
    return {"live": live, "simulated": [simulated(members) for members in SIZES]}


def simulated(members: int) -> dict[str, Any]:
    """One processor per member (25 us a datagram, 2 us a kB each way), a network of 1 Gbit/s, datagrams of 9 kB."""
    each = Cost(us=25.0, per_kb_us=2.0)
    hosts = Hosts(receive=each, transmit=each)
    common: dict[str, Any] = {
        "protocol": "totem", "members": members, "sizes": (1000,), "datagram_bytes": 8972, "hosts": hosts,
        "clocks": Clocks(skew_ms=0.0), "timeout_ms": 200.0,
    }  # fmt: skip
    flood = run(Scenario(messages=20_000, load=Load(regime="saturate", window=128), **common), level="deliver")
    calm = run(Scenario(messages=500, senders=(members,), load=Load(rate=500.0), **common), level="deliver")
    submitted = {row.counter: row.time_ns for row in calm.trace.rows if row.kind == Kind.SUBMIT}
    took = sorted(row.time_ns - submitted[row.counter] for row in calm.trace.rows if row.kind == Kind.DELIVER)
    times = [row.time_ns for row in flood.trace.rows if row.kind == Kind.DELIVER]
    return {
        "members": members,
        "msgs_s": round(20_000 / ((max(times) - min(times)) / 1e9)),
        "p50_us": round(took[len(took) // 2] / 1e3, 1),
        "p99_us": round(took[len(took) * 99 // 100] / 1e3, 1),
    }


def pick(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: figures[name] for name in FIGURES}


# ------------------------------------------------------------------------------------------------- a reader that stops


def stopped(seconds: float) -> dict[str, Any]:
    """Members are processes of this script; the last one is stopped for the first half of the time."""
    return slow(seconds, reads=True)


def slow(seconds: float, reads: bool = False) -> dict[str, Any]:
    """Members are processes of this script; the last one does not read for the first half of the time."""
    with tempfile.TemporaryDirectory() as folder:
        plan = BenchPlan(protocol=PROTOCOL, members=MEMBERS, insecure=True)
        return flood(make_config(plan, Path(folder), []), Path(folder), seconds, seconds / 2, reads)


def flood(config: GroupConfig, folder: Path, seconds: float, pause: float, reads: bool) -> dict[str, Any]:
    """Everybody sends for so long as fast as the group takes it; see slow() and stopped()."""
    file = folder / "group.toml"
    file.write_text(configuration.dump(structs.replace(config, state_dir=str(folder / "state"))))
    task = {"config": str(file), "pause": pause, "seconds": seconds, "reads": reads}
    processes = [
        subprocess.Popen([sys.executable, __file__, "--member", json.dumps(task | {"me": me})], stdout=subprocess.PIPE)
        for me in config.ids
    ]
    if reads and pause:
        time.sleep(4)  # all are there and under load
        processes[-1].send_signal(signal.SIGSTOP)
        time.sleep(pause)
        processes[-1].send_signal(signal.SIGCONT)
    each = [json.loads(process.communicate(timeout=seconds + 120)[0]) for process in processes]
    readers = [m for me, m in zip(config.ids, each, strict=True) if me not in config.pure]
    return {
        "pause_s": pause,
        "memory_mib": {"before": [m["before"] for m in each], "most": [m["most"] for m in each]},
        "sent_during_pause": sum(m["sent_in_pause"] for m in each),
        "messages": readers[0]["delivered"],
        "delivered_in_pause": [m["delivered_in_pause"] for m in each],
        "view_changes": max(m["views"] for m in each),
        "same_order": len({(m["order"], m["delivered"]) for m in readers}) == 1
        and readers[0]["delivered"] == sum(m["sent"] for m in each),
    }


async def member(task: dict[str, Any]) -> dict[str, Any]:
    config = configuration.load(task["config"], me := task["me"])
    slow_one = me == config.ids[-1] and not task["reads"]
    lines: dict[int, Any] = {}  # of each sender: the one order of fifo and causal
    found = {"delivered": 0, "sent": 0, "sent_in_pause": 0, "delivered_in_pause": 0, "most": 0.0, "views": 0, "own": 0}
    ordered = registry.get(config.protocol).default_service not in (Service.FIFO, Service.CAUSAL)
    async with ordercast.join(me=me, config=config) as group:
        while group.view is None or len(group.view.members) < len(config.ids):
            await asyncio.sleep(0.01)
        began = time.monotonic()
        found["before"] = resident()
        ends = began + task["seconds"]

        async def send() -> None:
            payloads = [bytes(1000)] * 50
            while time.monotonic() < ends and me not in config.pure:
                await group.send_batch(payloads)
                found["sent"] += len(payloads)
                if began + 5 < time.monotonic() < began + task["pause"]:
                    found["sent_in_pause"] += len(payloads)

        async def watch() -> None:
            while True:
                found["most"] = max(found["most"], resident())
                await asyncio.sleep(0.1)

        async def read() -> None:
            if slow_one:
                await asyncio.sleep(task["pause"])
            async for batch in group.batches():
                found["views"] += type(batch) is View and began < time.monotonic() < ends
                if type(batch) is Batch:
                    line = lines.setdefault(0 if ordered else batch.sender, hashlib.blake2b(digest_size=16))
                    line.update(f"{batch.sender} {batch.counter} {batch.count};".encode())
                    found["delivered"] += batch.count
                    found["own"] += batch.count * (batch.sender == me)
                    if began + 5 < time.monotonic() < began + task["pause"]:
                        found["delivered_in_pause"] += batch.count

        tasks = [asyncio.create_task(work) for work in (watch(), read())]
        await send()
        await asyncio.sleep(ends - time.monotonic())
        last = -1
        while last != found["delivered"] or found["own"] < found["sent"]:  # all is drained: nothing for two seconds
            last = found["delivered"]
            await asyncio.sleep(2)
        for each in tasks:
            each.cancel()
    return found | {"order": " ".join(line.hexdigest() for _, line in sorted(lines.items()))}


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MIB, 1)


# --------------------------------------------------------------------------------------------------------------- output


def plot(kinds: dict[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "ordercast"
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.5, 3.2), layout="constrained")
    words = {"live": "live, on two cores together", "simulated": "simulated, a processor each"}
    for kind, colour in (("live", "C0"), ("simulated", "C1")):
        rows = [row for row in kinds[kind] if "error" not in row]
        members = [row["members"] for row in rows]
        left.plot(members, [row["msgs_s"] / 1000 for row in rows], "o-", color=colour, label=words[kind])
        right.plot(members, [row["p50_us"] / 1000 for row in rows], "o-", color=colour, label=f"{kind}, median")
        right.plot(members, [row["p99_us"] / 1000 for row in rows], "o:", color=colour, label=f"{kind}, p99")
    left.set(title="Throughput, all send 1 kB", xlabel="members", ylabel="1000 messages/s")
    right.set(title="Latency at 500 messages/s of one", xlabel="members", ylabel="ms")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(SIZES, [str(n) for n in SIZES])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
        axes.set_ylim(top=axes.get_ylim()[1] * 8)  # room for the legend
        axes.legend(fontsize=8, loc="upper left", ncols=2 if axes is right else 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", metavar="WHAT", default=["idle", "hog", "slow", "growth"])
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--out", type=Path, default=None)
    options.add_argument("--plot", type=Path, default=None)
    options.add_argument("--protocol", default=PROTOCOL)
    options.add_argument("--member", default="", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.member:
        print(json.dumps(asyncio.run(member(json.loads(given.member)))))
        return
    globals()["PROTOCOL"] = given.protocol
    measures = {"idle": idle, "hog": hog, "slow": slow, "stopped": stopped, "growth": growth}
    unknown = [what for what in given.what if what not in measures]
    if unknown:
        sys.exit(f"{unknown[0]}: expected {', '.join(measures)}")
    result: dict[str, Any] = here()
    if given.out and given.out.exists():
        result = json.loads(given.out.read_text()) | result  # measures not asked for now stay
    for what in given.what:
        print(f"{what} ...", file=sys.stderr, flush=True)
        result[what] = measures[what](given.seconds)
    if given.plot and "growth" in result:
        plot(result["growth"], given.plot)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
