"""`ordercast simulate`: one run in virtual time, judged by the promises."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import (
    Choice,
    Protocol,
    Seed,
    Whole,
    emit,
    force_option,
    json_option,
    out_option,
    output_directory,
    progress,
    service_option,
)
from ordercast.errors import UsageError
from ordercast.limits import MEMBERS_MAX, MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from ordercast.sim.outcome import Outcome
    from ordercast.sim.scenario import Scenario
    from ordercast.sim.world import World
    from ordercast.verify import Verdict


@click.command("simulate")
@click.option("--protocol", type=Protocol(), default=None, help="One of `ordercast protocols`; else totem.")
@click.option("--members", type=Whole(1, MEMBERS_MAX), default=None, help="How many members, ids 1..N; else 3.")
@click.option("--messages", type=Whole(0, 10**9), default=None, help="How many messages in all; else 1000.")
@click.option("--size", type=Whole(0, MESSAGE_BYTES_MAX), default=None, help="Bytes of a message; else 64.")
@click.option("--seed", type=Seed(), default=None, help="All randomness follows from it; else 1.")
@service_option
@click.option(
    "--scenario", "file", type=click.Path(path_type=Path), default=None, help="TOML file; other options change it."
)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Any key of a scenario, as load.rate=50.")
@out_option
@force_option
@click.option(
    "--trace",
    type=Choice("off", "deliver", "full", "record"),
    default="full",
    show_default=True,
    help="What is traced; by `off` nothing is, and nothing judged.",
)
@json_option
def command(
    file: Path | None,
    changes: tuple[str, ...],
    out: Path | None,
    force: bool,
    trace: str,
    as_json: bool,
    **given: Any,
) -> int:
    """Run a group in virtual time, from a seed, and judge it by the promises.

    The same seed and scenario give the same run, digest included, on any machine.
    """
    if trace == "record" and out is None:
        raise UsageError("--trace record: expected --out DIR beside it, for the recordings")
    from ordercast.sim.world import World

    scenario = build(file, changes, given)
    world = World(scenario, level=trace, record=out / "record" if out is not None else None)
    if out is not None:  # all that can be wrong has been told
        output_directory(out, force)
    outcome, verdicts, wall = carry_out(world, trace)
    result = summary(scenario, outcome, verdicts, wall)
    if out is not None:
        write(out, scenario, outcome, result)
    emit(result, as_json, lambda: _words(result, verdicts))
    return 1 if result["violations"] else 0


def build(file: Path | None, changes: tuple[str, ...], given: dict[str, Any]) -> Scenario:
    """The file's scenario, or the default one, with what the command line changes in it."""
    from ordercast.sim.scenario import Scenario

    place = str(file) if file is not None else "scenario"
    table = Scenario.from_file(file).to_dict() if file is not None else {}
    return Scenario.from_dict(change(table, given, changes), place)


def change(table: dict[str, Any], given: dict[str, Any], changes: tuple[str, ...]) -> dict[str, Any]:
    """What options and --set say, put into a scenario's table."""
    for name, value in given.items():
        if value is not None:
            table["sizes" if name == "size" else name] = [value] if name == "size" else value
    for words in changes:
        key, sign, text = words.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"--set {words!r}: expected KEY=VALUE, as load.rate=50")
        _put(table, key.strip().split("."), _value(text.strip()), words)
    return table


def _put(table: dict[str, Any], path: list[str], value: Any, change: str) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise UsageError(f"--set {change!r}: {name} holds no keys")
    table[path[-1]] = value


def _value(text: str) -> Any:
    """As in TOML; a bare word is a string."""
    from ordercast.toml_input import value_of

    try:
        return value_of(text)
    except ValueError:
        return text


def carry_out(world: World, level: str) -> tuple[Outcome, list[Verdict], float]:
    with progress("simulating", world.scenario.messages) as line:
        world.watch.tell = line.at
        began = time.perf_counter()
        outcome = world.run()
        wall = time.perf_counter() - began
        line.say("judging")
        verdicts = judge(outcome, level)
    return outcome, verdicts, wall


def judge(outcome: Outcome, level: str) -> list[Verdict]:
    if level == "off":
        return []
    from ordercast.verify import check

    return check(outcome.trace)


def summary(scenario: Scenario, outcome: Outcome, verdicts: list[Verdict], wall: float) -> dict[str, Any]:
    traced = outcome.trace.header.level != "off"
    broken = [v for v in verdicts if v.state == "broken"]
    return {
        "protocol": scenario.protocol,
        "service": outcome.trace.header.service,
        "members": scenario.members,
        "seed": scenario.seed,
        "messages": outcome.messages,
        "delivered": outcome.delivered,
        "deliveries": outcome.deliveries,
        "events": outcome.events,
        "datagrams": outcome.datagrams,
        "violations": len(broken) if traced else None,
        "broken": [v.promise for v in broken],
        "cannot_judge": [v.promise for v in verdicts if v.state == "cannot judge"],
        "nothing_to_judge": [v.promise for v in verdicts if v.state == "nothing to judge"],
        "held": [v.promise for v in verdicts if v.state == "holds"],
        "examples": [{"promise": v.promise, "text": v.text, "rows": v.example} for v in broken if not v.told_by],
        "digest": outcome.digest if traced else None,
        "ended": outcome.ended,
        "faults": dict(outcome.faults),
        "drops": dict(outcome.drops),
        "sim_seconds": outcome.sim_ns / 1e9,
        "wall_seconds": round(wall, 3),
    }


def write(out: Path, scenario: Scenario, outcome: Outcome, result: dict[str, Any]) -> None:
    """The scenario, the figures, and the trace."""
    import msgspec

    (out / "scenario.toml").write_text(scenario.to_toml(), encoding="utf-8")
    (out / "result.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    if outcome.trace.header.level != "off":
        from ordercast.trace.parquet import write as write_trace

        (out / "trace").mkdir()
        write_trace(out / "trace" / "run.parquet", [outcome.trace])


def _words(result: dict[str, Any], verdicts: list[Verdict]) -> str:
    ended = {
        "delivered": "everything was delivered",
        "calm": "nothing moved any more",
        "limit": "the limit of virtual time was reached",
    }[result["ended"]]
    lines = [
        f"{result['protocol']} ({result['service']}), {result['members']} members, seed {result['seed']}",
        f"  {result['messages']} messages submitted, {result['delivered']} delivered at the slowest member",
        f"  {result['events']} events, {result['datagrams']} datagrams in {result['sim_seconds']:.3f} s of virtual time"
        f" ({result['wall_seconds']:.2f} s here); {ended}",
    ]
    for name in ("faults", "drops"):
        if result[name]:
            lines.append(f"  {name}: " + ", ".join(f"{word} {n}" for word, n in sorted(result[name].items())))
    if result["digest"]:
        lines.append(f"  digest {result['digest']}")
    for verdict in verdicts:
        if verdict.told_by:
            lines.append(f"  {verdict.state}: {verdict.promise}, the same finding as {verdict.told_by}")
        elif verdict.state not in ("holds", "nothing to judge"):
            lines.append(f"  {verdict.state}: {verdict.text}")
            lines += [f"      {row}" for row in verdict.example]
    if result["nothing_to_judge"]:
        lines.append(f"  nothing to judge: {' '.join(result['nothing_to_judge'])}")
    if verdicts:
        lines.append(f"  promises held: {' '.join(result['held']) or 'none'}")
        lines.append("  a promise was BROKEN" if result["broken"] else "  no promise was broken")
    else:
        lines.append("  nothing was judged: the run was not traced")
    return "\n".join(lines)
