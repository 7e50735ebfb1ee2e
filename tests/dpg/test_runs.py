"""Whole runs of DPG: the tagger dies and returns, sites come and go, a LAN without a tagger, bad input."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from ordercast import config as configuration
from ordercast import verify
from ordercast.errors import ConfigError, UsageError
from ordercast.interfaces import one_processor
from ordercast.live import build
from ordercast.sim.faults import Crash, Loss, Pause, Slowness
from ordercast.sim.law import Delay
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Clocks, Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.verify.plain import quasi
from ordercast.verify.plain.model import Run

ROOT = Path(__file__).resolve().parents[2]
BASE = Scenario(protocol="dpg", members=4, messages=600, load=Load(rate=250.0), tagger=True)
LAN = replace(BASE, tagger=False, options={"channel": "lan"})


def sound(outcome: Outcome) -> None:
    broken = [verdict for verdict in verify.check(outcome.trace) if verdict.state == "broken"]
    assert not broken and not outcome.notes["conflict"], (broken, outcome.notes)


WAN = replace(
    LAN, options={"channel": "wan"}, clocks=Clocks(skew_ms=0.0), timeout_ms=200.0, load=Load(rate=40.0),
    nets=(Net(model="links", delay=Delay("uniform", low_us=5_000.0, high_us=60_000.0)),),
)  # fmt: skip


@pytest.mark.parametrize("scenario", [BASE, LAN, replace(LAN, options={"channel": "lan", "own": False})])
def test_calm_runs_have_no_violation(scenario: Scenario) -> None:
    outcome = run(scenario, level="full")
    sound(outcome)
    tally = quasi.tally(Run(outcome.trace))
    assert outcome.delivered == outcome.messages == 600 and not tally.violating and not tally.dummies
    certain = [row.certainty for row in outcome.trace.rows if row.kind == Kind.DELIVER]
    assert certain.count("marked") > 0.9 * len(certain)
    assert run(scenario).digest == outcome.digest


def test_the_taggers_death_stops_the_order_and_a_new_one_goes_on() -> None:
    scenario = replace(BASE, faults=(Crash(member=0, at_ms=400.0, down_ms=500.0),), settle_ms=1000.0)
    outcome = run(scenario, level="full")
    sound(outcome)
    times = [row.time_ns / 1e6 for row in outcome.trace.rows if row.kind == Kind.DELIVER]
    assert not [at for at in times if 420 < at < 880], "nothing is delivered while there is none"
    assert [at for at in times if at < 400] and [at for at in times if at > 900]
    assert outcome.delivered == outcome.messages
    forever = run(replace(scenario, faults=(Crash(member=0, at_ms=400.0),)), level="full")
    assert all(v.state == "holds" for v in verify.check(forever.trace, ["S1", "S2", "S3"]))
    assert all("tagger" in said["dpg"]["waits"] for said in forever.status.values())


def test_a_site_that_comes_and_goes_halts_nobody() -> None:
    pauses = tuple(Pause(member=4, at_ms=300.0 + 600.0 * k, for_ms=300.0) for k in range(5))
    outcome = run(replace(BASE, messages=3_000, senders=(1, 2, 3), faults=pauses), level="full")
    sound(outcome)
    rows = outcome.trace.rows
    assert [row for row in rows if row.kind == Kind.ABSENT and row.member == 4]
    assert len([row for row in rows if row.kind == Kind.PRESENT and row.member == 4]) >= 2
    for member in (1, 2, 3):
        times = sorted(row.time_ns for row in rows if row.kind == Kind.DELIVER and row.member == member)
        halts = [b - a for a, b in pairwise(times) if b - a > 50_000_000]
        assert not halts, (member, halts)
    assert quasi.tally(Run(outcome.trace)).violating <= 3


def test_a_wan_takes_what_comes_in_time_in_the_order_of_its_clocks() -> None:
    outcome = run(WAN, level="full")
    sound(outcome)
    tally = quasi.tally(Run(outcome.trace))
    assert outcome.delivered == outcome.messages == 600 and not tally.violating and not tally.dummies
    certain = [row.certainty for row in outcome.trace.rows if row.kind == Kind.DELIVER]
    assert certain.count("marked") > 0.4 * len(certain), "where all have spoken since"


def test_a_wan_that_loses_or_delays_marks_nothing_falsely() -> None:
    """Delta' < Delta: what used up its lifetime, and what never came, lies between."""
    slow = Slowness(p=0.02, law=Delay("constant", mean_us=120_000.0), until_ms=4_000.0)
    outcome = run(replace(WAN, faults=(Loss(p=0.01, until_ms=4_000.0), slow)), level="full")
    sound(outcome)
    assert outcome.notes["stray"] and outcome.delivered >= 0.98 * outcome.messages
    assert quasi.tally(Run(outcome.trace)).violating <= 12


