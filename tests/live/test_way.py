"""The way of one message, as docs/design/architecture.md lists it: a message is sent, live and simulated, and walks it.

Every call of a function of ordercast is noted together with whether the message is in its arguments or its answer, or
in those of a function that it called.  Such calls alone are on the message's way; what is listed must be among them, in
the listed order.
"""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

import ordercast
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import World
from ordercast.workload.payload import payload

from .test_library import joined, run

PAGE = Path(__file__).parents[2] / "docs" / "design" / "architecture.md"
SOURCE = str(Path(ordercast.__file__).parent)
MOST = 15  # functions that a reader can follow


def listed(direction: str, world: str) -> list[str]:
    """The page's list: an empty cell is the function of the first column, a dash is no function."""
    _, _, rest = PAGE.read_text().partition(f"\n**{direction}**")
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert table is not None, f"no table under **{direction}**"
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    column = head.index(world)
    cells = [row[column] or row[1] for row in rows]
    return [cell.strip("`") for cell in cells if cell != "–"]


class Call:
    """One call of a function of ordercast."""

    def __init__(self, name: str) -> None:
        self.name, self.on_the_way = name, False


class Watch:
    """Notes calls, by sys.setprofile; `mark` is what the message can be known by."""

    def __init__(self, mark: bytes) -> None:
        self.mark, self.calls = mark, []  # type: bytes, list[Call]
        self._open: dict[FrameType, Call] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        sys.setprofile(self._noted)
        try:
            yield
        finally:
            sys.setprofile(None)

    def way(self) -> list[str]:
        return [call.name for call in self.calls if call.on_the_way]

    def _noted(self, frame: FrameType, event: str, answer: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            module = code.co_filename[len(SOURCE) + 1 : -3].replace("/", ".")
            call = self._open[frame] = Call(f"{module}.{code.co_qualname}")
            self.calls.append(call)
            if any(map(self._holds, frame.f_locals.values())):
                self._on_the_way(frame)
        elif event == "return" and frame in self._open:
            if self._holds(answer):
                self._on_the_way(frame)
            del self._open[frame]

    def _on_the_way(self, frame: FrameType | None) -> None:
        """This call, and those it was made from."""
        while frame is not None:
            if frame in self._open:
                self._open[frame].on_the_way = True
            frame = frame.f_back

    def _holds(self, value: Any) -> bool:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.mark in bytes(value)
        if isinstance(value, msgspec.Struct):
            return any(self._holds(getattr(value, field)) for field in value.__struct_fields__)
        return isinstance(value, (list, tuple)) and any(map(self._holds, value))


def live() -> list[str]:
    """Member 1 sends to member 2; both in this event loop, over sockets."""
    watch = Watch(b"the way of one message")

    async def first(group: ordercast.Group) -> ordercast.Message:
        async for event in group:
            if isinstance(event, ordercast.Message):
                return event
        raise AssertionError("the group ended")

    async def work() -> None:
        one, two = joined(2, "totem", mode="unicast", at_least=1)  # multicast, member 1 would read its own datagram too
        async with one, two:
            while not all(group.view is not None and len(group.view.members) == 2 for group in (one, two)):
                await asyncio.sleep(0.01)
            with watch.watching():
                await one.send(watch.mark)
                assert (await first(two)).data == watch.mark

    run(work())
    return watch.way()


def simulated(**more: Any) -> list[str]:
    scenario = Scenario(members=2, messages=1, senders=(1,), load=Load(start_ms=500.0), **more)
    world = World(scenario)
    world.run()
    incarnation = world.hosts[1].incarnation  # the same in every run of this scenario
    watch = Watch(payload(1, incarnation, 1, scenario.sizes[0]))
    with watch.watching():
        outcome = World(scenario).run()
    assert outcome.delivered == 1
    return watch.way()


WORLDS: dict[str, Callable[[], list[str]]] = {
    "live": live,
    "simulated": simulated,
    "simulated, as bytes": lambda: simulated(wire=True),
}
LISTS = [("Down", "live"), ("Down", "simulated"), *(("Up", world) for world in WORLDS)]


def missed(functions: list[str], way: list[str]) -> str | None:
    """The first function that the message does not come to after those before it."""
    steps = iter(way)
    return next((function for function in functions if function not in steps), None)


def wrong(direction: str, functions: list[str], way: list[str]) -> str:
    """What a walk shows to be wrong with a list; empty if it is right, and could be wrong."""
    if at := missed(functions, way):
        return f"{at} is not come to in its place"
    if direction == "Down":  # it ends where the datagram leaves
        way = way[: way.index(functions[-1]) + 1]
        if at := missed(functions, way):
            return f"{at} is not come to before the datagram leaves"
    for k, name in enumerate(functions):  # a function passed by, or in another place, is missed
        if missed(functions, [step for step in way if step != name]) != name:
            return f"{name} is not missed when it is passed by"
        swapped = functions[:k] + functions[k : k + 2][::-1] + functions[k + 2 :]
        if k < len(functions) - 1 and not missed(swapped, way):
            return f"{name} and the next: their order says nothing"
    return ""


@pytest.mark.parametrize(("direction", "world"), LISTS)
def test_a_message_goes_the_way_that_is_listed(direction: str, world: str) -> None:
    functions = listed(direction, world)
    assert 5 < len(functions) <= MOST
    for name in functions:
        module, kind, function = name.rsplit(".", 2)
        assert callable(getattr(getattr(importlib.import_module(f"ordercast.{module}"), kind), function)), name
    found = []
    for _ in range(5 if world == "live" else 1):  # on real sockets two members take turns as they come
        way = WORLDS[world]()
        found.append(wrong(direction, functions, way))
        if not found[-1]:
            return
    raise AssertionError("\n".join([*found, *way]))
