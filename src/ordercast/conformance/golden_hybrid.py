"""Golden kinds of the token-site family, on the protocol's own parts: roles, the detector, scripted runs of tickets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isclose
from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.contract import Action, Body, Down, Multicast, Ordered, Up
from ordercast.protocols.hybrid.assignment import assign, switch
from ordercast.protocols.hybrid.carry import carry
from ordercast.protocols.hybrid.detector import MeanShift
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.process import ACTIVE, Process
from ordercast.types import MemberId

ViewRule = Callable[[Process, list[int]], list[Action]]
WORDS = {True: "goA", False: "goP"}


def mode_assignment(case: Case) -> list[str]:
    got = assign(case["rates"], case["D"], case["order"], case["tie"])
    expected = case["expect"]
    out = differ("active", sorted(expected["active"]), got.active)
    return (
        out
        + differ("sequencer", expected["sequencer"], got.sequencer)
        + differ("rounds", expected["rounds"], got.rounds)
    )


def mean_shift(case: Case) -> list[str]:
    detector = MeanShift(case["k"])
    for number, (sample, expected) in enumerate(zip(case["samples"], case["means"], strict=True)):
        detector.sample(sample)
        got = detector.mean(0)
        if (got is None) != (expected is None) or (got is not None and not isclose(got, expected, abs_tol=1e-5)):
            return [f"sample {number}: expected {expected}, got {got}"]
    return []


def switch_decision(case: Case) -> list[str]:
    told = switch(case["state"] == ACTIVE, case["t_ms"], case["D_closest_other_active_ms"], case["threshold"])
    return differ("decision", case["decision"], told)


def _recording(kind: type[Process]) -> type[Process]:
    """The process, telling also when a role change is delivered."""

    class Recording(kind):  # type: ignore[misc, valid-type]
        null_at_once = False
        order: list[Any]

        def _deliver(self, sender: MemberId, c: int, issuer: MemberId, number: int, out: list[Action]) -> bool:
            item = self.Q[sender, c]
            self.order.append([[sender, c], "data" if item is None else WORDS[item.active]])
            changed: bool = super()._deliver(sender, c, issuer, number, out)
            return changed

    return Recording


class Network:
    """All processes of a scripted run; one FIFO channel per ordered pair."""

    def __init__(self, case: Case, kind: type[Process], change: ViewRule, numbers: Callable[[], Lamport]) -> None:
        self.change = change
        ids = range(1, case["processes"] + 1)
        self.channels: dict[tuple[int, int], deque[Body]] = {(a, b): deque() for a in ids for b in ids if a != b}
        self.held: dict[int, list[Body]] | None = None  # between a crash and the view
        self.backlog = dict.fromkeys(ids, 0)
        self.up: dict[int, Any] = {}
        recording = _recording(kind)
        for p in ids:
            made: Any = recording(p, numbers(), lambda body: Down(Multicast(body)), lambda p=p: self._resume(p))  # type: ignore[misc]
            made.order, made.distance = [], {int(q): far for q, far in case["dist"][str(p)].items()}
            made.enter(ids, dict.fromkeys(ids, 0), case["active"])
            made.S = (case["sequencer"][str(p)], 0)
            self.up[p] = made

    def _resume(self, p: int) -> list[Action]:
        count, self.backlog[p] = self.backlog[p], 0
        return [action for _ in range(count) for action in self.up[p].send(None)]

    def act(self, p: int, actions: list[Action]) -> None:
        for action in actions:
            if not isinstance(action, Down) or not isinstance(action.event, Multicast):
                assert not isinstance(action, Up) or isinstance(action.event, Ordered)
            elif self.held is not None:
                self.held[p].append(action.event.body)
            else:
                self.multicast(p, action.event.body)

    def multicast(self, p: int, body: Body) -> None:
        for q in self.up:
            if q != p:
                self.channels[p, q].append(body)
        self.act(p, self.up[p].receive(p, body))

    # ---------------------------------------------------------------------------------------------------------- events

    def send(self, p: int) -> None:
        if self.up[p].steady:
            self.act(p, self.up[p].send(None))
        else:
            self.backlog[p] += 1

    def null(self, p: int) -> None:
        if self.up[p].state is ACTIVE:
            self.act(p, self.up[p].null())

    def go_active(self, p: int) -> None:
        self.act(p, self.up[p].go_active())

    def go_passive(self, p: int) -> None:
        self.act(p, self.up[p].go_passive())

    def change_sequencer(self, p: int) -> None:
        self.act(p, self.up[p].change_sequencer())

    def recv(self, b: int, a: int) -> None:
        self.act(b, self.up[b].receive(a, self.channels[a, b].popleft()))

    def crash(self, failed: list[int], keep: dict[str, dict[str, int]]) -> None:
        for f in failed:
            del self.up[f]
            for q in self.up:
                channel = self.channels[f, q]
                while len(channel) > keep.get(str(f), {}).get(str(q), 0):
                    channel.pop()
        self.held = {p: [] for p in self.up}

    def view(self, members: list[int]) -> None:
        for p in sorted(self.up):
            self.act(p, self.change(self.up[p], members))
        held, self.held = self.held or {}, None
        for p in sorted(held):
            for body in held[p]:
                self.multicast(p, body)


def ticket_run(
    case: Case,
    process: type[Process] = Process,
    change: ViewRule = carry,
    numbers: Callable[[], Lamport] = Lamport,
) -> list[str]:
    """A script of sends, receptions, role changes, crashes and views: who delivered what, roles and states."""
    network = Network(case, process, change, numbers)
    for number, (what, *arguments) in enumerate(case["events"]):
        try:
            getattr(network, what)(*arguments)
        except (AssertionError, IndexError, KeyError) as why:
            return [f"event {number} {what} {arguments}: {type(why).__name__} {why}"]
    out: list[str] = []
    for p, made in sorted(network.up.items()):
        count = case["count"][str(p)]
        out += differ(f"order at {p}", case["delivered"][:count], made.order)
        out += differ(f"state of {p}", case["states"][str(p)], made.state)
        if count == len(case["delivered"]):
            roles = {str(q): ["A" if q in made.actives else "P", rn] for q, rn in made.rn.items()}
            out += differ(f"roles at {p}", case["roles"], roles)
    return out


KINDS = {
    "mode_assignment": mode_assignment,
    "mean_shift": mean_shift,
    "switch_decision": switch_decision,
    "ticket_run": ticket_run,
}
