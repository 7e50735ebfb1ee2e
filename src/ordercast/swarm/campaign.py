"""A campaign: many seeds, each in a child process, each a row; failures shrunk and written down.

With a directory it is resumable: every finished seed is a line of `seeds.jsonl` at once, and a second start with the
same options and the same code goes on with what is missing.  The rows follow from seeds and code alone, so a campaign
gives the same table on one core, on many, and inside Spark tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

import ordercast
from ordercast.errors import UsageError
from ordercast.swarm.failure import Failure, write_failure
from ordercast.swarm.runner import Result, Runner
from ordercast.swarm.seeds import expand
from ordercast.swarm.summary import Summary
from ordercast.swarm.task import WORK_SEED, WORK_SHRINK, SeedRow, ShrinkTask, Task
from ordercast.version import __version__

PLAN, ROWS, FAILURES = "campaign.json", "seeds.jsonl", "failures"
LIMIT_S = 300.0  # wall seconds one seed may take
MEMORY_BYTES = 8 * 2**30
SHRINK_S = 60.0
SHRUNK_MAX = 5  # failures of different kinds that are shrunk
ENDED = "ended"  # in the place of a promise: the child did not answer


class CampaignPlan(Struct, frozen=True):
    """What a directory's rows were made by."""

    protocols: tuple[str, ...]
    variant: str
    version: str
    code: str
    state: bool = False


def code_digest() -> str:
    """Of every module of this package: rows of other code are not gone on with."""
    out = blake2b(digest_size=8)
    root = Path(ordercast.__file__).parent
    for path in sorted(root.rglob("*.py")):
        out.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return out.hexdigest()


# ---------------------------------------------------------------------------------------------------------- directory


