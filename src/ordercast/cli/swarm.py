"""ordercast swarm: search for broken promises with random faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import (
    Number,
    Protocol,
    Seeds,
    Whole,
    emit,
    force_option,
    interruptible,
    json_option,
    kept,
    progress,
    resumable_directory,
    say_error,
)
from ordercast.cli.spark_options import open_session, spark_options
from ordercast.errors import UsageError
from ordercast.words import short

if TYPE_CHECKING:
    from ordercast.cli.common import Progress
    from ordercast.swarm.campaign import Campaign
    from ordercast.swarm.runner import Result
    from ordercast.swarm.summary import Summary
    from ordercast.swarm.task import SeedRow, Task

_NOT_SHRUNK: dict[str, Any] = {"members": None, "messages": None, "faults": None, "directory": None}


@click.command("swarm")
@click.option("--protocol", "protocols", type=Protocol(), multiple=True, help="Only this one; may be given again.")
@click.option("--seeds", type=Seeds(), default="0:100", show_default=True, help="From A up to, not including, B.")
@click.option("--state", is_flag=True, help="With replicas of a ledger above the protocol, and calls on it.")
@click.option("--minutes", type=Number(above=True), default=None, help="Begin no seed after so long.")
@click.option("--jobs", type=Whole(1, 1024), default=None, help="Runs at once (default: one per core).")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Directory; an interrupted one goes on.")
@click.option("--summary", "page", type=click.Path(path_type=Path), default=None, help="Write a page of figures here.")
@click.option("--twice", is_flag=True, help="Run every seed in two processes with different hash seeds and compare.")
@click.option("--shrink", "shrink_s", type=Number(), default=60.0, show_default=True, help="Seconds; 0: not at all.")
@click.option("--quiet", is_flag=True, help="Print no line per seed.")
@force_option
@spark_options
@json_option
def command(
    protocols: tuple[str, ...],
    seeds: range,
    state: bool,
    minutes: float | None,
    jobs: int | None,
    out: Path | None,
    page: Path | None,
    twice: bool,
    shrink_s: float,
    quiet: bool,
    force: bool,
    master: str | None,
    conf: tuple[tuple[str, str], ...],
    as_json: bool,
) -> int:
    """Search for broken promises: each seed becomes a group, a load and faults, is simulated and judged.

    A seed gives the same run everywhere: `--protocol P --seeds 7` runs seed 7 again.  What breaks is made small and
    written as a scenario that `ordercast simulate --scenario` replays.
    """
    if twice and (out or minutes or page or master):
        raise UsageError(
            "swarm: --twice compares runs and keeps nothing: it excludes --out, --minutes, --summary, --master"
        )
    if page is not None:
        _writable(page)
    if twice:
        return _twice(protocols, seeds, state, jobs, as_json)
    from ordercast.swarm.campaign import PLAN, Campaign

    if out is not None:
        resumable_directory(out, force, PLAN)
    since = time.monotonic()
    with progress("swarm", len(seeds)) as shown:
        source = _on_spark(master, conf, shown) if master or conf else None
        campaign = Campaign(
            seeds, protocols, jobs=jobs, minutes=minutes, directory=out, source=source, shrink_s=shrink_s, state=state,
            tell=_teller(shown, quiet or as_json, len(seeds)),
        )  # fmt: skip
        try:
            with interruptible():
                summary = campaign.run()
        except KeyboardInterrupt:
            _say_kept(campaign, out)
            summary = campaign.summary()
            _tell(summary, seeds, since, _failures(campaign, summary, False), campaign, as_json)
            return 130
        shown.say("shrinking") if summary.broken and shrink_s else None
        failures = _failures(campaign, summary, shrink_s > 0)
    _tell(summary, seeds, since, failures, campaign, as_json)
    if page is not None:
        page.write_text(
            summary.page(f"Campaign of {summary.runs} seeds", _line(protocols, seeds, state)), encoding="utf-8"
        )
    return 1 if summary.broken else 0


def _writable(page: Path) -> None:
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        with page.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UsageError(f"--summary {short(page)}: cannot be written: {error.strerror}") from None


# --------------------------------------------------------------------------------------------------------------- words


def _teller(shown: Progress, quiet: bool, total: int) -> Callable[[SeedRow, int], None]:
    broken = 0

    def tell(row: SeedRow, done: int) -> None:
        nonlocal broken
        broken += not row.ok
        if not quiet:
            print(f"{row.options} | {'ok' if row.ok else 'BROKEN ' + ' '.join(b['promise'] for b in row.broken)}")
        shown.at(min(done, total), f"{done} of {total} seeds, {broken} broken")

    return tell


def _failures(campaign: Campaign, summary: Summary, shrink: bool) -> list[dict[str, Any]]:
    """Every seed that broke something; with what it was shrunk to, where it was."""
    shrunk: dict[int, dict[str, Any]] = {}
    for failure, place in campaign.failures(summary, say_error) if shrink else ():
        shrunk[failure.seed] = {
            "promise": failure.promise,
            "members": failure.members,
            "messages": failure.messages,
            "faults": len(failure.scenario.get("faults", ())),
            "directory": str(place),
        }
    return [
        {"seed": row.seed, "promise": row.broken[0]["promise"], **_NOT_SHRUNK, **shrunk.get(row.seed, {})}
        for row in summary.broken
    ]


def _say_kept(campaign: Campaign, out: Path | None) -> None:
    done = len(campaign.summary().digests)
    finished = f"{done} of {len(campaign.seeds)} seeds were finished"
    told = f"interrupted: {finished}, told below; with --out they are kept"
    say_error(f"swarm: {kept(finished, out) if out else told}")


def _tell(
    summary: Summary, seeds: range, since: float, failures: list[dict[str, Any]], campaign: Campaign, as_json: bool
) -> None:
    result = {
        "seeds": [seeds.start, seeds.stop],
        "resumed": campaign.resumed,
        **summary.as_dict(),
        "failures": failures,
        "wall_seconds": round(time.monotonic() - since, 3),
    }
    emit(result, as_json, lambda: _words(summary, result))


def _words(summary: Summary, result: dict[str, Any]) -> str:
    lines = [summary.words()]
    if result["resumed"]:
        lines.append(f"{result['resumed']} of them were done before")
    for row in summary.broken:
        lines.append(f"BROKEN {row.options}")
        lines += [f"    {found['promise']}: {found['text']}" for found in row.broken]
    for failure in (found for found in result["failures"] if found["directory"]):
        lines.append(
            f"seed {failure['seed']} {failure['promise']} shrunk to {failure['members']} members, "
            f"{failure['messages']} messages, {failure['faults']} faults: "
            f"ordercast simulate --scenario {failure['directory']}/scenario.toml"
        )
    return "\n".join(lines)


def _line(protocols: tuple[str, ...], seeds: range, state: bool) -> str:
    named = "".join(f" --protocol {name}" for name in protocols)
    return f"ordercast swarm{named}{' --state' if state else ''} --seeds {seeds.start}:{seeds.stop}"


# --------------------------------------------------------------------------------------------------------- other ways


def _twice(protocols: tuple[str, ...], seeds: range, state: bool, jobs: int | None, as_json: bool) -> int:
    from ordercast.swarm.campaign import compare

    with progress("swarm", 2 * len(seeds)) as shown:
        equal, different = compare(seeds, protocols, jobs=jobs, state=state, tell=shown.at)
    result = {
        "seeds": [seeds.start, seeds.stop],
        "equal": equal,
        "different": [{"seed": seed, "what": what} for seed, what in different],
    }
    words = [f"{len(seeds)} seeds run twice, in processes with different hash seeds: {equal} equal"]
    words += [f"DIFFERENT seed {seed}: {what}" for seed, what in different]
    emit(result, as_json, "\n".join(words))
    return 1 if different else 0


def _on_spark(
    master: str | None, conf: tuple[tuple[str, str], ...], shown: Progress
) -> Callable[[Iterable[Task]], Iterator[Result]]:
    from ordercast.pipeline.swarm import run_on

    spark = open_session(master, conf, shown)
    shown.say("swarm")
    return lambda tasks: run_on(spark, list(tasks))
