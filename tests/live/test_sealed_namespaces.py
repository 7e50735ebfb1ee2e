"""Sealed groups over a bridge: IPv6 multicast and unicast, and names whose address changes; their traces are judged."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordercast import keyfiles
from ordercast.lab import namespaces
from ordercast.lab.namespaces import Host

from .conftest import WAIT_SECONDS, Cli, environment
from .test_sealed import until_view

WHY_NOT = namespaces.why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@contextlib.contextmanager
def started(file: Path, where: dict[int, Host]) -> Iterator[dict[int, subprocess.Popen[str]]]:
    members: dict[int, subprocess.Popen[str]] = {}
    try:
        for me, host in where.items():
            members[me] = start(file, me, host)
        yield members
    finally:
        for member in members.values():
            member.kill()
            member.wait(timeout=10)


def start(file: Path, me: int, host: Host) -> subprocess.Popen[str]:
    words = [*host.enter, sys.executable, "-m", "ordercast", "member", "--config", str(file), "--id", str(me)]
    log = open(file.parent / f"log-{me}", "a")  # noqa: SIM115
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment())


def talk(members: dict[int, subprocess.Popen[str]], count: int) -> None:
    """Each says so much, and all hear all of it in one order."""
    for me, member in members.items():
        assert member.stdin is not None
        member.stdin.write("".join(f"{me}-{k}\n" for k in range(count)))
        member.stdin.flush()
    heard = []
    for member in members.values():
        assert member.stdout is not None
        data: list[str] = []
        while len(data) < count * len(members):
            line = json.loads(member.stdout.readline())
            data += [line["data"]] if line["event"] == "message" else []
        heard.append(data)
    assert all(data == heard[0] for data in heard)


def ended(members: dict[int, subprocess.Popen[str]]) -> None:
    for member in members.values():
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members.values()] == [0] * len(members)


def text(folder: Path, net: str, addresses: list[str]) -> Path:
    keyfiles.write(folder / "group.key")
    lines = ['group = "far"', 'key = "group.key"', "timeout_ms = 500", '[trace]\nlevel = "full"', "[net]", net]
    for k, address in enumerate(addresses, 1):
        lines += ["[[member]]", f"id = {k}", f'address = "{address}"']
    file = folder / "group.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("net", ['interface = "eth0"', 'mode = "unicast"'], ids=["multicast", "unicast"])
def test_ipv6(cli: Cli, tmp_path: Path, net: str) -> None:
    with namespaces.bridge(3, 1500) as hosts:
        for k, host in enumerate(hosts, 1):
            words = ["ip", "-n", host.name, "address", "add", f"fd77::{k}/64", "dev", "eth0", "nodad"]
            subprocess.run(words, check=True)
        file = text(tmp_path, net, [f"fd77::{k}" for k in (1, 2, 3)])
        with started(file, dict(enumerate(hosts, 1))) as members:
            for member in members.values():
                until_view(member, [1, 2, 3])
            talk(members, 50)
            members[3].kill()
            members[3].wait()
            until_view(members[1], [1, 2])
            members[3] = start(file, 3, hosts[2])
            for member in members.values():
                until_view(member, [1, 2, 3])
            talk(members, 20)
            ended(members)
    judged = cli.json("verify", str(tmp_path / "trace"), "--plain")
    assert judged["ok"] and judged["broken"] == [], judged


def test_names_that_change(cli: Cli, tmp_path: Path) -> None:
    """Member 2 starts when its name means nothing yet, and comes back on another machine with another address."""
    with namespaces.bridge(4, 1500) as hosts, contextlib.ExitStack() as stack:
        files = []
        for host in hosts:
            folder = Path("/etc/netns") / host.name
            folder.mkdir(parents=True)
            stack.callback(shutil.rmtree, folder)
            files.append(folder / "hosts")
            files[-1].write_text("127.0.0.1 localhost\n")

        def names(**where: Host) -> None:
            lines = [f"{host.address} {name}.test" for name, host in where.items()]
            for file in files:
                file.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")  # in place: it is mounted there

        names(one=hosts[0])
        file = text(tmp_path, 'mode = "unicast"', ["one.test:7401", "two.test:7402", "three.test:7403"])
        with started(file, dict(enumerate(hosts[:3], 1))) as members:
            until_view(members[1], [1])
            (status,) = cli.json("status", "--config", str(file), "--id", "1")["members"]
            assert any("two.test of member 2, which does not resolve" in words for words in status["waits"])
            names(one=hosts[0], two=hosts[1], three=hosts[2])
            for member in members.values():
                until_view(member, [1, 2, 3])
            talk(members, 20)
            members[2].kill()
            members[2].wait()
            until_view(members[1], [1, 3])
            names(one=hosts[0], two=hosts[3], three=hosts[2])
            members[2] = start(file, 2, hosts[3])
            for member in members.values():
                until_view(member, [1, 2, 3])
            talk(members, 20)
            ended(members)
    judged = cli.json("verify", str(tmp_path / "trace"), "--plain")
    assert judged["ok"] and judged["broken"] == [], judged
