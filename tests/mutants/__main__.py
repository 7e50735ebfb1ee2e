"""Run the swarm against the mutants: `python -m tests.mutants [NAME ...] [--seeds 0:200] [--jobs K] [--shrink]`.

Prints for each which seed killed it, after how many, by which promise; survivors with the reason known for them
(survivors.toml).  Exit code 1 when a mutant lives for which none is known, or the canary does.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from pathlib import Path

from tests.mutants import MUTANTS
from tests.mutants.hunt import WORK, variant

from ordercast.swarm.campaign import compare
from ordercast.swarm.runner import Runner
from ordercast.swarm.task import WORK_SHRINK

SURVIVORS = Path(__file__).with_name("survivors.toml")
KILLERS = Path(__file__).with_name("killers.toml")
LIMIT_S = 7200.0
DETERMINISM_SEEDS = 20


def write_killers(killed: dict[str, tuple[int, str]]) -> None:
    """The seeds that tests run again; those of mutants not hunted now stay."""
    table: dict[str, int] = tomllib.loads(KILLERS.read_text(encoding="utf-8")) if KILLERS.exists() else {}
    table |= {name: seed for name, (seed, promise) in killed.items() if seed >= 0 and promise != "S25"}
    lines = [f"{name} = {seed}" for name, seed in sorted(table.items()) if name in MUTANTS]
    head = "# The first seed that kills each mutant, as `python -m tests.mutants --write` found it."
    KILLERS.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")


def reasons() -> dict[str, str]:
    """Why a mutant cannot be killed, where that is known."""
    table: dict[str, str] = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all when none are named")
    parser.add_argument("--seeds", default="0:200")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--write", action="store_true", help="keep the killing seeds in killers.toml")
    parser.add_argument("--shrink", action="store_true", help="make each killing run small and print it")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MUTANTS]
    if unknown:
        print(f"unknown mutant {unknown[0]}: expected one of {', '.join(sorted(MUTANTS))}", file=sys.stderr)
        return 2
    first, last = map(int, arguments.seeds.split(":"))
    names = arguments.names or sorted(MUTANTS, key=lambda name: (MUTANTS[name].area, name))
    killed, alive = hunt_all(names, range(first, last), arguments.jobs)
    if arguments.shrink:
        shrink_all(killed, arguments.jobs)
    if arguments.write:
        write_killers(killed)
    known = reasons()
    unexplained = [name for name in alive if name not in known]
    for name in alive:
        print(f"SURVIVES {name}: {known.get(name, 'no reason is known')}")
    share = 100 * len(killed) // max(1, len(names))
    print(
        f"{len(killed)} of {len(names)} mutants killed ({share} %), {len(alive)} alive, {len(unexplained)} unexplained"
    )
    return 1 if unexplained else 0


def hunt_all(names: list[str], seeds: range, jobs: int | None) -> tuple[dict[str, tuple[int, str]], list[str]]:
    """(mutant -> killing seed and promise, survivors); prints a line for each."""
    killed: dict[str, tuple[int, str]] = {}
    alive: list[str] = []
    hunted = [name for name in names if MUTANTS[name].by == "swarm"]
    tasks = [(k, {"name": name, "first": seeds.start, "last": seeds.stop}) for k, name in enumerate(hunted)]
    with Runner(WORK, workers=jobs, limit_s=LIMIT_S) as runner:
        for result in runner.map(tasks):
            name = hunted[result.key]
            if not result.ok:
                killed[name] = (-1, "ended")
                print(f"killed   {name:28} ended: {result.error}")
            elif result.value["seed"] is None:
                alive.append(name)
                print(f"alive    {name:28} after {result.value['tried']} seeds")
            else:
                value = result.value
                killed[name] = (value["seed"], value["promise"])
                print(f"killed   {name:28} seed {value['seed']:<4} ({value['tried']} tried) {value['promise']:7} "
                      f"{MUTANTS[name].breaks}")  # fmt: skip
            sys.stdout.flush()
    for name in (name for name in names if MUTANTS[name].by == "determinism"):
        few = seeds[:DETERMINISM_SEEDS]
        equal, different = compare(few, (MUTANTS[name].protocol,), variant=variant(name), jobs=jobs)
        if different:
            killed[name] = (different[0][0], "S25")
            print(f"killed   {name:28} seed {different[0][0]:<4} ({len(few)} run twice) S25     {MUTANTS[name].breaks}")
        else:
            alive.append(name)
            print(f"alive    {name:28} {equal} seeds run twice are equal")
        sys.stdout.flush()
    return killed, alive


def shrink_all(killed: dict[str, tuple[int, str]], jobs: int | None) -> None:
    names = [name for name, (seed, promise) in killed.items() if seed >= 0 and promise != "S25"]
    since = time.monotonic()
    tasks = [
        (k, {"promise": killed[name][1], "budget_s": 60.0, "seed": killed[name][0],
             "protocols": [MUTANTS[name].protocol], "variant": variant(name)})
        for k, name in enumerate(names)
    ]  # fmt: skip
    with Runner(WORK_SHRINK, workers=jobs, limit_s=LIMIT_S) as runner:
        for result in runner.map(tasks):
            name = names[result.key]
            if not result.ok:
                print(f"{name}: could not be shrunk: {result.error}")
                continue
            value = result.value
            faults = len(value["scenario"].get("faults", ()))
            print(f"shrunk   {name:28} {value['members']} members, {value['messages']} messages, {faults} faults, "
                  f"{value['runs']} runs, {result.seconds:.0f} s")  # fmt: skip
            print("\n".join(f"    {line}" for line in value["text"].splitlines()[:3]))
    print(f"shrunk in {time.monotonic() - since:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
