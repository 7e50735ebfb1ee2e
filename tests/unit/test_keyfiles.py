"""Files of keys that lie beside each other."""

from pathlib import Path

import pytest

from ordercast import keyfiles
from ordercast.cli import main


def test_keys_beside_each_other_have_ids_of_their_own(tmp_path: Path) -> None:
    """A header holds no more than an id: a key could not follow another one with the same."""
    ids = [keyfiles.write(tmp_path / f"{k}.key").id for k in range(100)]
    assert len(set(ids)) == 100 and all(1 <= each <= 127 for each in ids)
    again = keyfiles.write(tmp_path / "7.key", force=True)
    assert again.id not in {each for k, each in enumerate(ids) if k != 7}


def test_more_keys_than_ids_share_them(tmp_path: Path) -> None:
    assert len({keyfiles.write(tmp_path / f"{k}.key").name for k in range(130)}) == 130


@pytest.mark.parametrize("step", ["add", "use", "drop"])
def test_a_key_that_is_neither_a_file_nor_a_name(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    capsys.readouterr()
    assert main(["key", step, "00", "--config", "group.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "00: no such file, and no name of a key: expected a file that `ordercast keygen` made, or the name" in line
