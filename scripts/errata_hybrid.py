"""Errata of the hybrid paper as pictures: the smallest runs of its tests, step by step, by the letter and as built."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hybrid import literal, test_errata
from tests.hybrid.schedules import Group

from ordercast.conformance import golden
from ordercast.conformance.golden_hybrid import Network, ticket_run
from ordercast.contract import Body
from ordercast.papers.draw import schedule
from ordercast.protocols.hybrid.carry import carry
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.process import Process

STEPS_MAX = 22
CASES = {case["name"]: case for case in golden.load(Path(__file__).parents[1] / "tests/golden/hybrid.json")}
WORDS = {"send": "send", "null": "null", "go_active": "to active", "go_passive": "to passive",
         "change_sequencer": "reassign"}  # fmt: skip


class Recorded(Network):
    """Remembers what happened where, and which packet led to which reception."""

    def remember(self) -> None:
        self.events: list[tuple[int, int, str, str]] = []
        self.arrows: list[tuple[int, int, int, int]] = []
        self.sent: dict[tuple[int, int], deque[int]] = {}
        self.step, self.on = -1, True

    def _now(self, p: int, kind: str, word: str) -> None:
        if self.on:
            self.step += 1
            self.events.append((self.step, p - 1, kind, word))

    def multicast(self, p: int, body: Body) -> None:
        for q in self.up:
            self.sent.setdefault((p, q), deque()).append(self.step)
        super().multicast(p, body)

    def recv(self, b: int, a: int) -> None:
        self._now(b, "recv", "")
        sent = self.sent[a, b].popleft()
        if self.on and 0 <= sent < self.step:
            self.arrows.append((sent, a - 1, self.step, b - 1))
        super().recv(b, a)

    def crash(self, failed: list[int], keep: dict[str, dict[str, int]]) -> None:
        for f in failed:
            self._now(f, "crash", "dies")
            for q in self.up:
                channel = self.sent.setdefault((f, q), deque())
                while len(channel) > keep.get(str(f), {}).get(str(q), 0):
                    channel.pop()
        super().crash(failed, keep)

    def view(self, members: list[int]) -> None:
        self._now(1, "view", "view")
        super().view(members)

    def empty(self) -> None:
        """What arrives in the end is not drawn."""
        was, self.on = self.on, False
        Group.empty(self)  # type: ignore[arg-type]
        self.on = was

    def settle(self) -> Any:
        self.on = False
        return Group.settle(self)  # type: ignore[arg-type]


def _spoken(word: str) -> Callable[[Any, int], None]:
    def event(self: Any, p: int) -> None:
        if not (word == "null" and not self.on):
            self._now(p, "role" if word.startswith(("go", "change")) else "send", WORDS[word])
        getattr(Network, word)(self, p)

    return event


for _word in WORDS:
    setattr(Recorded, _word, _spoken(_word))


class RecordedGroup(Recorded, Group):
    def __init__(self, *given: Any, **named: Any) -> None:
        self.remember()
        super().__init__(*given, **named)


def drawn(name: str, network: Recorded, notes: list[str]) -> str:
    shown = [event for event in network.events if event[0] < STEPS_MAX]
    arrows = [arrow for arrow in network.arrows if arrow[2] < STEPS_MAX]
    lanes = [f"p{p}" for p in range(1, 1 + max(lane for _, lane, *_ in network.events) + 1)]
    return schedule(f"errata-{name}", lanes, shown, arrows, notes)


def run(name: str, case: Callable[..., Group], by_the_letter: dict[str, Any]) -> Callable[[], str]:
    """A run of tests/hybrid/test_errata.py."""

    def picture() -> str:
        wrong, held = case(**by_the_letter).wrong(), test_errata.Group
        test_errata.Group = RecordedGroup  # type: ignore[misc, assignment]
        try:
            network: Any = case()
        finally:
            test_errata.Group = held  # type: ignore[misc]
        assert wrong and not network.wrong(), name
        order = " ".join(f"{p}.{c}" for p, c in network.order(min(network.up)))
        notes = [str(case.__doc__), f"    by the letter: {wrong}", f"    here: everybody delivers {order or 'nothing'}"]
        return drawn(name, network, notes)

    return picture


def vector(name: str, case: str, by_the_letter: dict[str, Any]) -> Callable[[], str]:
    """A golden vector."""

    def picture() -> str:
        script = CASES[case]
        wrong = ticket_run(script, **by_the_letter)
        assert wrong and not ticket_run(script), name
        network = Recorded(script, Process, carry, Lamport)
        network.remember()
        for what, *given in script["events"]:
            getattr(network, what)(*given)
        order = " ".join(f"{p}.{c}" for (p, c), _ in script["delivered"])
        active = ", ".join(f"p{p}" for p in script["active"])
        notes = [f"Active at first: {active}.", f"    by the letter: {_told(wrong[0])}"]
        notes.append(f"    here: everybody delivers {order}")
        return drawn(name, network, notes)

    return picture


def _told(difference: str) -> str:
    """What a vector found, for people."""
    if missing := re.match(r"event \d+ recv \[(\d+), (\d+)\]: IndexError", difference):
        return f"p{missing[1]} waits for something of p{missing[2]} that is never sent"
    if other := re.match(r"order at (\d+): .* got (.*)", difference):
        order = " ".join(f"{p}.{c}" for p, c in re.findall(r"\[(\d+), (\d+)\]", other[2]))
        return f"p{other[1]} delivers {order or 'nothing'}"
    return difference


PICTURES: dict[str, Callable[[], str]] = {
    "H1": vector("h1", "H1-role-change-not-applied-yet", {"process": literal.H1}),
    "H2": vector("h2", "H2-H3-no-second-ticket", {"process": literal.H2H3}),
    "H4": run("h4", test_errata.h4, {"process": literal.H4}),
    "H6": run("h6", test_errata.h6, {"process": literal.H6}),
    "H7": vector("h7", "H7-no-active-left", {"change": literal.h7}),
    "H8": run("h8", test_errata.h8, {"process": literal.H8}),
    "H9": run("h9", test_errata.h9, {"process": literal.H9, "change": literal.h9}),
    "H10": vector("h10", "H10-ghost-ticket", {"change": literal.h10}),
    "H11": run("h11", test_errata.h11, {"change": literal.h11}),
    "H12": run("h12", test_errata.h12, {"numbers": literal.H12}),
    "H15": vector("h15", "H15-last-active-aborts-go-passive", {"process": literal.H15}),
}
