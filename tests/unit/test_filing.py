"""Files of a live member that grow: what a flush covers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ordercast.filing import Append, Remove, Rename
from ordercast.live.filing import Filing, Found


def test_a_flush_covers_the_folder_and_those_that_were_made_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a file is found again only if the name of its folder is on disk, too."""
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(Path(os.readlink(f"/proc/self/fd/{file}"))))
    filing = Filing(tmp_path / "a" / "state")
    filing.do(Append("calls-1", b"x"))
    assert not filing.sync()
    assert set(flushed) == {tmp_path / "a" / "state", tmp_path / "a", tmp_path}
    flushed.clear()
    filing.do(Append("calls-1", b"y"))
    assert not filing.sync() and not flushed, "no name has changed"
    filing.do(Append("snapshot-2.new", b"z"))
    filing.do(Rename("snapshot-2.new", "snapshot-2"))
    filing.do(Remove("calls-1"))
    assert not filing.sync() and flushed == [tmp_path / "a" / "state"]
    filing.close()
    assert dict(Found(filing.folder)) == {"snapshot-2": b"z"}
