"""A recorded member replays byte for byte; a flipped byte is reported at its record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ordercast import registry
from ordercast.cli import main
from ordercast.conformance.recording import replay_file
from ordercast.contract import Setup
from ordercast.trace import record
from ordercast.trace.schema import Header
from ordercast.types import Identity
from ordercast.wire.codec import Codec


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Some inputs of a token site and what it answered."""
    info = registry.get("token_site")
    identity = Identity(2, 22, (1, 2))
    header = Header("r", "token_site", "agreed", (1, 2), ())
    setup = Setup(identity, 40_000_000, info.options(), 1400, random.Random(1))
    writer = record.RecordWriter(tmp_path, record.recorded(header, setup))
    stack, codec = info.factory(setup), Codec(info.packets)
    other_id = Identity(1, 11, (1, 2))
    other = info.factory(Setup(other_id, 40_000_000, info.options(), 1400, random.Random(2)))
    other.start(0, other_id, {})
    inputs: list[record.AnyInput] = [record.started(0, identity, {})]
    for k in range(1, 6):
        packets = [a.packet for a in other.submit(k, record.Submission([b"x" * k])) if hasattr(a, "packet")]
        inputs += [record.Received(k, 0, 1, 11, 0, codec.encode(p)) for p in packets]
        inputs += [record.Drained(k, 0), record.Submitted(k, [b"y"], 3, ())]
    inputs.append(record.Fired(8_000_000, "link/heartbeat", 8_000_000))
    for each in inputs:
        writer.append(each, record.feed(stack, codec, each))
    writer.close()
    return writer.path


def test_replays_byte_for_byte(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = replay_file(recording)
    assert (result.difference, result.inputs) == ("", 17)
    assert main(["replay", str(recording.parent)]) == 0
    assert "17 passed, 0 failed" in capsys.readouterr().out


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
    from ordercast.protocols.hybrid import TokenSite

    monkeypatch.setattr(TokenSite, "_null", lambda self: [])
    result = replay_file(recording)
    assert result.record == 3 and "only recorded: ['Note', 'null'" in result.difference


def test_a_recording_cut_short_by_a_kill_is_replayed_to_its_end(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-3])
    result = replay_file(recording)
    assert (result.difference, result.inputs, result.note) == ("", 16, "cut short by a kill")


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