def test_a_real_lan_needs_one_processor_for_what_comes_in(tmp_path: Path) -> None:
    queues = tmp_path / "eth7" / "queues"
    for queue, mask in (("rx-0", "00,00000002"), ("rx-1", "2")):
        (queues / queue).mkdir(parents=True)
        (queues / queue / "rps_cpus").write_text(mask + "\n")
    assert one_processor("eth7", tmp_path) and not one_processor("eth8", tmp_path)
    for mask in ("3", "1", "0", "what"):
        (queues / "rx-1" / "rps_cpus").write_text(mask)
        assert not one_processor("eth7", tmp_path), mask


def test_a_lan_whose_datagrams_two_processors_may_mix_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "one_processor", lambda interface: False)
    config = configuration.make(group(options={"channel": "lan"}))
    with pytest.raises(
        ConfigError, match=r"channel lan: receive steering of interface 127\.0\.0\.1 does not name exactly"
    ):
        build.make_node(
            config, 1, lambda events: None, lambda why: None, on_other_terms=lambda other: None, folder=None
        )


def test_where_only_one_knows_the_order_and_stands_still_another_decides() -> None:
    """The smallest run that leaks, drawn in docs/protocols/dpg.md: what it shows is what a quasi order may do."""
    outcome = run(Scenario.from_file(ROOT / "examples/quasi.toml"), level="full")
    sound(outcome)
    orders = {
        member: [row.sender for row in outcome.trace.rows if row.kind == Kind.DELIVER and row.member == member]
        for member in (1, 2, 3)
    }
    assert orders == {1: [1, 2, 3, 1], 2: [2, 1, 3, 1], 3: [1, 2, 3, 1]}
    tally = quasi.tally(Run(outcome.trace))
    assert (tally.violating, tally.order, tally.dummies) == (1, 1, 0)


@pytest.mark.parametrize("seed", [1, 4, 11])
def test_losses_are_repaired(seed: int) -> None:
    outcome = run(replace(BASE, seed=seed, faults=(Loss(p=0.05, until_ms=2_000.0),)), level="full")
    sound(outcome)
    assert outcome.delivered == outcome.messages


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (replace(BASE, tagger=False), "tagger: dpg needs one"),
        (replace(BASE, protocol="totem"), "tagger: totem has no use for one"),
        (replace(BASE, options={"rate": 0.0}), "rate"),
        (replace(BASE, options={"rate": 1.0}), "rate"),
        (replace(BASE, options={"channel": "radio"}), "channel"),
        (replace(LAN, options={"channel": "wan"}), "clocks that run together"),
    ],
)
def test_bad_scenarios_are_one_sentence(scenario: Scenario, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(scenario)


def group(**more: object) -> dict[str, object]:
    return {
        "group": "g",
        "protocol": "dpg",
        "insecure": True,
        "member": [{"id": 1, "address": "127.0.0.1:7411"}],
        **more,
    }


def test_the_tagger_of_a_configuration() -> None:
    made = configuration.make(group(tagger={"address": "127.0.0.1:7499"}))
    assert made.tagger == configuration.Member(0, "127.0.0.1", 7499)
    assert configuration.make(made).tagger == made.tagger
    for given, said in [
        (group(), "is missing"),
        (group(tagger={}), "address"),
        (group(tagger={"address": "127.0.0.1:7411"}), "tagger.address.*member 1 has this address"),
        (group(tagger={"address": "[::1]:7499"}), "one kind of address"),
        (group(tagger={"address": "127.0.0.1:7499"}, protocol="totem"), "no use for one"),
        (group(tagger={"address": "127.0.0.1:7499"}, options={"channel": "lan"}), "no use for one"),
        (group(options={"channel": "wan"}), "which only the simulator has"),
        (group(options={"channel": "lan"}, net={"mode": "unicast"}), 'mode = "multicast"'),
    ]:
        with pytest.raises(ConfigError, match=said):
            configuration.make(given)


def test_a_tagger_is_one_of_this_machine_and_of_a_group_that_has_one() -> None:
    far = {"address": "192.0.2.7:7499"}
    with pytest.raises(ConfigError, match=r"the tagger: 192.0.2.7 is not an address of this machine"):
        configuration.make(group(tagger=far), me=0)
    with pytest.raises(ConfigError, match=r"the tagger at 192.0.2.7: expected 127.0.0.0/8"):
        configuration.make(group(tagger=far), me=1)
    with pytest.raises(ConfigError, match="tagger: is missing: this group has none"):
        configuration.make(group(protocol="totem"), me=0)
