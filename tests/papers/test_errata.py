"""The page of errata: what is committed is what running the cases gives, and all of it leads somewhere."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.mutants.registry import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "papers"
PAGE = (DOCS / "errata.md").read_text(encoding="utf-8")
WITHOUT = {"wording"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sys.path.append(str(ROOT / "scripts"))
    import errata

    docs = tmp_path_factory.mktemp("docs") / "papers"
    (docs / "img").mkdir(parents=True)
    shutil.copytree(DOCS.parent / "protocols", docs.parent / "protocols")
    errata.write(docs)
    return docs


def test_the_page_and_its_pictures_come_from_running_the_cases(written: Path) -> None:
    assert (written / "errata.md").read_text(encoding="utf-8") == PAGE
    made = {path.name: path.read_bytes() for path in (written / "img").iterdir()}
    kept = {path.name: path.read_bytes() for path in (DOCS / "img").glob("errata-*.svg")}
    assert set(made) == set(kept) and [name for name in made if made[name] != kept[name]] == []


@pytest.mark.parametrize(
    ("paper", "pictures", "rows"),
    [("toto", 10, 2), ("totem", 11, 3), ("tomp", 1, 7), ("hybrid", 11, 7), ("dpg", 12, 0)],
)
def test_each_paper_has_its_pictures(paper: str, pictures: int, rows: int) -> None:
    part = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (mine,) = (text for text in part if text.lower().startswith(f"{paper}\n"))
    assert len(re.findall(r"^!\[", mine, re.MULTILINE)) == pictures
    assert len(re.findall(r"^\| [A-Z]\w+ \|", mine, re.MULTILINE)) == rows


def test_what_shows_an_erratum_is_there() -> None:
    """Files of tests, mutants and items by name: a reader can run each."""
    from tests import mutants  # noqa: F401  fills the list

    shown = re.findall(r"Shown by (.*)\.$", PAGE, re.MULTILINE) + re.findall(r" \| ([^|]*) \|$", PAGE, re.MULTILINE)
    shown = [each for each in shown if each != "shown by"]
    assert len(shown) > 60
    for each in shown:
        names = re.findall(r"`([^`]*)`", each)
        assert names or each in WITHOUT, each
        for name in names:
            if name.startswith("tests/"):
                assert (ROOT / name).is_file(), name
            elif not name.startswith("ordercast papers "):
                assert name in MUTANTS, name
