"""The hunt for one mutant: seed after seed until one breaks a promise.  Runs in a child process."""

from __future__ import annotations

from typing import Any

from tests.mutants.registry import MUTANTS, make

from ordercast.swarm.judge import judge
from ordercast.swarm.seeds import expand

WORK = "tests.mutants.hunt:hunt"
MEMBERS_MAX = 8  # larger groups cost most and kill nothing that small ones do not
MAKE = "tests.mutants.registry:make"


def variant(name: str) -> str:
    """How a task names a mutant."""
    return f"{MAKE}:{name}"


def hunt(argument: dict[str, Any]) -> dict[str, Any]:
    """argument: name, first, last (not included).  The seed that killed it, or none."""
    name = argument["name"]
    maker = make(name)
    protocol = MUTANTS[name].protocol
    tried = 0
    for seed in range(argument["first"], argument["last"]):
        scenario = expand(seed, (protocol,)).scenario
        if scenario.members > MEMBERS_MAX:
            continue
        tried += 1
        judgement = judge(scenario, maker=maker)
        if not judgement.ok:
            found = judgement.breaks[0]
            return {"seed": seed, "tried": tried, "promise": found.promise, "text": found.text}
    return {"seed": None, "tried": tried, "promise": "", "text": ""}
