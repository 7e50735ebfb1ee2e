"""The page: what it says, and that it needs nothing from outside."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from bad_traces import trace
from synthetic import Shape, inject, make_run, write

from ordercast.pipeline import here, plots, report
from ordercast.pipeline.render import Break, Content, Plot, PromiseLine, Section, Table, number, page
from ordercast.trace.parquet import write as write_traces
from ordercast.verify import CATALOGUE


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


def test_values_keep_their_units() -> None:
    rows = [["3000/s, 4 senders, 100 B", "1.5 ms"], ["at once", "700 µs"]]
    text = page(Content("t", tables=[Table("x", ["load", "99.9 %"], rows)]))
    assert "3000/s, 4\u00a0senders, 100\u00a0B" in text and "99.9\u00a0%" in text
    assert '<td class="n">1.5\u00a0ms</td>' in text and '<td class="n">700\u00a0µs</td>' in text


def test_a_page_of_one_run_says_once_what_it_was(tmp_path: Path) -> None:
    write_traces(tmp_path / "x.parquet", [trace()])
    text = report.write_run(tmp_path / "report.html", [tmp_path / "x.parquet"]).read_text()
    assert "<h1>token_site: 3 members, agreed service</h1>" in text
    assert "Latency in figures" in text and not re.search(r"<th[^>]*>(protocol|load)</th>", text)
    write_traces(tmp_path / "y.parquet", [trace(2)])
    text = report.write_run(tmp_path / "report.html", [tmp_path / "x.parquet", tmp_path / "y.parquet"]).read_text()
    assert "<th>load</th>" in text


def test_what_protocols_note_of_time_has_a_unit() -> None:
    keys = {"protocol": "totem", "service": "safe", "members": 3, "load": "idle"}
    figures = {**keys, "count": 4, "p50": 10**12, "p99": 2 * 10**12, "max": 3 * 10**12}
    notes = [{**figures, "name": name, "mean": 10**12} for name in ("rotation.ns", "install.sent")]
    (table,) = report.content(None, {"notes": notes}).tables
    assert table.rows == [
        [*keys.values(), "rotation", 4, "1 ms", "1 ms", "2 ms", "3 ms"],
        [*keys.values(), "install.sent", 4, 10**6, 10**6, 2 * 10**6, 3 * 10**6],
    ]


def test_why_is_told_without_the_promise_itself() -> None:
    promise = CATALOGUE["L2"]
    assert "; " in promise.statement
    words = f"L2 {promise.name}: {promise.statement}; it ended; too early"
    assert report._short({"promise": "L2", "text": words}) == "it ended; too early"


def test_buckets_without_neighbours_end_where_they_end() -> None:
    assert plots._with_gaps([0, 32, 34, 1024], [5, 1, 2, 3]) == ([0, 1, 32, 34, 36, 1024, 1088], [5, 0, 1, 2, 0, 3, 0])
    assert plots._with_gaps([], []) == ([], [])


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
        [Section(nasty, [nasty], [Table("", [nasty], [[nasty]], nasty)], [Plot(nasty, "", nasty)], nasty)],
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
    names = ["originate", "submit", "submit to last", "submit to others", "submit to sender"]
    assert [row["name"] for row in rows] == names
    assert int(rows[1]["count"]) == tables["latency"][1]["count"]
