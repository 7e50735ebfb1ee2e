"""Writes the pages of docs/ that follow from the code: `make docs`.  With --check: says which are out of date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import graph_picture

from ordercast import cli, registry
from ordercast.membership.automaton import TABLE, State
from ordercast.sim.faults import Crash, Loss, Pause
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Edge, Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace import spacetime
from ordercast.trace.schema import Level
from ordercast.types import PRIMARY_MAJORITY
from ordercast.verify import CATALOGUE
from ordercast.verify.plain import CHECKS

ROOT = Path(__file__).resolve().parents[1]

CLI_HEAD = """\
# Commands

Every command has `--help` and `--json`: one JSON object on one line, with `"version": 1`. `member`: one per event.
Progress goes to stderr, and only to a terminal. An error is one sentence on stderr, begun by `ordercast: COMMAND:`.
Exit codes: 0 ok, 1 a promise was broken or the run failed, 2 usage, 130 interrupted.
This page is written by `make docs` from the commands themselves.
"""


def cli_page() -> str:
    context = click.Context(cli.group, info_name="ordercast")
    parts = [CLI_HEAD]
    for name in cli.group.list_commands(context):
        command = cli.group.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(own))
        parts.append(f"## {name}\n\n`ordercast {name} {usage}`\n\n{_paragraphs(command.help or '')}\n")
        rows = [record for param in command.params if (record := param.get_help_record(own)) is not None]
        if rows:
            parts.append("| option | |\n|---|---|\n" + "".join(f"| `{_cell(a)}` | {_cell(b)} |\n" for a, b in rows))
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


MARK = "<!-- written by `make docs` from here on -->\n"
PROMISES_HEAD = """
## Every promise
S: safety, nothing bad happens. L: liveness, something good happens, judged where members stay up and connected.
*Checked by*: the function in `src/ordercast/verify/plain/`; the same over arrays is in `verify/columns/`.
*Tests*: the folders and files under `tests/` that name it; runs of every protocol are judged by it besides.
A promise that no protocol makes yet is listed all the same: its number is taken.

| id | promise | checked by | protocols that promise it | tests |
|---|---|---|---|---|
"""


def guarantees_page() -> str:
    """What a person wrote, up to the mark, then the table of all promises."""
    written = (ROOT / "docs/guarantees.md").read_text().partition(MARK)[0]
    tests = {
        str(path.relative_to(ROOT / "tests")): set(re.findall(r"\b[SLAQ]\d+\b", path.read_text()))
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.relative_to(ROOT / "tests").parts[0] not in ("trace", "unit", "workload")
    }
    promisers: dict[str, list[str]] = {id: [] for id in CATALOGUE}
    for name in registry.names():
        info = registry.get(name)
        for id in {id for ids in info.promises.values() for id in ids}:
            promisers[id].append(name)
        if PRIMARY_MAJORITY in info.partitions:
            promisers["S8"].append(f"{name} (`{PRIMARY_MAJORITY}`)")
    for id in CATALOGUE:
        if id.startswith("A"):
            promisers[id].append("replicas above any with views and a total order")
    rows = []
    for id, promise in CATALOGUE.items():
        by = (
            f"`{CHECKS[id].__module__.rpartition('.')[2]}.{CHECKS[id].__name__}`" if id in CHECKS else promise.elsewhere
        )
        named = [f"`{name}`" for name, ids in tests.items() if id in ids]
        level = "" if promise.level <= Level.DELIVER else " (needs level `full`)"
        words = f"**{promise.name}**: {promise.statement}{level}"
        rows.append(f"| {id} | {words} | {by} | {', '.join(promisers[id]) or '-'} | {', '.join(named) or '-'} |\n")
    return written + MARK + PROMISES_HEAD + "".join(rows)


AUTOMATON_HEAD = """
## The automaton
What moves a member from state to state; an event that is not listed for a state is not acted upon.

| in | when | it does | and is then in |
|---|---|---|---|
"""


def membership_page() -> str:
    """What a person wrote, up to the mark, then the automaton's table."""
    written = (ROOT / "docs/design/membership.md").read_text().partition(MARK)[0]
    rows = [
        f"| {state.value} | {what.value} | {rule.act.words} | {rule.to.value} |\n"
        for (state, what), rule in sorted(TABLE.items(), key=lambda item: list(State).index(item[0][0]))
    ]
    return written + MARK + AUTOMATON_HEAD + "".join(rows)


def picture_of_one_order() -> str:
    scenario = Scenario(protocol="token_site", members=3, messages=6, seed=3, load=Load(rate=20000.0))
    return spacetime.svg(run(scenario, level="full").trace, title="Three members, six messages, one order") + "\n"


def picture_of_a_crash() -> str:
    load, crash = Load(rate=60.0, start_ms=200.0), Crash(member=2, at_ms=219.0)
    scenario = Scenario(protocol="totem", members=3, messages=12, seed=5, load=load, faults=(crash,))
    title = "Member 2 dies: the others agree on what came before, then go on"
    return spacetime.svg(run(scenario, level="deliver").trace, title=title) + "\n"


def picture_of_a_causal_crash() -> str:
    """The last message of member 2 reaches member 1 alone."""
    load, crash = Load(rate=60.0, start_ms=200.0), Crash(member=2, at_ms=219.0)
    lost = Loss(at_ms=205.0, until_ms=240.0, p=1.0, pairs=("2>3",), packets=("Data",))
    scenario = Scenario(protocol="causal", members=3, messages=12, seed=5, load=load, faults=(lost, crash))
    title = "Member 2 dies: who goes on has what one of them had, then the next view"
    return spacetime.svg(run(scenario, level="deliver").trace, title=title) + "\n"


