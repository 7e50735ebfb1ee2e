"""Files of keys that lie beside each other."""

import errno
import os
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


@pytest.mark.parametrize("args", [["keygen", "group.key"], ["init"]], ids=" ".join)
def test_a_full_disk_leaves_no_half_of_a_key(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was left would be in the way when there is room again, and looks like a key until it is read."""

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(args) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "group.key: cannot be written (no space left on device)" in line
    assert not list(tmp_path.iterdir())
    assert main(args) == 0


def test_init_leaves_no_key_without_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(self: Path, text: str) -> int:
        self.write_bytes(text.encode()[:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "write_text", half)
    assert main(["init"]) == 2
    assert "group.toml: cannot be written (no space left on device)" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
