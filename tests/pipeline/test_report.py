"""The page: what it says, and that it needs nothing from outside."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from bad_traces import trace

from ordercast.pipeline import here, report
from ordercast.pipeline.render import Break, Content, PromiseLine, Table, number, page
from ordercast.pipeline.synthetic import Shape, inject, make_run, write
from ordercast.trace.parquet import write as write_traces


def test_a_run_that_kept_everything(tmp_path: Path) -> None:
    write_traces(tmp_path / "x.parquet", [trace()])
    text = report.write_run(tmp_path / "report.html", [tmp_path / "x.parquet"]).read_text()
    assert "Every promise held" in text and "What broke" not in text
    assert text.count("<svg") == 3  # latency, deliveries over time, the first hundred events
    assert "The first hundred events" in text


def test_a_broken_run_shows_its_example_with_a_picture(tmp_path: Path) -> None:
    run = make_run("bad", 3, Shape(members=4, frames_mean=80, crash_share=0.0))
    fault = inject(run, "swaps two", 5)
    assert fault is not None
    write(tmp_path, [(run, fault)])
    text = report.write_run(tmp_path / "report.html", [tmp_path]).read_text()
    assert "What broke" in text and "no order explains what was delivered" in text
    assert "S18" in text and text.count("<svg") > 3


def test_nothing_comes_from_outside(tmp_path: Path) -> None:
    write_traces(tmp_path / "x.parquet", [trace()])
    text = report.write_run(tmp_path / "report.html", [tmp_path / "x.parquet"]).read_text()
    assert "Content-Security-Policy" in text and "default-src 'none'" in text
    assert not re.search(r"<(script|link|iframe|object|img)\b", text)
    outside = [url for url in re.findall(r"(?:href|src)=\"([^\"]*)\"", text) if not url.startswith("#")]
    assert outside == []
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_same_numbers_give_the_same_page(tmp_path: Path) -> None:
    write_traces(tmp_path / "x.parquet", [trace()])
    pages = [report.write_run(tmp_path / f"{k}.html", [tmp_path / "x.parquet"]).read_text() for k in (1, 2)]
    assert pages[0] == pages[1]


def test_everything_foreign_is_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    content = Content(
        nasty, nasty, [(nasty, nasty)], [PromiseLine("S1", nasty, nasty, 1, 1, 0)],
        [Break(nasty, nasty, nasty, nasty, nasty, [{"member": 1, "kind": nasty, "detail": {nasty: nasty}}])],
        1, [(nasty, nasty, nasty)], [], [Table(nasty, [nasty], [[nasty]], nasty)], [], [(nasty, 1, nasty)], nasty,
    )  # fmt: skip
    text = page(content)
    assert "<script" not in text and text.count("&lt;script&gt;") > 15


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (9999, "9999"), (1234567, "1 234 567"), (0.12345, "0.1235"), (12345.6, "12 346")]
)
def test_numbers_for_people(value: float, words: str) -> None:
    assert number(value) == words


def test_tables_as_files(tmp_path: Path) -> None:
    write_traces(tmp_path / "x.parquet", [trace()])
    tables = here.measure_here([tmp_path / "x.parquet"])
    written = report.write_tables(tmp_path / "tables", tables)
    assert len(written) == 2 * len(tables)
    with open(tmp_path / "tables" / "latency.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["originate", "submit"]
    assert int(rows[1]["count"]) == tables["latency"][1]["count"]
