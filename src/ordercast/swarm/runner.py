"""One runner for many simulations: each in a child process that can be ended, each result a row.

`Runner` keeps a few children alive; a child takes one task at a time and answers before it gets the next, so that when
it dies or is ended it is certain which task did it.  A task that raises, does not end within its limit, or kills its
process comes back as a Result with its error, and the others go on.  The same code serves a command on all cores of
this machine and a single Spark task (with one worker), so a table of results does not depend on who made it.

What a child does is named by "module:function"; the function takes and returns what msgspec can write as MessagePack.
"""

from __future__ import annotations

import importlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import IO, Any

import msgspec

_HEAD = 8  # bytes of a message's length
_ERROR_CHARS = 500
_TAIL_BYTES = 2000  # of a dead child's stderr
START_S = 300.0  # a child may take so long to start, on a busy machine


class Result(msgspec.Struct, frozen=True):
    """What became of one task.  `seconds` is wall time: worth showing, never part of a comparable table."""

    key: int
    value: Any
    error: str | None
    seconds: float

    @property
    def ok(self) -> bool:
        return self.error is None


class _Child:
    """One process with its pipes and the task it is at."""

    def __init__(self, work: str, memory_bytes: int | None, env: Mapping[str, str]) -> None:
        self.stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the child
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), **env}
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from ordercast.swarm.runner import serve; serve()", work, str(memory_bytes or 0)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=env,
            start_new_session=True,  # Ctrl-C reaches the parent, which ends its children itself
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.buffer = bytearray()
        self.key: int | None = None
        self.ready = False  # it has imported the work; only then does a limit run
        self.since = 0.0
        self.deadline = 0.0

    def give(self, key: int, payload: bytes, limit_s: float) -> None:
        self.key, self.since = key, time.monotonic()
        self.deadline = self.since + (limit_s if self.ready else START_S)
        try:
            self.stdin.write(len(payload).to_bytes(_HEAD, "little") + payload)
            self.stdin.flush()
        except BrokenPipeError:
            pass  # it died meanwhile: end of file on its stdout tells, and the task gets its error row there

    def read(self, limit_s: float) -> bytes | None:
        """A whole answer, b"" while it is coming, None at the end of the process."""
        chunk = os.read(self.stdout.fileno(), 1 << 20)
        if not chunk:
            return None
        self.buffer += chunk
        if not self.ready:  # its first byte
            self.ready, self.since = True, time.monotonic()
            self.deadline = self.since + limit_s
            del self.buffer[:1]
        if len(self.buffer) < _HEAD:
            return b""
        size = int.from_bytes(self.buffer[:_HEAD], "little")
        if len(self.buffer) < _HEAD + size:
            return b""
        answer = bytes(self.buffer[_HEAD : _HEAD + size])
        self.buffer.clear()
        return answer

    def end(self) -> int:
        """Kill it and wait; its exit code."""
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        self.stdin.close()
        self.stdout.close()
        return code

    def last_words(self) -> str:
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - _TAIL_BYTES))
        lines = [line for line in self.stderr.read().decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


class Runner:
    """A pool of children.  Use as a context manager: leaving it ends every child, whatever it is at.

    `work`: "module:function"; `workers`: children at once (default: one per core); `limit_s`: wall seconds one task may
    take; `memory_bytes`: address space of a child, beyond which its allocations fail; `env`: more of its environment.
    """

    def __init__(
        self,
        work: str,
        *,
        workers: int | None = None,
        limit_s: float = 60.0,
        memory_bytes: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.work, self.limit_s, self.memory_bytes = work, limit_s, memory_bytes
        self.env = dict(env or {})
        self.workers = workers or len(os.sched_getaffinity(0))
        self._children: list[_Child] = []

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for child in self._children:
            child.end()
            child.stderr.close()
        self._children.clear()

    def map(self, tasks: Iterable[tuple[int, Any]]) -> Iterator[Result]:
        """Run every (key, argument); results come as they finish.  Stop iterating to stop the work."""
        waiting = iter(tasks)
        selector = selectors.DefaultSelector()
        try:
            while len(self._children) < self.workers and self._feed(self._start(selector), waiting, selector):
                pass
            while busy := [child for child in self._children if child.key is not None]:
                patience = min(child.deadline for child in busy) - time.monotonic()
                for ready, _ in selector.select(max(0.0, patience)):
                    yield from self._answer(ready.data, waiting, selector)
                now = time.monotonic()
                for child in [child for child in self._children if child.key is not None and child.deadline <= now]:
                    why = f"did not end within {self.limit_s:g} s" if child.ready else "its process did not start"
                    yield self._replace(child, why, waiting, selector)
        finally:
            selector.close()
            self.close()

    def _start(self, selector: selectors.BaseSelector) -> _Child:
        child = _Child(self.work, self.memory_bytes, self.env)
        self._children.append(child)
        selector.register(child.stdout, selectors.EVENT_READ, child)
        return child

    def _feed(self, child: _Child, waiting: Iterator[tuple[int, Any]], selector: selectors.BaseSelector) -> bool:
        """Give the child its next task; without one, let it go."""
        for key, argument in waiting:
            child.give(key, msgspec.msgpack.encode(argument), self.limit_s)
            return True
        selector.unregister(child.stdout)
        self._children.remove(child)
        child.end()
        child.stderr.close()
        return False

    def _answer(
        self, child: _Child, waiting: Iterator[tuple[int, Any]], selector: selectors.BaseSelector
    ) -> Iterator[Result]:
        answer = child.read(self.limit_s)
        if answer is None:
            yield self._replace(child, None, waiting, selector)
        elif answer:
            assert child.key is not None
            value, error = msgspec.msgpack.decode(answer)
            result = Result(child.key, value, error, time.monotonic() - child.since)
            child.key = None
            self._feed(child, waiting, selector)
            yield result

    def _replace(
        self, child: _Child, why: str | None, waiting: Iterator[tuple[int, Any]], selector: selectors.BaseSelector
    ) -> Result:
        """End a child that will not answer; its task becomes an error, another child takes the next one."""
        assert child.key is not None
        selector.unregister(child.stdout)
        self._children.remove(child)
        code = child.end()
        if why is None:
            why = _ending(code)
            if words := child.last_words():
                why = f"{why}: {words}"[:_ERROR_CHARS]
        child.stderr.close()
        result = Result(child.key, None, why, time.monotonic() - child.since)
        self._feed(self._start(selector), waiting, selector)
        return result


def _ending(code: int) -> str:
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with code {code}"


# ----------------------------------------------------------------------------------------------------- in the child


def resolve(work: str) -> Callable[[Any], Any]:
    """The function that "module:function" names."""
    module, _, name = work.partition(":")
    function: Callable[[Any], Any] = getattr(importlib.import_module(module), name)
    return function


def serve() -> None:
    """The child's life: read a task, do it, answer; end when the parent does."""
    work, memory_bytes = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not mix with answers
    if memory_bytes:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    tasks: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()
    function, failed = None, None
    try:
        function = resolve(work)
    except Exception as error:  # every task is told why
        failed = describe(error)
    answers.write(b"\n")
    answers.flush()
    while True:
        argument = msgspec.msgpack.decode(tasks.get())
        try:
            value = function(argument) if function is not None else None
            answer = msgspec.msgpack.encode((value, failed))
        except Exception as error:
            answer = msgspec.msgpack.encode((None, describe(error)))
        answers.write(len(answer).to_bytes(_HEAD, "little") + answer)
        answers.flush()


def _listen(tasks: SimpleQueue[bytes]) -> None:
    """Take tasks from the parent; when it is gone, end at once, even in the middle of one."""
    source = sys.stdin.buffer
    while head := source.read(_HEAD):
        tasks.put(source.read(int.from_bytes(head, "little")))
    os._exit(0)


def describe(error: BaseException) -> str:
    """One line: the error, and where in whose file it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}"[: _ERROR_CHARS - len(place)] + place
