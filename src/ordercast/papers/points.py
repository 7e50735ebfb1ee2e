"""The points of an item: what each run gave, and values over the seeds, with an interval of confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from typing import Any

from msgspec import Struct

# of Student's law: 97.5 % for one to thirty degrees of freedom
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Value(Struct, frozen=True):
    """What came out: a number with its interval (95 %, over seeds), or a word, or whether something holds."""

    mean: float | int | str | bool
    low: float | None = None
    high: float | None = None
    seeds: int = 1


def over(numbers: Iterable[float]) -> Value:
    """The mean of independent runs."""
    found = list(numbers)
    if not found:
        raise LookupError("a value of no points")
    mean = sum(found) / len(found)
    if len(found) == 1:
        return Value(found[0])
    spread = sqrt(sum((each - mean) ** 2 for each in found) / (len(found) - 1) / len(found))
    half = spread * (_STUDENT[len(found) - 2] if len(found) <= 31 else 1.96)
    return Value(mean, mean - half, mean + half, len(found))


class Point(Struct, frozen=True):
    """One run, or one computation."""

    experiment: str
    axes: dict[str, Any]
    seed: int
    figures: dict[str, Any]

    def figure(self, *path: str | int) -> Any:
        found: Any = self.figures
        for part in path:
            found = found[part]
        return found


class Points:
    """Some of them, in the order of their experiments."""

    def __init__(self, points: Iterable[Point]) -> None:
        self.points = list(points)

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def where(self, experiment: str = "", **axes: Any) -> Points:
        """Those of an experiment, at these places; a dot in the name of an axis is an underscore here."""
        return Points(
            point
            for point in self.points
            if experiment in ("", point.experiment)
            and all(point.axes.get(axis, point.axes.get(axis.replace("_", "."))) == word for axis, word in axes.items())
        )

    def values(self, axis: str) -> list[Any]:
        """What stands on an axis, in its order."""
        found = (point.axes.get(axis, point.axes.get(axis.replace("_", "."))) for point in self.points)
        return [word for word in dict.fromkeys(found) if word is not None]

    def value(self, *path: str | int) -> Value:
        """A figure over the seeds."""
        return self.of(lambda point: point.figure(*path))

    def of(self, function: Callable[[Point], float]) -> Value:
        return over(function(point) for point in self.points)

    def only(self) -> Point:
        """The one point there is."""
        (point,) = self.points
        return point


class Curve(Struct, frozen=True):
    """A series of a plot; `low` and `high`: its interval."""

    x: list[float]
    y: list[float]
    low: list[float] = []
    high: list[float] = []
    style: str = "line"  # or "bars"


def curve(points: Iterable[tuple[float, Value]]) -> Curve:
    """A series from values."""
    found = sorted(points, key=lambda pair: pair[0])
    y = [float(value.mean) for _, value in found]
    low = [y[k] if value.low is None else value.low for k, (_, value) in enumerate(found)]
    high = [y[k] if value.high is None else value.high for k, (_, value) in enumerate(found)]
    return Curve([x for x, _ in found], y, low, high)


class Picture(Struct, frozen=True):
    """A drawing that the item makes itself."""

    name: str
    title: str
    svg: str
    caption: str = ""


class Reduced(Struct, frozen=True):
    """What an item's function gives: values by the names of rows, series by the names of plots, drawings."""

    rows: dict[str, Value]
    series: dict[str, dict[str, Curve]] = {}
    pictures: list[Picture] = []
