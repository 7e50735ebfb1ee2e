"""What a directed scenario must show beyond the promises, whose bounds hold for every run and are wide.

`expected.toml` says it per scenario: a view that comes in time, or every message delivered in time.  The unchanged
protocol is held to it like a mutant.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from ordercast.sim.scenario import MS, Scenario
from ordercast.trace.schema import Kind
from ordercast.trace.trace import Trace
from ordercast.types import ViewKind
from ordercast.verify.plain.model import MessageId, messages, named

FILE = Path(__file__).with_name("expected.toml")


class View(Struct, frozen=True, forbid_unknown_fields=True):
    """All of `members` are in one view of exactly these within so many T; `primary`: and it is that."""

    members: tuple[int, ...]
    since_ms: float
    within: float
    primary: bool = False

    def missing(self, scenario: Scenario, trace: Trace) -> str:
        since, bound = round(self.since_ms * MS), self.within * scenario.timeout_ms
        late = set(self.members)
        for row in trace.rows:
            regular = row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR and row.members == self.members
            if self.primary and not (row.detail or {}).get("primary"):
                continue
            if regular and since <= row.time_ns <= since + bound * MS:
                late.discard(row.member)
        if not late:
            return ""
        kind = "primary view" if self.primary else "view"
        return f"member {min(late)} is not in a {kind} of {self.members} within {self.within} T of {self.since_ms} ms"


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """Of one scenario.  `rotations`: every message is delivered to all within ten hops and so many rotations of n hops
    after its submission, the literal bound of L3; only where every hop takes the same time."""

    why: str
    views: tuple[View, ...] = ()
    rotations: int = 0

    def broken(self, scenario: Scenario, trace: Trace) -> tuple[str, str]:
        """(promise, what broke it); empty if it shows what it must."""
        for view in self.views:
            if text := view.missing(scenario, trace):
                return "L1", text
        text = _late(scenario, trace, self.rotations) if self.rotations else ""
        return ("L3", text) if text else ("", "")


def _late(scenario: Scenario, trace: Trace, rotations: int) -> str:
    delay, n = scenario.nets[0].delay, scenario.members
    assert delay.law == "constant"
    bound = round(delay.mean * (10 + rotations * n))
    submitted: dict[MessageId, int] = {}
    delivered: dict[MessageId, list[int]] = {}
    for row in trace.rows:
        if row.kind == Kind.SUBMIT:
            submitted.update(dict.fromkeys(messages(row), row.time_ns))
        elif row.kind == Kind.DELIVER:
            for message in messages(row):
                delivered.setdefault(message, []).append(row.time_ns)
    for message, since in submitted.items():
        times = delivered.get(message, [])
        if len(times) < n or max(times) > since + bound:
            return f"{named(message)}, submitted at {since / MS:.3f} ms, is not everywhere within {bound / MS:.2f} ms"
    return ""


def read() -> dict[str, Expected]:
    return msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8")), dict[str, Expected])
