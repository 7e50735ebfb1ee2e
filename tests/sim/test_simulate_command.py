"""`ordercast simulate`: what it prints, writes and refuses."""

import json
import os
import subprocess
import sys

import pytest

from ordercast.cli import main
from ordercast.sim.scenario import Scenario
from ordercast.trace.load import load


def simulate(capsys, *args):
    code = main(["simulate", *map(str, args)])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_json_has_what_scripts_read(capsys):
    code, out, _ = simulate(capsys, "--members", 4, "--messages", 100, "--seed", 7, "--size", 10, "--json")
    assert code == 0
    assert out.count("\n") == 1
    result = json.loads(out)
    assert result["version"] == 1
    wanted = {"protocol": "totem", "members": 4, "seed": 7, "messages": 100, "delivered": 100, "violations": 0}
    assert {key: result[key] for key in wanted} == wanted
    assert result["events"] > 100
    assert result["sim_seconds"] > 0
    assert result["wall_seconds"] >= 0
    assert len(result["digest"]) == 32


def test_same_digest_in_two_processes():
    args = ["simulate", "--members", "5", "--messages", "300", "--seed", "7", "--json"]
    digests = set()
    for seed in ("0", "77"):
        out = subprocess.run(
            [sys.executable, "-m", "ordercast", *args],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        digests.add(json.loads(out.stdout)["digest"])
    assert len(digests) == 1


def test_out_holds_a_scenario_that_runs_again_and_a_trace(capsys, tmp_path):
    out = tmp_path / "run"
    code, words, _ = simulate(capsys, "--messages", 50, "--set", "load.regime=bursts", "--out", out)
    assert code == 0
    assert "no promise was broken" in words
    scenario = Scenario.from_file(out / "scenario.toml")
    assert (scenario.messages, scenario.load.regime) == (50, "bursts")
    assert 'protocol = "totem"' in (out / "scenario.toml").read_text()
    (trace,) = load(out / "trace")
    first = json.loads((out / "result.json").read_text())
    assert trace.digest() == first["digest"]
    code, again, _ = simulate(capsys, "--scenario", out / "scenario.toml", "--json")
    assert json.loads(again)["digest"] == first["digest"]
    code, _, err = simulate(capsys, "--out", out)
    assert code == 2
    assert "--force" in err


def test_a_broken_promise_is_exit_code_1(capsys, tmp_path):
    path = tmp_path / "loss.toml"
    path.write_text(
        'protocol = "tiny"\nmessages = 50\nlimit_ms = 300\n[[faults]]\nfault = "duplication"\npackets = ["Word"]\n'
    )
    from ordercast import registry
    from ordercast.registry import ProtocolInfo

    info = registry.get("tiny")
    fields = {name: getattr(info, name) for name in ProtocolInfo.__struct_fields__}
    registry.register(ProtocolInfo(**{**fields, "promises": {"agreed": ("S1", "S2")}}))
    try:
        code, out, _ = simulate(capsys, "--scenario", path, "--json")
        result = json.loads(out)
        assert code == 1
        assert result["violations"] == 1
        assert result["broken"] == ["S2"]
        assert result["examples"][0]["rows"]
        code, words, _ = simulate(capsys, "--scenario", path)
        assert "BROKEN" in words
    finally:
        registry.register(info)


def test_untraced_runs_are_not_judged(capsys):
    code, out, _ = simulate(capsys, "--messages", 20, "--trace", "off", "--json")
    result = json.loads(out)
    assert (code, result["violations"], result["digest"], result["delivered"]) == (0, None, None, 20)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--members", "65"], "--members 65: expected a whole number from 1 to 64"),
        (["--seed", "x"], "--seed x: expected a whole number"),
        (["--protocol", "token_sit"], "did you mean token_site?"),
        (["--scenario", "/nowhere.toml"], "/nowhere.toml: cannot be read"),
        (["--set", "rate"], "--set 'rate': expected KEY=VALUE"),
        (["--set", "load.rat=5"], "load.rat: unknown key rat; did you mean rate?"),
        (["--set", "members.x=5"], "members: a table: expected a whole number"),
        (["--protocol", "token_site", "--service", "safe"], "service: token_site provides agreed, not safe"),
        (["--trace", "record"], "--trace record: expected --out DIR beside it"),
        (["--protocol", "token_site", "--set", "options.fast=true"], "options of token_site"),
    ],
)
def test_one_sentence_and_exit_code_2(capsys, args, sentence):
    code, out, err = simulate(capsys, *args)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
