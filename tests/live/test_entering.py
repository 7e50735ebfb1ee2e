"""Entering a group: whom it waits for, what it says meanwhile, and who is not let in because of other terms."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import ordercast
from ordercast import keyfiles
from ordercast.lab.bench import free_ports
from ordercast.live import entry, keychange

from .conftest import WAIT_SECONDS, Cli, wait_for
from .test_library import run
from .test_member import lines


def places(count: int) -> dict[str, Any]:
    """Where a group of so many is, and its name."""
    port, *ports = free_ports(count + 1)
    members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
    return {"group": f"test-{os.getpid()}-{port}", "members": members, "port": port, "insecure": True}


def first_two(where: dict[str, Any]) -> dict[int, str]:
    return {k: where["members"][k] for k in (1, 2)}


OTHER: dict[str, tuple[dict[str, Any], str, str, str]] = {  # case -> what member 3 has, the term, here, there
    "timeout": ({"timeout_ms": 777}, "timeout_ms", "200", "777"),
    "protocol": ({"protocol": "token_site"}, "protocol", "totem", "token_site"),
    "options": ({"options": {"window_size": 9}}, "options.window_size", "0", "9"),
    "partition": ({"partition": "primary-majority"}, "partition", "evs-all-continue", "primary-majority"),
}


@pytest.mark.parametrize("mode", ["multicast", "unicast"])
@pytest.mark.parametrize("case", OTHER)
def test_both_sides_name_who_has_other_terms(case: str, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    other, term, here, there = OTHER[case]
    where = places(3) | {"mode": mode}

    async def work() -> None:
        third = ordercast.join(me=3, **(where | other), timeout=2.0)
        first, second = (ordercast.join(me=k, **where) for k in (1, 2))
        entering = asyncio.gather(first.__aenter__(), second.__aenter__())
        with pytest.raises(ordercast.JoinTimeout, match="given up after 2 s") as caught:
            await third.__aenter__()
        said = str(caught.value)
        assert "waits for a view of 2 members or more: it is in a view of [3]" in said
        for k in (1, 2):
            assert f"member {k} has {term} {here}, here it is {there}" in said
        await entering
        for group in (first, second):
            assert group.view is not None and group.view.members == (1, 2)
            told = [{k: v for k, v in each.items() if k != "since_ms"} for each in group.status()["other_terms"]]
            assert {"member": 3, "term": term, "here": here, "there": there} in told
            assert any(f"member 3 has {term} {there}, here it is {here}" in words for words in group.status()["waits"])
        await asyncio.gather(first.leave(), second.leave())

    run(work())
    log = [record.getMessage() for record in caplog.records]
    for me, who, value in ((1, 3, there), (2, 3, there), (3, 1, here), (3, 2, here)):
        begins = f"member {me} of {where['group']} does not let in another: member {who} has"
        assert any(line.startswith(begins) and f"{term} {value}" in line for line in log), log


def test_other_lists_of_members_are_named_by_both_sides() -> None:
    where = places(3)

    async def work() -> None:
        async with ordercast.join(me=1, **(where | {"members": first_two(where)}), at_least=1) as first:
            with pytest.raises(ordercast.JoinTimeout) as caught:
                await ordercast.join(me=3, **where, timeout=1.5).__aenter__()
            assert "member 1 has members '1, 2', here it is '1, 2, 3'" in str(caught.value)
            assert "terms: member 3 has members '1, 2, 3', here it is '1, 2'" in first.status()["waits"]
            assert first.view is not None and first.view.members == (1,)

    run(work())


def test_join_waits_for_more_than_half_and_says_for_what(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "SAY_SECONDS", 0.5)
    where = places(3)

    async def work() -> None:
        with pytest.raises(ordercast.JoinTimeout) as caught:
            await ordercast.join(me=1, **where, timeout=1).__aenter__()
        said = "waits for a view of 2 members or more: it is in a view of [1]; has not heard of 2, 3"
        assert said in str(caught.value) and isinstance(caught.value, TimeoutError)
        assert any(said in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
        first, second = (ordercast.join(me=k, **where) for k in (1, 2))
        entering = asyncio.create_task(first.__aenter__())
        while first._node is None or first.view is None:
            await asyncio.sleep(0.01)
        assert not entering.done() and "join: a view of at least 2 members" in first.status()["waits"]
        async with second:
            await entering
            async for event in first:  # what it saw alone is passed over
                assert isinstance(event, ordercast.View) and event.members == (1, 2)
                break
            await first.leave()

    run(work())


def test_alone_if_asked_for() -> None:
    async def work() -> None:
        async with ordercast.join(me=1, **places(3), at_least=1) as group:
            async for event in group:
                assert isinstance(event, ordercast.View) and event.members == (1,)
                break

    run(work())


def test_what_is_delivered_before_entering_is_passed_over_and_holds_nobody_back() -> None:
    where = places(3)

    async def work() -> None:
        late = ordercast.join(me=1, **where, at_least=3)
        entering = asyncio.create_task(late.__aenter__())
        async with ordercast.join(me=2, **where) as sender:
            await sender.join_group("chat")
            await sender.delivered(await sender.send_batch([b"early"] * 5_000))
            for _ in range(40):
                receipt = await sender.send_batch([bytes(60_000)] * 50)
                await sender.delivered(receipt)
                async for event in sender.batches():
                    if isinstance(event, ordercast.Batch) and event.counter + event.count > receipt.id.counter + 49:
                        break
            assert late._node is not None and late._node.room.unread == (0, 0)
            async with ordercast.join(me=3, **where):
                await entering
                await sender.send(b"late")
                seen: list[Any] = []
                async for event in late:
                    seen.append(event)
                    if isinstance(event, ordercast.Message):
                        break
                assert isinstance(seen[0], ordercast.View) and seen[0].members == (1, 2, 3)
                assert [e.members for e in seen if isinstance(e, ordercast.GroupView)][-1] == (2,)
                assert seen[-1].data == b"late"
                await late.leave()

    run(work())


@pytest.mark.parametrize("words", [{"at_least": 0}, {"at_least": 4}, {"at_least": "2"}, {"at_least": True},
                                   {"timeout": 0}, {"timeout": -1.0}, {"timeout": "5"}, {"timeout": float("nan")},
                                   {"timeout": float("inf")}])  # fmt: skip
def test_what_join_may_wait_for(words: dict[str, Any]) -> None:
    with pytest.raises(ordercast.UsageError, match=f"join: {next(iter(words))}: .* expected"):
        ordercast.join("x", me=1, members=3, insecure=True, **words)


def test_the_first_event_of_a_member_names_the_disagreement(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = group_file(2, protocol='"totem"')
    other = file.with_name("other.toml")
    other.write_text("timeout_ms = 900\n" + file.read_text())
    first = cli.start("member", "--config", str(file), "--id", "1", stdin=subprocess.PIPE)
    assert lines(first, 1)[0]["members"] == [1]
    second = cli.start("member", "--config", str(other), "--id", "2", stdin=subprocess.PIPE)
    told = {"event": "other_terms", "member": 2, "term": "timeout_ms", "here": "200", "there": "900"}
    assert lines(first, 1) == [told]
    assert lines(second, 1) == [told | {"member": 1, "here": "900", "there": "200"}]
    assert lines(second, 1)[0]["members"] == [2]

    def status() -> Any:
        members = cli.json("status", "--config", str(file))["members"]
        return all(each["waits"] for each in members) and members

    one, two = wait_for(status)
    assert one["waits"][0] == "terms: member 2 has timeout_ms 900, here it is 200"
    assert two["waits"][0] == "terms: member 1 has timeout_ms 200, here it is 900"
    for member in (first, second):
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in (first, second)] == [0, 0]
    assert first.stderr is not None and "does not let in another: member 2 has timeout_ms 900" in first.stderr.read()


# ------------------------------------------------------------------------------------------------------------- tagger


def tagged(folder: Path, sealed: Path | None = None) -> dict[str, Any]:
    """A group of one whose tagger is at a free port."""
    where = places(1)
    (at,) = free_ports(1)
    member = [{"id": 1, "address": where["members"][1]}]
    door = {"insecure": True} if sealed is None else {"key": str(sealed)}
    return {
        "group": where["group"], "protocol": "dpg", "member": member, "net": {"port": where["port"]},
        "tagger": {"address": f"127.0.0.1:{at}"}, "timeout_ms": 200, "trace": {"level": "off"}, **door,
        "state_dir": str(folder / "state"),
    }  # fmt: skip


def test_a_tagger_nobody_reaches_is_one_sentence_and_no_process_stays(cli: Cli, tmp_path: Path) -> None:
    group = tagged(tmp_path)
    (tmp_path / "group.toml").write_text(tomli_w.dumps(group))
    done = cli.run("member", "--config", "group.toml", "--id", "1")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"the tagger at {group['tagger']['address']} does not answer: nobody is there" in done.stderr


@pytest.mark.parametrize("sealed", [False, True])
def test_a_tagger_that_answers_lets_in_and_another_key_reaches_it(cli: Cli, sealed: bool, tmp_path: Path) -> None:
    keys = [tmp_path / name for name in ("old.key", "new.key")]
    for key in keys:
        keyfiles.write(key)
    group = tagged(tmp_path, keys[0] if sealed else None)
    (tmp_path / "group.toml").write_text(tomli_w.dumps(group))
    tagger = cli.start("tagger", "--config", "group.toml")
    assert tagger.stdout is not None and '"ready"' in tagger.stdout.readline()

    async def work() -> None:
        async with ordercast.join(me=1, config=group) as member:
            await member.delivered(await member.send(b"one"))
            if not sealed:
                return
            name = keyfiles.read(keys[1]).name
            for step, of in (("add", name), ("use", name), ("drop", keyfiles.read(keys[0]).name)):
                done = await keychange.change(member.node, {"key": step, "name": of})
                assert done.get("done") == step and done["members"] == [0, 1] and "missing" not in done, done
            await member.delivered(await member.send(b"two"))

    run(work())
    tagger.send_signal(signal.SIGTERM)
    assert tagger.wait(timeout=WAIT_SECONDS) == 0
