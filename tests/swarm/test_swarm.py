"""What every change must survive: the runs that once failed, and some seeds of every kind."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast import registry
from ordercast.drivers import incoming
from ordercast.errors import WireError
from ordercast.sim.scenario import Scenario
from ordercast.swarm.campaign import Campaign
from ordercast.swarm.judge import judge
from ordercast.swarm.seeds import expand
from ordercast.wire.train import Station

HERE = Path(__file__).parent
SEEDS: list[dict[str, Any]] = tomllib.loads((HERE / "regressions.toml").read_text(encoding="utf-8"))["seed"]
SCENARIOS = sorted((HERE / "regressions").glob("*.toml"))
FRESH = range(1_000, 1_036)  # `make campaign` runs thousands


@pytest.mark.parametrize("entry", SEEDS, ids=lambda entry: f"{entry['protocol']}-{entry['seed']}")
def test_seeds_that_once_failed(entry: dict[str, Any]) -> None:
    plan = expand(entry["seed"], (entry["protocol"],))
    judgement = judge(plan.scenario, plain=True)
    assert [found.text for found in judgement.breaks] == [], plan.text()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenarios_that_once_failed(path: Path) -> None:
    judgement = judge(Scenario.from_file(path), plain=True)
    assert [found.text for found in judgement.breaks] == []


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("protocol", registry.names())
def test_a_window_that_closes_inside_a_message_opens_again(protocol: str, members: int) -> None:
    """The class behind `closed-on-a-fragment`: every protocol, every parity of frames and room, one reader or two."""
    scenario = Scenario.from_file(HERE / "regressions" / "closed-on-a-fragment.toml")
    for frames, size in product((1, 2, 3, 5), (750, 1_300)):
        stops = [replace(fault, frames=frames) if fault.word == "consumer" else fault for fault in scenario.faults]
        stops += [replace(fault, member=members) for fault in stops if members > 1]
        changed = replace(
            scenario, protocol=protocol, members=members, sizes=(size,), faults=tuple(stops), limit_ms=2_000.0
        )
        assert [found.text for found in judge(changed, plain=True).breaks] == [], (frames, size)


def test_fresh_seeds() -> None:
    summary = Campaign(FRESH, jobs=1).run()
    told = [f"{row.options}: {row.broken[0]['text']}" for row in summary.broken]
    assert told == [], "run `ordercast swarm --protocol P --seeds N` to see one, shrunk"
    assert summary.runs == len(FRESH) and set(summary.protocols) == set(registry.names())


class OneTrain(Station):
    """A later train ends the one before it, whose late cars are refused."""

    def _begin(self, now: int, line: Any, counter: int, index: int, total: int, size: int) -> Any:
        if any(counter - index < other for other in line.trains):
            raise WireError("train", "of an earlier train")
        while line.trains:
            self._forget(line)
        return super()._begin(now, line, counter, index, total, size)


class LateCarsBegin(Station):
    """The same, but a late car begins its train anew."""

    def _begin(self, now: int, line: Any, counter: int, index: int, total: int, size: int) -> Any:
        while line.trains:
            self._forget(line)
        return super()._begin(now, line, counter, index, total, size)


@pytest.mark.parametrize("seed, protocol", [(73, "totem"), (112, "token_site")])
def test_trains_that_end_each_other_are_seen(seed: int, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = expand(seed, (protocol,)).scenario
    assert scenario.packet_bytes > scenario.datagram_bytes and judge(scenario).ok
    monkeypatch.setattr(incoming, "Station", OneTrain)
    assert "nobody had damaged" in judge(scenario).breaks[0].text
    monkeypatch.setattr(incoming, "Station", LateCarsBegin)
    calm = scenario.changed(faults=(), heal_ms=None, core=(), closing=0)
    assert "where no datagram was" in judge(calm).breaks[0].text
