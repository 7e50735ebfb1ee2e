"""The library: what it gives, and which exception comes before any state changes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

import ordercast
from ordercast.lab.bench import free_ports

from .conftest import WAIT_SECONDS, environment


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, WAIT_SECONDS)

    return asyncio.run(bounded())


def joined(count: int = 1, protocol: str = "token_site", **more: Any) -> list[ordercast.Group]:
    """Group objects of one group, on free ports."""
    port, *ports = free_ports(count + 1)
    members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
    name = f"test-{os.getpid()}-{port}"
    return [
        ordercast.join(name, me=k, members=members, port=port, protocol=protocol, insecure=True, **more)
        for k in members
    ]


async def take(group: ordercast.Group, count: int) -> list[Any]:
    """The first messages, as (sender, counter, data), with views as they come."""
    out: list[Any] = []
    messages = 0
    async for event in group:
        if isinstance(event, ordercast.Message):
            messages += 1
            out.append((event.sender, event.counter, event.data))
        else:
            out.append(event.members)
        if messages == count:
            return out
    return out


def test_public_names() -> None:
    assert 20 <= len(ordercast.__all__) <= 36
    for name in ordercast.__all__:
        assert getattr(ordercast, name) is not None
    with pytest.raises(AttributeError):
        ordercast.nothing  # noqa: B018
    probe = "import ordercast, sys; sys.exit('asyncio' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], env=environment(), check=False).returncode == 0


@pytest.mark.parametrize("mode", ["multicast", "unicast"])
def test_messages_and_views_in_one_order(mode: str) -> None:
    async def member(group: ordercast.Group) -> list[Any]:
        async with group:
            for k in range(20):
                receipt = await group.send(f"{group.me}:{k}".encode())
                assert receipt.id == ordercast.MessageId(group.me, group.incarnation, k + 1)
            got = await take(group, 60)
            await group.delivered(receipt)
            await asyncio.sleep(0.05)
            return got

    async def work() -> None:
        logs = await asyncio.gather(*(member(group) for group in joined(3, mode=mode)))
        assert logs[0] == logs[1] == logs[2]
        assert logs[0][0] == (1, 2, 3), "the view comes first"

    run(work())


def test_batches_and_a_reader_that_stops_in_the_middle() -> None:
    async def work() -> None:
        (group,) = joined()
        async with group:
            receipt = await group.send_batch([b"%d" % k for k in range(10)])
            assert receipt.count == 10
            first = await take(group, 3)
            assert [m[2] for m in first[1:]] == [b"0", b"1", b"2"]
            async for batch in group.batches():
                assert isinstance(batch, ordercast.Batch) and batch.counter == 4
                assert batch.payloads() == [b"%d" % k for k in range(3, 10)]
                break
            await group.send_batch([b"", b"x" * 100_000, b"end"])
            assert [m[2] for m in await take(group, 3)] == [b"", b"x" * 100_000, b"end"]
            assert group.status()["queues"]["unread_frames"] <= 1

    run(work())


def test_bad_calls_change_nothing() -> None:
    async def work() -> None:
        (group,) = joined()
        with pytest.raises(ordercast.NotInView):
            await group.send(b"too early")
        async with group:
            with pytest.raises(TypeError):
                await group.send("text")  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                await group.send_batch(b"bytes")  # type: ignore[arg-type]
            with pytest.raises(ordercast.TooLarge):
                await group.send(bytes(16 * 2**20 + 1))
            with pytest.raises(ValueError, match="no messages"):
                await group.send_batch([])
            with pytest.raises(ValueError, match="unknown service"):
                await group.send(b"x", service="best")
            with pytest.raises(ValueError, match="provides agreed"):
                await group.send(b"x", service="safe")
            with pytest.raises(TypeError):
                await group.send(b"x", groups="one")
            with pytest.raises(ordercast.UsageError, match="already joined"):
                await group.__aenter__()
            assert group.status()["layers"]["hybrid"]["sender"]["submitted"] == 0
            buffer = bytearray(b"before")
            await group.send(memoryview(buffer))  # type: ignore[arg-type]
            buffer[:] = b"after!"
            assert (await take(group, 1))[-1][2] == b"before"
        for call in (group.send(b"late"), group.send_batch([b"late"])):
            with pytest.raises(ordercast.Closed):
                await call
        with pytest.raises(ordercast.Closed):
            group.send_nowait(b"late")

    run(work())


def test_packets_may_be_as_small_as_datagrams() -> None:
    words: dict[str, Any] = {"me": 1, "members": 2, "insecure": True, "datagram_bytes": 1_472}
    assert ordercast.join("x", **words).config.packet_bytes == 65_000
    assert ordercast.join("x", **words, packet_bytes=1_472).config.packet_bytes == 1_472
    with pytest.raises(ordercast.ConfigError, match="packet_bytes"):
        ordercast.join("x", **words, packet_bytes=5)
    with pytest.raises(ordercast.UsageError, match="not both"):
        ordercast.join(me=1, config="group.toml", packet_bytes=1_472)


def test_join_says_what_is_missing() -> None:
    with pytest.raises(ordercast.UsageError):
        ordercast.join(me=1)
    with pytest.raises(ordercast.ConfigError, match="insecure"):
        ordercast.join("x", me=1, members=2)
    with pytest.raises(ordercast.ConfigError, match="member 5"):
        ordercast.join("x", me=5, members=2, insecure=True)
    with pytest.raises(ordercast.UsageError, match="not both"):
        ordercast.join("x", me=1, members=2, config="group.toml")


def test_one_place_for_one_member() -> None:
    async def work() -> None:
        port, at = free_ports(2)
        words: dict[str, Any] = {"members": {1: f"127.0.0.1:{at}"}, "port": port, "insecure": True}
        async with ordercast.join("twice", me=1, protocol="token_site", **words):
            with pytest.raises(ordercast.UsageError, match="in use"):
                await ordercast.join("twice", me=1, protocol="token_site", **words).__aenter__()

    run(work())


def test_a_second_claimant_cannot_join_and_the_first_stays() -> None:
    """As if from another machine: with an address of its own."""
    port, first, second, other = free_ports(4)
    name = f"claim-{os.getpid()}-{port}"

    def member(me: int, mine: int) -> ordercast.Group:
        addresses = {1: f"127.0.0.1:{first}", 2: f"127.0.0.1:{mine}"}
        return ordercast.join(name, me=me, members=addresses, port=port, protocol="totem", insecure=True)

    async def work() -> None:
        one, two = await asyncio.gather(member(1, second).__aenter__(), member(2, second).__aenter__())
        while one.view is None or one.view.members != (1, 2):
            await asyncio.sleep(0.01)
        with pytest.raises(ordercast.RunError, match="another process is member 2 and is in a view with others"):
            async with member(2, other) as three:
                async for _ in three:
                    pass
        await two.send(b"still here")
        async for event in one:
            if getattr(event, "data", b"") == b"still here":
                break
        assert one.view.members == (1, 2)
        await asyncio.gather(one.leave(), two.leave())

    run(work())


def test_other_threads_forks_and_closed_loops() -> None:
    async def work() -> ordercast.Group:
        (group,) = joined()
        async with group:
            loop = asyncio.get_running_loop()
            seen: list[BaseException | str] = []

            def elsewhere() -> None:
                try:
                    group.send_nowait(b"x")
                except ordercast.UsageError as why:
                    seen.append(why)
                seen.append(str(asyncio.run_coroutine_threadsafe(group.send(b"right"), loop).result(WAIT_SECONDS).id))

            thread = threading.Thread(target=elsewhere)
            thread.start()
            await asyncio.to_thread(thread.join)
            assert isinstance(seen[0], ordercast.UsageError) and "another thread" in str(seen[0])
            assert seen[1] == "1.1"
            if (child := os.fork()) == 0:
                try:
                    group.send_nowait(b"x")
                except ordercast.Closed:
                    os._exit(7)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        return group

    group = run(work())
    with pytest.raises(ordercast.Closed):
        group.send_nowait(b"x")


async def together(*groups: ordercast.Group) -> None:
    """Until all are in one view of all."""
    while not all(group.view is not None and len(group.view.members) == len(groups) for group in groups):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("protocol", ["token_site", "totem"])
def test_a_reader_that_does_not_read_holds_the_senders_back(protocol: str) -> None:
    """Memory stays bounded; when it reads again, everything comes, in order."""

    async def work() -> None:
        first, second = joined(2, protocol, at_least=1)
        payload = bytes(50_000)
        async with first, second:
            await together(first, second)
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    await first.send(payload)
                    sent += 1

            async def drain(group: ordercast.Group) -> None:
                async for _ in group.batches():
                    pass

            reading = asyncio.create_task(drain(first))
            flooding = asyncio.create_task(flood())
            before = -1
            while sent != before:  # until the flood stands still
                before = sent
                await asyncio.sleep(0.5)
            frames, size = second._node.room.unread  # type: ignore[union-attr]
            assert 0 < frames <= 1_100 and size <= 80 * 2**20
            with pytest.raises(ordercast.Overloaded):
                for _ in range(2_000):
                    first.send_nowait(payload)
            assert second.status()["queues"]["unread_frames"] == frames
            late = asyncio.create_task(take(second, before))
            flooding.cancel()
            await asyncio.wait([flooding])
            got = [event for event in await late if len(event) == 3 and isinstance(event[2], bytes)]
            assert [counter for _, counter, _ in got] == list(range(1, before + 1))
            await first.leave()  # the rest is no more than the second may leave unread
            reading.cancel()

    run(work())


def test_cancelled_senders_have_sent_nothing() -> None:
    async def work() -> None:
        first, second = joined(2, at_least=1)
        payload = bytes(1_000_000)
        async with first, second:
            await together(first, second)
            await asyncio.sleep(0.1)  # the first frames leave at once, the others wait for acknowledgements
            with pytest.raises(ordercast.Overloaded):
                for _ in range(1_000):
                    first.send_nowait(payload)
            before = first.status()["layers"]["hybrid"]["sender"]["submitted"]
            waiting = asyncio.create_task(first.send(payload))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert first.status()["layers"]["hybrid"]["sender"]["submitted"] == before
            with pytest.raises(ordercast.NotSent, match=f"of {before} were not sent"):
                await first.leave(timeout=0)

    run(work())


def test_process_groups() -> None:
    async def member(group: ordercast.Group) -> list[Any]:
        log: list[Any] = []
        async with group:
            while group.view is None or len(group.view.members) < 3:
                await asyncio.sleep(0.01)
            reader = asyncio.create_task(read(group, log))
            if group.me != 3:
                await group.join_group("chat")
                assert group.groups == {"chat"}
                await group.join_group("chat")
            await group.send(b"ready")
            while sum(entry[1] == b"ready" for entry in log) < 3:
                await asyncio.sleep(0.01)
            receipt = await group.send(b"to chat from %d" % group.me, groups=["chat"])
            if group.me == 3:
                with pytest.raises(ValueError, match="in none of its groups"):
                    await group.delivered(receipt)
            await group.send(b"done")
            while sum(entry[1] == b"done" for entry in log) < 3:
                await asyncio.sleep(0.01)
            if group.me == 1:
                with pytest.raises(ValueError, match="groups"):
                    await group.send(b"x", groups=["y" * 100])
                await group.leave_group("chat")
                assert group.groups == frozenset()
            await group.send(b"end")
            while sum(entry[1] == b"end" for entry in log) < 3:
                await asyncio.sleep(0.01)
            reader.cancel()
        return [entry for entry in log if entry[1] not in (b"ready", b"done", b"end")]

    async def read(group: ordercast.Group, log: list[Any]) -> None:
        async for event in group:
            if isinstance(event, ordercast.Message):
                log.append(("message", event.data))
            elif isinstance(event, ordercast.GroupView):
                log.append((event.group, event.members))

    async def work() -> None:
        port, *ports = free_ports(4)
        members = {k: f"127.0.0.1:{at}" for k, at in enumerate(ports, 1)}
        words: dict[str, Any] = {"members": members, "port": port, "protocol": "totem", "insecure": True}
        groups = [ordercast.join(f"groups-{port}", me=k, **words) for k in members]
        logs = await asyncio.gather(*map(member, groups))
        messages = [[data for kind, data in log if kind == "message"] for log in logs]
        assert messages[0] == messages[1] and messages[2] == []
        assert sorted(messages[0]) == [b"to chat from %d" % k for k in (1, 2, 3)]
        views = [[members for kind, members in log if kind == "chat"] for log in logs]
        assert (1, 2) in views[0] and (1, 2) in views[1]
        assert views[0][-1] == views[1][-1] == (2,)

    run(work())


def test_nobody_is_primary_where_no_policy_says_so() -> None:
    async def work() -> None:
        (group,) = joined(1, "totem")
        async with group:
            assert group.view is not None and group.view.primary is None
            assert group.status()["view"]["primary"] is None

    run(work())


def test_a_protocol_without_process_groups_says_so() -> None:
    async def work() -> None:
        (group,) = joined(protocol="causal")
        async with group:
            with pytest.raises(ValueError, match="no process groups"):
                await group.join_group("chat")

    run(work())


def test_who_leaves_has_sent_everything() -> None:
    """Many large messages, nobody of the leaver's own application reads, the loop ends at once."""

    async def work() -> None:
        first, second, third = joined(3, "totem", at_least=1)
        async with second, third:
            readers = [asyncio.create_task(take(group, 80)) for group in (second, third)]
            async with first:
                await together(first, second, third)
                for _ in range(80):
                    await first.send(bytes(1_000_000))
            for reader in readers:
                got = [event for event in await reader if event[0] == 1 and isinstance(event[-1], bytes)]
                assert [counter for _, counter, _ in got] == list(range(1, 81))

    run(work())


