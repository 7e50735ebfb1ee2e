"""Planted faults in what replicas tell: every class of damage is seen by both forms, and they always agree."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace
from planted import Nowhere, Story

from ordercast.sim.faults import Crash, Partition
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace
from ordercast.types import ALL_CONTINUE, POLICIES, PRIMARY_MAJORITY
from ordercast.verify import check
from ordercast.verify.columns import check_trace

PROMISES = [f"A{k}" for k in range(1, 7)]
Note = tuple[list[Row], int]  # a life, and which of its rows


@cache
def sound_trace(policy: str) -> Trace:
    """Three members call; one is killed and comes back, one is cut off and comes back with what it did meanwhile."""
    faults = (
        Crash(member=2, at_ms=150.0, down_ms=150.0),
        Partition(shape="isolate", member=3, at_ms=450.0, until_ms=700.0),
    )
    scenario = Scenario(
        protocol="totem", partition=policy, messages=5, calls=60, durable=0.5, faults=faults, heal_ms=1_000.0,
        settle_ms=1_500.0, seed=4,
    )  # fmt: skip
    return run(scenario, level="full").trace


def judged(trace: Trace) -> dict[str, str]:
    plain = {v.promise: v.state for v in check(trace, PROMISES)}
    assert {v.promise: v.state for v in check_trace(trace, PROMISES)} == plain
    return plain


def notes(story: Story, name: str, **fields: Any) -> list[Note]:
    """Those that say so, over all lives."""
    wanted = {"name": name, **fields}
    return [
        (life, k)
        for life in story.lives.values()
        for k, row in enumerate(life)
        if row.kind == Kind.NOTE and row.detail and wanted.items() <= row.detail.items()
    ]


def say(note: Note, **fields: Any) -> None:
    life, k = note
    life[k] = replace(life[k], detail={**(life[k].detail or {}), **fields})


def place(note: Note) -> tuple[int, str]:
    detail = note[0][note[1]].detail or {}
    return detail["n"], detail["h"]


def shared(story: Story) -> list[list[Note]]:
    """Regular steps that several took, by where they led."""
    out: dict[tuple[int, str], list[Note]] = {}
    for note in notes(story, "applied", regular=True):
        out.setdefault(place(note), []).append(note)
    return [took for took in out.values() if len(took) > 1]


def another_state(story: Story) -> None:
    """One member is elsewhere after the same calls."""
    say(story.any(story.any(shared(story))), h="ff" * 16)


def another_decision(story: Story) -> None:
    views: dict[str, list[Note]] = {}
    for note in notes(story, "state", what="decided"):
        detail = note[0][note[1]].detail or {}
        if "taken" not in detail:
            views.setdefault(detail["epoch"], []).append(note)
    say(story.any(story.any(took for took in views.values() if len(took) > 1)), h="ee" * 16)


def another_step(story: Story) -> None:
    say(story.any(story.any(shared(story))), first=10_000)


def miscounted(story: Story) -> None:
    note = story.any(notes(story, "applied"))
    say(note, n=place(note)[0] + 1)


def last_decision(story: Story) -> tuple[str, list[Note]]:
    """All notes of it."""
    found = notes(story, "state", what="decided")
    epochs = {note[0][note[1]].detail["epoch"] for note in found}  # type: ignore[index]
    last = max(epochs, key=lambda text: tuple(map(int, text.split("."))))
    return last, [note for note in found if note[0][note[1]].detail["epoch"] == last]  # type: ignore[index]


def forgotten(story: Story) -> None:
    """The last decision is of a state that nobody had."""
    for note in last_decision(story)[1]:
        say(note, n=0, h="dd" * 16, parts=[])


def applied_again(story: Story) -> None:
    """A call has its place in the order twice, at all members."""
    steps = story.any(took for took in shared(story) if place(took[0])[0] > 6)
    again = notes(story, "applied")[0]
    names = {name: again[0][again[1]].detail[name] for name in ("caller", "life", "first")}  # type: ignore[index]
    if not names["caller"] or place(again) == place(steps[0]):
        again = next(n for n in notes(story, "applied") if n[0][n[1]].detail["caller"])  # type: ignore[index]
        names = {name: again[0][again[1]].detail[name] for name in ("caller", "life", "first")}  # type: ignore[index]
    everywhere = [note for note in notes(story, "applied") if place(note) == place(steps[0])]
    for note in everywhere:
        say(note, **names)


def answered_without(story: Story) -> None:
    """A durable call is answered that nobody has."""
    say(story.any(notes(story, "answered", durable=True)[:3]), first=10_000)


def unwritten(story: Story) -> None:
    """The second life of member 2 finds less than what was answered as durable in the view before."""
    if story.header.partition != PRIMARY_MAJORITY:
        raise Nowhere
    [found] = [note for note in notes(story, "state", what="found") if place(note)[0] > 3]
    lives = [life for (member, _), life in story.lives.items() if member == found[0][0].member]
    steps = [row.detail for row in lives[0] if row.kind == Kind.NOTE and (row.detail or {}).get("name") == "applied"]
    say(found, n=steps[2]["n"], h=steps[2]["h"])  # type: ignore[index]


def never_complete(story: Story) -> None:
    life = story.any(life for (member, _), life in story.lives.items() if life[-1].kind == Kind.END)
    k = max(k for at, k in notes(story, "state", what="complete") if at is life)
    del life[k]


def told_too_much(story: Story) -> None:
    life, k = story.any(notes(story, "state", what="decided"))
    life.insert(k, replace(life[k], detail={"name": "lost", "calls": [[1, 1, 10_000]]}))


DAMAGES: dict[str, tuple[Callable[[Story], None], set[str]]] = {
    "another state": (another_state, {"A1"}),
    "another decision": (another_decision, {"A1"}),
    "another step": (another_step, {"A1"}),
    "miscounted": (miscounted, {"A1"}),
    "forgotten": (forgotten, {"A2"}),
    "applied again": (applied_again, {"A3"}),
    "answered without": (answered_without, {"A4"}),
    "unwritten": (unwritten, {"A4"}),
    "never complete": (never_complete, {"A5"}),
    "told too much": (told_too_much, {"A6"}),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_all_can_be_judged(policy: str) -> None:
    assert set(judged(sound_trace(policy)).values()) == {"holds"}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_seen(name: str) -> None:
    how, wanted = DAMAGES[name]
    planted = 0
    for policy in POLICIES:
        for seed in range(2):
            story = Story(sound_trace(policy), seed)
            try:
                how(story)
            except Nowhere:
                continue
            planted += 1
            broken = {id for id, state in judged(story.trace()).items() if state == "broken"}
            assert broken & wanted, f"missed in {policy}, {seed}: broken is {sorted(broken)}"
    assert planted, "no trace had a place for it"


def test_the_forms_agree_on_random_damage() -> None:
    """Notes vanish, come twice, or say what another says."""
    broken: set[str] = set()
    for seed in range(60):
        story, pick = Story(sound_trace((ALL_CONTINUE, PRIMARY_MAJORITY)[seed % 2]), seed), random.Random(seed)
        for _ in range(pick.randint(1, 3)):
            name = pick.choice(("state", "applied", "answered", "state"))
            one, two = pick.sample(notes(story, name), 2)
            other = two[0][two[1]].detail or {}
            how = pick.randrange(4)
            if how == 0:
                del one[0][one[1]]
            elif how == 1:
                one[0].insert(one[1], one[0][one[1]])
            elif how == 2 and "h" in other:
                say(one, n=other["n"], h=other["h"])
            else:
                say(one, **{key: value for key, value in other.items() if pick.random() < 0.5})
        broken |= {id for id, state in judged(story.trace()).items() if state == "broken"}
    assert broken >= {"A1", "A4", "A5", "A6"}
