"""The newcomer's hour, typed as it stands on the page: files, commands, and what a person sees after each of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from ordercast.lab.bench import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"
BLOCK = re.compile(r"(?:`(?P<name>[\w.]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)


def test_the_page_says_what_a_newcomer_sees(tmp_path: Path) -> None:
    page = PAGE.read_text()
    for port, free in zip(("7470", "7471", "7472", "7473", "7479"), free_ports(5), strict=True):
        page = page.replace(port, str(free))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shell = subprocess.Popen(
        ["bash"], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    assert shell.stdin is not None and shell.stdout is not None
    seen, steps = "", 0
    try:
        for block in BLOCK.finditer(page):
            text = block["text"]
            if block["kind"] == "toml":
                assert block["name"], "a file has a name"
                (tmp_path / block["name"]).write_text(text)
            elif block["kind"] == "sh":
                shell.stdin.write(f"{text}\necho end-of-step\n")
                shell.stdin.flush()
                seen = _until_end(shell)
                steps += 1
            else:
                missing = [line for line in text.splitlines() if line not in seen]
                assert not missing, f"{missing} was expected in:\n{seen}"
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    assert steps > 8


def _until_end(shell: subprocess.Popen[str]) -> str:
    out = ""
    assert shell.stdout is not None
    for line in shell.stdout:
        if line == "end-of-step\n":
            return out
        out += line
    raise AssertionError(f"the shell ended in the middle of a step, after:\n{out}")
