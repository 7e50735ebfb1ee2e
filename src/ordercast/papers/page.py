"""What is written of an item: its table as CSV and JSON, its plots, and a page for each paper."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordercast.papers import draw
from ordercast.papers.judge import EXPLAINED, NOT_JUDGED, OUTSIDE, WITHIN, Line
from ordercast.papers.reproduce import Result, tally
from ordercast.pipeline import plots, report
from ordercast.pipeline.render import Content, Plot, Section, Table, number
from ordercast.version import __version__

COLUMNS = tuple(field.name for field in msgspec.structs.fields(Line))


def pictures(result: Result) -> list[tuple[str, str, str, str]]:
    """(name, title, SVG, caption) of every plot and drawing of an item."""
    out = []
    for data in result.item.plot if plots.available() else ():
        series = result.reduced.series.get(data.name, {})
        if series or data.published:
            svg = draw.plot(f"{result.paper.name}-{result.item.id}-{data.name}", data, series)
            out.append((data.name, data.title or result.item.title, svg, data.caption))
    return out + [(each.name, each.title, each.svg, each.caption) for each in result.reduced.pictures]


def write_item(out: Path, result: Result) -> list[Path]:
    """NAME/ITEM.csv, .json, and one .svg per picture; nothing in them tells when or where it was run."""
    base = out / result.paper.name / result.item.id
    base.parent.mkdir(parents=True, exist_ok=True)
    rows = [msgspec.to_builtins(line) for line in result.lines]
    written = []
    if rows:
        with open(base.with_suffix(".csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows([["" if row[name] is None else row[name] for name in COLUMNS] for row in rows])
        item = result.item
        whole = {
            "paper": result.paper.name, "item": item.words, "title": item.title, "where": item.where,
            "beyond": item.beyond, "runs": result.runs, "failed": result.failed, "broken": result.broken, "rows": rows,
            "series": msgspec.to_builtins(result.reduced.series),
        }  # fmt: skip
        base.with_suffix(".json").write_bytes(msgspec.json.encode(whole) + b"\n")
        written += [base.with_suffix(".csv"), base.with_suffix(".json")]
    for name, _, svg, _ in pictures(result):
        path = base.with_name(f"{result.item.id}-{name}.svg")
        path.write_text(svg, encoding="utf-8")
        written.append(path)
    return written


def shown(value: Any, unit: str = "") -> str:
    """A value for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = number(value) if isinstance(value, int | float) else str(value)
    bare = isinstance(value, str) and not value[-1:].isdigit()  # "slight degradation" has no unit, "30-40" has
    return f"{text} {unit}" if unit and not bare else text


def cells(line: Line) -> list[str]:
    """A row as it stands in a table: name, published, expected, ours, interval, seeds, difference, verdict."""
    interval = "" if line.low is None or line.high is None else f"{number(line.low)} .. {number(line.high)}"
    difference = "" if line.difference is None else f"{100 * line.difference:+.1f} %"
    expected = shown(line.expected) + (f" ({line.tolerance})" if line.tolerance not in ("", "exact") else "")
    verdict = line.verdict
    if line.verdict in (EXPLAINED, OUTSIDE) and line.why:
        verdict += f": {line.why}" + (f" See `{line.see}`." if line.see else "")
    return [line.name, shown(line.published, line.unit), expected.strip(), shown(line.ours, line.unit), interval,
            str(line.seeds or ""), difference, verdict]  # fmt: skip


def run_lines(result: Result) -> tuple[list[Line], str]:
    """The rows that have something to show, and what --quick left out, in words."""
    shown = [line for line in result.lines if line.verdict != NOT_JUDGED or line.ours is not None]
    left = len(result.lines) - len(shown)
    return (
        shown,
        f"{left} more {'row needs' if left == 1 else 'rows need'} runs that --quick leaves out." if left else "",
    )


HEADS = ["", "published", "expected", "ours", "95 %", "seeds", "difference", "verdict"]


def words(result: Result) -> str:
    """An item in a terminal."""
    item = result.item
    beyond = ", beyond the paper" if item.beyond else ""
    lines = [f"{result.paper.name} {item.words}{beyond}: {item.title}"]
    if item.kind == "listing":
        return f"{lines[0]}\n  a listing: {', '.join(item.leads)}"
    lines += [f"  failed: {text}" for text in result.failed[:5]] + [f"  broken: {text}" for text in result.broken[:5]]
    shown, left = run_lines(result)
    table = [[cell if k < 7 else line.verdict for k, cell in enumerate(cells(line))] for line in shown]
    if table:
        rows = [HEADS, *table]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
        for row in rows:
            sized = enumerate(zip(row, widths, strict=True))
            text = [cell.rjust(w) if 0 < k < 7 else cell.ljust(w) for k, (cell, w) in sized]
            lines.append("  " + "  ".join(text).rstrip())
    told = (f"{line.why} See {line.see}." if line.see else line.why for line in shown if line.why)
    lines += [f"  {why}" for why in dict.fromkeys(told)] + ([f"  {left}"] if left else [])
    return "\n".join([*lines, f"  {summary([result])}"])


def summary(results: Sequence[Result]) -> str:
    counts = tally(results)
    said = [f"{counts[verdict]} {verdict}" for verdict in counts if counts[verdict] or verdict in (WITHIN, EXPLAINED)]
    spent = {run: seconds for each in results for run, seconds in each.spent.items()}  # items share runs
    return f"{', '.join(said)}; {len(spent)} runs, {sum(spent.values()):.1f} s of a processor"


# ----------------------------------------------------------------------------------------------------------- the page


def write_page(out: Path, results: Sequence[Result]) -> Path:
    """NAME.html: all items of one paper that are given."""
    paper = results[0].paper
    rows = tally(results)
    quick = (
        " Made with --quick: few seeds and points, so that only shapes and signs are judged."
        if rows[NOT_JUDGED]
        else ""
    )
    content = Content(paper.title, f"{paper.authors}. {paper.text}{quick}".strip())
    content.facts = [
        ("items", str(sum(each.item.kind != "listing" for each in results))),
        *((f"rows {verdict}", str(rows[verdict])) for verdict in (WITHIN, EXPLAINED, OUTSIDE)),
        ("runs", str(len({run for each in results for run in each.spent}))),
    ]
    content.sections = [section(each) for each in results]
    content.foot = f"ordercast {__version__}. This page is one file and loads nothing from outside."
    return report.write_page(out / f"{paper.name}.html", content)


def section(result: Result) -> Section:
    """One item of a page."""
    item = result.item
    title = f"{item.words[:1].upper()}{item.words[1:]}: {item.title}"
    text = [part for part in (item.where, item.text) if part]
    if item.beyond:
        text.insert(0, "Beyond the paper.")
    if item.leads:
        text.append(f"It leads to {', '.join(item.leads)}.")
    text += [f"A run failed: {why}." for why in result.failed] + [f"A promise broke: {why}." for why in result.broken]
    lines, left = run_lines(result)
    text += [left] if left else []
    tables = [Table("", HEADS, [list(cells(line)) for line in lines], _resting(lines), whole=True)] if lines else []
    shown = [Plot(name, svg, caption) for _, name, svg, caption in pictures(result)]
    return Section(title, text, tables, shown, item.id)


def _resting(lines: Sequence[Line]) -> str:
    """Which values do not stand for themselves, in words."""
    by: dict[str, list[str]] = {}
    for line in lines:
        if line.status != "stated":
            by.setdefault(line.status, []).append(line.name)
    return " ".join(f"{status.capitalize()}: {'; '.join(names)}." for status, names in by.items())
