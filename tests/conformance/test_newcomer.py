"""What an ordering protocol need not write: a toy of at most 60 lines gets everything else from the parts around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ordercast import registry, verify
from ordercast.conformance.suite import check_protocol
from ordercast.errors import UsageError
from ordercast.sim.faults import Loss
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.types import ViewKind

ROOT = Path(__file__).resolve().parents[2]
TOY = "tests.conformance.sequencer:sequencer"


def command(*words: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "ordercast", *words, "--json"]
    here = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    done = subprocess.run(line, env=here, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_it_is_short() -> None:
    text = (ROOT / "tests/conformance/sequencer.py").read_text()
    assert sum(1 for line in text.splitlines() if line.strip()) <= 60


def test_it_conforms() -> None:
    assert check_protocol(TOY, seeds=1) >= 10


def test_it_has_packing_windows_groups_and_the_view_of_a_fixed_group() -> None:
    scenario = Scenario(
        protocol=TOY, members=4, messages=600, groups=3, load=Load(regime="saturate"), heal_ms=400.0,
        faults=(Loss(p=0.05, until_ms=300.0),), sizes=(10, 5_000),
    )  # fmt: skip
    outcome = run(scenario, level="full")
    assert not [v for v in verify.check(outcome.trace) if v.state == "broken"]
    rows = [row for row in outcome.trace.rows if row.member]
    assert {row.members for row in rows if row.view_kind == ViewKind.REGULAR and row.members} >= {(1, 2, 3, 4)}
    assert any(row.count > 1 for row in rows if row.kind == Kind.ORIGINATE and row.count), "messages share frames"
    assert {row.groups for row in rows if row.groups} and outcome.notes["group state"] == 4
    assert outcome.ended == "delivered"


def test_it_drains_before_it_leaves() -> None:
    from ordercast.conformance.script import Script

    script = Script()
    for line in (f"members 2 protocol={TOY}", "quietly pass all", "submit 2 last words", "leave 2"):
        script.run(line)
    member = script.members[2]
    assert member.up, "its words are not ordered yet"
    script.run("quietly run 100ms")
    assert script.members[1].log == ["2.1", "2.2"] and not member.up


def test_commands_take_it_by_its_module(tmp_path: Path) -> None:
    swarm = command("swarm", "--protocol", TOY, "--seeds", "0:4")
    assert (swarm["ok"], swarm["broken"]) == (4, [])
    simulated = command("simulate", "--protocol", TOY, "--members", "3", "--messages", "200")
    assert simulated["delivered"] == 200
    run = command(
        "run", "--protocol", TOY, "--members", "3", "--messages", "300", "--rate", "2000", "--verify", "plain",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert run["delivered"] == 300 and run["violations"] == 0


@pytest.mark.parametrize("name", ["no.such.module:x", "ordercast.words:x", "tests.conformance.sequencer:other", ":x"])
def test_what_is_not_there_is_told_in_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match="protocol"):
        registry.get(name)