def picture_of_votes(protocol: str) -> str:
    scenario = Scenario(protocol=protocol, members=3, messages=6, seed=3, load=Load(rate=3000.0))
    title = f"{protocol}: three members, six messages, one order"
    return spacetime.svg(run(scenario, level="full").trace, title=title) + "\n"


def picture_of_stamps(protocol: str) -> str:
    scenario = Scenario(protocol=protocol, members=3, messages=6, seed=3, load=Load(rate=20000.0))
    title = f"{protocol}: everybody stamps, the sender decides, all deliver in one order"
    return spacetime.svg(run(scenario, level="full").trace, title=title) + "\n"


def picture_of_an_absence() -> str:
    load, away = Load(regime="quasi", rate=20.0, start_ms=200.0), Pause(member=3, at_ms=240.0, for_ms=140.0)
    quick = {"deliv_cycle": 20}
    scenario = Scenario(
        protocol="dpg", options=quick, members=3, messages=18, seed=3, load=load, faults=(away,), timeout_ms=40.0
    )
    title = "dpg: member 3 stands still; nobody waits, and it goes on where the others are"
    return spacetime.svg(run(scenario, level="deliver").trace, title=title) + "\n"


def picture_of_a_leak() -> str:
    trace = run(Scenario.from_file(ROOT / "examples/quasi.toml"), level="deliver").trace
    title = "dpg: only 3 heard whether 1 or 2 spoke first, and stands still; 2 decides by time, and is wrong"
    return spacetime.svg(trace, title=title) + "\n"


def picture_of_promises() -> str:
    load = Load(regime="periodic", rate=400.0, start_ms=60.0)
    scenario = Scenario(protocol="symmetric", members=3, messages=6, seed=3, load=load)
    title = "symmetric: a frame is delivered when all have promised larger numbers"
    return spacetime.svg(run(scenario, level="full").trace, title=title) + "\n"


def picture_of_two_rings() -> str:
    """1 and 2 on one ring, 4 and 5 on the other, 3 on both."""
    load = Load(regime="periodic", rate=100.0, start_ms=300.0)
    scenario = Scenario(
        protocol="multiring", members=5, senders=(1, 5), messages=4, seed=3, load=load,
        nets=(Net(members=(1, 2, 3)), Net(members=(3, 4, 5))),
    )  # fmt: skip
    title = "multiring: 3 joins the rings of 1 2 3 and 3 4 5; all deliver in one order"
    return spacetime.svg(run(scenario, level="full").trace, title=title) + "\n"


def picture_of_roles() -> str:
    """1, 2 and 3 are close to each other, 4 and 5 far away; 1 and 4 give tickets."""
    far = tuple(Edge(a=a, b=b, us=5000.0) for a in (1, 2, 3) for b in (4, 5))
    net = Net(model="links", delay=Delay("constant", mean_us=300.0), edges=far, mbit=0.0)
    load = Load(regime="periodic", rate=100.0, start_ms=300.0)
    scenario = Scenario(
        protocol="hybrid", members=5, messages=6, seed=3, load=load, nets=(net,), timeout_ms=200.0,
        options={"active": [1, 4]},
    )  # fmt: skip
    title = "hybrid: 1 and 4 give tickets, each for those that are close to it"
    return spacetime.svg(run(scenario, level="full").trace, title=title) + "\n"


PICTURES = {
    "docs/img/hybrid.svg": picture_of_roles,
    "docs/img/symmetric.svg": picture_of_promises,
    "docs/img/dpg.svg": picture_of_an_absence,
    "docs/img/dpg_leak.svg": picture_of_a_leak,
    "docs/img/multiring.svg": picture_of_two_rings,
    "docs/img/dpg_graph.svg": graph_picture.picture,
    "docs/img/allack.svg": lambda: picture_of_votes("allack"),
    "docs/img/toto.svg": lambda: picture_of_votes("toto"),
    "docs/img/one_order.svg": picture_of_one_order,
    "docs/img/crash.svg": picture_of_a_crash,
    "docs/img/causal_crash.svg": picture_of_a_causal_crash,
    "docs/img/abcast.svg": lambda: picture_of_stamps("abcast"),
    "docs/img/tomp.svg": lambda: picture_of_stamps("tomp"),
}
PAGES = {
    "docs/reference/cli.md": cli_page,
    "docs/guarantees.md": guarantees_page,
    "docs/design/membership.md": membership_page,
}


def lost_pages() -> list[str]:
    """Pages of docs/ that nobody reaches from docs/index.md."""
    start = ROOT / "docs/index.md"
    reached, todo = {start}, [start]
    while todo:
        page = todo.pop()
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text()):
            goal = (page.parent / target).resolve()
            if goal.exists() and goal not in reached:
                reached.add(goal)
                todo.append(goal)
    return [str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")) if page not in reached]


def main() -> int:
    stale = 0
    for name in lost_pages():
        print(f"{name} cannot be reached from docs/index.md: link it", file=sys.stderr)
        stale = 1
    checking = "--check" in sys.argv[1:]
    for name, page in (PAGES if checking else PAGES | PICTURES).items():
        path, text = ROOT / name, page()
        if path.exists() and path.read_text() == text:
            continue
        if checking:
            print(f"{name} is out of date: run `make docs`", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text)
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
