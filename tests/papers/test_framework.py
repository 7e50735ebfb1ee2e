"""What holds whatever the paper: rows are judged as the data says, runs are kept, and what is asked for is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.errors import ConfigError, UsageError
from ordercast.papers import book, figures, page, reproduce
from ordercast.papers.book import Item, Row
from ordercast.papers.judge import EXPLAINED, NOT_JUDGED, OUTSIDE, SHOWN, WITHIN, judged, tolerance
from ordercast.papers.points import Point, Points, Value, over
from ordercast.pipeline import sweep
from ordercast.toml_input import Source

PAPERS = [book.paper(name) for name in book.written()]
ITEMS = [(paper, item) for paper in PAPERS for item in paper.item]


# ---------------------------------------------------------------------------------------------------------------- data


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=[f"{paper.name}-{item.id}" for paper, item in ITEMS])
def test_an_item_is_whole(paper: book.Paper, item: Item) -> None:
    if item.kind == "listing":
        assert item.leads and not item.row
        return
    assert item.id in paper.module.ITEMS and item.row and item.title
    names = [row.name for row in item.row]
    assert len(names) == len(set(names))
    for row in item.row:
        assert not row.why or row.see, f"{row.name}: an explanation names what a reader can run"
        assert row.found is None or row.why, row.name
        assert all(len(each.x) == len(each.y) for plot in item.plot for each in plot.published)


@pytest.mark.parametrize("paper", PAPERS, ids=[paper.name for paper in PAPERS])
@pytest.mark.parametrize("quick", [False, True])
def test_every_experiment_is_one(paper: book.Paper, quick: bool) -> None:
    used = {name for item in paper.item for name in item.experiments}
    assert used == set(paper.experiment)
    assert reproduce.job([(paper, list(paper.item))], quick).points
    for name in used:
        runs = paper.runs(name, quick)
        assert not runs.compute or runs.compute in paper.module.COMPUTE
        assert set(runs.figures) <= set(figures.FIGURES) | set(getattr(paper.module, "FIGURES", {}))


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("paper", PAPERS, ids=[paper.name for paper in PAPERS])
def test_the_page_in_docs_is_of_these_items(paper: book.Paper) -> None:
    """`make papers-docs` was run since a text, a row or an expected value changed."""
    page_of = (ROOT / "docs" / "papers" / f"{paper.name}.md").read_text(encoding="utf-8")
    assert paper.text in page_of
    for item in paper.item:
        start = page_of.index(f": {item.title}")
        section = page_of[start : page_of.find("\n## ", start)]
        assert item.text in section, item.title
        told = re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)
        assert [name for name in told if not name.startswith("-")] == [row.name for row in item.row], item.title


def runnable(see: str) -> bool:
    """A test (a file, or one of it by name), or an item by its command."""
    if see.startswith("ordercast papers "):
        words = see.split()[2:]
        kinds = {"--table": "table", "--figure": "figure", "--claim": "claim"}
        wanted = {(kinds[a], b) for a, b in zip(words[1::2], words[2::2], strict=True)}
        return bool(wanted) and wanted <= {(each.kind, str(each.key)) for each in book.paper(words[0]).item}
    file, _, test = see.partition("::")
    if not file.startswith("tests/") or not (ROOT / file).is_file():
        return False
    return f"def {test or 'test_'}" in (ROOT / file).read_text(encoding="utf-8")


def leads_on(see: str) -> bool:
    """A page that itself names what can be run."""
    named = re.findall(r"`([^`]+)`", (ROOT / see).read_text(encoding="utf-8")) if (ROOT / see).is_file() else []
    return any(runnable(each.strip()) for each in named if each.startswith(("tests/", "ordercast papers ")))


EXPLAINED_ROWS = [(f"{paper.name} {item.id} {row.name}", row) for paper, item in ITEMS for row in item.row if row.why]


def test_every_explanation_names_what_a_reader_can_run() -> None:
    assert len(EXPLAINED_ROWS) > 100
    for place, row in EXPLAINED_ROWS:
        named = [part.strip() for part in row.see.split(";") if part.strip()]
        assert named, f"{place}: nothing is named"
        for see in named:
            assert runnable(see) or (see.endswith(".md") and leads_on(see)), f"{place}: {see}"


def test_what_is_no_test_and_no_item_is_seen() -> None:
    good = "tests/papers/test_framework.py"
    assert runnable(good) and runnable(f"{good}::test_an_item_is_whole") and runnable("ordercast papers toto --table 4")
    for bad in (f"{good}::test_nothing", "tests/papers/none.py", "src/ordercast/papers/book.py",
                "ordercast papers toto", "ordercast papers toto --table 9", "README.md"):  # fmt: skip
        assert not runnable(bad), bad
    assert not leads_on("LICENSE") and not leads_on("docs/none.md")


def test_what_listings_lead_to_is_there() -> None:
    leads = [lead for _, item in ITEMS for lead in item.leads]
    assert len([item for _, item in ITEMS if item.kind == "listing"]) == 6 and len(leads) >= 6
    for lead in leads:
        path, _, part = lead.rstrip(")").partition(" (")
        assert (ROOT / path).exists(), lead
        words = re.findall(r"\b[A-Z]\d+\b", part)
        text = (ROOT / path).read_text(encoding="utf-8") if words else ""
        assert all(word in text for word in words), lead


def test_data_with_a_fault_is_refused() -> None:
    table = {"name": "x", "title": "x", "item": [{"kind": "tabel", "key": 1, "title": "t"}]}
    source = Source("x.toml", table)
    source.part(table, book.Paper)
    with pytest.raises(
        ConfigError, match=r"x.toml: item\[0\].kind: tabel: expected one of table, .*did you mean table"
    ):
        source.refuse()


# ----------------------------------------------------------------------------------------------------------- judgement


def verdict(ours: Any, quickly: bool = False, **row: Any) -> str:
    item = Item(kind="table", key=1, title="t", row=[Row(name="r", **row)])
    values = {} if ours is None else {"r": Value(ours)}
    return judged(item, values, quickly)[0].verdict


def test_rows_are_judged_as_they_say() -> None:
    near = {"published": 100.0, "expected": 103.0, "relative": 0.02}
    assert verdict(101.5, **near) == WITHIN  # of both
    assert verdict(104.0, **near) == OUTSIDE and verdict(104.0, **near, why="because") == EXPLAINED
    assert verdict(120.0, **near, why="because") == OUTSIDE, "an explanation does not excuse everything"
    assert verdict(120.0, **near, why="because", found=121.0) == EXPLAINED
    assert verdict(130.0, **near, why="because", found=121.0) == OUTSIDE
    assert verdict(5, published=5) == WITHIN and verdict(6, published=5) == OUTSIDE
    assert verdict("a b", published="a b") == WITHIN and verdict("a", published="a b") == OUTSIDE
    assert verdict("a", published="a b", expected="a", why="because") == EXPLAINED, "words differ from words"
    assert verdict("a", published="a b", expected="a") == OUTSIDE
    span = {"published": "30-40", "expected": 36.0, "absolute": 8.0}
    assert verdict(31.0, **span) == WITHIN and verdict(41.0, **span) == OUTSIDE, "a span is a number twice"
    assert verdict(41.0, **span, why="because") == EXPLAINED and verdict(45.0, **span, why="because") == OUTSIDE
    assert verdict(31.0, published="30-40") == WITHIN and verdict(29.0, published="30-40") == OUTSIDE
    assert verdict(31.0, published="about 40", expected=31.0) == WITHIN, "words are not compared with a number"
    assert verdict(True, published="it falls", expected=True) == WITHIN
    assert verdict(False, published="it falls", expected=True, why="no excuse") == OUTSIDE
    assert verdict(5.05, published=5.0, absolute=0.06) == WITHIN
    assert verdict(7.0, low=6.0, high=8.0) == WITHIN and verdict(5.0, low=6.0) == OUTSIDE
    assert verdict(7.0, published=3.0, status="predicted") == SHOWN and verdict(7.0, status="fitted") == SHOWN
    assert verdict(7.0, expected=3.0, shape=True) == SHOWN and verdict(None, expected=3.0, shape=True) == OUTSIDE
    assert verdict(None, published=3.0) == OUTSIDE and verdict(None, True, published=3.0) == NOT_JUDGED
    assert verdict(104.0, True, **near) == NOT_JUDGED and verdict(120.0, True, **near, quick=0.05) == OUTSIDE
    assert verdict(False, True, expected=True) == OUTSIDE


def test_a_value_that_no_row_asks_for_is_a_fault() -> None:
    with pytest.raises(LookupError, match="no row of the data is named 'x'"):
        judged(Item(kind="table", key=1, title="t", row=[Row(name="r")]), {"x": Value(1)}, False)


def test_tolerances_in_words() -> None:
    assert tolerance(Row(name="r", expected=1.0, relative=0.04)) == "±4 %"
    assert tolerance(Row(name="r", low=1.0, high=2.0)) == "1 to 2"
    assert tolerance(Row(name="r", published=1)) == "exact"
    assert tolerance(Row(name="r", expected=1.0, shape=True)) == "shape"


def test_values_over_seeds() -> None:
    value = over([1.0, 2.0, 3.0])
    assert value.mean == 2.0 and value.seeds == 3
    assert value.low == pytest.approx(2 - 4.303 / 3**0.5) and value.high == pytest.approx(2 + 4.303 / 3**0.5)
    points = Points(
        Point("e", {"load.rate": rate}, seed, {"a": {"b": rate + seed}}) for rate in (1, 2) for seed in (1, 2)
    )
    assert points.values("load_rate") == [1, 2] and points.where("e", load_rate=2).value("a", "b").mean == 3.5
    assert not len(points.where("other"))


# ---------------------------------------------------------------------------------------------------------- being kept


def done(out: Path) -> list[int]:
    return sweep.done_rows(out / "runs")["number"].to_pylist()


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*"))
            if path.suffix in (".csv", ".json", ".svg", ".html")}  # fmt: skip


def test_a_run_that_is_done_is_not_repeated(tmp_path: Path) -> None:
    """Neither by the same call, nor by another item that shares it."""
    chosen = book.choose(["toto"], [2], [], [])
    reproduce.run(chosen, tmp_path, quick=True, workers=1)
    before = sorted((tmp_path / "runs" / "parts").iterdir())
    assert len(done(tmp_path)) == len(before)
    counted: list[tuple[int, int]] = []
    more = book.choose(["toto"], [2, 4], [5], [])
    reproduce.run(more, tmp_path, quick=True, workers=1, watch=lambda now, total: counted.append((now, total)))
    assert sorted((tmp_path / "runs" / "parts").iterdir()) == before and counted == [(len(before), len(before))]


def parts(out: Path) -> dict[str, int]:
    """Finished runs, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "runs" / "parts").glob("*.parquet")}


