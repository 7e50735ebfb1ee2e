"""A failure as a person wants it: what broke, the shrunk scenario, its events in order, a picture, and how to see it.

Written into one directory: `scenario.toml` (what `ordercast simulate --scenario` replays), `failure.txt`, and
`picture.svg` (a lane per member, the rows that show it marked).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from ordercast.sim.scenario import Scenario
from ordercast.swarm.judge import RAISES, Judgement, Maker, judge
from ordercast.swarm.shrink import messages_of
from ordercast.trace.schema import Kind, Row
from ordercast.trace.spacetime import svg
from ordercast.trace.trace import Trace
from ordercast.verify.catalogue import CATALOGUE
from ordercast.version import __version__

EVENTS_MAX = 300
SCENARIO, TEXT, PICTURE = "scenario.toml", "failure.txt", "picture.svg"
_TOLD = frozenset(
    map(int, (Kind.SUBMIT, Kind.ORIGINATE, Kind.DELIVER, Kind.VIEW, Kind.START, Kind.CRASH, Kind.LEAVE, Kind.PAUSE,
              Kind.RESUME, Kind.FAULT, Kind.STABLE, Kind.REFUSE, Kind.END))
)  # fmt: skip


class Failure(Struct, frozen=True):
    """One broken promise, shrunk."""

    seed: int
    promise: str
    options: str  # what the seed had expanded to
    scenario: dict[str, Any]
    steps: tuple[str, ...]
    runs: int
    members: int
    messages: int
    text: str
    picture: str


def describe_failure(
    seed: int, promise: str, options: str, scenario: Scenario, steps: tuple[str, ...], runs: int, maker: Maker | None
) -> Failure:
    """Run the shrunk scenario once more, with everything recorded."""
    wanted = () if promise == RAISES else (promise,) if promise in CATALOGUE else None
    judgement = judge(scenario, maker=maker, plain=True, promises=wanted, level="full")
    outcome = judgement.outcome
    messages = messages_of(judgement, scenario)
    text = _text(seed, promise, options, scenario, steps, runs, messages, judgement)
    marked = [row for found in judgement.breaks if found.promise == promise for row in found.example]
    picture = svg(outcome.trace, marked=marked, title=f"seed {seed}: {promise}") if outcome is not None else ""
    return Failure(seed, promise, options, scenario.to_dict(), steps, runs, scenario.members, messages, text, picture)


def write_failure(directory: Path, failure: Failure) -> Path:
    """Make the directory and its files; returns it."""
    directory.mkdir(parents=True, exist_ok=True)
    head = f"# ordercast {__version__}: seed {failure.seed} of the swarm, shrunk; it breaks {failure.promise}\n"
    scenario = Scenario.from_dict(failure.scenario)
    (directory / SCENARIO).write_text(head + scenario.to_toml(), encoding="utf-8")
    (directory / TEXT).write_text(failure.text, encoding="utf-8")
    if failure.picture:
        (directory / PICTURE).write_text(failure.picture, encoding="utf-8")
    return directory


# --------------------------------------------------------------------------------------------------------------- words


def _text(
    seed: int,
    promise: str,
    options: str,
    scenario: Scenario,
    steps: tuple[str, ...],
    runs: int,
    messages: int,
    judgement: Judgement,
) -> str:
    found = next((b for b in judgement.breaks if b.promise == promise), None)
    lines = [f"ordercast {__version__}, seed {seed}: {_headline(promise)}", ""]
    lines += [found.text if found is not None else "not seen again in the shrunk run", ""]
    lines += ["The seed expanded to:", f"  {options}", ""]
    lines += [
        f"Shrunk in {runs} runs to {scenario.members} members, {messages} messages, {len(scenario.faults)} faults:"
    ]
    lines += [f"  {step}" for step in steps] or ["  nothing could be left out"]
    lines += ["", "Replay it:", f"  ordercast simulate --scenario {SCENARIO}", "", "The scenario:", ""]
    lines += [f"  {line}" for line in scenario.to_toml().splitlines()]
    if found is not None and found.example:
        lines += ["", "The rows that show it:", ""]
        lines += ["  " + ", ".join(f"{key}={value}" for key, value in row.items()) for row in found.example]
    if judgement.outcome is not None:
        lines += ["", "What happened, in order:", "", *_events(judgement.outcome.trace)]
    return "\n".join(lines) + "\n"


def _headline(promise: str) -> str:
    if promise in CATALOGUE:
        return f"{promise} {CATALOGUE[promise].name} was broken"
    return "the run raised an error" if promise == RAISES else "the two forms of the checkers disagree"


def _events(trace: Trace) -> list[str]:
    rows = sorted((row for row in trace.rows if row.kind in _TOLD), key=lambda r: (r.time_ns, r.member, r.index))
    lines = [f"  {row.time_ns / 1e6:11.3f} ms  {_who(row):>9}  {_what(row)}" for row in rows[:EVENTS_MAX]]
    if len(rows) > EVENTS_MAX:
        lines.append(f"  ... {len(rows) - EVENTS_MAX} more")
    return lines


def _who(row: Row) -> str:
    return f"member {row.member}" if row.member else "simulator"


def _what(row: Row) -> str:
    word = Kind(row.kind).word
    detail = row.detail or {}
    if row.counter is not None:
        last = row.counter + (row.count or 1) - 1
        numbers = f"{row.counter}" if last == row.counter else f"{row.counter}-{last}"
        return f"{word} {row.sender}:{numbers}"
    if row.kind == Kind.VIEW:
        kind = "transitional view" if row.view_kind == 2 else "view"
        return f"{kind} {row.view_seq}.{row.view_rep} {list(row.members or ())} ({detail.get('cause', '')})"
    if row.kind == Kind.FAULT:
        member = f" member {detail['member']}" if "member" in detail else ""
        return f"fault {detail.get('class')} {detail.get('state')}{member}"
    if row.kind == Kind.STABLE:
        return f"stable {list(row.members or ())}"
    if row.kind == Kind.END:
        full = {name: size for name, size in (detail.get("queues") or {}).items() if size}
        return f"end, queues {full or 'empty'}" + (f", waits {detail['waits']}" if detail.get("waits") else "")
    return f"{word} {row.sender or ''} {detail.get('why', '')}".strip()
