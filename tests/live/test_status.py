"""`ordercast status`: who is absent, whether one member is in a view, its last views, rates, and why it waits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.errors import ConfigError, TraceError
from ordercast.live.past import VIEWS_KEPT, Past
from ordercast.live.storage import Storage
from ordercast.trace.load import load
from ordercast.trace.reader import RowReader
from ordercast.trace.schema import Kind
from ordercast.types import Cause, View, ViewId, ViewKind

from .conftest import Cli, wait_for
from .test_library import joined, run

UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def moment(text: str) -> float:
    assert UTC_TIME.fullmatch(text), text
    return datetime.fromisoformat(text).timestamp()


def status(cli: Cli, *words: str) -> tuple[int, dict[str, Any]]:
    done = cli.run("status", *words, "--json")
    return done.returncode, json.loads(done.stdout)


def events(process: subprocess.Popen[str], until: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    assert process.stdout is not None
    out = [json.loads(process.stdout.readline())]
    while not until(out[-1]):
        out.append(json.loads(process.stdout.readline()))
    return out


def test_who_is_absent_and_who_is_in_a_view(cli: Cli, group_file: Callable[..., Path]) -> None:
    file, begun = str(group_file(2, protocol='"totem"')), time.time()
    members = [cli.start("member", "--config", file, "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2)]
    logs = [events(member, lambda event: event.get("members") == [1, 2]) for member in members]
    members[0].stdin.write("hello\n")
    members[0].stdin.flush()
    logs[1] += events(members[1], lambda event: event["event"] == "message")
    assert all(begun - 1 <= moment(event["time"]) <= time.time() + 1 for log in logs for event in log)
    code, answer = status(cli, "--config", file)
    assert (code, answer["running"], answer["absent"]) == (0, 2, [])
    for each in answer["members"]:
        assert begun - 1 <= moment(each["started"]) <= moment(each["time"]) <= time.time() + 1
        last = each["views"][-1]
        assert each["in_view"] and last["id"] == each["view"]["id"] and last["members"] == [1, 2]
        assert moment(each["started"]) <= moment(last["time"]) <= moment(each["time"]) and last["cause"]
        (peer,) = each["peers"]
        assert peer["member"] == 3 - each["member"] and peer["packets"] > 0 and peer["frames_lost"] == 0
        assert set(each["rates"]) == {"submitted", "delivered", "datagrams_received", "datagrams_sent"}
    members[1].send_signal(signal.SIGKILL)
    members[1].wait()
    code, answer = status(cli, "--config", file)
    assert code == 1 and answer["absent"] == [2] and "error" in answer["members"][1]
    assert status(cli, "--config", file, "--id", "2")[0] == 1
    code, answer = wait_for(lambda: (found := status(cli, "--config", file, "--id", "1"))[0] == 0 and found)
    assert [each["member"] for each in answer["members"]] == [1]
    words = cli.run("status", "--config", file)
    assert words.returncode == 1 and "member 2: not running" in words.stdout and "each second:" in words.stdout
    members[0].send_signal(signal.SIGTERM)
    members[0].wait()
    (trace,) = load(Path(file).parent / "trace")
    starts = [row for row in trace.rows if row.kind == Kind.START]
    assert [(row.member, row.index) for row in starts] == [(1, 1), (2, 1)]
    assert all(begun - 1 <= row.detail["wall_ns"] / 1e9 <= time.time() for row in starts)


def test_members_of_another_namespace_are_asked_all_the_same(cli: Cli, tmp_path: Path) -> None:
    lines = ['group = "far"', "insecure = true", "[net]", 'interface = "veth-of-nobody"']
    lines += [f'[[member]]\nid = {k}\naddress = "10.99.0.{k}:7400"' for k in (1, 2)]
    (tmp_path / "group.toml").write_text("\n".join(lines) + "\n")
    code, answer = status(cli, ".")
    assert code == 1 and [each["error"] for each in answer["members"]] == ["not running", "not running"]
    with pytest.raises(ConfigError, match="no such interface"):  # whoever wants to be a member there is still told
        ordercast.config.load(tmp_path / "group.toml")


def test_a_member_elsewhere_is_not_absent_while_it_is_in_the_view(tmp_path: Path) -> None:
    from ordercast.cli.status import _absent, _works
    from ordercast.config import make

    config = make(
        {"group": "g", "insecure": True, "member": [{"id": k, "address": f"127.0.0.1:740{k}"} for k in (1, 2, 3)]},
        base=tmp_path,
    )
    view = {"members": [1, 2], "primary": None}
    answers = [{"member": 1, "in_view": True, "view": view}, *({"member": k, "error": "not running"} for k in (2, 3))]
    assert _absent(config, answers) == [3]
    config.state_path(2).mkdir(parents=True)  # it did live here
    assert _absent(config, answers) == [2, 3]
    assert _works(answers[0]) and not _works(answers[1])
    assert not _works(answers[0] | {"in_view": False}) and not _works(answers[0] | {"view": view | {"primary": False}})


@pytest.mark.parametrize("protocol", ["totem", "token_site"])
def test_everybody_names_the_member_whose_application_stopped_reading(protocol: str) -> None:
    async def work() -> None:
        groups = first, second = joined(2, protocol, at_least=1)
        for group in groups:
            group.start()
        while not all(group.view is not None and group.view.members == (1, 2) for group in groups):
            await asyncio.sleep(0.01)

        async def flood() -> None:
            while True:
                await first.send(bytes(60_000))

        async def drain() -> None:
            async for _ in first.batches():
                pass

        tasks = [asyncio.create_task(flood()), asyncio.create_task(drain())]
        said = "the application of member 2, which does not read what it was delivered, since 20"
        while not all(any(said in words for words in group.status()["waits"]) for group in groups):
            await asyncio.sleep(0.05)
        (own,) = (words for words in second.status()["waits"] if words.startswith("application: "))
        assert re.fullmatch(
            r"application: it does not read: \d+ frames of \d+ bytes wait, since " + UTC_TIME.pattern, own
        )
        assert not any(words.startswith("application: ") for words in first.status()["waits"])
        tasks.append(asyncio.create_task(_read(second)))
        tasks[0].cancel()
        while any(said in words for group in groups for words in group.status()["waits"]):
            await asyncio.sleep(0.05)
        await first.leave()  # it has sent all that it accepted, while the other reads
        await second.leave(0)
        for task in tasks:
            task.cancel()

    run(work())


async def _read(group: ordercast.Group) -> None:
    async for _ in group.batches():
        pass


def test_a_full_disk_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, write = [False], Storage.write

    def failing(self: Storage, name: str, data: bytes) -> None:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, name, data)

    monkeypatch.setattr(Storage, "write", failing)

    async def work() -> None:
        (group,) = joined(1, "totem", state_dir=tmp_path / "state")
        await asyncio.sleep(0)
        build = Storage.new_incarnation

        def then_full(self: Storage) -> int:
            incarnation = build(self)
            full[0] = True
            return incarnation

        monkeypatch.setattr(Storage, "new_incarnation", then_full)
        group.start()
        while not group.status()["waits"] or group._node.disk_fault is None:  # type: ignore[union-attr]
            await asyncio.sleep(0.02)
        told = group.status()
        join, disk, ring = told["waits"]
        assert join == "join: a view of at least 1 members"
        place = re.escape(str(tmp_path / "state" / "member-1"))
        assert re.fullmatch(
            rf"disk: {place}, which cannot be written: no space left on device, since {UTC_TIME.pattern}", disk
        )
        assert ring.startswith("ring: a view, which waits for its storage, which says: no space left on device, since")
        assert not told["in_view"]
        full[0] = False
        while not group.status()["in_view"]:
            await asyncio.sleep(0.02)
        assert group.status()["waits"] == []
        await group.leave()

    run(work())


def test_the_last_views_and_their_standstills() -> None:
    now, counted = [0], {"delivered": 0, "from 2": 0}
    past = Past((1, 2), lambda: dict(counted), lambda: now[0])
    loop = asyncio.new_event_loop()
    past.start(loop)
    for k in range(1, 14):
        kind = ViewKind.REGULAR if k != 13 else ViewKind.TRANSITIONAL
        past.viewed(k * 1_000_000, View(ViewId(k, 1), kind, (1,), cause=Cause("start")))
        if k > 2:
            past.resumed(k * 1_000_000 + 500_000)
            past.delivered_ns = k * 1_000_000 + 500_000
    assert len(past.views) == VIEWS_KEPT and [seen.view.id.seq for seen in past.views] == list(range(3, 13))
    assert [seen.standstill_ms for seen in past.views] == [None, *[1.0] * 9]
    now[0], counted["delivered"] = 2 * 10**9, 100
    assert past.rates() == {"delivered": 50.0, "from 2": 0.0}
    past.stop()
    loop.close()


def test_dates_are_told_in_utc() -> None:
    from ordercast.trace.clock import utc

    assert utc(0) == "1970-01-01T00:00:00.000000Z"
    assert utc(1_794_962_631_000_120_999) == "2026-11-18T00:43:51.000120Z"
    assert datetime.fromisoformat(utc(1_794_962_631_000_120_999)).tzinfo == UTC


def test_a_member_keeps_as_much_of_its_trace_as_it_was_told(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = group_file(1, protocol='"totem"', **{"trace.keep_mb": "1", "trace.level": '"full"'})
    member = cli.start("member", "--config", str(file), "--id", "1", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    trace = file.parent / "trace"

    def told() -> bool:
        member.stdin.write("x\n" * 500)
        member.stdin.flush()
        found = []
        for path in trace.glob("*.rows"):
            with contextlib.suppress(
                TraceError
            ):  # the oldest goes, and the newest is being made, while it is looked at
                found.append(RowReader(path).header.gone)
        return any(found)

    wait_for(told)
    assert sum(path.stat().st_size for path in trace.iterdir()) <= 2**20
    views = cli.json("views", "--config", str(file))["views"]  # the row of the only view may be gone by now
    assert len(views) <= 1 and all(view["members"] == [1] and moment(view["time"]) > 0 for view in views)
    member.send_signal(signal.SIGTERM)
    assert member.wait(timeout=60) == 0
    judged = cli.run("verify", "--plain", str(trace))
    assert judged.returncode == 1 and "is no longer kept" in judged.stdout and "was broken" not in judged.stdout


def test_a_run_refuses_to_lose_its_trace(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERCAST_TRACE_KEEP_MB", "1")
    done = cli.run("run", "--members", "2", "--messages", "10", "--verify", "plain", "--out", "o")
    assert done.returncode == 1 and "ORDERCAST_TRACE_KEEP_MB" in done.stderr, done.stderr
