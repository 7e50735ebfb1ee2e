"""Ctrl-C of a command on Spark, as a terminal sends it: to everybody in its group, Java too."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

WAIT_SECONDS = 120.0
RUNS = 12
EXPERIMENT = f"""
name = "grid"
repetitions = {RUNS}
[base]
protocol = "token_site"
messages = 100
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts one of the same sweep, in a group of its own; what is in its `temporary` directory is Spark's."""
    (tmp_path / "grid.toml").write_text(EXPERIMENT)
    (tmp_path / "temporary").mkdir()
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ordercast", "sweep", "grid.toml", "--out", "o", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path, start_new_session=True,
            env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # where nobody minds it, children neither
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(seen: Callable[[], object], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not seen():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)


def interrupted(process: subprocess.Popen[str]) -> str:
    """All it says."""
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=WAIT_SECONDS)[0]
    assert process.returncode == 130, said
    return said


def left_of(room: Path) -> list[str]:
    """What still runs with settings from this directory."""
    words = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words.append(process.read_bytes().decode(errors="replace"))
    return [word for word in words if str(room) in word]


def java(words: list[str]) -> bool:
    """The one that stays is among them, which takes the place of the script that makes its command."""
    return any(word.partition("\0")[0].endswith("/java") and ".launcher." not in word for word in words)


def test_while_it_works(sweep: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = sweep("--master", "local[2]", "--tasks", str(RUNS // 2))
    wait_for(lambda: list(tmp_path.glob("o/parts/part-*.parquet")), process)
    said = interrupted(process)
    assert "Traceback" not in said and "py4j" not in said
    assert said.startswith("ordercast: sweep: interrupted: ") and len(said.splitlines()) == 1
    assert said.endswith(f" of {RUNS} runs were finished, kept in o; the same command goes on with the rest\n")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("o/parts/part-*.parquet")}
    rows = sum(int(path.stem.split("-")[2]) for path in before)
    assert 0 < rows < RUNS
    told = sweep("--plain").communicate(timeout=WAIT_SECONDS)[0]
    assert told.startswith(f"{RUNS} runs, {RUNS} ok")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("o/parts/part-*.parquet")}
    assert before.items() < after.items()
    assert sum(int(path.stem.split("-")[2]) for path in after) == RUNS, "none was run twice"


def test_while_spark_starts(sweep: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    rooms = tmp_path / "temporary"
    process = sweep("--master", "local[2]")
    wait_for(lambda: java(left_of(rooms)), process)
    said = interrupted(process)
    assert said == f"ordercast: sweep: interrupted: 0 of {RUNS} runs were finished, kept in o; " \
                   "the same command goes on with the rest\n"  # fmt: skip
    assert not left_of(rooms) and not list(rooms.glob("ordercast-*"))
    again = sweep("--master", "local[2]")
    wait_for(lambda: java(left_of(rooms)), again)  # its directory is not refused
    interrupted(again)
