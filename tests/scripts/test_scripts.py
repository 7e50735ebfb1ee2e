"""Every text script answers as it is written.  `pytest --rewrite` writes the right side anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast.conformance.script import rewrite, split
from ordercast.errors import UsageError

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*/*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_script(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    answer = rewrite(text)
    if request.config.getoption("--rewrite"):
        path.write_text(answer)
    else:
        assert answer == text, "the script answers differently; read the difference, then pytest --rewrite"


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 5


def test_unknown_command_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="unknown script command 'fly'"):
        rewrite("fly 1 2\n")


def test_blocks_split_at_dashes() -> None:
    assert split("a\nb\n----\nx\n\nc\n") == [(["a", "b"], ["x"]), (["c"], [])]
