"""report: one HTML file and the tables as CSV and JSON.

Takes what `verify` and `measure` found, however they were computed (on Spark or here), so this module needs no Spark.
`write_run` makes the whole report of a few traces by itself.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import RunError, TraceError
from ordercast.pipeline import curves, here, plots
from ordercast.pipeline.collected import Tables, axes
from ordercast.pipeline.curves import PICTURE_BYTES
from ordercast.pipeline.render import Break, Content, Plot, PromiseLine, Table, number, page
from ordercast.pipeline.told import views_told
from ordercast.pipeline.verify import Summary, summarise_rows, verify_here
from ordercast.trace import spacetime
from ordercast.trace.find import Unit, find
from ordercast.trace.load import runs_of
from ordercast.trace.trace import Trace
from ordercast.verify.catalogue import CATALOGUE
from ordercast.version import __version__

BREAKS_SHOWN = 12
PICTURES_MAX = 6
NANOSECONDS = ".ns"  # ends the name of a note that is a time
PICTURE_ROWS = 100_000  # of a run that is drawn
BREAK_EVENTS = 24  # around a break


def write_run(
    report_path: str | os.PathLike[str],
    paths: Iterable[str | os.PathLike[str]],
    *,
    verdicts: Iterable[dict[str, Any]] | None = None,
    title: str = "",
    engine: str = "plain",
    facts: Sequence[tuple[str, str]] = (),
) -> Path:
    """A report of the traces at `paths`, without Spark.

    `verdicts`: rows as `pipeline.verify` gives them, if they are known already; else the plain checkers judge here.
    """
    named = list(paths)
    rows = list(verify_here(named) if verdicts is None else verdicts)
    bad: list[dict[str, Any]] = []
    tables = here.measure_here(named, bad)
    return write(
        report_path, summarise_rows(rows), tables, units=find(named), title=title, engine=engine, facts=facts,
    )  # fmt: skip


def write(
    report_path: str | os.PathLike[str],
    summary: Summary | None,
    tables: Tables,
    *,
    units: Sequence[Unit] = (),
    title: str = "",
    engine: str = "plain",
    facts: Sequence[tuple[str, str]] = (),
) -> Path:
    """Write the page; what it is made of comes from verify (summary) and measure (tables)."""
    return write_page(Path(report_path), content(summary, tables, units=units, title=title, engine=engine, facts=facts))


def write_page(path: Path, content: Content) -> Path:
    """Whole or not at all."""
    text = page(content)
    half = path.with_name(path.name + ".half")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except OSError as why:
        raise RunError(f"{path}: cannot be written: {why.strerror}") from None
    return path


def content(
    summary: Summary | None,
    tables: Tables,
    *,
    units: Sequence[Unit] = (),
    title: str = "",
    engine: str = "plain",
    facts: Sequence[tuple[str, str]] = (),
) -> Content:
    runs = tables.get("runs", [])
    protocols = sorted({row["protocol"] for row in runs})
    out = Content(title or _title(runs, protocols))
    out.lead = _lead(summary, runs, engine)
    out.facts = [*facts, *_facts(summary, tables)]
    if summary is not None:
        out.promises = [_line(line) for line in summary.lines]
        show_breaks(out, summary, units)
        out.doubts = [(row["run"], row["promise"], _short(row)) for row in summary.doubts[:20]]
        out.set_aside = [(row["path"], row["offset"] or 0, row["text"]) for row in summary.unreadable]
    out.plots = curves.of_tables(tables, units)
    out.tables = _tables(tables)
    if len(runs) == 1:
        out.tables = [_without(table, {*_keys(runs), "runs"}) for table in out.tables] + views_told(units)
    out.pictures = _pictures(units) if len(runs) == 1 else []
    out.foot = f"ordercast {__version__}. This page is one file and loads nothing from outside."
    if not plots.available():
        out.foot += " Plots are missing: they need matplotlib (pip install 'ordercast[plots]')."
    return out


def show_breaks(out: Content, summary: Summary, units: Sequence[Unit]) -> None:
    """What broke, the first few with a picture."""
    drawn = units if len(units) <= 1000 else ()
    out.breaks = [_break(row, drawn if k < PICTURES_MAX else ()) for k, row in enumerate(_varied(summary.broken))]
    out.breaks_total = summary.broken_total


# ------------------------------------------------------------------------------------------------------------- words


def _title(runs: list[dict[str, Any]], protocols: list[str]) -> str:
    if len(runs) == 1:
        return f"{runs[0]['protocol']}: {runs[0]['members']} members, {runs[0]['service']} service"
    return f"{number(len(runs))} runs of {', '.join(protocols)}" if runs else "No runs"


def _lead(summary: Summary | None, runs: list[dict[str, Any]], engine: str) -> str:
    load = f"Load: {', '.join([*curves.parameters(runs[0]), runs[0]['load']])}. " if len(runs) == 1 else ""
    how = {"spark": "judged by the array checkers on Spark", "plain": "judged by the plain checkers"}.get(
        engine, engine
    )
    judged = f"{'It' if len(runs) == 1 else 'Every run'} was {how}." if summary is not None and summary.lines else ""
    return load + judged


def _facts(summary: Summary | None, tables: Tables) -> list[tuple[str, str]]:
    runs = tables.get("runs", [])
    out: list[tuple[str, str]] = []
    if len(runs) > 1:
        out.append(("runs", number(len(runs))))
    if runs:
        out.append(("messages", number(sum(row["originated"] or 0 for row in runs))))
        out.append(("deliveries", number(sum(row["deliveries"] or 0 for row in runs))))
    if len(runs) == 1 and runs[0]["span_ns"]:
        rate = runs[0]["originated"] / (runs[0]["span_ns"] / 1e9)
        out.append(("messages / s", number(round(rate))))
    latency = [row for row in tables.get("latency", []) if row["name"] == "submit"]
    if len(latency) == 1:
        out.append(("latency, median", span(latency[0]["p50"])))
        out.append(("latency, 99 %", span(latency[0]["p99"])))
    changes = sum(row["view_changes"] or 0 for row in runs)
    if changes:
        out.append(("view changes", number(changes)))
    if summary is not None and summary.rows:
        out.append(("rows of trace", number(summary.rows)))
    return out


def span(ns: float | None) -> str:
    """A time for people."""
    if ns is None:
        return ""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if abs(ns) >= factor:
            return f"{ns / factor:.3g} {unit}"
    return f"{ns:.0f} ns"


def _line(line: Any) -> PromiseLine:
    promise = CATALOGUE[line.promise]
    return PromiseLine(
        line.promise, promise.name, promise.statement, line.holds, line.broken, line.cannot_judge, line.nothing,
        line.judged,
    )  # fmt: skip


def _short(row: dict[str, Any]) -> str:
    """Why, without the promise's own words before it."""
    text, promise = str(row["text"] or ""), CATALOGUE[row["promise"]]
    return text.removeprefix(f"{promise.id} {promise.name}: {promise.statement}; ")


