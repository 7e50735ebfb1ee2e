"""A recorded member replays byte for byte; a flipped byte is reported at its record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast import registry
from ordercast.cli import main
from ordercast.conformance.recording import replay_file
from ordercast.sim.faults import Crash
from ordercast.sim.scenario import Net, Scenario
from ordercast.sim.world import run


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A token site of two, as the sequencer's inputs and what it answered."""
    run(Scenario(protocol="token_site", members=2, messages=5, seed=3), level="record", record=tmp_path)
    for other in tmp_path.rglob("member-1-*.inputs"):
        other.unlink()
    (path,) = tmp_path.rglob("member-2-*.inputs")
    return path


def test_replays_byte_for_byte(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = replay_file(recording)
    assert result.difference == "" and result.inputs > 20
    assert main(["replay", str(recording.parent)]) == 0
    assert f"{result.inputs} passed, 0 failed" in capsys.readouterr().out


def test_a_gateway_replays_byte_for_byte(tmp_path: Path) -> None:
    """Two rings, on one of which a member dies; what each of them said on which net is in the recording."""
    nets = (Net(members=(1, 2, 3)), Net(members=(3, 4)))
    scenario = Scenario(protocol="multiring", members=4, messages=30, nets=nets, faults=(Crash(member=1, at_ms=200.0),))
    outcome = run(scenario, level="record", record=tmp_path)
    assert outcome.notes["forward"] and outcome.notes["vector message"]
    for path in tmp_path.rglob("member-*.inputs"):
        result = replay_file(path)
        assert result.difference == "" and result.inputs > 100, (path, result)
    assert len(list(tmp_path.rglob("member-3-*.inputs"))) == 1


def test_any_flipped_byte_is_reported(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = recording.read_bytes()
    rng = random.Random(3)
    for at in [len(good) - 1, len(good) // 2, *(rng.randrange(len(good)) for _ in range(60))]:
        bad = bytearray(good)
        bad[at] ^= 1 << rng.randrange(8)
        recording.write_bytes(bad)
        assert replay_file(recording).difference, f"byte {at}"
    assert main(["replay", str(recording)]) == 1
    assert "damaged" in capsys.readouterr().out


def test_another_answer_is_shown_in_words(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ordercast.protocols.hybrid import Process

    monkeypatch.setattr(Process, "null", lambda self: [])
    result = replay_file(recording)
    assert result.record > 3 and "only recorded: ['Note', 'null'" in result.difference


def test_a_recording_cut_short_by_a_kill_is_replayed_to_its_end(recording: Path) -> None:
    whole = replay_file(recording).inputs
    recording.write_bytes(recording.read_bytes()[:-3])
    result = replay_file(recording)
    assert (result.difference, result.inputs, result.note) == ("", whole - 1, "cut short by a kill")


def test_a_protocol_that_is_not_here_is_told(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "known", lambda name: name == "totem")
    assert main(["replay", str(recording)]) == 1
    assert "0 passed, 0 failed, 1 not replayed: no such protocol here: token_site" in capsys.readouterr().out


def test_bad_paths_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "absent", tmp_path):
        assert main(["replay", str(path)]) == 2
        assert capsys.readouterr().err.startswith("ordercast: ")
