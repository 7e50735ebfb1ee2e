"""Child processes that speak JSON lines: started together, watched, ended for certain.

Each child gets commands on its standard input (one JSON object per line) and tells what happens on its standard output.
Children are in process groups of their own, so that Ctrl-C at a terminal reaches only the starter, which stops them in
order; not in sessions, among which the scheduler shares time out first, whatever priority and slice a child asks for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from ordercast.contract import TAGGER
from ordercast.errors import RunError
from ordercast.live import lifeline

LINE_BYTES_MAX = 16 * 2**20
STOP_SECONDS = 2.0  # for a child to go by itself before it is killed
TAIL_BYTES = 2_000

Said = Callable[["Child", dict[str, Any]], None]


class Child:
    """One process.  `said` is called with every object it prints."""

    def __init__(self, name: str, member: int, process: asyncio.subprocess.Process, log: Path, said: Said) -> None:
        self.name, self.member, self.process, self.log = name, member, process, log
        self.expected_to_die = False
        self._reader = asyncio.ensure_future(self._read(said))

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, **command: Any) -> None:
        """One command; a child that is gone hears nothing."""
        stdin = self.process.stdin
        if self.alive and stdin is not None and not stdin.is_closing():
            stdin.write(json.dumps(command).encode() + b"\n")

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def wait(self) -> int:
        """Until it has ended and everything it said was heard."""
        code = await self.process.wait()
        await self._reader
        return code

    async def _read(self, said: Said) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while line := await stdout.readline():
            with contextlib.suppress(json.JSONDecodeError):
                said(self, json.loads(line))

    def last_words(self) -> str:
        """The end of what it wrote to standard error, on one line."""
        try:
            with open(self.log, "rb") as file:
                file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
                text = file.read().decode(errors="replace").strip()
        except OSError:
            return ""
        return text.splitlines()[-1].strip() if text else ""


class Fleet:
    """The children of one run."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.children: list[Child] = []

    async def start(self, member: int, arguments: Sequence[str], said: Said, enter: Sequence[str] = ()) -> Child:
        """`python -m ordercast ARGUMENTS` as a child; `enter`: words before it, such as a namespace to run in."""
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"member-{member}.log"
        with open(log, "ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *enter, sys.executable, *arguments,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                env=lifeline.environment(), process_group=0, limit=LINE_BYTES_MAX,
            )  # fmt: skip
        child = Child(f"member {member}" if member != TAGGER else "the tagger", member, process, log, said)
        self.children.append(child)
        return child

    async def start_tagger(self, file: Path, enter: Sequence[str] = ()) -> Child:
        """The tagger of a group.toml, once it listens; RunError if it ended instead."""
        ready = asyncio.Event()
        arguments = ["-m", "ordercast", "tagger", "--config", str(file)]
        child = await self.start(TAGGER, arguments, lambda child, words: ready.set(), enter)
        while child.alive and not ready.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await ready.wait()
        if not ready.is_set():
            raise died(child)
        return child

    @property
    def living(self) -> list[Child]:
        return [child for child in self.children if child.alive]

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """SIGTERM to all, then SIGKILL to those that have not gone."""
        for child in self.living:
            child.signal(signal.SIGTERM)
        await self.ended(seconds)
        await self.kill()

    async def kill(self) -> None:
        for child in self.living:
            child.signal(signal.SIGKILL)
        await self.ended(STOP_SECONDS)

    async def ended(self, seconds: float) -> bool:
        """Wait until all have ended; false if some have not in time."""
        waiting = [asyncio.ensure_future(child.wait()) for child in self.children]
        if not waiting:
            return True
        _, late = await asyncio.wait(waiting, timeout=seconds)
        for task in late:
            task.cancel()
        return not late


@contextlib.asynccontextmanager
async def fleet(logs: Path) -> AsyncIterator[Fleet]:
    """Children that are all gone when the block is left, in whatever way."""
    made = Fleet(logs)
    try:
        yield made
    finally:
        await asyncio.shield(made.kill())


def died(child: Child) -> RunError:
    """One sentence about a child that ended by itself."""
    code = child.process.returncode
    how = f"was killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with code {code}"
    words = child.last_words()
    return RunError(f"{child.name} {how}" + (f": {words}" if words else ""))