def _varied(broken: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first few breaks, one of each promise before the second of any."""
    seen: dict[str, int] = {}
    ranked: list[tuple[int, int, dict[str, Any]]] = []
    for row in broken:
        seen[row["promise"]] = seen.get(row["promise"], 0) + 1
        ranked.append((seen[row["promise"]], len(ranked), row))
    return [row for _, _, row in sorted(ranked, key=lambda entry: entry[:2])[:BREAKS_SHOWN]]


def _break(row: dict[str, Any], units: Sequence[Unit]) -> Break:
    promise = CATALOGUE[row["promise"]]
    rows = msgspec.json.decode(row["example"]) if row.get("example") else []
    picture = _break_picture(row, rows, units)
    return Break(row["run"], promise.id, promise.name, promise.statement, _short(row), rows, picture)


# ------------------------------------------------------------------------------------------------------------ tables


def _tables(tables: Tables) -> list[Table]:
    out: list[Table] = []
    latency = tables.get("latency", [])
    if latency:
        keys = _keys(latency)
        columns = [*keys, "from", "messages", "mean", "median", "90 %", "99 %", "99.9 %", "largest"]
        rows = [
            [*(row[key] for key in keys), row["name"], row["count"],
             *(span(row[name]) for name in ("mean", "p50", "p90", "p99", "p99_9", "max"))]
            for row in latency
        ]  # fmt: skip
        note = "From submit or origination to delivery; standstill: how long delivery paused around a view change."
        out.append(Table("Latency in figures", columns, rows, note, whole=True))
    throughput = tables.get("throughput", [])
    if throughput:
        names = {key: key for key in _keys(throughput)} | {
            "runs": "runs",
            "messages": "messages", "messages_per_s": "messages / s", "messages_per_frame": "messages / frame",
            "datagrams_per_message": "datagrams / message", "bytes_per_delivery": "bytes / delivery",
            "useful_share": "useful share", "utilisation": "utilisation", "retransmitted": "retransmitted",
            "halted_share": "time halted", "view_changes": "view changes",
        }  # fmt: skip
        kept = [name for name in names if any(row[name] is not None for row in throughput)]
        rows = [[row[name] for name in kept] for row in throughput]
        out.append(Table("Throughput and traffic", [names[name] for name in kept], rows, whole=True))
    skew = tables.get("skew_free", [])
    if skew:
        keys = _keys(skew)
        rows = [[*(row[k] for k in keys), row["method"], row["messages"], span(row["mean_ns"])] for row in skew]
        note = (
            "Mean latency from origination, by two methods that need no synchronised clocks (Totem's paper, section 4)."
        )
        out.append(Table("Latency free of clock skew", [*keys, "method", "messages", "mean"], rows, note, whole=True))
    notes = tables.get("notes", [])
    if notes:
        keys = _keys(notes)
        rows = [[*(row[key] for key in keys), row["name"].removesuffix(NANOSECONDS), row["count"], *_noted(row)]
                for row in notes]  # fmt: skip
        columns = [*keys, "what", "times", "mean", "median", "99 %", "largest"]
        out.append(Table("What protocols note", columns, rows, whole=True))
    runs = tables.get("runs", [])
    if len(runs) > 1:
        columns = ["run", *_keys(runs), "originated", "deliveries", "view_changes", "crashes"]
        rows = [[row[name] for name in columns] for row in runs]
        out.append(Table("Runs", [name.replace("_", " ") for name in columns], rows))
    return out


def _keys(rows: list[dict[str, Any]]) -> list[str]:
    """What a table is by: every parameter of a sweep, too."""
    return ["protocol", "service", "members", *axes(rows), "load"]


def _noted(row: dict[str, Any]) -> list[Any]:
    """What was noted, which is kept in millionths; a time in its own unit."""
    values = [row[name] / 1e6 for name in ("mean", "p50", "p99", "max")]
    return [span(value) for value in values] if row["name"].endswith(NANOSECONDS) else values


def _without(table: Table, said: set[str]) -> Table:
    """Without the columns that say what the page's title and first line say of its only run."""
    kept = [k for k, name in enumerate(table.columns) if name not in said]
    rows = [[row[k] for k in kept] for row in table.rows]
    return Table(table.title, [table.columns[k] for k in kept], rows, table.note, table.anchor, table.whole)


def verdict_tables(summary: Summary) -> Tables:
    """What was judged, and the breaks in full."""
    return {
        "promises": [msgspec.to_builtins(line) for line in summary.lines],
        "broken": [
            {key: row.get(key) for key in ("path", "run", "promise", "text", "example")} for row in summary.broken
        ],
    }


def write_tables(directory: str | os.PathLike[str], tables: Tables) -> list[Path]:
    """Every table as NAME.csv and NAME.json."""
    out = Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows([["" if row.get(key) is None else row[key] for key in columns] for row in rows])
        (out / f"{name}.json").write_bytes(msgspec.json.encode(rows) + b"\n")
        written += [out / f"{name}.csv", out / f"{name}.json"]
    return written


# ---------------------------------------------------------------------------------------------------------- pictures


def _trace_of(units: Sequence[Unit], run: str | None = None, path: str | None = None) -> Trace | None:
    """A run with its rows in memory, if it is small enough to be drawn; without a name the first one."""
    for unit in units:
        if unit.bytes > PICTURE_BYTES or path not in (None, unit.path):
            continue
        try:
            for header, columns in runs_of(unit, []):
                if run in (None, header.run):
                    return Trace(header, columns.rows()) if len(columns) <= PICTURE_ROWS else None
        except TraceError:
            continue  # the page names what cannot be read in a table of its own
    return None


def _pictures(units: Sequence[Unit]) -> list[Plot]:
    trace = _trace_of(units)
    if trace is None:
        return []
    said = "Time runs to the right, one lane per member; numbers count the frames a member delivered."
    return [Plot("The first hundred events", spacetime.svg(trace), said)]


def _break_picture(row: dict[str, Any], rows: list[dict[str, Any]], units: Sequence[Unit]) -> str:
    trace = _trace_of(units, row["run"], row["path"]) if rows else None
    promise = CATALOGUE[row["promise"]]
    title = f"{promise.id} {promise.name}"
    return spacetime.svg(trace, BREAK_EVENTS, rows, title) if trace is not None else ""