class Store:
    """The rows of a campaign, kept in a directory or only in memory."""

    def __init__(self, directory: Path | None, plan: CampaignPlan) -> None:
        self.directory = directory
        self.rows: dict[int, SeedRow] = {}
        self._file: IO[bytes] | None = None
        if directory is not None:
            self._open(directory, plan)

    def _open(self, directory: Path, plan: CampaignPlan) -> None:
        path = directory / PLAN
        if path.exists():
            try:
                found = msgspec.json.decode(path.read_bytes(), type=CampaignPlan)
            except msgspec.MsgspecError:
                raise UsageError(f"{path}: not what a campaign writes: name a new directory") from None
            if found != plan:
                what = "other code" if found.code != plan.code else "other options"
                raise UsageError(f"{directory}: holds a campaign of {what}: name a new directory, or use --force")
            self._read(directory / ROWS)
        path.write_bytes(msgspec.json.encode(plan))
        self._file = (directory / ROWS).open("ab")

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]  # an interrupted write leaves part of a line
        for line in whole.splitlines():
            row = msgspec.json.decode(line, type=SeedRow)
            self.rows[row.seed] = row
        if whole != data:
            path.write_bytes(whole)

    def add(self, row: SeedRow) -> None:
        self.rows[row.seed] = row
        if self._file is not None:
            self._file.write(msgspec.json.encode(row) + b"\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


# --------------------------------------------------------------------------------------------------------- many seeds


def run_here(tasks: Iterable[Task], jobs: int | None = None, env: dict[str, str] | None = None) -> Iterator[Result]:
    """On the cores of this machine, as they finish."""
    with Runner(WORK_SEED, workers=jobs, limit_s=LIMIT_S, memory_bytes=MEMORY_BYTES, env=env) as runner:
        yield from runner.map((task.seed, msgspec.to_builtins(task)) for task in tasks)


def row_of(result: Result, task: Task) -> SeedRow:
    """A child that did not answer is a row too."""
    if result.ok:
        return msgspec.convert(result.value, SeedRow)
    plan = expand(task.seed, task.protocols, task.state)
    scenario = plan.scenario
    return SeedRow(
        seed=task.seed, protocol=scenario.protocol, service=scenario.service, members=scenario.members,
        regime=plan.regime, options=plan.text(), on=plan.on, left_out=plan.left_out, events=0, datagrams=0, messages=0,
        deliveries=0, sim_ns=0, ended="no answer", digest="", faults={}, probes={}, held=[], unjudged={}, plain=False,
        broken=[{"promise": ENDED, "text": f"the run gave no answer: {result.error}", "example": []}],
    )  # fmt: skip


class Campaign:
    """Runs seeds, keeps rows, shrinks failures."""

    def __init__(
        self,
        seeds: Sequence[int],
        protocols: Sequence[str] = (),
        *,
        variant: str = "",
        jobs: int | None = None,
        minutes: float | None = None,
        directory: Path | None = None,
        source: Callable[[Iterable[Task]], Iterator[Result]] | None = None,
        tell: Callable[[SeedRow, int], None] | None = None,
        shrink_s: float = SHRINK_S,
        state: bool = False,
    ) -> None:
        self.seeds, self.protocols, self.variant, self.state = seeds, tuple(protocols), variant, state
        self.jobs, self.shrink_s = jobs, shrink_s
        self.directory = directory
        self.minutes = minutes
        self.source = source or (lambda tasks: run_here(tasks, jobs))
        self.tell = tell or (lambda row, done: None)
        self.store = Store(directory, CampaignPlan(self.protocols, variant, __version__, code_digest(), state))
        self.resumed = sum(seed in self.store.rows for seed in seeds)

    def task(self, seed: int) -> Task:
        return Task(seed, self.protocols, self.variant, state=self.state)

    def run(self) -> Summary:
        """All seeds that are not done, as far as the time goes.  What is finished stays, however this ends."""
        deadline = None if self.minutes is None else time.monotonic() + 60 * self.minutes
        todo = (seed for seed in self.seeds if seed not in self.store.rows)
        tasks = (self.task(seed) for seed in todo if deadline is None or time.monotonic() < deadline)
        try:
            for result in self.source(tasks):
                row = row_of(result, self.task(result.key))
                self.store.add(row)
                self.tell(row, len(self.store.rows))
        finally:
            self.store.close()
        return self.summary()

    def summary(self) -> Summary:
        wanted = set(self.seeds) if not isinstance(self.seeds, range) else self.seeds
        return Summary.of(row for seed, row in sorted(self.store.rows.items()) if seed in wanted)

    # ------------------------------------------------------------------------------------------------------- failures

    def failures(self, summary: Summary, tell: Callable[[str], None] = print) -> Iterator[tuple[Failure, Path]]:
        """The first failure of each kind, shrunk and written."""
        kinds: dict[tuple[str, str], SeedRow] = {}
        for row in summary.broken:
            promise = row.broken[0]["promise"]
            if promise != ENDED:
                kinds.setdefault((row.protocol, promise), row)
        chosen = list(kinds.values())[:SHRUNK_MAX]
        tasks = [
            ShrinkTask(
                row.broken[0]["promise"], self.shrink_s, row.seed, self.protocols, self.variant, state=self.state
            )
            for row in chosen
        ]
        with Runner(WORK_SHRINK, workers=self.jobs, limit_s=LIMIT_S + self.shrink_s) as runner:
            for result in runner.map((task.seed, msgspec.to_builtins(task)) for task in tasks):
                if not result.ok:
                    tell(f"seed {result.key} could not be shrunk: {result.error}")
                    continue
                failure = msgspec.convert(result.value, Failure)
                yield failure, write_failure(self.place(failure), failure)

    def place(self, failure: Failure) -> Path:
        top = self.directory / FAILURES if self.directory is not None else Path("out") / "swarm-failures"
        return top / f"seed-{failure.seed}-{failure.promise}"


def compare(
    seeds: Sequence[int], protocols: Sequence[str], *, variant: str = "", jobs: int | None = None, state: bool = False,
    tell: Callable[[int], None] = lambda done: None,
) -> tuple[int, list[tuple[int, str]]]:  # fmt: skip
    """Run every seed in two processes with different hash seeds: (equal ones, [(seed, what differs)])."""
    tables: list[dict[int, SeedRow]] = []
    tasks = [Task(seed, tuple(protocols), variant, state=state) for seed in seeds]
    by_seed = {task.seed: task for task in tasks}
    done = 0
    for hash_seed in ("1", "2"):
        table: dict[int, SeedRow] = {}
        for result in run_here(tasks, jobs, {"PYTHONHASHSEED": hash_seed}):
            table[result.key] = row_of(result, by_seed[result.key])
            done += 1
            tell(done)
        tables.append(table)
    different = [
        (seed, _difference(tables[0][seed], tables[1][seed])) for seed in seeds if tables[0][seed] != tables[1][seed]
    ]
    return len(tasks) - len(different), different


def _difference(a: SeedRow, b: SeedRow) -> str:
    fields = [name for name in SeedRow.__struct_fields__ if getattr(a, name) != getattr(b, name)]
    return f"{', '.join(fields)} (digest {a.digest[:12]} and {b.digest[:12]})"
