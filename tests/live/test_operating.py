"""What operators use: metrics, a status that stays, a log of JSON lines, and the files under deploy/."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ordercast import config
from ordercast.lab.bench import free_ports
from ordercast.live.delays import BOUNDS_MS, Delays

from .conftest import ROOT, WAIT_SECONDS, Cli
from .test_sealed import table, until_view

DEPLOY = ROOT / "deploy"


def free_tcp_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def scrape(port: int) -> dict[str, dict[tuple[str, ...], float]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            rest = tuple(v for k, v in sorted(sample.labels.items()) if k not in ("group", "member"))
            found.setdefault(sample.name, {})[rest] = sample.value
    return found


def test_metrics_and_a_json_log(cli: Cli, tmp_path: Path) -> None:
    made = config.make(table(tmp_path, 2), base=tmp_path)
    file, port = tmp_path / "group.toml", free_tcp_port()
    file.write_text(config.dump(made))
    words = ("member", "--config", str(file), "--id")
    first = cli.start(*words, "1", "--metrics", str(port), "--log", "json", stdin=subprocess.PIPE)
    second = cli.start(*words, "2", stdin=subprocess.PIPE)
    for member in (first, second):
        until_view(member, [1, 2])
    first.stdin.write("a secret\nanother\n")
    first.stdin.flush()
    for _ in range(2):
        first.stdout.readline()
    got = scrape(port)
    assert got["ordercast_in_view"][()] == 1 and got["ordercast_view_members"][()] == 2
    assert sum(got["ordercast_views_total"].values()) >= 1
    assert got["ordercast_submitted_messages_total"][()] == got["ordercast_delivered_messages_total"][()] == 2
    assert got["ordercast_self_delivery_seconds_count"][()] >= 1 and got["ordercast_insecure"][()] == 0
    (key,) = got["ordercast_key"]
    assert got["ordercast_key"][key] == 1 and re.fullmatch("[0-9a-f]{16}", key[0])
    assert ("2",) in got["ordercast_packets_total"] and ("lost_here",) in got["ordercast_datagrams_lost_total"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"secret" not in answer.read()
    with pytest.raises(urllib.error.HTTPError):  # read-only
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/metrics", method="DELETE"), timeout=10)
    taken = cli.run(*words, "2", "--metrics", str(port))
    assert taken.returncode == 2 and len(taken.stderr.splitlines()) == 1
    second.kill()
    until_view(first, [1])
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=WAIT_SECONDS) == 0
    for line in first.stderr.read().splitlines():
        assert {"time", "level", "logger", "message"} <= json.loads(line).keys()


@pytest.mark.parametrize("text", ["x", "70000", "127.0.0.1", "here:9400", ":9400", "127.0.0.1:0"])
def test_bad_metrics(cli: Cli, group_file: Callable[..., Path], text: str) -> None:
    done = cli.run("member", "--config", str(group_file(2)), "--id", "1", "--metrics", text)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "--metrics" in done.stderr


def test_delays() -> None:
    delays = Delays()
    delays.accepted(0, 3)
    delays.accepted(1_000_000, 5)
    delays.delivered(2_000_000, 4)
    assert delays.sum_ns == 2_000_000 and delays.counts[BOUNDS_MS.index(2)] == 1 == sum(delays.counts)
    delays.delivered(10**12, 9)
    assert delays.counts[-1] == 1
    delays.accepted(10**12, 9)
    assert delays.counts[0] == 1, "delivered in the very step that took it"


def test_status_watch(cli: Cli, group_file: Callable[..., Path]) -> None:
    watching = cli.start("status", "--config", str(group_file(2)), "--watch", "--json")
    lines = [json.loads(watching.stdout.readline()) for _ in range(2)]
    assert [line["running"] for line in lines] == [0, 0]
    watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=WAIT_SECONDS) == 130


def test_status_names_who_was_never_heard_of(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = str(group_file(3))
    first = cli.start("member", "--config", file, "--id", "1", stdin=subprocess.PIPE)
    until_view(first, [1])
    assert "\n    has not heard of 2, 3\n" in cli.run("status", "--config", file, "--id", "1").stdout
    second = cli.start("member", "--config", file, "--id", "2", stdin=subprocess.PIPE)
    until_view(first, [1, 2])
    assert "\n    has not heard of 3\n" in cli.run("status", "--config", file, "--id", "1").stdout
    second.kill()
    until_view(first, [1])
    assert "\n    has not heard of 3\n" in cli.run("status", "--config", file, "--id", "1").stdout


# ----------------------------------------------------------------------------------------------------------- deploy


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_unit_is_well_formed(tmp_path: Path) -> None:
    unit = tmp_path / "ordercast@1.service"
    unit.write_text((DEPLOY / "ordercast@.service").read_text())
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60)
    about = [line for line in done.stderr.splitlines() if "ordercast" in line]
    assert done.returncode == 0 and not about, done.stderr


def _map(name: str) -> str:
    """A file in the ConfigMap."""
    text = (DEPLOY / "statefulset.yaml").read_text()
    block = re.search(rf"^  {re.escape(name)}: \|\n((?:    .*\n|\n)+)", text, re.M)
    assert block is not None
    return textwrap.dedent(block[1])


def test_the_stateful_set_starts_members(cli: Cli, tmp_path: Path) -> None:
    """Its configuration is good, and its script starts a member, which waits for the others' names."""
    conf, keys, run = tmp_path / "conf", tmp_path / "keys", tmp_path / "run"
    for folder in (conf, keys):
        folder.mkdir()
    (port,) = free_ports(1)
    text = _map("group.toml").replace("/var/lib/ordercast", str(tmp_path / "state")).replace("7400", str(port))
    (conf / "group.toml").write_text(text)
    cli.json("keygen", str(keys / "group.key"))
    assert config.load(conf / "group.toml", here=False).ids == (1, 2, 3)
    script = _map("start.sh").replace("/etc/ordercast-key", str(keys)).replace("/etc/ordercast", str(conf))
    script = script.replace("/run/group", str(run)).replace("0.0.0.0:9400", str(free_tcp_port()))
    script = script.replace("ordercast member", f"{sys.executable} -m ordercast member")
    (conf / "start.sh").write_text(script)
    environment = os.environ | {"HOSTNAME": "ordercast-1"}
    process = subprocess.Popen(
        ["sh", str(conf / "start.sh")], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        until_view(process, [2])
        assert (run / "group.key").stat().st_mode & 0o777 == 0o600
        (each,) = cli.json("status", "--config", str(run / "group.toml"), "--id", "2")["members"]
        assert any("ordercast-0.ordercast of member 1, which does not resolve" in words for words in each["waits"])
    finally:
        process.terminate()
        process.wait(timeout=WAIT_SECONDS)


def test_the_container_file_installs_and_starts_what_is_there(cli: Cli, tmp_path: Path) -> None:
    """As far as goes without an image: what it copies is there, the extras exist, and its entry point is a member."""
    text = (DEPLOY / "Containerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.*)$", text, re.M) for name in line.split()[:-1]]
    assert {"pyproject.toml", "src", "constraints.txt"} <= set(copied) and all(
        (ROOT / name).exists() for name in copied
    )
    (extras,) = re.findall(r'pip install .*-c constraints\.txt "\.\[(.*?)\]"', text)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras.split(",")) <= set(known)
    (words,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.M)
    file = tmp_path / "group.toml"
    file.write_text(config.dump(config.make(table(tmp_path, 1), base=tmp_path)))
    program, *arguments = [str(file) if word == "/etc/ordercast/group.toml" else word for word in json.loads(words)]
    assert program == "ordercast"
    until_view(cli.start(*arguments, "--id", "1", stdin=subprocess.PIPE), [1])


def test_the_stateful_set_is_yaml(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl here")
    shutil.copy(DEPLOY / "statefulset.yaml", tmp_path)
    (tmp_path / "kustomization.yaml").write_text("resources: [statefulset.yaml]\n")
    done = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "kind: StatefulSet" in done.stdout, done.stderr
