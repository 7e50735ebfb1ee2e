"""What the papers say: data/NAME.toml as structs, and which of it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ordercast.errors import UsageError
from ordercast.papers import NAMES
from ordercast.pipeline.experiment import merge
from ordercast.toml_input import Source
from ordercast.words import near

Value = bool | int | float | str
Share = Annotated[float, Meta(ge=0, lt=0.5)]
FRAME = frozenset(
    ("compute", "figures", "cut", "trace", "seconds", "quick")
)  # of an experiment, beside those of a sweep


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the tables."""


class Row(Part, frozen=True, kw_only=True):
    """One value that was published, or that is expected."""

    name: str
    unit: str = ""
    published: Value | None = None
    expected: Value | None = None
    relative: float | None = None
    absolute: float | None = None
    low: float | None = None
    high: float | None = None
    status: Literal["stated", "fitted", "assumed", "predicted"] = "stated"
    why: str = ""
    see: str = ""
    found: Value | None = None
    quick: float | None = None
    shape: bool = False  # only its order among others is asked for, which rows of their own say

    @property
    def target(self) -> Value | None:
        return self.published if self.expected is None else self.expected


class Published(Part, frozen=True, kw_only=True):
    """Points of a plot as they were printed."""

    label: str
    x: list[float]
    y: list[float]


class PlotData(Part, frozen=True, kw_only=True):
    name: str
    x: str
    y: str
    title: str = ""
    log_x: bool = False
    log_y: bool = False
    zero: bool = True  # the y axis begins there
    caption: str = ""
    published: list[Published] = []


class Item(Part, frozen=True, kw_only=True):
    """A table, a figure, a listing or a claim."""

    kind: Literal["table", "figure", "claim", "listing"]
    key: int | str
    title: str
    where: str = ""
    text: str = ""
    experiments: list[str] = []
    beyond: bool = False
    leads: list[str] = []
    plot: list[PlotData] = []
    row: list[Row] = []

    @property
    def id(self) -> str:
        return f"{self.kind}{self.key}" if isinstance(self.key, int) else f"{self.kind}-{self.key}"

    @property
    def words(self) -> str:
        return f"{'figure' if self.kind == 'listing' else self.kind} {self.key}"


class Runs(Part, frozen=True, kw_only=True):
    """An experiment, beside what a sweep knows of it."""

    compute: str = ""
    figures: list[str] = []
    cut: tuple[Share, Share] = (0.0, 0.0)
    trace: Literal["deliver", "full"] = "deliver"
    seconds: Annotated[float, Meta(gt=0)] = 1.0
    table: dict[str, Any] = {}  # as `pipeline.experiment` reads it


class _Experiment(Struct):
    """As written; the rest is read by `pipeline.experiment`."""

    compute: str = ""
    figures: list[str] = []
    cut: tuple[Share, Share] = (0.0, 0.0)
    trace: Literal["deliver", "full"] = "deliver"
    seconds: Annotated[float, Meta(gt=0)] = 1.0


class Paper(Part, frozen=True, kw_only=True):
    name: str
    title: str
    authors: str = ""
    text: str = ""
    experiment: dict[str, dict[str, Any]] = {}
    item: list[Item] = []

    def runs(self, name: str, quick: bool) -> Runs:
        table = self.experiment[name]
        table = _laid(table, table.get("quick", {})) if quick else table
        own = {key: value for key, value in table.items() if key in FRAME and key != "quick"}
        read: _Experiment = Source(f"{self.name}.toml: experiment.{name}", own).part(own, _Experiment)
        rest = {"name": name} | {key: value for key, value in table.items() if key not in FRAME}
        return Runs(
            compute=read.compute, figures=read.figures, cut=read.cut, trace=read.trace, seconds=read.seconds, table=rest
        )

    @property
    def module(self) -> ModuleType:
        return module(self.name)


def _laid(table: dict[str, Any], quick: dict[str, Any]) -> dict[str, Any]:
    """The quick form: a list of names keeps these choices or cases, the rest is merged."""
    quick = dict(quick)
    choices = dict(table.get("choice", {}))
    for axis, kept in dict(quick.get("choice", {})).items():
        if isinstance(kept, list):
            choices[axis] = {str(word): choices[axis][str(word)] for word in kept}
    if "choice" in quick:
        quick["choice"] = {axis: piece for axis, piece in quick["choice"].items() if not isinstance(piece, list)}
    if quick.get("case") and all(isinstance(name, str) for name in quick["case"]):
        quick["case"] = [case for case in table["case"] if case.get("name") in quick["case"]]
    if "seeds" in quick:
        table = {key: value for key, value in table.items() if key not in ("seed", "repetitions")}
    return merge({**table, **({"choice": choices} if choices else {})}, quick)


@cache
def module(name: str) -> ModuleType:
    """The code of a paper."""
    return import_module(f"ordercast.papers.{name}")


@cache
def paper(name: str) -> Paper:
    """What a paper says; ConfigError if the file has a fault."""
    text = (resources.files("ordercast.papers") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    source = Source.of_text(text, f"{name}.toml")
    found: Paper = source.part(source.data, Paper)
    source.refuse()
    for k, item in enumerate(found.item):
        for wanted in item.experiments:
            if wanted not in found.experiment:
                source.wrong(f"item[{k}].experiments", wanted, f"one of {', '.join(found.experiment)}")
    source.refuse()
    return found


def written() -> list[str]:
    """The papers there are."""
    here = resources.files("ordercast.papers") / "data"
    return [name for name in NAMES if (here / f"{name}.toml").is_file()]


Chosen = list[tuple[Paper, list[Item]]]


def choose(names: Sequence[str], tables: Sequence[int], figures: Sequence[int], claims: Sequence[str]) -> Chosen:
    """What is asked for; UsageError if there is no such thing."""
    for name in names:
        if name not in written():
            raise UsageError(f"paper {near(name, written())}: expected one of {', '.join(written())}")
    papers = [paper(name) for name in dict.fromkeys(names or written())]
    if not tables and not figures and not claims:
        return [(each, list(each.item)) for each in papers]
    out: Chosen = []
    found: set[tuple[str, int | str]] = set()
    for each in papers:
        items = [
            item
            for item in each.item
            if (item.kind == "table" and item.key in tables)
            or (item.kind == "figure" and item.key in figures)
            or (item.kind == "claim" and item.key in claims)
        ]
        found |= {(item.kind, item.key) for item in items}
        if items:
            out.append((each, items))
    wanted = [*(("table", n) for n in tables), *(("figure", n) for n in figures), *(("claim", word) for word in claims)]
    for kind, key in wanted:
        if (kind, key) not in found:
            raise UsageError(_absent(papers, kind, key))
    return out


def _absent(papers: Sequence[Paper], kind: str, key: int | str) -> str:
    """Why this cannot be shown, in one sentence."""
    for each in papers:
        for item in each.item:
            if item.kind == "listing" and kind == "figure" and item.key == key:
                return f"figure {key} of {each.name} is a listing ({item.title}): it leads to {', '.join(item.leads)}"
    have = []
    for each in papers:
        keys = ", ".join(str(item.key) for item in each.item if item.kind == kind)
        have.append(f"{each.name} has {f'{kind}s {keys}' if keys else f'no {kind}s'}")
    if isinstance(key, str):
        known = [str(item.key) for each in papers for item in each.item if item.kind == kind]
        return f"{kind} {near(key, known)}: {'; '.join(have)}"
    return f"{kind} {key}: {'; '.join(have)}"


Plant = Callable[[str, dict[str, Any]], dict[str, Any]]
