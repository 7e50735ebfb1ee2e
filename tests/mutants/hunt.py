"""The hunt for one mutant: seed after seed until one breaks a promise.  Runs in a child process."""

from __future__ import annotations

from typing import Any

from tests.mutants.registry import MUTANTS, make

from ordercast.swarm.judge import judge
from ordercast.swarm.seeds import expand

WORK = "tests.mutants.hunt:hunt"
MAKE = "tests.mutants.registry:make"


def variant(name: str) -> str:
    """How a task names a mutant."""
    return f"{MAKE}:{name}"


def hunt(argument: dict[str, Any]) -> dict[str, Any]:
    """argument: name, first, last (not included).  The seed that killed it, or none."""
    name = argument["name"]
    maker = make(name)
    protocol = MUTANTS[name].protocol
    for tried, seed in enumerate(range(argument["first"], argument["last"]), 1):
        judgement = judge(expand(seed, (protocol,)).scenario, maker=maker)
        if not judgement.ok:
            found = judgement.breaks[0]
            return {"seed": seed, "tried": tried, "promise": found.promise, "text": found.text}
    return {"seed": None, "tried": argument["last"] - argument["first"], "promise": "", "text": ""}
