"""Campaigns: rows, resuming, the same table however it is cut, bad input in one sentence, failures made small."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.mutants import MUTANTS
from tests.mutants.hunt import variant

from ordercast.cli import main
from ordercast.errors import UsageError
from ordercast.sim.scenario import Load, Pace, Scenario
from ordercast.swarm.campaign import ROWS, Campaign, compare
from ordercast.swarm.judge import judge
from ordercast.swarm.shrink import keep_members, shrink

PROTOCOL = ("token_site",)


def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = Campaign(range(6), PROTOCOL, jobs=2).run()
    assert whole.runs == 6 and not whole.broken and whole.events > 0
    (tmp_path / "c").mkdir()
    Campaign(range(3), PROTOCOL, directory=tmp_path / "c", jobs=1).run()
    rows = tmp_path / "c" / ROWS
    rows.write_bytes(rows.read_bytes() + b'{"seed": 4, "proto')  # killed in the middle of a line
    second = Campaign(range(6), PROTOCOL, directory=tmp_path / "c", jobs=1)
    assert second.resumed == 3
    assert second.run().as_dict() == whole.as_dict()
    assert len(rows.read_text().splitlines()) == 6
    with pytest.raises(UsageError, match="other options"):
        Campaign(range(6), directory=tmp_path / "c")


def test_the_same_in_two_processes_with_different_hash_seeds() -> None:
    assert compare(range(8), PROTOCOL, jobs=2) == (8, [])


def test_determinism_mutants_differ() -> None:
    _, different = compare(range(12), PROTOCOL, variant=variant("wall_clock"), jobs=2)
    assert different


@pytest.mark.parametrize("name", ["own_at_multicast", "fifo_gap_ignored"])
def test_planted_bugs_are_found_and_made_small(name: str, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    campaign = Campaign(range(4), PROTOCOL, variant=variant(name), directory=tmp_path / "c", jobs=2, shrink_s=30)
    summary = campaign.run()
    assert summary.broken
    (failure, place), *_ = campaign.failures(summary)
    assert failure.members <= 3 and failure.messages <= 6
    scenario = Scenario.from_file(place / "scenario.toml")
    again = judge(scenario, maker=MUTANTS[name].maker)
    assert failure.promise in [found.promise for found in again.breaks]
    assert judge(scenario).ok, "the sound protocol survives it"
    assert "ordercast simulate --scenario" in (place / "failure.txt").read_text()
    assert (place / "picture.svg").exists() == (failure.promise != "raises")


def test_shrinking_asks_for_a_failure() -> None:
    with pytest.raises(UsageError, match="does not break S17"):
        shrink(Scenario(messages=3), "S17")


def test_members_left_out_are_renumbered() -> None:
    from ordercast.sim.faults import Loss, Partition, Pause

    scenario = Scenario(
        members=5,
        senders=(2, 5),
        core=(1, 2, 5),
        heal_ms=10.0,
        load=Load(rates=(Pace(members=(2,), rate=5.0), Pace(members=(2, 5), rate=0.0, at_ms=3.0), Pace(rate=9.0))),
        faults=(Loss(pairs=("2>5", "1>3")), Loss(pairs=("3>*",)), Pause(member=4), Partition(groups=((1, 2), (3, 5)))),
    )
    without = keep_members(scenario, (1, 5))
    assert without is not None and without.load.rates == (Pace(members=(2,), rate=0.0, at_ms=3.0), Pace(rate=9.0))
    small = keep_members(scenario, (2, 5))
    assert small is not None and small.members == 2
    assert small.senders == (1, 2) and small.core == ()
    assert small.faults == (Loss(pairs=("1>2",)), Partition(groups=((1,), (2,))))
    small.check()


# ------------------------------------------------------------------------------------------------------- command line


def test_json_and_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert main(["swarm", "--protocol", "token_site", "--seeds", "0:3", "--json", "--summary", str(page)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["runs"] == 3 and result["seeds"] == [0, 3] and result["broken"] == []
    assert {"events", "sim_hours", "faults", "probes", "left_out", "digest", "version"} <= set(result)
    assert "| runs | 3 |" in page.read_text()
    assert main(["swarm", "--protocol", "token_site", "--seeds", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("seed 2: token_site") and "probes" in text and "left out for token_site: nothing" in text


def test_json_names_every_failure_shrunk_or_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.swarm.campaign.Campaign", partial(Campaign, variant=variant("canary")))
    assert main(["swarm", "--protocol", "token_site", "--seeds", "0:3", "--shrink", "0", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["broken"] and [(f["seed"], f["promise"]) for f in result["failures"]] == [
        (row["seed"], row["promise"]) for row in result["broken"]
    ]
    assert all(failure["directory"] is None for failure in result["failures"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "9:3"], "expected A:B with A below B"),
        (["--seeds", "3:3"], "expected A:B with A below B"),
        (["--seeds", "x:3"], "expected A:B with whole numbers"),
        (["--seeds", "-1:3"], "expected A:B with whole numbers"),
        (["--protocol", "tokensite"], "did you mean token_site"),
        (["--jobs", "0"], "--jobs 0: expected"),
        (["--minutes", "0"], "--minutes 0: expected"),
        (["--minutes", "nan"], "--minutes nan: expected"),
        (["--out", "/proc/nowhere"], "--out /proc/nowhere: cannot be written"),
        (["--out", "/etc/hostname"], "--out /etc/hostname: is not a directory"),
        (["--summary", "/proc/x/page.md"], "--summary /proc/x/page.md: cannot be written"),
        (["--twice", "--out", "x"], "--twice compares runs"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["swarm", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and words in captured.err
    assert captured.err.startswith("ordercast: ") and len(captured.err.splitlines()) == 1


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "precious").write_text("mine")
    assert main(["swarm", "--seeds", "0:1", "--out", str(tmp_path)]) == 2
    assert "which no run of ordercast made" in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == ["precious"]


def test_interrupted_it_keeps_and_says_what_was_finished(tmp_path: Path) -> None:
    out = tmp_path / "c"
    command = [sys.executable, "-m", "ordercast", "swarm", "--protocol", "token_site", "--seeds", "0:100000"]
    process = subprocess.Popen(
        [*command, "--jobs", "1", "--out", str(out), "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not (out / ROWS).exists() or len((out / ROWS).read_bytes().splitlines()) < 3:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=60)
    finally:
        process.kill()  # whatever happened, it is not left behind
    assert process.returncode == 130
    done = len((out / ROWS).read_text().splitlines())
    assert f"interrupted: {done} of 100000 seeds were finished, kept in {out}" in said
    assert len(said.splitlines()) == 1 and f"{done} runs (token_site {done})" in told
