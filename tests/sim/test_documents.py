"""The simulator's page names every key and class; the example scenarios run and hold."""

import re
from pathlib import Path

import pytest

from ordercast.sim import faults
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Cost, Edge, Hosts, Load, Net, Scenario, Start
from ordercast.sim.world import run
from ordercast.verify import check

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design" / "simulator.md").read_text()
PROSE = re.sub(r"```.*?```", "", PAGE, flags=re.S)
NAMES = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", PROSE))))


@pytest.mark.parametrize("table", [Scenario, Load, Net, Edge, Hosts, Cost, Clocks, Start, Delay])
def test_every_key_is_named(table):
    assert set(table.__struct_fields__) - NAMES - {"nets", "hosts", "clocks", "load", "start", "faults"} == set()


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.__struct_config__.tag)
def test_every_class_has_a_row_with_its_fields(fault):
    (row,) = re.findall(rf"^\| `{fault.__struct_config__.tag}` \|.*$", PAGE, re.M)
    general = {*faults.LinkFault.__struct_fields__, "member"}
    named = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", row))))
    assert set(fault.__struct_fields__) - general <= named


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.stem)
def test_example_scenarios_hold(path):
    scenario = Scenario.from_file(path)
    outcome = run(scenario, level="full")
    assert outcome.ended == "delivered"
    assert {verdict.promise: verdict.state for verdict in check(outcome.trace) if verdict.state == "broken"} == {}
    assert outcome.faults


def test_the_page_s_python_runs():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code, {"print": lambda *values: None})
