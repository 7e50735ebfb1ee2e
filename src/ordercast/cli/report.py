"""ordercast report: one HTML file of recorded runs, and the tables behind it."""

from __future__ import annotations

from pathlib import Path

import click

from ordercast.cli.common import emit, output_directory, progress
from ordercast.cli.measure import collect
from ordercast.cli.spark_options import Reading, trace_options


@click.command("report")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/report"), show_default=True, help="Directory."
)
@click.option("--title", default="", help="Of the page.")
@trace_options
def command(reading: Reading, out: Path, title: str, as_json: bool) -> int:
    """Make one self-contained HTML file of the traces at PATH...: what ran, what held, what broke, how it performed."""
    from ordercast.pipeline import report, verify
    from ordercast.trace.find import find

    units = find(reading.paths)
    output_directory(out, reading.force)
    with progress("report") as shown:
        tables, _ = collect(reading, shown)
        shown.say("verifying ...")
        if reading.plain:
            summary = verify.summarise_rows(verify.verify_here(reading.paths))
        else:
            from ordercast.pipeline.session import session

            summary = verify.summarise(verify.verify_units(session(), units, None, reading.tasks))
        shown.say("drawing ...")
        page = report.write(out / "report.html", summary, tables, units=units, title=title, engine=reading.engine)
        written = report.write_tables(out / "tables", tables | report.verdict_tables(summary))
    result = {
        "report": str(page),
        "tables": [str(path) for path in written],
        "runs": summary.runs,
        "ok": summary.ok,
        "broken_total": summary.broken_total,
    }
    emit(
        result,
        as_json,
        f"{page}\n{'every promise that could be judged held' if summary.ok else 'see what broke there'}",
    )
    return 0 if summary.ok else 1
