"""ordercast compare: one workload through several protocols, side by side."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ordercast.cli.common import (
    Protocol,
    Seeds,
    Whole,
    emit,
    force_option,
    json_option,
    output_directory,
    progress,
)
from ordercast.cli.measure import collect
from ordercast.cli.simulate import change
from ordercast.cli.spark_options import Reading, alone, open_session, spark_options
from ordercast.errors import UsageError
from ordercast.limits import MEMBERS_MAX, MESSAGE_BYTES_MAX
from ordercast.words import near

if TYPE_CHECKING:
    from ordercast.pipeline.compare import Line

MEMBERS, MESSAGES, SIZE = 5, 1000, 100  # where no scenario file says it


@click.command("compare")
@click.option(
    "--protocol",
    "protocols",
    type=Protocol(),
    multiple=True,
    help="One of them; may be given again. Else all with a total order.",
)
@click.option(
    "--scenario",
    "scene",
    default="lan",
    show_default=True,
    metavar="lan|wan|PATH",
    help="A network and load by name, or a scenario file.",
)
@click.option(
    "--members", type=Whole(1, MEMBERS_MAX), default=None, help=f"How many members; else {MEMBERS}, or the file's."
)
@click.option(
    "--messages", type=Whole(1, 10**9), default=None, help=f"How many messages in all; else {MESSAGES}, or the file's."
)
@click.option(
    "--size", type=Whole(0, MESSAGE_BYTES_MAX), default=None, help=f"Bytes of a message; else {SIZE}, or the file's."
)
@click.option("--seeds", type=Seeds(), default="1:4", show_default=True, help="From A up to, not including, B.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Any key of a scenario, as load.rate=50.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("out/compare"), show_default=True, help="Directory."
)
@force_option
@click.option("--plain", is_flag=True, callback=alone, help="Without Spark, on the cores of this machine.")
@spark_options
@json_option
def command(
    protocols: tuple[str, ...],
    scene: str,
    seeds: range,
    changes: tuple[str, ...],
    out: Path,
    force: bool,
    plain: bool,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    as_json: bool,
    **given: Any,
) -> int:
    """Run the same simulated workload through each protocol and put latency, traffic and promises side by side.

    Exit code 1 if a promise broke or a run failed.
    """
    from ordercast.pipeline import compare, sweep

    table = _table(scene, given, changes)
    wanted = compare.experiment(table, protocols or compare.ordering(), seeds, scene)
    output_directory(out, force)
    since = time.monotonic()
    options = sweep.Options(limit_s=wanted.limit_s, level="full", traces=True)  # so that every promise is judged
    with progress("compare", len(wanted.points)) as shown:

        def watch(done: int, total: int) -> None:
            shown.at(done, f"{done} of {total} runs")

        if plain:
            results = sweep.sweep_here(wanted, out, options=options, watch=watch)
        else:
            spark = open_session(master, conf, shown, small=True)
            shown.say("simulating ...")
            results = sweep.sweep(spark, wanted, out, options=options, watch=watch)
        reading = Reading((out / "trace",), plain, True, None, force, None, ())  # the session is open
        tables = collect(reading, shown)[0] if (out / "trace").exists() else {"latency": [], "throughput": []}
        found = compare.lines(results.to_pylist(), tables)
        lead = _lead(wanted.points[0].scenario, scene, len(seeds))
        page = compare.write(out / "report.html", found, lead=lead, traces=out / "trace")
    ok = all(line.ok for line in found)
    result = {
        "ok": ok,
        "scenario": scene,
        "seeds": [seeds.start, seeds.stop],
        "protocols": [msgspec.to_builtins(line) for line in found],
        "report": str(page),
        "traces": str(out / "trace"),
        "wall_seconds": round(time.monotonic() - since, 3),
    }
    emit(result, as_json, lambda: f"{lead}\n\n{words(found)}\n\n{page}")
    return 0 if ok else 1


def _table(scene: str, given: dict[str, Any], changes: tuple[str, ...]) -> dict[str, Any]:
    """The scenario as a table: by name or from a file, with what the command line changes."""
    from ordercast.pipeline.compare import SCENES
    from ordercast.sim.scenario import Scenario

    if scene in SCENES:
        usual = {"members": MEMBERS, "messages": MESSAGES, "sizes": [SIZE]}
        table = msgspec.to_builtins(SCENES[scene] | usual)
    elif not Path(scene).suffix and not Path(scene).exists():
        raise UsageError(f"--scenario {near(scene, SCENES)}: expected {' or '.join(SCENES)}, or a scenario file")
    else:
        table = Scenario.from_file(scene).to_dict()
    for key, option in (("protocol", "--protocol NAME"), ("seed", "--seeds A:B")):  # every run has its own
        if any(words.partition("=")[0].strip() == key for words in changes):
            raise UsageError(f"--set {key}: expected {option}, which says it")
    return change(table, given, changes)


def _lead(table: dict[str, Any], scene: str, seeds: int) -> str:
    from ordercast.sim.scenario import Scenario

    one = Scenario.from_dict(table)
    sizes = " or ".join(map(str, one.sizes))
    runs = f"{seeds} run{'' if seeds == 1 else 's'} of each"
    return f"{scene}: {one.members} members, {one.messages} messages of {sizes} bytes, {one.load.regime}; {runs}."


def words(found: list[Line]) -> str:
    from ordercast.pipeline.report import span

    heads = ("protocol", "service", "mean", "p50", "p99", "datagrams/msg", "bytes/delivery", "promises")
    rows = [heads] + [
        (line.protocol, line.service, span(line.mean_ns), span(line.p50_ns), span(line.p99_ns),
         _figure(line.datagrams_per_message), _figure(line.bytes_per_delivery), line.promises)
        for line in found
    ]  # fmt: skip
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    out = []
    for row in rows:
        cells = [
            cell.ljust(width) if k in (0, 1, 7) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip())
    out += [f"  {error}" for line in found for error in line.errors]
    return "\n".join(out)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
