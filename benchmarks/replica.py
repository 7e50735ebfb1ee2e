"""Replicated objects on real processes: calls a second beside PySyncObj, a large state on its way, all killed.

    python benchmarks/replica.py calls [--seconds 3] [--reps 3] [--windows 2000,64,1] [--size 100] [--rival ""]
    python benchmarks/replica.py transfer [--mebibytes 256] [--rate 2000] [--reps 10] [--kill-donor]
    python benchmarks/replica.py killed [--times 20] [--folder DIR]

`calls`: three members, one of which calls `set` of a replicated dictionary and keeps so many calls under way; ours and
the rival's runs alternate.  Time is from call to answer at the caller, processor time that of all three processes.
`transfer`: two members hold a state and are called at a rate, the third, killed before, comes back; standstill is the
longest time without a step at one of the others.  `killed`: all members get `kill -9` at once while durable calls run;
after the restart every call that was answered must be there.  Prints one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from here import here, need

import ordercast
from ordercast.lab.bench import free_ports

MEMBERS = 3
KEYS = 1_000


# ------------------------------------------------------------------------------------------------------------ processes


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


class Child:
    """A process of this file in another role; it and we talk in JSON lines."""

    def __init__(self, role: str, **words: Any) -> None:
        command = [sys.executable, __file__, "--role", role, json.dumps(words)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a child ended: {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def rest(self) -> list[dict[str, Any]]:
        """All that it says until its end."""
        assert self.process.stdout is not None
        lines = [line for line in self.process.stdout.read().splitlines() if line.endswith("}")]
        self.process.wait()
        return [json.loads(line) for line in lines]

    def tell(self, **words: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


async def heard() -> dict[str, Any]:
    """The next word of whoever started us."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        os._exit(1)
    answer: dict[str, Any] = json.loads(line)
    return answer


