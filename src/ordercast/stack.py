"""Composition of layers into a tree: the one object a driver holds.

Events between layers are taken in the order in which they were said, breadth first: a layer finishes telling its
neighbour everything one input caused before it is called again.  So own multicasts come back as a later event of the
same step, never re-entrantly, and an upper layer has seen every message that a multicast of its own will follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ordercast.contract import (
    Action,
    CancelTimer,
    Down,
    Event,
    Layer,
    Packet,
    Receive,
    SetTimer,
    Store,
    Up,
)
from ordercast.types import Identity, MemberId, Nanoseconds, NetId, Peer, Submission

Above = Callable[[Nanoseconds, Event, int], list[Action]]
Below = Callable[[Nanoseconds, Event], list[Action]]
Pause = Callable[[Nanoseconds, NetId], list[Action]]


class Node:
    """A layer with its place in the tree."""

    __slots__ = ("children", "layer", "names", "nets", "number", "parent", "prefix", "tell_down", "tell_up")

    def __init__(self, layer: Layer, children: list[Node] | None = None, nets: tuple[NetId, ...] = ()) -> None:
        self.layer = layer
        self.children = children or []
        self.nets = nets if self.children else (nets or (0,))
        self.parent: Node | None = None
        self.prefix = ""
        self.names: dict[str, str] = {}  # own timer name -> the stack's
        self.number = 0  # which child of its parent
        self.tell_up: Above | None = None
        self.tell_down: list[Below] = [child.layer.down for child in self.children]
        for number, child in enumerate(self.children):
            child.parent, child.number = self, number
            child.tell_up = layer.up
            child.layer.flush_state_above = layer.flush_state

    def walk(self) -> list[Node]:
        """This node and all below it, top first."""
        return [self, *(node for child in self.children for node in child.walk())]


def chain(*layers: Layer) -> Stack:
    """The common stack: layers one above the other, top first, on net 0."""
    node = Node(layers[-1])
    for layer in reversed(layers[:-1]):
        node = Node(layer, [node])
    return Stack(node)


class Stack:
    """Routes inputs to layers and flattens what they answer into actions for the driver."""

    def __init__(self, top: Node) -> None:
        self.top = top
        self.edge = top.children[0] if getattr(top.layer, "aside", False) else top  # takes the application's messages
        self.nodes = top.walk()
        self._net: dict[NetId, Node] = {}
        self._prefix: dict[str, Node] = {}
        for node in self.nodes:
            node.prefix = node.layer.name
            if node.prefix in self._prefix:
                node.prefix = f"{node.layer.name}{'.'.join(map(str, node.nets)) or len(self._prefix)}"
            assert node.prefix not in self._prefix, f"two layers named {node.prefix}"
            self._prefix[node.prefix] = node
            for net in node.nets:
                assert net not in self._net, f"two layers on net {net}"
                self._net[net] = node
        self._receive = {net: (node, node.layer.receive) for net, node in self._net.items()}
        self._drained = {net: _pausing(node) for net, node in self._net.items()}

    # ------------------------------------------------------------------------------------------------------- inputs

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """Start every layer, the lowest first, each with what is stored under its own keys; then let them hear."""
        said: list[tuple[Node, list[Action]]] = []
        for node in reversed(self.nodes):
            mark = node.prefix + "/"
            own = {key.removeprefix(mark): value for key, value in stored.items() if key.startswith(mark)}
            said.append((node, node.layer.start(now, identity, own)))
        out: list[Action] = []
        for node, actions in said:
            out += self._run(now, node, actions)
        return out

    def submit(self, now: Nanoseconds, submission: Submission) -> list[Action]:
        return self._run(now, self.edge, self.edge.layer.submit(now, submission))

    def regroup(self, now: Nanoseconds, group: str, join: bool) -> list[Action]:
        return self._run(now, self.edge, self.edge.layer.regroup(now, group, join))

    def tell(self, now: Nanoseconds, event: Event) -> list[Action]:
        """What the application says to the top layer besides messages, such as calls on replicated objects."""
        return self._run(now, self.top, self.top.layer.down(now, event))

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int = 0) -> list[Action]:
        node, receive = self._receive[net]
        actions = receive(now, net, source, packet, drops)
        if len(actions) == 1 and type(actions[0]) is Receive:
            return actions  # a frame was kept: nobody else has to hear of it
        return self._run(now, node, actions) if actions else actions

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        """From the net upwards: every layer on the way may use the pause."""
        out: list[Action] = []
        for node, drained in self._drained[net]:
            actions = drained(now, net)
            if actions:
                out += self._run(now, node, actions)
        return out

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        node, key = self._owner(name)
        return self._run(now, node, node.layer.timer(now, key, due))

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        node, own = self._owner(key)
        return self._run(now, node, node.layer.stored(now, own, number))

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        node, own = self._owner(key)
        return self._run(now, node, node.layer.store_failed(now, own, number, why))

    def unreachable(self, now: Nanoseconds, net: NetId, member: MemberId) -> list[Action]:
        node = self._net[net]
        return self._run(now, node, node.layer.unreachable(now, net, member))

    def room(self, now: Nanoseconds, frames: int) -> list[Action]:
        return self._run(now, self.top, self.top.layer.room(now, frames))

    def leave(self, now: Nanoseconds, until: Nanoseconds | None = None) -> list[Action]:
        return self._run(now, self.top, self.top.layer.leave(now, until))

    def status(self) -> dict[str, Any]:
        return {node.prefix: node.layer.status() for node in self.nodes}

    def queues(self) -> dict[str, int]:
        """Sizes of all buffers that must empty once load stops: what each layer's status has under "queues"."""
        out: dict[str, int] = {}
        for node in self.nodes:
            for name, size in node.layer.status().get("queues", {}).items():
                out[f"{node.prefix}.{name}"] = size
        return out

    # ------------------------------------------------------------------------------------------------------ routing

    def _owner(self, name: str) -> tuple[Node, str]:
        prefix, _, own = name.partition("/")
        return self._prefix[prefix], own

    def _run(self, now: Nanoseconds, node: Node, actions: list[Action]) -> list[Action]:
        out: list[Action] = []
        say = out.append
        todo: list[Any] = []  # node, actions, node, actions, ...
        done = 0
        while True:
            for action in actions:
                kind = type(action)
                if kind is Up:
                    if node.tell_up is None:
                        say(action)
                        continue
                    caused = node.tell_up(now, action.event, node.number)  # type: ignore[attr-defined]
                    if caused:
                        todo += (node.parent, caused)
                elif kind is Down:
                    if not node.children:
                        continue  # nothing below: the lowest layer had no use for it
                    child = action.child  # type: ignore[attr-defined]
                    caused = node.tell_down[child](now, action.event)  # type: ignore[attr-defined]
                    if caused:
                        todo += (node.children[child], caused)
                elif kind is SetTimer:
                    say(SetTimer(_name(node, action.name), action.at))  # type: ignore[attr-defined]
                elif kind is CancelTimer:
                    say(CancelTimer(_name(node, action.name)))  # type: ignore[attr-defined]
                elif kind is Store:
                    say(Store(_name(node, action.key), action.number, action.data))  # type: ignore[attr-defined]
                else:
                    say(action)
            if done == len(todo):
                return out
            node, actions = todo[done], todo[done + 1]
            done += 2


def _name(node: Node, own: str) -> str:
    """A layer's own timer name or key as the driver sees it."""
    name = node.names.get(own)
    if name is None:
        name = node.names[own] = f"{node.prefix}/{own}"
    return name


def _pausing(node: Node | None) -> list[tuple[Node, Pause]]:
    """The layers from a net upwards that make use of a pause."""
    out: list[tuple[Node, Pause]] = []
    while node is not None:
        if type(node.layer).drained is not Layer.drained:
            out.append((node, node.layer.drained))
        node = node.parent
    return out
