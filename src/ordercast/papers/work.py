"""What a child of the runner does for a point of a paper: a simulation with its figures, or a computation."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from ordercast.papers import book
from ordercast.papers.figures import FIGURES, Run
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.swarm.work import judge

WORK = "ordercast.papers.work:work"


class Task(msgspec.Struct, frozen=True):
    """What is done with a scenario, or with the parameters of a computation; travels as a point's parameters."""

    paper: str
    experiment: str
    axes: dict[str, Any]
    compute: str = ""
    figures: list[str] = []
    cut: tuple[float, float] = (0.0, 0.0)
    trace: str = "deliver"


def work(argument: dict[str, Any]) -> dict[str, Any]:
    """A row of a sweep, whose notes are the figures, and how long it took."""
    since = time.process_time()
    task = msgspec.convert(argument["parameters"], Task)
    module = book.module(task.paper)
    if task.compute:
        given = argument["scenario"]
        parameters = {key: value for key, value in given.items() if key != "seed"}
        figures, judged = module.COMPUTE[task.compute](parameters, given.get("seed", 1)), {}
    else:
        known = FIGURES | getattr(module, "FIGURES", {})
        outcome = run(Scenario.from_dict(argument["scenario"], argument["run"]), level=task.trace)
        judged = judge(outcome.trace)
        seen = Run(outcome, task.cut)
        figures = {name: known[name](seen) for name in task.figures}
        judged |= {"digest": outcome.digest, "messages": outcome.messages, "ended": outcome.ended}
    told = {"figures": figures, "seconds": time.process_time() - since}
    return {**judged, "notes": msgspec.json.encode(told, order="sorted").decode()}