def spent() -> float:
    """Processor seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def joined(words: dict[str, Any], objects: dict[str, Any], **more: Any) -> ordercast.Group:
    ports = words["ports"]
    members = {k: f"127.0.0.1:{port}" for k, port in enumerate(ports[1:], 1)}
    return ordercast.join(
        f"bench-{ports[0]}", me=words["me"], members=members, port=ports[0], insecure=True, objects=objects, **more
    )


# ---------------------------------------------------------------------------------------------------------------- calls


async def ordercast_calls(words: dict[str, Any]) -> None:
    table = ordercast.Dict[str, bytes]()
    async with joined(words, {"table": table}, at_least=MEMBERS):
        say(ready=True, calls=words["me"] == 1)
        start = (await heard())["start"]
        begin, end = start + 0.5, start + 0.5 + words["seconds"]
        value, times, sent = bytes(words["size"]), [], 0

        async def caller() -> None:
            nonlocal sent
            while (now := time.monotonic()) < end:
                sent += 1
                await table.set(f"key {sent % KEYS}", value)
                done = time.monotonic()
                if begin <= done < end:
                    times.append(done - now)

        await asyncio.sleep(begin - time.monotonic() - 0.5)
        callers = [asyncio.create_task(caller()) for _ in range(words["window"] if words["me"] == 1 else 0)]
        await asyncio.sleep(begin - time.monotonic())
        before = spent()
        await asyncio.sleep(end - time.monotonic())
        used = spent() - before
        await asyncio.gather(*callers)
        await asyncio.sleep(0.5)
        await table.sync()
        say(
            calls=len(times),
            p50=percentile(times, 0.5),
            p99=percentile(times, 0.99),
            cpu=used,
            state=digest(table.items()),
        )
        await heard()


def pysyncobj_calls(words: dict[str, Any]) -> None:
    import pysyncobj

    class Table(pysyncobj.SyncObj):
        def __init__(self, me: str, others: list[str]) -> None:
            self.items: dict[str, bytes] = {}
            conf = pysyncobj.SyncObjConf(
                dynamicMembershipChange=False, commandsWaitLeader=True, appendEntriesUseBatch=True
            )
            super().__init__(me, others, conf)

        @pysyncobj.replicated
        def set(self, key: str, value: bytes) -> None:
            self.items[key] = value

    addresses = [f"127.0.0.1:{port}" for port in words["ports"][1:]]
    mine = addresses[words["me"] - 1]
    table = Table(mine, [address for address in addresses if address != mine])
    while not table.isReady():
        time.sleep(0.02)
    time.sleep(0.5)
    leads = str(table._getLeader()) == mine
    say(ready=True, calls=leads)
    start = json.loads(sys.stdin.readline())["start"]
    begin, end = start + 0.5, start + 0.5 + words["seconds"]
    value, times = bytes(words["size"]), []
    room = threading.Semaphore(words["window"])

    def call(sent: int) -> None:
        now = time.monotonic()

        def done(_result: Any, error: Any) -> None:
            at = time.monotonic()
            if not error and begin <= at < end:
                times.append(at - now)
            room.release()

        table.set(f"key {sent % KEYS}", value, callback=done)

    def work() -> None:
        sent = 0
        while time.monotonic() < end:
            if room.acquire(timeout=0.5):
                sent += 1
                call(sent)

    time.sleep(max(0.0, start - time.monotonic()))
    worker = threading.Thread(target=work if leads else lambda: None)
    worker.start()
    time.sleep(max(0.0, begin - time.monotonic()))
    before = spent()
    time.sleep(max(0.0, end - time.monotonic()))
    used = spent() - before
    worker.join()
    time.sleep(1.5)
    say(calls=len(times), p50=percentile(times, 0.5), p99=percentile(times, 0.99), cpu=used, state=digest(table.items))
    sys.stdin.readline()
    os._exit(0)


def digest(items: dict[str, bytes]) -> str:
    return hashlib.blake2b(repr(sorted(items.items())).encode(), digest_size=8).hexdigest()


def one_run(role: str, window: int, size: int, seconds: float) -> dict[str, Any]:
    ports = free_ports(MEMBERS + 1)
    children = [Child(role, ports=ports, me=me, window=window, size=size, seconds=seconds) for me in (1, 2, 3)]
    try:
        callers = sum(child.hear()["calls"] for child in children)
        for child in children:
            child.tell(start=time.monotonic() + 0.2)
        told = [child.hear() for child in children]
    finally:
        for child in children:
            child.end()
    (best,) = [each for each in told if each["calls"]] if callers == 1 else [{"calls": 0, "p50": 0, "p99": 0}]
    return {
        "calls_s": best["calls"] / seconds,
        "p50_us": best["p50"] * 1e6,
        "p99_us": best["p99"] * 1e6,
        "cpu_us_per_call": sum(each["cpu"] for each in told) * 1e6 / max(1, best["calls"]),
        "same_state": len({each["state"] for each in told}) == 1,
    }


def calls(args: argparse.Namespace) -> dict[str, Any]:
    rivals = ["ordercast", *([args.rival] if args.rival else [])]
    if args.rival:
        need(args.rival)
    cells = []
    for window in map(int, args.windows.split(",")):
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in rivals}
        for _ in range(args.reps):
            for name in rivals:
                runs[name].append(one_run(f"{name}_calls", window, args.size, args.seconds))
                print(f"window {window} {name}: {runs[name][-1]}", file=sys.stderr, flush=True)
        cell: dict[str, Any] = {"window": window, "size": args.size}
        for name, each in runs.items():
            cell[name] = {
                key: round(statistics.median(run[key] for run in each), 1) for key in each[0] if key != "same_state"
            }
            cell[name]["same_state"] = all(run["same_state"] for run in each)
        cells.append(cell)
    return {"members": MEMBERS, "seconds": args.seconds, "reps": args.reps, "cells": cells}


# ------------------------------------------------------------------------------------------------------------- transfer


async def transfer_member(words: dict[str, Any]) -> None:
    """Holds the state, calls at a rate (member 2), and tells its longest standstill while the newcomer comes."""
    async with joined(words, {}, at_least=2) as group:
        say(in_view=True)
        table: ordercast.Dict[int, bytes] = await group.replicate("table", ordercast.Dict[int, bytes]())
        if words["me"] == 1:
            for k in range(0, words["entries"], 256):
                batch = {i: os.urandom(1000) for i in range(k, min(k + 256, words["entries"]))}
                await table.update(batch)
        await table.until(lambda: True if len(table) >= words["entries"] else None)
        steps: list[float] = []
        watching = asyncio.create_task(_watch(table, steps))
        calling = asyncio.create_task(_call(table, words)) if words["me"] == 2 else None
        say(ready=True)
        while (asked := await heard())["what"] != "end":
            if asked["what"] == "mark":
                steps[:] = [time.monotonic()]
            elif asked["what"] == "told":
                gaps = [b - a for a, b in pairwise([*steps, time.monotonic()])]
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                status = group.status()["objects"]
                say(
                    standstill_ms=max(gaps, default=0) * 1e3,
                    steps=len(steps),
                    peak_mib=peak,
                    standing=status["standing"],
                )
        for task in (watching, calling):
            if task is not None:
                task.cancel()


async def _watch(table: ordercast.Dict[int, bytes], steps: list[float]) -> None:
    async for _ in table.watch():
        steps.append(time.monotonic())


async def _call(table: ordercast.Dict[int, bytes], words: dict[str, Any]) -> None:
    """So many calls a second, whatever becomes of the earlier ones."""
    begun, sent = time.monotonic(), 0
    while True:
        for _ in range(int((time.monotonic() - begun) * words["rate"]) - sent):
            table.set(sent % words["entries"], os.urandom(1000))
            sent += 1
        await asyncio.sleep(0.002)


def transfer(args: argparse.Namespace) -> dict[str, Any]:
    runs = []
    for _ in range(args.reps):
        runs.append(one_transfer(args))
        print(runs[-1], file=sys.stderr, flush=True)
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return {
        "mebibytes": args.mebibytes,
        "rate": args.rate,
        "reps": args.reps,
        "donor_killed": args.kill_donor,
        **middle,
    }


def one_transfer(args: argparse.Namespace) -> dict[str, Any]:
    entries = args.mebibytes * 2**20 // 1000
    words = {"ports": free_ports(MEMBERS + 1), "entries": entries, "rate": args.rate}
    children = [Child("transfer_member", me=me, **words) for me in (1, 2, 3)]
    try:
        for child in children:
            child.hear()  # in its first view
            child.hear()  # with its state
        children.pop().end()
        time.sleep(2)
        for child in children:
            child.tell(what="mark")
        begun = time.monotonic()
        late = Child("transfer_member", me=3, **words)
        children.append(late)
        late.hear()
        if args.kill_donor:
            time.sleep(args.kill_after)
            children.pop(0).end()  # of two that could serve, the one with the smaller id does
        late.hear()
        took = time.monotonic() - begun
        told = []
        for child in children:
            child.tell(what="told")
            told.append(child.hear())
    finally:
        for child in children:
            child.end()
    others = told[:-1]
    return {
        "seconds": round(took, 2),
        "standstill_ms": round(max(each["standstill_ms"] for each in others), 1),
        "newcomer_peak_mib": round(told[-1]["peak_mib"]),
        "others_peak_mib": round(max(each["peak_mib"] for each in others)),
    }


# --------------------------------------------------------------------------------------------------------------- killed


async def killed_member(words: dict[str, Any]) -> None:
    """Tells what its group has, then calls durably and tells each call that was answered."""
    table = ordercast.Dict[str, int]()
    async with joined(words, {"table": table}, at_least=MEMBERS, state_dir=words["folder"]):
        await table.sync()
        say(found=table.items())
        await heard()

        async def caller(task: int) -> None:
            for k in range(10**9):
                name = f"{words['round']} {words['me']} {task} {k}"
                await table.set(name, k, durable=True)
                say(answered=name)

        await asyncio.gather(*(caller(task) for task in range(8)))


def killed(args: argparse.Namespace) -> dict[str, Any]:
    folder = Path(args.folder) if args.folder else Path(tempfile.mkdtemp(prefix="ordercast-killed-", dir="."))
    answered: set[str] = set()
    lost: list[list[str]] = []
    seconds = []
    for turn in range(args.times + 1):
        ports, begun = free_ports(MEMBERS + 1), time.monotonic()
        words = {"ports": ports, "folder": str(folder), "round": turn}
        children = [Child("killed_member", me=me, **words) for me in (1, 2, 3)]
        try:
            with ThreadPoolExecutor(MEMBERS) as pool:  # who waits to be heard stands still
                found = list(pool.map(lambda child: set(child.hear()["found"]), children))
            seconds.append(time.monotonic() - begun)
            lost.append(sorted(answered - set.intersection(*found)))
            for child in children:
                child.tell(go=True)
            time.sleep(args.seconds)
        finally:
            for child in children:
                child.process.kill()
        for child in children:
            answered |= {line["answered"] for line in child.rest() if "answered" in line}
        print(f"{turn}: answered {len(answered)}, lost {len(lost[-1])}", file=sys.stderr, flush=True)
    if not args.folder and not any(lost):
        shutil.rmtree(folder)
    return {
        "times": args.times,
        "answered": len(answered),
        "lost": sum(map(len, lost)),
        "back_after_s": round(statistics.median(seconds), 2),
    }


def main() -> None:
    if sys.argv[1:2] == ["--role"]:
        words = json.loads(sys.argv[3])
        work = globals()[sys.argv[2]](words)
        if asyncio.iscoroutine(work):
            asyncio.run(work)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["calls", "transfer", "killed"])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--windows", default="2000,64,1")
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rival", default="pysyncobj")
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--kill-donor", action="store_true")
    parser.add_argument("--kill-after", type=float, default=0.3)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--folder", default="")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = here() | {"what": args.what} | {"calls": calls, "transfer": transfer, "killed": killed}[args.what](args)
    print(json.dumps(result))
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