def killed_when(command: list[str], out: Path, reached: Callable[[], bool]) -> dict[str, int]:
    """Start it, SIGKILL it and all it started there, and what it had finished by then."""
    process = subprocess.Popen([*command, "--out", out], stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 60
    while not reached():
        assert process.poll() is None and time.monotonic() < until, "it does not come to where it is to be killed"
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return parts(out)


def test_killed_anywhere_and_started_again_it_gives_the_same(tmp_path: Path) -> None:
    """SIGKILL during the first runs, in the middle, and while tables are written: every finished run is kept, none is
    repeated, and in the end the files are the same bytes."""
    command = [
        sys.executable,
        "-m",
        "ordercast",
        "papers",
        "toto",
        "--table",
        "2",
        "--table",
        "3",
        "--quick",
        "--plain",
    ]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert subprocess.run([*command, "--out", whole], capture_output=True, timeout=120, check=False).returncode == 0
    total, kept = len(done(whole)), {}
    for wanted in (1, total // 2):
        found = killed_when(command, cut, lambda wanted=wanted: len(parts(cut)) >= wanted)
        assert kept.items() <= found.items() and wanted <= len(found) < total
        kept = found
    (cut / "toto").mkdir()
    os.mkfifo(cut / "toto" / "table2.json")  # whoever writes there waits: the table is half written
    table = cut / "toto" / "table2.csv"
    found = killed_when(command, cut, lambda: table.exists() and table.stat().st_size > 0)
    assert kept.items() <= found.items() and len(found) == total and not (cut / "toto.html").exists()
    (cut / "toto" / "table2.json").unlink()
    table.write_bytes(table.read_bytes()[:40])  # and what a disk may have of it
    assert subprocess.run([*command, "--out", cut], capture_output=True, timeout=120, check=False).returncode == 0
    assert files(cut) == files(whole)
    assert parts(cut) == found and sorted(done(cut)) == sorted(done(whole))


def test_interrupted_it_keeps_what_was_done(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ordercast", "papers", "toto", "--table", "3", "--quick", "--plain"]
    process = subprocess.Popen([*command, "--out", tmp_path / "o"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while time.monotonic() < until and not ((tmp_path / "o" / "runs").exists() and done(tmp_path / "o")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and b"Traceback" not in said
    assert done(tmp_path / "o")


def test_a_failed_run_is_told_and_can_be_tried_again(tmp_path: Path) -> None:
    chosen = book.choose(["toto"], [1], [], [])
    (bad,) = reproduce.run(chosen, tmp_path, workers=1, plant=lambda paper, given: {"quorum": 1})
    assert not bad.ok and "no quorum" in bad.failed[0] and "no quorum" in page.words(bad)
    number = done(tmp_path)
    (again,) = reproduce.run(chosen, tmp_path, workers=1, retry=True)
    assert again.ok and set(done(tmp_path)) != set(number)


def test_what_quick_left_out_is_told_and_not_listed(tmp_path: Path) -> None:
    """Neither in a terminal nor on the page; the files have every row."""
    results = reproduce.run(book.choose(["tomp"], [], [], ["latency"]), tmp_path, quick=True, workers=1)
    (result,) = results
    empty = [line.name for line in result.lines if line.ours is None]
    said = page.words(result)
    assert empty and f"{len(empty)} more rows need runs that --quick leaves out." in said
    text = page.write_page(tmp_path, results).read_text()
    assert "Made with --quick" in text and not [name for name in empty if name in said or f">{name}<" in text]
    assert page.write_item(tmp_path, result)[0].read_text().count("\n") == 1 + len(result.lines)


def test_what_is_written_tells_neither_time_nor_place(tmp_path: Path) -> None:
    chosen = book.choose(["toto"], [1], [], [])
    results = reproduce.run(chosen, tmp_path, workers=1)
    written = page.write_item(tmp_path, results[0])
    assert [path.name for path in written] == ["table1.csv", "table1.json"]
    whole = msgspec.json.decode(written[1].read_bytes())
    assert whole["rows"][0]["verdict"] == WITHIN and str(tmp_path) not in written[1].read_text()
    text = page.write_page(tmp_path, results).read_text()
    assert "http://" not in text.replace("http://www.w3.org", "") and "https://" not in text


# ----------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["totto"], "paper totto; did you mean toto?: expected one of toto"),
        (["toto", "--table", "9"], "table 9: toto has tables 1, 2, 3, 4, 5"),
        (["toto", "--figure", "7"], "figure 7: toto has figures 1, 5, 6"),
        (["toto", "--figure", "3"], "figure 3 of toto is a listing (The protocol): it leads to src/ordercast/"),
        (["toto", "--claim", "logs"], "claim logs; did you mean log?: toto has claims log, phi, timer"),
        (["toto", "--table", "0"], "--table 0: expected a whole number from 1 to 1000"),
        (["--plain", "--master", "local[2]"], "--plain runs without Spark: it excludes --master and --conf"),
        (["--tabel", "1"], "unknown option --tabel; did you mean --table?"),
    ],
)
def test_bad_input_is_one_sentence(asked: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli import main

    assert main(["papers", *asked]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"ordercast: papers: {said}") and err.count("\n") == 1, err


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli import main

    (tmp_path / "mine.txt").write_text("mine")
    for force in ([], ["--force"]):
        assert main(["papers", "toto", "--table", "1", "--plain", "--out", str(tmp_path), *force]) == 2
        assert "holds mine.txt, which no run of ordercast made" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(UsageError):
        book.choose(["nobody"], [], [], [])


def test_the_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli import main

    assert main(["papers", "toto", "--list", "--json"]) == 0
    said = msgspec.json.decode(capsys.readouterr().out)
    assert [item["item"] for item in said["papers"][0]["items"]][:2] == ["table 1", "figure 1"]
