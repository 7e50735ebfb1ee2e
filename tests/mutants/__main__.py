"""Run the swarm against the mutants: `python -m tests.mutants [NAME ...] [--seeds 0:200] [--jobs K] [--shrink]`.

Prints for each what killed it, after how many seeds, by which promise; survivors with the reason known for them
(survivors.toml).  Exit code 1 when a mutant lives for which none is known, or the canary does.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.mutants import MUTANTS, killers
from tests.mutants.hunt import EXPECTED, WORK, directed, variant
from tests.mutants.killers import Kill

from ordercast.swarm.campaign import compare
from ordercast.swarm.runner import Runner
from ordercast.swarm.task import WORK_SHRINK

LIMIT_S = 7200.0
DETERMINISM_SEEDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants; all when none are named")
    parser.add_argument("--seeds", default="0:200")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--write", action="store_true", help="keep what killed each in killers.toml")
    parser.add_argument("--summary", type=Path, help="write what is known of all mutants to this page")
    parser.add_argument("--shrink", action="store_true", help="make each killing run small and print it")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MUTANTS]
    if unknown:
        print(f"unknown mutant {unknown[0]}: expected one of {', '.join(sorted(MUTANTS))}", file=sys.stderr)
        return 2
    first, last = map(int, arguments.seeds.split(":"))
    names = arguments.names or sorted(MUTANTS, key=lambda name: (MUTANTS[name].area, name))
    since = time.monotonic()
    killed, alive = hunt_all(names, range(first, last), arguments.jobs)
    if arguments.shrink:
        shrink_all(killed, arguments.jobs)
    if arguments.write:
        killers.write(killers.merged(killed, alive))
    if arguments.summary:
        arguments.summary.write_text(killers.page(killers.merged(killed, alive), arguments.seeds), encoding="utf-8")
    return tell(names, killed, alive, last - first, time.monotonic() - since)


def tell(names: list[str], killed: dict[str, Kill], alive: list[str], seeds: int, seconds: float) -> int:
    known = killers.reasons()
    unexplained = [name for name in alive if name not in known or name == "canary"]
    for name in alive:
        print(f"SURVIVES {name}: {known.get(name, 'no reason is known')}")
    for name in sorted(known.keys() & killed.keys()):
        print(f"{name} was killed: take it off survivors.toml")
    share = 100 * len(killed) // max(1, len(names))
    print(
        f"{len(killed)} of {len(names)} mutants killed ({share} %) within {seeds} seeds each, "
        f"{len(alive)} alive, {len(unexplained)} unexplained, {seconds:.0f} s"
    )
    return 1 if unexplained else 0


def hunt_all(names: list[str], seeds: range, jobs: int | None) -> tuple[dict[str, Kill], list[str]]:
    """(mutant -> what killed it, survivors); prints a line for each."""
    killed: dict[str, Kill] = {}
    alive: list[str] = []
    hunted = [name for name in names if MUTANTS[name].by == "swarm"]
    tasks = [(k, {"name": name, "first": seeds.start, "last": seeds.stop}) for k, name in enumerate(hunted)]
    with Runner(WORK, workers=jobs, limit_s=LIMIT_S) as runner:
        for result in runner.map(tasks):
            name, value = hunted[result.key], result.value or {}
            if value.get("promise"):
                kill = Kill(**{field: value[field] for field in Kill.__struct_fields__ if field in value})
                killed[name] = kill
                print(
                    f"killed   {name:28} {kill.words} ({kill.tried} tried) {kill.promise:7} {MUTANTS[name].breaks} "
                    f"[{result.seconds:.0f} s]"
                )
            else:
                alive.append(name)
                what = result.error or f"after {value['tried']} seeds, {value['given_up']} given up"
                print(f"alive    {name:28} {what} [{result.seconds:.0f} s]")
            sys.stdout.flush()
    for name in (name for name in names if MUTANTS[name].by == "determinism"):
        few = seeds[:DETERMINISM_SEEDS]
        equal, different = compare(few, (MUTANTS[name].protocol,), variant=variant(name), jobs=jobs)
        if different:
            killed[name] = Kill("S25", len(few), different[0][0])
            print(f"killed   {name:28} seed {different[0][0]:<4} ({len(few)} run twice) S25     {MUTANTS[name].breaks}")
        else:
            alive.append(name)
            print(f"alive    {name:28} {equal} seeds run twice are equal")
        sys.stdout.flush()
    return killed, alive


def shrink_all(killed: dict[str, Kill], jobs: int | None) -> None:
    names = [
        name
        for name, kill in killed.items()
        if kill.promise != "S25" and not kill.row and not kill.case and kill.scenario not in EXPECTED
    ]  # what the promises alone do not show cannot be made small by them
    since = time.monotonic()
    tasks = [
        (k, {"promise": killed[name].promise, "budget_s": 60.0, "seed": killed[name].seed or 0,
             "protocols": [MUTANTS[name].protocol], "variant": variant(name),
             "scenario": directed(killed[name].scenario).to_dict() if killed[name].scenario else None})
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
