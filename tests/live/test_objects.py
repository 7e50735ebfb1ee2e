"""Replicated objects on real processes and sockets."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast
import ordercast.blocking
from ordercast.errors import UsageError
from ordercast.lab.bench import free_ports

from .conftest import WAIT_SECONDS, apart, environment, examples
from .test_library import joined, run

THREE_TERMINALS = """
import ast, subprocess, sys
words = dict(stdout=subprocess.PIPE, text=True)
start = lambda k: subprocess.Popen([sys.executable, sys.argv[1], str(k)], **words)
ps = {k: start(k) for k in (1, 2, 3)}
def until(k, what):
    for line in ps[k].stdout:
        told = ast.literal_eval(line)
        if what(told):
            return told
    sys.exit(f"terminal {k} ended")
for k in ps:
    until(k, lambda told: sorted(told) == [1, 2, 3])
ps[3].kill()
before = until(1, lambda told: True)
after = until(1, lambda told: told[1] >= before[1] + 3)
ps[3].communicate()
ps[3] = start(3)
print(before, after, until(3, lambda told: True), until(2, lambda told: told[3] > after[3]), sep="\\n")
for p in ps.values():
    p.kill()
    p.communicate()
"""


def test_the_shared_dictionary_of_the_readme_in_three_terminals(tmp_path: Path) -> None:
    example, _ = examples()
    (tmp_path / "shared.py").write_text(example)
    (tmp_path / "three.py").write_text(THREE_TERMINALS)
    command = apart([sys.executable, str(tmp_path / "three.py"), str(tmp_path / "shared.py")])
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=WAIT_SECONDS, check=False
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    before, after, back, later = (ast.literal_eval(line) for line in done.stdout.splitlines())
    assert after[2] > before[2], "the others went on"
    assert back[3] == after[3] + 1 and back[1] >= after[1], "it was there"
    assert later[3] > after[3]


def objects() -> dict[str, Any]:
    return {"d": ordercast.Dict[str, int](), "lock": ordercast.Lock(), "q": ordercast.Queue[int]()}


@pytest.mark.parametrize("protocol", ["totem", "toto", "token_site", "tomp"])
def test_objects_on_every_kind_of_total_order(protocol: str) -> None:
    async def member(group: ordercast.Group, mine: dict[str, Any]) -> Any:
        async with group:
            me = group.me
            await asyncio.gather(*(mine["d"].set(f"{me}.{k}", k) for k in range(50)))
            async with mine["lock"] as fence:
                await mine["q"].put(fence)
            with pytest.raises(TypeError, match=r"Dict\[str, int\].set: Expected `int`, got `str` - at `value`"):
                await mine["d"].set("x", "y")
            counter = await group.replicate("n", ordercast.Counter())
            await counter.add(me)
            await counter.until(lambda: True if counter.value == 3 and len(mine["q"]) == 2 else None)
            await mine["d"].sync()
            assert group.status()["objects"]["standing"] == "complete"
            await together.wait()  # who is left alone with the larger id is not primary
            return mine["d"].items(), list(mine["q"]._items)

    async def work() -> None:
        each = [objects(), objects()]
        groups = [
            group for mine, k in zip(each, (0, 1), strict=True) for group in [joined_with(2, protocol, mine, k, names)]
        ]
        one, other = await asyncio.gather(*(member(g, m) for g, m in zip(groups, each, strict=True)))
        assert one == other and len(one[0]) == 100 and one[1][0][1] < one[1][1][1]

    names, together = free_ports(3), Together(2)
    run(work())


class Together:
    """A barrier."""

    def __init__(self, count: int) -> None:
        self.count, self.all = count, asyncio.Event()

    async def wait(self) -> None:
        self.count -= 1
        if not self.count:
            self.all.set()
        await self.all.wait()


def joined_with(count: int, protocol: str, mine: dict[str, Any], which: int, ports: list[int]) -> ordercast.Group:
    port, *others = ports
    members = {k: f"127.0.0.1:{at}" for k, at in enumerate(others, 1)}
    words: dict[str, Any] = {"port": port, "protocol": protocol, "insecure": True, "objects": mine, "at_least": count}
    return ordercast.join(f"objects-{port}", me=which + 1, members=members, **words)


def test_bad_joins_with_objects() -> None:
    for protocol, given, words in [
        ("fifo", {}, "join: objects: fifo has no total order with views: expected totem, for instance"),
        ("causal", {}, "join: objects: causal has no total order with views"),
        ("totem", {"d": 5}, "join: objects: .*: expected a mapping of names to instances of Replica's classes"),
        ("totem", [ordercast.Dict()], "join: objects: .*: expected a mapping of names"),
    ]:
        with pytest.raises(UsageError, match=words):
            ordercast.join("x", me=1, members=1, protocol=protocol, insecure=True, objects=given)  # type: ignore[arg-type]

    async def work() -> None:
        one, _ = joined(2, "totem", objects={"d": ordercast.Dict()}, at_least=1, timeout=0.5)
        words = "waits for its objects: a primary view, of all members at a group's beginning: given up after 0.5 s"
        with pytest.raises(ordercast.JoinTimeout, match=words):
            await one.__aenter__()
        (plain,) = joined()
        async with plain:
            with pytest.raises(UsageError, match=r"has no objects: expected join\(objects=...\) at all members"):
                await plain.replicate("d", ordercast.Dict())

    run(work())


def test_members_with_and_without_objects_do_not_let_each_other_in() -> None:
    async def work() -> None:
        ports = free_ports(3)
        with_them = joined_with(2, "totem", {}, 0, ports)
        port, *others = ports
        members = {k: f"127.0.0.1:{at}" for k, at in enumerate(others, 1)}
        without = ordercast.join(
            f"objects-{port}", me=2, members=members, port=port, insecure=True, timeout=2, at_least=2,
            partition="primary-majority",
        )  # fmt: skip
        joining = asyncio.ensure_future(with_them.__aenter__())
        with pytest.raises(ordercast.JoinTimeout, match="objects"):
            await without.__aenter__()
        joining.cancel()
        await asyncio.wait([joining])

    run(work())


def lives(folder: Path) -> Callable[[int], Awaitable[list[dict[str, int]]]]:
    """Three members with disks live until their power is cut, each time with so many durable calls by each; what they
    had at the end."""
    port, *ports = free_ports(4)
    members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
    words: dict[str, Any] = {"members": members, "port": port, "insecure": True, "at_least": 3, "state_dir": folder}

    async def life(calls: int) -> list[dict[str, int]]:
        tables = {me: ordercast.Dict[str, int]() for me in members}
        groups = [ordercast.join(f"d-{port}", me=me, objects={"d": tables[me]}, **words) for me in members]
        await asyncio.gather(*(group.__aenter__() for group in groups))
        had = len(tables[1])
        assert all(table.items() == tables[1].items() for table in tables.values())
        for k in range(calls):
            await asyncio.gather(*(table.set(f"{had} {me} {k}", me, durable=True) for me, table in tables.items()))
        await asyncio.gather(*(table.sync() for table in tables.values()))
        for group in groups:
            group._close(ordercast.Closed("the power is cut"))
        return [table.items() for table in tables.values()]

    return life


def test_a_group_that_stops_as_a_whole_comes_back_with_what_was_durable(tmp_path: Path) -> None:
    async def work() -> None:
        life = lives(tmp_path)
        first, *_ = await life(1)
        assert len(first) == 3
        assert all(len(items) == 6 and first.items() <= items.items() for items in await life(1))

    run(work())


def test_a_damaged_file_at_one_member_is_told_and_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        life = lives(tmp_path)
        first = await life(7)
        (log,) = [file for file in tmp_path.glob("**/member-2/state/calls-*") if file.stat().st_size > 500]
        data = bytearray(log.read_bytes())
        data[len(data) // 2] ^= 1
        log.write_bytes(data)
        assert await life(0) == first and len(first[0]) == 21
        assert f"member 2: of the state on disk, {log.name}: damaged" in caplog.text
        assert caplog.text.count("damaged") == 1

    run(work())


def test_durable_calls_need_a_disk(tmp_path: Path) -> None:
    async def work() -> None:
        port, *ports = free_ports(3)
        members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
        tables = [ordercast.Dict[str, int]() for _ in members]
        words: dict[str, Any] = {"members": members, "port": port, "insecure": True, "at_least": 2}
        one = ordercast.join(f"d-{port}", me=1, objects={"d": tables[0]}, **words)
        two = ordercast.join(f"d-{port}", me=2, objects={"d": tables[1]}, state_dir=tmp_path, **words)
        await asyncio.gather(one.__aenter__(), two.__aenter__())
        with pytest.raises(UsageError, match="durable: this member keeps nothing on disk: expected a state_dir"):
            await tables[0].set("a", 1, durable=True)
        with pytest.raises(UsageError, match="durable: member 1 of this group keeps nothing on disk: expected a state"):
            await tables[1].set("a", 1, durable=True)
        await tables[0].set("a", 1)
        await asyncio.gather(one.leave(), two.leave())

    run(work())


def test_the_blocking_form_has_the_same_objects_and_exceptions() -> None:
    port, *ports = free_ports(3)
    members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
    done, faults = {}, []
    both = threading.Barrier(2)

    def member(me: int) -> None:
        words: dict[str, Any] = {"port": port, "insecure": True, "at_least": 2, "timeout": WAIT_SECONDS}
        with ordercast.blocking.join(f"b-{port}", me=me, members=members, objects=objects(), **words) as group:
            d, lock = group["d"], group["lock"]
            with pytest.raises(ordercast.UsageError, match="notes: this program has not replicated it; it has d, "):
                group["notes"]
            watch = d.watch(f"{me}.0")
            for k in range(5):
                d.set(f"{me}.{k}", k)
            assert next(watch).after == 0
            with pytest.raises(TypeError, match="Expected `str`"):
                d.set(1, 1)
            with lock as fence:
                assert lock.owner == me and lock.fence == fence
            both.wait(WAIT_SECONDS)
            with pytest.raises(ordercast.UsageError, match="set outside of an ordered method"):
                d._items = {}
            counter = group.replicate("n", ordercast.Counter())
            counter.add(me, durable=False)
            d.sync()
            group.send(b"bye")
            assert any(isinstance(event, ordercast.Message) for event in group)
            assert group.view.members == (1, 2) and f"{me}.0" in d and len(d) == 10 and d["1.1"] == 1
            both.wait(WAIT_SECONDS)
            done[me] = d.items()
        with pytest.raises(ordercast.Closed):
            d.set("late", 1)
        assert d["1.1"] == 1 and len(d) == 10, "what it holds stays readable"

    def told(me: int) -> None:
        try:
            member(me)
        except BaseException as why:
            faults.append(why)
            both.abort()

    threads = [threading.Thread(target=told, args=(me,)) for me in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    assert not faults and done[1] == done[2]
