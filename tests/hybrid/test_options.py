"""Bad options of hybrid: one sentence before anything starts, at every door."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast import config
from ordercast.cli import main
from ordercast.errors import ConfigError

BAD = [
    ("k = 0", "expected a whole number from 1 to 1000"),
    ("threshold = -0.1", "expected a number from 0 to 1"),
    ('detector = "shift"', "expected mean_shift or window"),
    ("active = [1, 9]", "active names member 9: expected members of the group, 1, 2, 3"),
]
FILE = """\
group = "g"
protocol = "hybrid"
insecure = true
[[member]]
id = 1
address = "127.0.0.1:7401"
[[member]]
id = 2
address = "127.0.0.1:7402"
[[member]]
id = 3
address = "127.0.0.1:7403"
[options]
"""


@pytest.mark.parametrize(("option", "words"), BAD)
def test_a_file(option: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text(FILE + option)
    with pytest.raises(ConfigError) as caught:
        config.load(path, me=1, environ={})
    assert words in str(caught.value)


@pytest.mark.parametrize(("option", "words"), BAD)
@pytest.mark.parametrize("door", ["run", "simulate"])
def test_a_command(option: str, words: str, door: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = option.replace(" = ", "=")
    flag = ["--option", given.replace('"', "")] if door == "run" else ["--set", f"options.{given}"]
    out = tmp_path / "out"
    assert main([door, "--protocol", "hybrid", "--members", "3", *flag, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and not out.exists()


def test_good_options_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "group.toml"
    path.write_text(FILE + 'active = [1, 3]\nnumbers = "lamport"\n')
    assert config.load(path, me=1, environ={}).options.active == (1, 3)
