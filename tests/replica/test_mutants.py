"""Known-bad objects: each of these must be found by a test of the good ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.replica import entries, objects, replica
from ordercast.replica.counter import Counter
from ordercast.replica.dict import Dict
from ordercast.replica.leader import Leader
from ordercast.replica.line import Line
from ordercast.replica.lock import Lock
from ordercast.replica.queue import Queue
from ordercast.replica.shapes import Method

from . import test_objects as good


def nothing(*args: Any) -> None:
    """Does nothing."""


def no_copy(self: Method, value: Any) -> Any:
    return value


def left_at_once(self: Any, gone: Any) -> None:
    """The next in line gets it, and the departed keeps its number."""
    if self._line.holder is not None and self._line.holder.life in gone:
        self._line.holder = self._line.waiting.pop(0) if self._line.waiting else None


def same_fence(self: Line, fence: int) -> None:
    if self.waiting:
        self.holder = self.waiting.pop(0)


def first_part_only(self: Any, name: str, worlds: Any, parts: Any) -> None:
    """No class merges."""


def with_old_chance(self: replica.Step, context: Any) -> None:
    """The generator of the first call serves for ever."""
    self.caller, self.members, self.number = context.caller, context.members, 0
    self._seed, self._time_ns = b"", 0


MUTANTS: list[tuple[Any, str, Any, Callable[[], None]]] = [
    (Lock, "left", nothing, good.test_lock),
    (Lock, "left", left_at_once, good.test_lock),
    (Leader, "left", nothing, good.test_leader),
    (Queue, "left", nothing, good.test_queue),
    (Line, "_next", same_fence, good.test_lock),
    (Dict, "_save", nothing, good.test_a_snapshot_is_of_one_place_though_calls_go_on),
    (entries.Bound, "_thaw", nothing, good.test_a_snapshot_is_of_one_place_though_calls_go_on),
    (Dict, "_taken_over", nothing, good.test_dict),
    (Method, "copy", no_copy, good.test_nobody_changes_a_state_from_outside),
    (Counter, "restore", nothing, good.test_an_object_begins_as_the_first_to_bring_it_says),
    (entries.Kept, "left", nothing, good.test_who_has_no_class_gives_the_state_away_all_the_same),
    (entries.Kept, "apply", nothing, good.test_who_comes_later_gets_the_state_and_what_follows),
    (objects.Objects, "_merged", first_part_only, lambda: good.test_parts_are_merged_object_by_object(5)),
    (objects.Objects, "lost", nothing, good.test_what_is_lost_is_told_to_its_object),
    (replica.Step, "begin", with_old_chance, good.test_time_and_chance_come_with_the_call),
]


@pytest.mark.parametrize(
    ("where", "name", "bad", "test"), MUTANTS, ids=lambda each: getattr(each, "__name__", str(each))
)
def test_it_is_found(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bad: Any, test: Callable[[], None]
) -> None:
    monkeypatch.setattr(where, name, bad)
    monkeypatch.setattr(good, "SECONDS", 0.5)
    with pytest.raises((AssertionError, KeyError, TimeoutError)):
        test()
