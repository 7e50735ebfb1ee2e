"""What is kept of a hunt: who killed whom (killers.toml), why others live (survivors.toml), and a page of both."""

from __future__ import annotations

import json
import tomllib
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from msgspec import Struct
from tests.mutants.registry import MUTANTS

from ordercast.version import __version__

SURVIVORS = Path(__file__).with_name("survivors.toml")
KILLERS = Path(__file__).with_name("killers.toml")
HEAD = "# What kills each mutant, as `python -m tests.mutants --write` found it; `tried` counts the seeds up to there."


class Kill(Struct, frozen=True, omit_defaults=True):
    """The end of a mutant: by a seed, a directed scenario, a row of the membership's table, or a case."""

    promise: str
    tried: int
    seed: int | None = None
    scenario: str = ""
    row: str = ""
    case: str = ""

    @property
    def by(self) -> dict[str, Any]:
        """The run, as the hunt names it."""
        if self.row:
            return {"row": self.row}
        if self.case:
            return {"case": self.case}
        return {"scenario": self.scenario} if self.scenario else {"seed": self.seed}

    @property
    def words(self) -> str:
        return " ".join(f"{what} {which}" for what, which in self.by.items())

    def line(self) -> str:
        by = ", ".join(f"{what} = {json.dumps(which)}" for what, which in self.by.items())
        return f'{{ {by}, tried = {self.tried}, promise = "{self.promise}" }}'


def read() -> dict[str, Kill]:
    table = tomllib.loads(KILLERS.read_text(encoding="utf-8")) if KILLERS.exists() else {}
    return {name: Kill(**fields) for name, fields in table.items() if name in MUTANTS}


def reasons() -> dict[str, str]:
    """Why a mutant cannot be killed."""
    table: dict[str, str] = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))
    return table


def merged(killed: dict[str, Kill], alive: list[str]) -> dict[str, Kill]:
    """What was kept, brought up to date by a hunt that may have been for some of them only."""
    table = {name: kill for name, kill in read().items() if name not in alive} | killed
    return dict(sorted(table.items()))


def write(table: dict[str, Kill]) -> None:
    lines = [f"{name} = {kill.line()}" for name, kill in table.items()]
    KILLERS.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")


def page(table: dict[str, Kill], seeds: str) -> str:
    """Markdown: every mutant, what it breaks and what became of it."""
    known = reasons()
    alive = [name for name in sorted(MUTANTS) if name not in table]
    tried = [kill.tried for kill in table.values() if kill.seed is not None]
    share = 100 * len(table) // len(MUTANTS)
    lines = [
        "# Mutants", "",
        f"ordercast {__version__}, {date.today().isoformat()}, `python -m tests.mutants NAME ... --seeds {seeds}`, "
        "hunted in pieces ([how](../design/swarm.md)). Every kill below is run again by `make test`.", "",
        "| what | figure |", "|---|---|",
        f"| mutants | {len(MUTANTS)} |", f"| killed | {len(table)} ({share} %) |",
        f"| by a directed scenario | {sum(bool(kill.scenario) for kill in table.values())} |",
        f"| by a row of the membership's table | {sum(bool(kill.row) for kill in table.values())} |",
        f"| by a case on a part of a core | {sum(bool(kill.case) for kill in table.values())} |",
        f"| seeds until the kill: median, most | {median(tried):g}, {max(tried)} |" if tried else "",
        f"| alive, each explained below | {len(alive)} |", "",
        "## Killed", "",
        "`tests/mutants/scenarios` holds the directed scenarios. A row is one of "
        "[the table](../protocols/membership-figures.md) of what a fault may cost in views and time, with 5 members. "
        "A case is the smallest in which ToTo's ballots differ from the paper's definitions, driven by hand "
        "(`tests/mutants/cases.py`). `raises`: an assertion of the code itself.", "",
        "| mutant | area | what is wrong with it | killed by | seeds tried | promise |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, kill in sorted(table.items(), key=lambda item: (MUTANTS[item[0]].area, item[0])):
        mutant = MUTANTS[name]
        lines.append(f"| {name} | {mutant.area} | {mutant.breaks} | {kill.words} | {kill.tried} | {kill.promise} |")
    lines += ["", "## Alive", "", "| mutant | area | what is wrong with it | why it lives |", "|---|---|---|---|"]
    for name in alive:
        mutant = MUTANTS[name]
        lines.append(f"| {name} | {mutant.area} | {mutant.breaks} | {known.get(name, 'no reason is known')} |")
    return "\n".join(lines) + "\n"
