"""What delays that vary cost: messages delivered in ten seconds, packets as they come beside such as fit a datagram.

    python benchmarks/jitter.py [live simulated] [--seconds 10] [--out benchmarks/results/jitter.json]

Four members at an MTU of 1500, each sends 200 messages of 1 kB a second, T = 1 s as outside of loopback.  Each datagram
is late by 2 +- 2, 10 +- 10 or 50 +- 50 ms, evenly spread, drawn for each receiver; none is lost.  Live: members are
processes of this script in network namespaces, joined by a switch of our own (root); simulated: links of that delay.
Delivered is what the slowest member had when the time was over.  Prints one JSON object; exit code 1 where trains
deliver less than 0.9 of what packets of one datagram do.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from here import here

import ordercast
from ordercast.lab.namespaces import INTERFACE, Host
from ordercast.lab.switch import switch
from ordercast.live import lifeline
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.types import Batch

DELAYS_MS = (2, 10, 50)
MTU, DATAGRAM_BYTES, PACKET_BYTES = 1_500, 1_472, 65_000
MEMBERS, RATE, SIZE, TIMEOUT_MS = 4, 200, 1_000, 1_000
LEAST = 0.9
PORT = 7400
START_S = 20.0  # for all members to be in one view


def compared(kind: str, delay_ms: int, trains: dict[str, Any], single: dict[str, Any]) -> dict[str, Any]:
    share = round(trains["delivered"] / max(1, single["delivered"]), 3)
    row = {"kind": kind, "delay_ms": f"{delay_ms} +- {delay_ms}", "trains": trains, "single": single, "share": share}
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


# ------------------------------------------------------------------------------------------------------------ simulated


def simulated(seconds: float) -> list[dict[str, Any]]:
    return [
        compared("simulated", ms, simulate(ms, PACKET_BYTES, seconds), simulate(ms, DATAGRAM_BYTES, seconds))
        for ms in DELAYS_MS
    ]


def simulate(delay_ms: int, packet_bytes: int, seconds: float) -> dict[str, Any]:
    start_ms = 1_000.0
    scenario = Scenario(
        protocol="totem",
        members=MEMBERS,
        messages=round(MEMBERS * RATE * seconds),
        sizes=(SIZE,),
        load=Load(regime="periodic", rate=float(RATE), start_ms=start_ms),
        nets=(Net(model="links", delay=Delay("uniform", high_us=2_000.0 * delay_ms)),),
        datagram_bytes=DATAGRAM_BYTES,
        packet_bytes=packet_bytes,
        timeout_ms=float(TIMEOUT_MS),
        limit_ms=start_ms + 1_000 * seconds,
    )
    outcome = run(scenario, level="deliver")
    rows = outcome.trace.rows
    delivered = [sum(r.count for r in rows if r.kind == Kind.DELIVER and r.member == me) for me in scenario.ids]
    views = max(sum(r.kind == Kind.VIEW and r.member == me for r in rows) for me in scenario.ids)
    return {
        "sent": outcome.messages, "delivered": min(delivered), "view_changes": views - 1,
        "datagrams": outcome.transmitted, "trains_lost": outcome.trains_lost,
    }  # fmt: skip


# ----------------------------------------------------------------------------------------------------------------- live


def live(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for ms in DELAYS_MS:
        with switch(MEMBERS, MTU, 0.0, 2_000.0 * ms) as hosts:
            rows.append(compared("live", ms, group(hosts, 0, seconds), group(hosts, DATAGRAM_BYTES, seconds)))
    return rows


def group(hosts: list[Host], packet_bytes: int, seconds: float) -> dict[str, Any]:
    """One group, of one process in each host."""
    members = {me: f"{host.address}:{PORT}" for me, host in enumerate(hosts, 1)}
    with contextlib.ExitStack() as stack:
        processes = []
        for me, host in enumerate(hosts, 1):
            task = {"me": me, "members": members, "packet_bytes": packet_bytes, "seconds": seconds}
            process = subprocess.Popen(
                [*host.enter, sys.executable, __file__, "--member", json.dumps(task)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=lifeline.environment(),
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                sys.exit(f"jitter: a member was not in a view of all within {START_S:g} s")
        start = time.monotonic() + 0.3
        for process in processes:
            assert process.stdin is not None
            print(start, file=process.stdin, flush=True)
        each = [json.loads(process.communicate(timeout=seconds + 60)[0]) for process in processes]
    return {
        "sent": sum(m["sent"] for m in each), "delivered": min(m["delivered"] for m in each),
        "view_changes": max(m["views"] for m in each) - 1, "datagrams": sum(m["datagrams"]["sent"] for m in each),
        "trains_lost": sum(m["datagrams"]["trains_lost"] for m in each),
        "lost_here": sum(m["datagrams"]["lost_here"] for m in each),
    }  # fmt: skip


async def member(task: dict[str, Any]) -> dict[str, Any]:
    found = {"sent": 0, "delivered": 0, "views": 0}
    joined = ordercast.join(
        "jitter", me=task["me"], members={int(k): at for k, at in task["members"].items()}, port=PORT - 1,
        insecure=True, interface=INTERFACE, packet_bytes=task["packet_bytes"] or None,
    )  # fmt: skip
    async with joined as group:

        async def read() -> None:
            async for event in group.batches():
                if type(event) is Batch:
                    found["delivered"] += event.count
                elif len(group.view.members) == MEMBERS or found["views"]:
                    found["views"] += 1

        reader = asyncio.create_task(read())
        async with asyncio.timeout(START_S):
            while not found["views"]:
                await asyncio.sleep(0.01)
        print("ready", flush=True)
        start = float(await asyncio.to_thread(sys.stdin.readline))
        for k in range(round(RATE * task["seconds"])):
            await asyncio.sleep(max(0.0, start + k / RATE - time.monotonic()))
            await group.send(bytes(SIZE))
            found["sent"] += 1
        await asyncio.sleep(max(0.0, start + task["seconds"] - time.monotonic()))
        result = found | {"datagrams": group.status()["datagrams"]}
        await asyncio.sleep(2.0)  # nobody leaves before all have counted
        reader.cancel()
    return result


# --------------------------------------------------------------------------------------------------------------- output


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", metavar="WHAT", default=["live", "simulated"])
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--out", type=Path, default=None)
    options.add_argument("--member", default="", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.member:
        lifeline.hold()
        print(json.dumps(asyncio.run(member(json.loads(given.member)))), flush=True)
        return 0
    measures = {"live": live, "simulated": simulated}
    unknown = [what for what in given.what if what not in measures]
    if unknown:
        sys.exit(f"{unknown[0]}: expected {' or '.join(measures)}")
    result: dict[str, Any] = here()
    if given.out and given.out.exists():
        result = json.loads(given.out.read_text()) | result  # what is not asked for now stays
    for what in given.what:
        result[what] = measures[what](given.seconds)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
    return 0 if all(row["share"] >= LEAST for what in given.what for row in result[what]) else 1


if __name__ == "__main__":
    sys.exit(main())
