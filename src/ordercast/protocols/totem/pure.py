"""A gateway that only joins rings: nobody sends from it or reads there, so nothing waits for its application."""

from __future__ import annotations

from ordercast.contract import Action, Layer, Refuse
from ordercast.types import Nanoseconds, Submission


class Pure(Layer):
    """On top of its stack: refuses what an application would say, and never lacks room."""

    name = "pure"

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        return [Refuse("pure gateway")]

    def regroup(self, now: Nanoseconds, group: str, join: bool) -> list[Action]:
        return [Refuse("pure gateway")]

    def room(self, now: Nanoseconds, frames: int) -> list[Action]:
        return []
