"""Helpers for tests with real processes: bounded in time, free ports, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ordercast.lab.bench import free_ports

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 120.0  # generous: two busy cores


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}


def examples() -> list[str]:
    """The programs of the README, in its order."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def apart(command: list[str]) -> list[str]:
    """A command in a network of its own, where that can be had: default ports are free there."""
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0:
            return inside + command
    return command


def wait_for(what: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
    """The first true answer; fails when there is none in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = what()
        if answer:
            return answer
        time.sleep(0.02)
    pytest.fail(f"waited {seconds} s in vain")


def processes_with(text: str) -> list[int]:
    """Ids of processes that name `text` on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in words:
                found.append(int(entry.name))
    return found


class Cli:
    """Runs `ordercast ...`; whatever it started is ended with the test."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **kwargs: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ordercast", *words],
            cwd=self.cwd, env=environment(), text=True, stdin=kwargs.pop("stdin", subprocess.DEVNULL),
            stdout=kwargs.pop("stdout", subprocess.PIPE), stderr=kwargs.pop("stderr", subprocess.PIPE), **kwargs,
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def json(self, *words: str) -> dict[str, Any]:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr + done.stdout
        (line,) = done.stdout.splitlines()
        answer: dict[str, Any] = json.loads(line)
        assert answer["version"] == 1
        return answer


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    made = Cli(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def group_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a group.toml with free ports."""

    def write(members: int = 2, **more: str) -> Path:
        port, *ports = free_ports(members + 1)
        more = {"protocol": '"token_site"'} | more
        lines = [f'group = "test-{os.getpid()}-{port}"', "insecure = true", *(f"{k} = {v}" for k, v in more.items())]
        lines += ["[net]", f"port = {port}"]
        for k, at in enumerate(ports, 1):
            lines += ["[[member]]", f"id = {k}", f'address = "127.0.0.1:{at}"']
        path = tmp_path / "group.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
