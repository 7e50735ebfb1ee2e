"""Routing between layers: breadth first, prefixed timers and keys, trees with several nets."""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.contract import (
    Action,
    Down,
    Event,
    FreeSpace,
    Layer,
    Multicast,
    Note,
    Packet,
    SetTimer,
    Store,
    Transmit,
    Up,
)
from ordercast.stack import Node, Stack, chain
from ordercast.types import Identity, Peer


class Ping(Packet, frozen=True, gc=False, tag=1):
    text: str


class Said(Event, frozen=True, gc=False):
    text: str


class Upper(Layer):
    name = "upper"

    def __init__(self) -> None:
        self.heard: list[str] = []

    def up(self, now: int, event: Event, child: int) -> list[Action]:
        assert isinstance(event, Said)
        self.heard.append(event.text)
        return [] if event.text.startswith("own") else [Down(Multicast(event)), Up(event)]  # type: ignore[arg-type]


class Lower(Layer):
    name = "lower"

    def receive(self, now: int, net: int, source: Peer, packet: Packet, drops: int) -> list[Action]:
        return [Up(Said("first")), Up(Said("second")), SetTimer("tick", now + 5), Store("k", 1, b"v")]

    def down(self, now: int, event: Event) -> list[Action]:
        if isinstance(event, Multicast):
            return [Transmit(0, -1, Ping(event.body.text)), Up(Said("own " + event.body.text))]  # type: ignore[attr-defined]
        return [Note("asked")]

    def timer(self, now: int, name: str, due: int) -> list[Action]:
        return [Note(name)]

    def stored(self, now: int, key: str, number: int) -> list[Action]:
        return [Note(f"stored {key}")]

    def start(self, now: int, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return [Note(",".join(stored))]


def test_a_layer_hears_everything_before_its_own_multicasts_come_back() -> None:
    upper = Upper()
    stack = chain(upper, Lower())
    actions = stack.receive(0, 0, Peer(1, 1), Ping("x"))
    assert upper.heard == ["first", "second", "own first", "own second"]
    assert [type(a).__name__ for a in actions] == ["SetTimer", "Store", "Up", "Up", "Transmit", "Transmit"]


def test_timers_and_keys_find_their_layer() -> None:
    stack = chain(Upper(), Lower())
    timer, store = stack.receive(3, 0, Peer(1, 1), Ping("x"))[:2]
    assert timer == SetTimer("lower/tick", 8) and store == Store("lower/k", 1, b"v")
    assert stack.timer(8, "lower/tick", 8) == [Note("tick")]
    assert stack.stored(8, "lower/k", 1) == [Note("stored k")]
    assert stack.start(0, Identity(1, 1, (1,)), {"lower/k": (1, b""), "upper/z": (1, b"")}) == [Note("k")]


def test_two_lower_layers_on_two_nets() -> None:
    class Top(Layer):
        name = "top"

        def down(self, now: int, event: Event) -> list[Action]:
            return []

        def room(self, now: int, frames: int) -> list[Action]:
            return [Down(FreeSpace(frames), child=1)]

        def up(self, now: int, event: Event, child: int) -> list[Action]:
            return []

    stack = Stack(Node(Top(), [Node(Lower(), nets=(0,)), Node(Lower(), nets=(1,))]))
    first = stack.receive(0, 0, Peer(1, 1), Ping("x"))
    second = stack.receive(0, 1, Peer(1, 1), Ping("x"))
    assert first[0].name == "lower/tick" and second[0].name == "lower1/tick"  # type: ignore[attr-defined]
    assert stack.room(0, 3) == [Note("asked")]
    assert stack.timer(0, "lower1/tick", 0) == [Note("tick")]


class Above(Layer):
    """Notes what it hears, and that nothing is heard before its own start."""

    name = "above"

    def __init__(self) -> None:
        self.started = False
        self.heard: list[tuple[int, bool]] = []

    def start(self, now: int, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        self.started = True
        return []

    def up(self, now: int, event: Event, child: int) -> list[Action]:
        self.heard.append((child, self.started))
        return []

    def flush_state(self) -> bytes:
        return b"heard %d" % len(self.heard)


class Eager(Layer):
    """Speaks at its start; asks the layer above in the middle of a step."""

    name = "eager"

    def start(self, now: int, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return [Up(Said("hello"))]

    def receive(self, now: int, net: int, source: Peer, packet: Packet, drops: int) -> list[Action]:
        return [Up(Said("more")), Note("asked", {"state": self.flush_state_above()})]


def test_all_are_started_before_any_hears_and_an_event_names_who_said_it() -> None:
    above = Above()
    stack = Stack(Node(above, [Node(Eager(), nets=(0,)), Node(Eager(), nets=(1,))]))
    stack.start(0, Identity(1, 1, (1,)), {})
    assert above.heard == [(1, True), (0, True)]
    stack.receive(0, 1, Peer(1, 1), Ping("x"))
    assert above.heard[2:] == [(1, True)]


def test_a_lower_layer_asks_in_the_middle_of_its_step() -> None:
    stack = chain(Above(), Eager())
    stack.start(0, Identity(1, 1, (1,)), {})
    assert stack.receive(0, 0, Peer(1, 1), Ping("x")) == [Note("asked", {"state": b"heard 1"})]
