"""`ordercast run`: a group of real processes on this machine, a workload, faults, and the verdict."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import (
    BadValue,
    Choice,
    Number,
    Whole,
    emit,
    force_option,
    json_option,
    members_on,
    members_option,
    messages_option,
    mode_option,
    option_option,
    out_option,
    output_directory,
    progress,
    protocol_option,
    protocol_options,
    rings_option,
    say_error,
    service_option,
    size_option,
)
from ordercast.limits import MEMBERS_MAX
from ordercast.types import ALL_CONTINUE, POLICIES
from ordercast.words import short

if TYPE_CHECKING:
    from ordercast.lab.launcher import Result
    from ordercast.lab.run_plan import RunPlan

DEFAULT_OUT = Path("out/run")
FLOOD_RATE = 100_000  # messages a second that a group may well take when nothing holds the load back


class At(click.ParamType):
    """`2@1.5`: member 2, 1.5 seconds after the load began."""

    name = "i@t"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, float]:
        member, _, seconds = str(value).partition("@")
        try:
            at = float(seconds)
        except ValueError:
            at = math.nan
        if not (member.isascii() and member.isdigit() and len(member) <= 9) or not 0 <= at <= 86_400:
            raise BadValue(f"{short(value)}: expected MEMBER@SECONDS, such as 2@1.5", ctx, param)
        return int(member), at


@click.command("run")
@protocol_option
@members_option
@messages_option
@size_option
@click.option("--senders", type=Whole(1, MEMBERS_MAX), default=None, help="How many of them send; by default all.")
@service_option
@click.option("--rate", type=Number(0, above=True), default=None, help="Messages per second in all; else at once.")
@click.option(
    "--kill",
    type=At(),
    multiple=True,
    help="Kill member i (0: the tagger) with SIGKILL, t seconds into the load; give a --rate, else it is soon over.",
)
@click.option("--restart", type=At(), multiple=True, help="Start it again; times as for --kill.")
@click.option("--pause", type=At(), multiple=True, help="Stop member i with SIGSTOP.")
@click.option("--resume", type=At(), multiple=True, help="Let it go on.")
@rings_option
@mode_option
@click.option(
    "--partition",
    type=Choice(*POLICIES),
    default=ALL_CONTINUE,
    show_default=True,
    help="What the parts of a split group may do: all go on, or only the one with a majority.",
)
@option_option
@click.option(
    "--trace",
    type=Choice("deliver", "full", "record"),
    default="deliver",
    show_default=True,
    help="What is traced; `full` costs speed, `record` more.",
)
@out_option
@force_option
@click.option(
    "--verify",
    type=Choice("spark", "plain", "none"),
    default="spark",
    show_default=True,
    help="What judges the run: Spark, the plain checkers (starts sooner), or nothing.",
)
@json_option
def command(
    protocol: str,
    members: int,
    messages: int,
    size: int,
    senders: int | None,
    service: str | None,
    rate: float | None,
    kill: tuple[tuple[int, float], ...],
    restart: tuple[tuple[int, float], ...],
    pause: tuple[tuple[int, float], ...],
    resume: tuple[tuple[int, float], ...],
    rings: tuple[tuple[int, ...], ...],
    mode: str,
    partition: str,
    options: tuple[str, ...],
    trace: str,
    out: Path | None,
    force: bool,
    verify: str,
    as_json: bool,
) -> int:
    """Start a group of real processes here, send a workload, verify the run.

    Writes group.toml, traces and an HTML report into the output directory (out/run by default) and prints one table:
    each promise, its verdict, and how much was judged.  Exit code 1 if a promise was broken or the run failed.
    """
    import asyncio

    from ordercast.lab.launcher import launch
    from ordercast.lab.run_plan import Fault, RunPlan, check

    asked = {"kill": kill, "restart": restart, "pause": pause, "resume": resume}
    members = members_on(rings, members)
    faults = [Fault(kind, i, t) for kind, times in asked.items() for i, t in times]
    plan = check(
        RunPlan(
            protocol=protocol,
            members=members,
            messages=messages,
            size=size,
            senders=senders or 0,
            service=service or "",
            rate=rate or 0.0,
            faults=tuple(faults),
            mode=mode,
            level=trace,
            rings=rings,
            partition=partition,
            options=protocol_options(options, protocol, members),
        )
    )
    directory = output_directory(out or DEFAULT_OUT, force).resolve()
    if words := late(plan):
        say_error(f"run: {words}")
    with progress(f"{protocol}: {members} members", messages) as bar:
        result = asyncio.run(launch(plan, directory, bar.at))
    with progress(f"verifying with {verify}") as bar:
        bar.say(f"verifying with {verify} ...")
        verdicts, report = _judge(result, verify)
    broken = [v for v in verdicts if v["verdict"] == "broken"]
    obj = {
        "protocol": protocol,
        "members": members,
        "asked": messages,
        "messages": result.sent,
        "delivered": result.delivered,
        "seconds": round(result.seconds, 3),
        "service": result.service,
        "partition": partition,
        "directory": str(directory),
        "faults": result.faults,
        "views": result.views,
        "verify": verify,
        "verdicts": verdicts,
        "report": str(report) if report else None,
        "violations": len(broken),
    }
    emit(obj, as_json, lambda: _table(obj))
    return 1 if broken else 0


def late(plan: RunPlan) -> str:
    """What to tell whoever asked for a fault that will hit no load any more; nothing if the load lasts until then."""
    end = plan.messages / (plan.rate or FLOOD_RATE)
    load = f"{plan.messages} messages " + (f"at {plan.rate:g} a second" if plan.rate else "at once, without --rate")
    away: dict[int, float] = {}
    for fault in sorted(plan.faults, key=lambda f: f.at):
        if fault.kind in ("restart", "resume"):
            end += fault.at - away.pop(fault.member)  # what it has not sent comes later
        elif fault.at >= end:
            name = f"--{fault.kind} {fault.member}@{fault.at:g}"
            over = f"is over after {end:.3g} s" if plan.rate else "may be over long before"
            return f"{name} comes late: the load ({load}) {over}, the run waits for it all the same"
        else:
            away[fault.member] = fault.at
    return ""


def _judge(result: Result, verify: str) -> tuple[list[dict[str, Any]], Path | None]:
    """The verdicts, and the page that shows them."""
    from ordercast.cli import judge
    from ordercast.pipeline.verify import judge_paths

    rows = judge_paths([result.directory / "trace"], verify) if verify != "none" else []
    return judge.verdicts(rows), judge.report(result.directory, rows, verify)


def _table(obj: dict[str, Any]) -> str:
    from ordercast.cli import judge

    rate = obj["delivered"] / obj["seconds"] if obj["seconds"] else 0
    more = obj["messages"] - obj["asked"]
    extra = f" ({more} more than asked: a killed member had not yet told all it sent)" if more > 0 else ""
    lines = [
        f"{obj['protocol']}, {obj['members']} members, {obj['service']}: {obj['messages']} messages sent{extra}, "
        f"{obj['delivered']} delivered everywhere in {obj['seconds']:g} s ({rate:,.0f}/s)"
    ]
    lines += [f"  {words}" for words in obj["faults"]]
    seen: set[str] = set()
    for view in obj["views"]:
        if view["kind"] == "regular" and view["id"] not in seen:
            seen.add(view["id"])
            minor = ", not primary" if view.get("primary") is False else ""
            lines.append(f"  view {view['id']} of {view['members']}{minor} at {view['at_ms']} ms: {view['cause']}")
    if obj["verify"] == "none":
        lines.append("  not verified (--verify none)")
    else:
        lines.append(f"  promises, verified with {obj['verify']}:")
        lines += judge.table(obj["verdicts"])
        found = Counter(v["verdict"] for v in obj["verdicts"])
        rest = {"cannot be judged": found["cannot judge"], "had nothing to judge": found["nothing to judge"]}
        said = f"  {found['holds']} of {len(obj['verdicts'])} promises hold, {obj['violations']} broken"
        lines.append(said + "".join(f", {count} {what}" for what, count in rest.items() if count))
    if obj["report"]:
        lines.append(f"  report: {obj['report']}")
    lines.append(f"  everything is in {obj['directory']}")
    return "\n".join(lines)
