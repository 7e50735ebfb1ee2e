"""ordercast papers: the tables and figures of the papers, published beside ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import Whole, emit, force_option, going_on, json_option, progress, resumable_directory
from ordercast.cli.spark_options import alone, open_session, spark_options

if TYPE_CHECKING:
    from ordercast.papers.book import Chosen
    from ordercast.papers.reproduce import Result

RECORD = "papers.json"


@click.command("papers")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--table", "tables", type=Whole(1, 1000), multiple=True, help="Only this table; may be given again.")
@click.option("--figure", "figures", type=Whole(1, 1000), multiple=True, help="Only this figure; may be given again.")
@click.option("--claim", "claims", multiple=True, metavar="WORD", help="Only this claim; may be given again.")
@click.option("--list", "listing", is_flag=True, help="Say what there is, and run nothing.")
@click.option("--quick", is_flag=True, help="Few seeds and points: shapes and signs only.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="Directory (default: out/papers, with --quick out/papers-quick).",
)
@force_option
@click.option("--retry", is_flag=True, help="Run failed ones again.")
@click.option("--plain", is_flag=True, callback=alone, help="Without Spark, on the cores of this machine.")
@click.option("--tasks", type=Whole(1, 100_000), default=None, help="Into how many tasks the runs are cut.")
@spark_options
@json_option
def command(
    names: tuple[str, ...],
    tables: tuple[int, ...],
    figures: tuple[int, ...],
    claims: tuple[str, ...],
    listing: bool,
    quick: bool,
    out: Path | None,
    force: bool,
    retry: bool,
    plain: bool,
    tasks: int | None,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Run the experiments of the papers again (NAME: toto, totem, tomp, hybrid, dpg; else all) and put what was
    published beside what comes out here.

    Writes a page for each paper, and for each table, figure and claim its rows as CSV and JSON, and its plots.  All of
    it takes about half an hour, with --quick some minutes.  Started again, it goes on with what is not done.  Exit code
    1 if a value is outside and nothing explains it, a run failed or a promise broke.
    """
    from ordercast.papers import book, page, reproduce
    from ordercast.pipeline.sweep import done_count

    chosen = book.choose(names, tables, figures, claims)
    if listing:
        emit({"papers": [_listed(paper, items) for paper, items in chosen]}, as_json, lambda: _list(chosen))
        return 0
    out = out or Path("out") / ("papers-quick" if quick else "papers")
    resumable_directory(out, force, RECORD)
    (out / RECORD).write_text("{}\n")
    since = time.monotonic()
    with progress("papers") as shown, going_on(out, lambda: f"{done_count(out / 'runs')} runs were finished"):

        def watch(done: int, total: int) -> None:
            shown.total = total
            shown.at(done, f"{done} of {total} runs")

        spark = None if plain else open_session(master, conf, shown, small=True)
        shown.say("papers")
        found = reproduce.run(chosen, out, quick=quick, spark=spark, tasks=tasks, retry=retry, watch=watch)
        for result in found:
            page.write_item(out, result)
        pages = [page.write_page(out, reproduce.finished(paper, out, quick)) for paper, _ in chosen]
    ok = all(result.ok for result in found)
    counts = reproduce.tally(found)
    told = {
        "ok": ok,
        "rows": counts,
        "items": [_told(each) for each in found],
        "pages": [str(path) for path in pages],
        "wall_seconds": round(time.monotonic() - since, 3),
    }
    emit(told, as_json, lambda: _words(found, pages, time.monotonic() - since))
    return 0 if ok else 1


def _listed(paper: Any, items: list[Any]) -> dict[str, Any]:
    kept = [{"item": item.words, "title": item.title, "listing": item.kind == "listing", "beyond": item.beyond,
             "rows": len(item.row)} for item in items]  # fmt: skip
    return {"name": paper.name, "title": paper.title, "items": kept}


def _list(chosen: Chosen) -> str:
    lines = []
    for paper, items in chosen:
        lines.append(f"{paper.name}: {paper.title}")
        for item in items:
            more = " (a listing)" if item.kind == "listing" else " (beyond the paper)" if item.beyond else ""
            lines.append(f"  {item.words:<22} {item.title}{more}")
    return "\n".join(lines)


def _told(result: Result) -> dict[str, Any]:
    import msgspec

    item = result.item
    return {
        "paper": result.paper.name, "item": item.words, "title": item.title, "beyond": item.beyond, "ok": result.ok,
        "runs": result.runs, "seconds": round(result.seconds, 3), "failed": result.failed, "broken": result.broken,
        "rows": [msgspec.to_builtins(line) for line in result.lines],
    }  # fmt: skip


def _words(found: list[Result], pages: list[Path], seconds: float) -> str:
    from ordercast.papers import page

    parts = [page.words(result) for result in found]
    return "\n\n".join([*parts, f"{page.summary(found)}; {seconds:.1f} s\n" + "\n".join(map(str, pages))])
