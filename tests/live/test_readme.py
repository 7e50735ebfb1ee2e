"""The example of the README, as it is written there: three processes, the same lines in the same order."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hello.py"
LINES = 1 + 3 * 2  # the view, two messages of each


def _terminal(me: int) -> subprocess.Popen[bytes]:
    """As a person starts it: Ctrl-C works, also if whoever runs the tests ignores it."""
    return subprocess.Popen(
        [sys.executable, "-u", EXAMPLE, str(me)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


def test_three_terminals_print_the_same() -> None:
    members = [_terminal(me) for me in (1, 2, 3)]
    try:
        printed = [[member.stdout.readline().decode() for _ in range(LINES)] for member in members if member.stdout]
    finally:
        for member in members:
            member.send_signal(signal.SIGINT)
        for member in members:
            member.wait(timeout=30)
            assert member.stdout is not None
            member.stdout.close()
    assert printed[0] == printed[1] == printed[2]
    assert printed[0][0] == "view of (1, 2, 3)\n"
    expected = {f"{words} from {me}\n" for me in (1, 2, 3) for words in ("hello", "and good-bye")}
    assert set(printed[0][1:]) == expected
