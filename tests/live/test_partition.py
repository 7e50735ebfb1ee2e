"""`primary-majority` with real processes: the part that is not primary waits, says so, and goes on when it is again."""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.lab.bench import free_ports
from ordercast.trace.load import load
from ordercast.trace.schema import Kind

from .conftest import WAIT_SECONDS, Cli, wait_for

PROTOCOLS = ["causal", "token_site", "totem"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_of_three_are_killed_and_come_back(cli: Cli, tmp_path: Path, protocol: str) -> None:
    """The one left is told NotPrimary and delivers nothing; all that was accepted goes out; S8 is judged."""
    words = ["--kill", "1@1", "--kill", "2@1", "--restart", "1@4", "--restart", "2@4"]  # not half with the smallest id
    words += ["--partition", "primary-majority"]
    load_ = ["--members", "3", "--messages", "1200", "--rate", "150", "--verify", "plain", "--out", "out"]
    told = cli.json("run", "--protocol", protocol, *load_, *words)
    verdicts = {verdict["promise"].split()[0]: verdict["verdict"] for verdict in told["verdicts"]}
    assert verdicts["S8"] == "holds" and told["violations"] == 0 and told["partition"] == "primary-majority"
    trace = load(tmp_path / "out" / "trace")[0]
    assert trace.header.partition == "primary-majority"
    one = [row for row in trace.rows if row.member == 3]
    views = [row for row in one if row.kind == Kind.VIEW and row.view_kind == 1]
    alone = next(k for k, row in enumerate(views) if row.members == (3,) and row.time_ns > _begun(trace.rows))
    assert (views[alone].detail or {})["primary"] is False and (views[-1].detail or {})["primary"] is True
    assert views[-1].members == (1, 2, 3)
    back = next(row for row in views[alone:] if (row.detail or {})["primary"])
    between = [row for row in one if views[alone].index < row.index < back.index]
    assert not [row for row in between if row.kind in (Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT)]
    assert {(row.detail or {})["why"] for row in between if row.kind == Kind.REFUSE} == {"not primary"}
    accepted, originated = (
        sum(row.count or 0 for row in one if row.kind == kind) for kind in (Kind.SUBMIT, Kind.ORIGINATE)
    )
    assert accepted == originated >= 300


def _begun(rows: list[Any]) -> int:
    """When the first message was accepted."""
    return min(row.time_ns for row in rows if row.kind == Kind.SUBMIT)


class Reader:
    """What a member prints, as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.put(json.loads(line))

    def until_view(self, members: list[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The regular view of these, and what came before it."""
        before = []
        while True:
            event = self.events.get(timeout=WAIT_SECONDS)
            if event["event"] == "view" and event["kind"] == "regular" and event["members"] == members:
                return event, before
            before.append(event)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_back_without_their_state_they_count_for_nobody(
    cli: Cli, group_file: Callable[..., Path], protocol: str
) -> None:
    """Never two primary parts; primary again once all three are there."""
    file = group_file(3, protocol=f'"{protocol}"', partition='"primary-majority"')

    def start(member: int) -> Reader:
        return Reader(cli.start("member", "--config", str(file), "--id", str(member), stdin=subprocess.PIPE))

    readers = {member: start(member) for member in (1, 2, 3)}
    for reader in readers.values():
        assert reader.until_view([1, 2, 3])[0]["primary"] is True
    for member in (1, 2):
        readers[member].process.send_signal(signal.SIGKILL)
        readers[member].process.wait(timeout=WAIT_SECONDS)
        shutil.rmtree(file.parent / "state" / f"member-{member}")
    assert readers[3].until_view([3])[0]["primary"] is False
    one = readers[3].process
    assert one.stdin is not None and one.stderr is not None
    one.stdin.write("said too early\n")
    one.stdin.flush()
    assert "line 1 of standard input was not sent: this member's view is not primary" in one.stderr.readline()
    status = cli.run("status", "--config", str(file), "--id", "3")
    assert status.returncode == 1 and "not primary" in status.stdout
    readers[2] = start(2)
    assert readers[3].until_view([2, 3])[0]["primary"] is False
    seen, _ = readers[2].until_view([2, 3])
    assert seen["primary"] is False
    readers[1] = start(1)
    for reader in readers.values():
        view, before = reader.until_view([1, 2, 3])
        assert view["primary"] is True
        assert not [event for event in before if event["event"] == "message" or event.get("primary") is True]
    one.stdin.write("said in time\n")
    one.stdin.flush()
    for reader in readers.values():
        assert wait_for(lambda reader=reader: reader.events.get(timeout=WAIT_SECONDS))["data"] == "said in time"


def test_the_library_raises_not_primary_and_sends_what_it_had_accepted_later() -> None:
    async def work() -> None:
        port, *ports = free_ports(4)
        members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
        words: dict[str, Any] = {"members": members, "port": port, "protocol": "totem", "insecure": True}
        words |= {"partition": "primary-majority", "at_least": 1}
        one, two, three = (ordercast.join(f"primary-{port}", me=k, **words) for k in members)
        async with one:
            assert one.view is not None and one.view.primary is False, "the first view is of one"
            with pytest.raises(ordercast.NotPrimary, match="not primary"):
                await one.send(b"x")
            with pytest.raises(ordercast.NotPrimary):
                one.send_nowait(b"x")
            with pytest.raises(ordercast.NotPrimary):
                await one.join_group("chat")
            async with two, three:
                while not (one.view.primary and two.view and two.view.primary):
                    await asyncio.sleep(0.02)
                receipt = await one.send(b"y")
                await one.delivered(receipt)

    asyncio.run(asyncio.wait_for(work(), WAIT_SECONDS))
