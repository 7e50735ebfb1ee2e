"""The runner gives one row per task, whatever the task does."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from ordercast.swarm.runner import Result, Runner

HERE = f"{__name__}:"


def odd_work(argument: dict[str, Any]) -> Any:
    match argument["do"]:
        case "square":
            return argument["x"] ** 2
        case "raise":
            raise ValueError("not today")
        case "hang":
            time.sleep(3600)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "print":
            print("noise on stdout" * 10_000)
            return "printed"
        case "big":
            return b"x" * 3_000_000
        case "hoard":
            return len(bytearray(8 << 30))
    return None


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(os.path.dirname(__file__))


def run(arguments: list[dict[str, Any]], **options: Any) -> dict[int, Result]:
    with Runner(HERE + "odd_work", **options) as runner:
        return {result.key: result for result in runner.map(enumerate(arguments))}


def test_every_task_is_answered_once_and_bad_ones_hurt_nobody() -> None:
    tasks = [{"do": "square", "x": x} for x in range(200)]
    tasks[13] = {"do": "raise"}
    tasks[50] = {"do": "hang"}
    tasks[51] = {"do": "kill"}
    tasks[120] = {"do": "exit"}
    tasks[121] = {"do": "print"}
    tasks[122] = {"do": "big"}
    results = run(tasks, workers=2, limit_s=10.0)
    assert sorted(results) == list(range(200))
    assert results[13].error is not None and results[13].error.startswith("ValueError: not today (test_runner.py:")
    assert results[50].error == "did not end within 10 s"
    assert results[51].error == "its process was ended by SIGKILL"
    assert results[120].error == "its process ended with code 7"
    assert results[121].value == "printed"
    assert len(results[122].value) == 3_000_000
    assert all(results[x].value == x**2 for x in range(200) if results[x].ok and x not in (121, 122))
    assert sum(not result.ok for result in results.values()) == 4


def test_same_rows_for_any_number_of_workers() -> None:
    tasks = [{"do": "square", "x": x} for x in range(40)] + [{"do": "raise"}]
    tables = [[(key, r.value, r.error) for key, r in sorted(run(tasks, workers=n).items())] for n in (1, 2, 3)]
    assert tables[0] == tables[1] == tables[2]


def test_a_task_that_takes_too_much_memory_is_an_error() -> None:
    results = run([{"do": "hoard"}, {"do": "square", "x": 3}], workers=1, memory_bytes=2 << 30)
    assert results[0].error is not None and results[0].error.startswith("MemoryError")
    assert results[1].value == 9


def test_work_that_cannot_be_imported_is_told_in_every_row() -> None:
    with Runner("ordercast.nowhere:work", workers=1) as runner:
        (result,) = runner.map([(1, {})])
    assert result.error is not None and "No module named 'ordercast.nowhere'" in result.error


def test_leaving_ends_the_children() -> None:
    with Runner(HERE + "odd_work", workers=2) as runner:
        results = runner.map(enumerate([{"do": "square", "x": 1}, {"do": "hang"}, {"do": "hang"}]))
        assert next(results).value == 1
        pids = [child.process.pid for child in runner._children]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_children_end_when_the_parent_is_killed() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        runner = Runner(HERE + "odd_work", workers=1)
        results = runner.map(enumerate([{"do": "square", "x": 1}, {"do": "hang"}]))
        next(results)
        os.write(writer, str(runner._children[0].process.pid).encode() + b"\n")
        time.sleep(60)
        os._exit(1)
    child = int(os.read(reader, 100))
    os.close(reader)
    os.close(writer)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if _zombie(child):
            return
        time.sleep(0.1)
    pytest.fail(f"child {child} outlived its parent")


def _zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
