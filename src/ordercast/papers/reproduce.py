"""Running what is asked for: the points of all items in one job, then each item from its points.

What a run is known by is what it is, so that runs are kept over several calls, whatever is asked for: in `runs/` of the
output, a small file for each.  A page, and the tables, follow from these alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ordercast.papers.book import Chosen, Item, Paper, Plant
from ordercast.papers.judge import EXPLAINED, NOT_JUDGED, OUTSIDE, SHOWN, WITHIN, Line, judged
from ordercast.papers.points import Point, Points, Reduced
from ordercast.papers.work import WORK, Task
from ordercast.pipeline import experiment as experiments
from ordercast.pipeline import sweep
from ordercast.swarm.runner import describe
from ordercast.version import __version__

if TYPE_CHECKING:
    from ordercast.pipeline.session import SparkSession

Watch = Callable[[int, int], None]
VERDICTS = (WITHIN, EXPLAINED, OUTSIDE, SHOWN, NOT_JUDGED)


class Result(Struct):
    """One item as it came out."""

    paper: Paper
    item: Item
    lines: list[Line]
    reduced: Reduced
    failed: list[str] = []  # runs that failed, and why
    broken: list[str] = []  # runs in which a promise broke, and which
    named: list[str] = []  # its runs
    seconds: float = 0.0  # of a processor, of all its runs

    @property
    def runs(self) -> int:
        return len(self.named)

    @property
    def ok(self) -> bool:
        return not self.failed and not self.broken and not self.count(OUTSIDE)

    def count(self, verdict: str) -> int:
        return sum(line.verdict == verdict for line in self.lines)


class Job(Struct):
    """The points of what is asked for, each once, and which item needs which."""

    points: list[experiments.Point]
    of: dict[tuple[str, str], list[experiments.Point]]  # paper, experiment -> its points
    limit_s: float


def job(chosen: Chosen, quick: bool = False, plant: Plant | None = None) -> Job:
    """`plant`: changes every scenario (or the parameters of a computation), for tests."""
    once: dict[int, experiments.Point] = {}
    of: dict[tuple[str, str], list[experiments.Point]] = {}
    limit_s = 60.0
    for paper, items in chosen:
        for name in dict.fromkeys(name for item in items for name in item.experiments):
            runs = paper.runs(name, quick)
            place = f"{paper.name}.toml: experiment.{name}"
            found = experiments.from_dict(runs.table, place, scenarios=not runs.compute)
            limit_s = max(limit_s, found.limit_s)
            points = []
            for point in found.points:
                task = Task(paper.name, name, point.parameters, runs.compute, runs.figures, runs.cut, runs.trace)
                scenario = plant(paper.name, point.scenario) if plant else point.scenario
                points.append(_point(task, scenario, point, runs.seconds))
            of[paper.name, name] = points
            once |= {point.number: point for point in points}
    return Job(sorted(once.values(), key=lambda point: (-point.weight, point.number)), of, limit_s)


def _point(task: Task, scenario: dict[str, Any], point: experiments.Point, seconds: float) -> experiments.Point:
    """Numbered by what it is."""
    parameters = msgspec.to_builtins(task)
    said = msgspec.json.encode([parameters, scenario, __version__], order="sorted")
    number = int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big") >> 1
    run = f"{task.paper}-{point.run}"
    return experiments.Point(number, run, scenario, parameters, point.repetition, seconds)


def run(
    chosen: Chosen,
    out: Path,
    *,
    quick: bool = False,
    spark: SparkSession | None = None,
    tasks: int | None = None,
    workers: int | None = None,
    retry: bool = False,
    watch: Watch | None = None,
    plant: Plant | None = None,
) -> list[Result]:
    """Run what is not done yet, on Spark or here, and make every item of it."""
    wanted = job(chosen, quick, plant)
    kept = out / "runs"
    kept.mkdir(parents=True, exist_ok=True)
    done = sweep.kept(kept, retry)
    left = [point for point in wanted.points if point.number not in done]
    total, before = len(wanted.points), len(wanted.points) - len(left)
    if watch:
        watch(before, total)
    options = sweep.Options(limit_s=wanted.limit_s, work=WORK, flush_s=0.0, out=str(kept.resolve()))
    seen = (lambda now: watch(before + now, total)) if watch else None
    sweep.run_left(left, options, spark=spark, tasks=tasks, workers=workers, watch=seen)
    return results(chosen, wanted, kept, quick)


def results(chosen: Chosen, wanted: Job, kept: Path, quick: bool) -> list[Result]:
    """Every item, from the runs that are done."""
    rows = {row["number"]: row for row in sweep.done_rows(kept).to_pylist()}
    out = []
    for paper, items in chosen:
        out += [_result(paper, item, wanted, rows, quick) for item in items]
    return out


def finished(paper: Paper, out: Path, quick: bool) -> list[Result]:
    """All items of a paper whose runs are there, whoever asked for them: what its page shows."""
    everything: Chosen = [(paper, list(paper.item))]
    wanted = job(everything, quick)
    done = sweep.kept(out / "runs")
    items = [
        item
        for item in paper.item
        if all(point.number in done for name in item.experiments for point in wanted.of[paper.name, name])
    ]
    return results([(paper, items)], wanted, out / "runs", quick)


def _result(paper: Paper, item: Item, wanted: Job, rows: dict[int, dict[str, Any]], quick: bool) -> Result:
    points = [point for name in item.experiments for point in wanted.of[paper.name, name]]
    pairs = [(point, rows[point.number]) for point in points if point.number in rows]
    failed = [f"{point.run}: {row['error']}" for point, row in pairs if not row["ok"]]
    broken = [f"{point.run}: {row['broken']}" for point, row in pairs if row["broken"]]
    good = [(point, msgspec.json.decode(row["notes"])) for point, row in pairs if row["ok"]]
    seen = Points(
        Point(point.parameters["experiment"], point.parameters["axes"], point.scenario.get("seed", 1), told["figures"])
        for point, told in good
    )
    function = getattr(paper.module, "ITEMS", {}).get(item.id)
    reduced, lines = Reduced({}), []
    if function is not None and not failed:
        try:
            made = function(seen)
            reduced = made if isinstance(made, Reduced) else Reduced(made)
            lines = judged(item, reduced.rows, quick)
        except Exception as error:  # the other items are shown all the same
            failed.append(f"{item.id}: {describe(error)}")
    seconds = sum(told["seconds"] for _, told in good)
    return Result(paper, item, lines, reduced, failed, broken, [point.run for point in points], seconds)


def tally(results: Iterable[Result]) -> dict[str, int]:
    """How many rows are what."""
    found: Sequence[Result] = list(results)
    return {verdict: sum(each.count(verdict) for each in found) for verdict in VERDICTS}