@pytest.mark.parametrize("protocol", ["token_site", "totem"])
def test_leaving_tells_what_was_not_sent_and_when_the_body_raised_adds_it(protocol: str) -> None:
    async def work() -> None:
        first, second = joined(2, protocol, at_least=1)
        async with second:
            with pytest.raises(KeyError) as raised:
                async with first:
                    await together(first, second)
                    with pytest.raises(ordercast.Overloaded):
                        while True:  # more than the second, which does not read, takes
                            first.send_nowait(bytes(500_000))
                            await asyncio.sleep(0)
                    raise KeyError("mine")
            assert "may not have arrived" in raised.value.__notes__[0]
            with pytest.raises(ordercast.Closed):
                first.send_nowait(b"x")
            await first.leave()  # once more changes nothing

    run(work())


def test_sending_and_reading_without_a_pause_leave_the_member_its_turns() -> None:
    """Neither loop below waits for anything of its own; a member that is kept for longer than T is expelled."""

    async def work() -> None:
        first, second = joined(2, "totem", timeout_ms=200, at_least=1)
        async with first, second:
            await together(first, second)
            late, ended = 0.0, False

            async def watch() -> None:
                nonlocal late
                last = time.monotonic()
                while not ended:
                    await asyncio.sleep(0.001)
                    late, last = max(late, time.monotonic() - last), time.monotonic()

            async def drain() -> None:
                async for _ in first.batches():
                    pass

            watching, draining = asyncio.create_task(watch()), asyncio.create_task(drain())
            await asyncio.sleep(0.01)
            for k in range(20_000):
                await first.send(b"%d" % k)
            messages, until = 0, time.monotonic() + 30
            async for event in second:
                messages += isinstance(event, ordercast.Message)
                time.sleep(0.0005) if messages < 1_000 else None  # an application that takes its time with each
                if messages == 20_000:
                    break
                assert time.monotonic() < until
            ended = True
            await watching
            draining.cancel()
            assert late < 0.1
            assert first.view is not None and len(first.view.members) == 2

    run(work())


def test_delivered_tells_the_truth_of_a_message_to_a_group_that_was_left() -> None:
    async def work() -> None:
        first, second = joined(2, "totem", at_least=1)
        async with first, second:
            await together(first, second)
            await first.join_group("chat")
            kept = await first.send(b"kept", groups=["chat"])
            leaving = asyncio.create_task(first.leave_group("chat"))
            await asyncio.sleep(0)
            passed = await first.send(b"passed", groups=["chat"])  # behind the GLeave
            waits = asyncio.create_task(first.delivered(passed))
            plain = await first.send(b"plain")
            await leaving
            await first.delivered(kept)
            await first.delivered(plain)
            for wait in (waits, first.delivered(passed)):
                with pytest.raises(ValueError, match="in none of its groups"):
                    await wait
            stranger = ordercast.Receipt(ordercast.MessageId(2, second.incarnation, 1), ordercast.Service.AGREED)
            with pytest.raises(ValueError, match="not sent by this life"):
                await first.delivered(stranger)
            never = await first.send(b"never", groups=["chat"])
            await first.join_group("chat")
            with pytest.raises(ValueError, match="in none of its groups"):
                await first.delivered(never)

    run(work())
