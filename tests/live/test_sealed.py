"""Sealed groups on real sockets: the first one, another key while it runs, IPv6, names, keys that stay hidden."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast import keyfiles, registry
from ordercast.lab.bench import free_ports
from ordercast.live import keychange
from ordercast.live.group import Group
from ordercast.types import Batch, View

from .conftest import WAIT_SECONDS, Cli, wait_for

PROTOCOLS = ["totem", "token_site"]


def table(folder: Path, members: int = 3, **more: Any) -> dict[str, Any]:
    """A group with a key in a folder, all on loopback."""
    port, *ports = free_ports(members + 1)
    if not (folder / "group.key").exists():
        keyfiles.write(folder / "group.key")
    entries = [{"id": k, "address": f"127.0.0.1:{at}"} for k, at in enumerate(ports, 1)]
    config = {"group": f"sealed-{os.getpid()}-{port}", "key": str(folder / "group.key"), "member": entries}
    return config | {"net": {"port": port}, "trace": {"level": "off"}, "state_dir": str(folder / "state")} | more


def until_view(process: subprocess.Popen[str], members: list[int]) -> None:
    assert process.stdout is not None
    while json.loads(process.stdout.readline()).get("members") != members:
        pass


# --------------------------------------------------------------------------------------------------- a first group


def test_a_first_group_by_init(cli: Cli, tmp_path: Path) -> None:
    """What `init` prints starts three members; nobody had to say anything of keys."""
    said = cli.json("init", "--members", "3", "--group", f"first-{os.getpid()}", "--dir", str(tmp_path))
    assert (tmp_path / "group.key").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "group.toml").read_text()
    port, *ports = free_ports(4)
    for k, at in enumerate(ports, 1):
        text = text.replace(f"127.0.0.1:{7400 + k}", f"127.0.0.1:{at}")
    (tmp_path / "group.toml").write_text(text + f"\n[net]\nport = {port}\n")
    members = [cli.start(*line.split()[1:], stdin=subprocess.PIPE) for line in said["start"].values()]
    for member in members:
        until_view(member, [1, 2, 3])
    members[0].stdin.write("hello\n")
    members[0].stdin.flush()
    for member in members:
        assert json.loads(member.stdout.readline())["data"] == "hello"
    status = cli.json("status", "--config", str(tmp_path / "group.toml"))
    assert {each["key"]["sends"] for each in status["members"]} == {said["key"]}
    assert not any(each["insecure"] for each in status["members"])
    words = cli.run("status", "--config", str(tmp_path / "group.toml")).stdout
    assert "[insecure]" not in words and f"key {said['key']}" in words
    again = cli.run("init", "--dir", str(tmp_path))
    assert again.returncode == 2 and "group.toml: is there already" in again.stderr
    for member in members:
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [0, 0, 0]


def test_insecure_shows_in_every_status_line(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = str(group_file(2))
    members = [cli.start("member", "--config", file, "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2)]
    for member in members:
        until_view(member, [1, 2])
    lines = [line for line in cli.run("status", "--config", file).stdout.splitlines() if line.startswith("member")]
    assert len(lines) == 2 and all(line.endswith("[insecure]") for line in lines)


# ------------------------------------------------------------------------------------------------- another key


class Load:
    """Members in this process, who send all the time and remember what came."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config, self.groups = config, dict[int, Group]()
        self.got: dict[int, list[bytes]] = {}
        self.views: dict[int, list[View]] = {}
        self.sent = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def start(self, me: int, at_least: int) -> Group:
        group = ordercast.join(me=me, config=self.config, at_least=at_least, timeout=WAIT_SECONDS)
        await group.__aenter__()
        self.groups[me] = group
        self.got[me], self.views[me] = [], []
        self.tasks.append(asyncio.ensure_future(self._read(me, group)))
        return group

    def kill(self, me: int) -> None:
        """As by kill -9."""
        node = self.groups.pop(me).node
        node.stop()
        node.storage.close()

    async def _read(self, me: int, group: Group) -> None:
        with contextlib.suppress(ordercast.Closed):
            async for event in group.batches():
                if type(event) is Batch:
                    self.got[me] += [bytes(data) for data in event.payloads()]
                elif type(event) is View:
                    self.views[me].append(event)

    async def send(self, me: int, rate: float) -> None:
        begun, done = time.monotonic(), 0
        while me in self.groups:
            due = int((time.monotonic() - begun) * rate)
            if due > done:
                await self.groups[me].send_batch([b"%d-%d" % (me, k) for k in range(done, due)])
                self.sent += due - done
                done = due
            await asyncio.sleep(0.01)

    async def key(self, step: str, name: str) -> dict[str, Any]:
        return await keychange.change(self.groups[1].node, {"key": step, "name": name})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ten_rotations_under_load(tmp_path: Path, protocol: str) -> None:
    """Nothing is lost, no view changes by it, and an old key is refused afterwards; a member dies and comes back."""

    async def run() -> None:
        load = Load(table(tmp_path, protocol=protocol, timeout_ms=1000))
        await asyncio.gather(*(load.start(me, 3) for me in (1, 2, 3)))
        senders = [asyncio.ensure_future(load.send(me, 1000)) for me in (1, 2)]
        old, dies = keyfiles.read(tmp_path / "group.key").name, registry.get(protocol).changes_views
        for turn in range(10):
            new = keyfiles.write(tmp_path / f"turn-{turn}.key").name
            views = [len(seen) for seen in load.views.values()]
            answer = await load.key("add", new)
            assert answer.get("members") == [1, 2, 3] and "missing" not in answer, answer
            if turn == 4 and dies:  # between two steps
                load.kill(3)
                await _until(lambda: load.groups[1].view is not None and load.groups[1].view.members == (1, 2))
            answer = await load.key("use", new)
            assert answer.get("done") == "use" and "missing" not in answer, answer
            if turn == 4 and dies:
                await load.start(3, 3)
                await _until(lambda: len(load.groups[1].view.members) == 3)
                await _until(lambda new=new: load.groups[3].status()["key"]["sends"] == new and load.views[3] != [])
                views = [len(seen) for seen in load.views.values()]
            refused = await load.key("drop", new)
            assert "speaks with key" in refused["refused"]
            answer = await load.key("drop", old)
            assert answer.get("members") == [1, 2, 3] and "missing" not in answer, answer
            assert [len(seen) for seen in load.views.values()] == views, "no view changed by it"
            for group in load.groups.values():
                assert group.status()["key"]["holds"] == [new] and "tag" not in group.status()["drops"]
            old = new
        sending, load.groups = load.groups, {}
        await asyncio.gather(*senders)
        load.groups = sending
        await _until(lambda: len(load.got[1]) == len(load.got[2]) == load.sent)
        assert load.got[1] == load.got[2] and len(set(load.got[1])) == load.sent > 2000
        assert load.got[3] == load.got[1][-len(load.got[3]) :], "who came back has the same end"
        await asyncio.gather(*(group.leave(timeout=5) for group in load.groups.values()))

    asyncio.run(run())


async def _until(true: Callable[[], bool], seconds: float = WAIT_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)


def test_key_commands(cli: Cli, tmp_path: Path) -> None:
    """Steps by the command line; `use` is refused while a member lacks the file; who was away says what it lacks."""
    homes = [tmp_path / str(k) for k in (1, 2)]
    text = ""
    for home in homes:
        home.mkdir()
    port, *ports = free_ports(3)
    text = f'group = "keys-{os.getpid()}"\nkey = "group.key"\n[net]\nport = {port}\n'
    text += "".join(f'[[member]]\nid = {k}\naddress = "127.0.0.1:{at}"\n' for k, at in enumerate(ports, 1))
    first = cli.json("keygen", str(homes[0] / "group.key"))["key"]
    second = cli.json("keygen", str(homes[0] / "second.key"))["key"]

    def copy(name: str) -> None:
        path = homes[1] / name
        path.touch(0o600)
        path.write_bytes((homes[0] / name).read_bytes())

    copy("group.key")
    members = []
    for k, home in enumerate(homes, 1):
        (home / "group.toml").write_text(text)
        members.append(cli.start("member", "--config", str(home / "group.toml"), "--id", str(k), stdin=subprocess.PIPE))
    for member in members:
        until_view(member, [1, 2])
    file = ("--config", str(homes[0] / "group.toml"))
    lacks = cli.run("key", "use", second, *file)
    assert lacks.returncode == 1 and len(lacks.stderr.splitlines()) == 1
    assert f"refused: member 2 has no file *.key with key {second} beside its configuration" in lacks.stderr
    copy("second.key")
    assert cli.json("key", "add", "second.key", *file)["members"] == [1, 2]
    early = cli.run("key", "drop", first, *file)
    assert early.returncode == 1 and f"speaks with key {first}: use another one first" in early.stderr
    assert cli.json("key", "use", str(homes[0] / "second.key"), *file)["done"] == "use"
    for process in (members[1],):
        process.kill()
        process.wait(timeout=WAIT_SECONDS)
    until_view(members[0], [1])
    assert cli.json("key", "drop", first, *file)["members"] == [1]
    (homes[1] / "second.key").unlink()
    (homes[1] / "state").rename(homes[1] / "state-lost")
    away = cli.start("member", "--config", str(homes[1] / "group.toml"), "--id", "2", stdin=subprocess.PIPE)
    until_view(away, [2])

    def lacking() -> bool:
        (each,) = cli.json("status", "--config", str(homes[1] / "group.toml"), "--id", "2")["members"]
        return any("a key that is not here" in words for words in each["waits"])

    wait_for(lacking)
    away.send_signal(signal.SIGTERM)
    away.wait(timeout=WAIT_SECONDS)
    (homes[1] / "group.key").write_bytes((homes[0] / "second.key").read_bytes())  # the operator's word
    back = cli.start("member", "--config", str(homes[1] / "group.toml"), "--id", "2", stdin=subprocess.PIPE)
    until_view(back, [1, 2])
    insecure = tmp_path / "insecure.toml"
    insecure.write_text(text.replace('key = "group.key"', "insecure = true"))
    refused = cli.run("key", "add", second, "--config", str(insecure))
    assert refused.returncode == 2 and "expected a group with a key" in refused.stderr


def test_a_second_claimant_with_the_key(cli: Cli, tmp_path: Path) -> None:
    """The first stays, the second ends with a sentence, as without sealing."""
    port, *ports, other = free_ports(5)
    keyfiles.write(tmp_path / "group.key")
    text = f'group = "claim-{os.getpid()}"\nkey = "{tmp_path}/group.key"\n[net]\nport = {port}\n'
    text += "".join(f'[[member]]\nid = {k}\naddress = "127.0.0.1:{at}"\n' for k, at in enumerate(ports, 1))
    file, elsewhere = tmp_path / "group.toml", tmp_path / "elsewhere" / "group.toml"
    file.write_text(text)
    elsewhere.parent.mkdir()
    elsewhere.write_text(text.replace(f"127.0.0.1:{ports[1]}", f"127.0.0.1:{other}"))
    members = [cli.start("member", "--config", str(file), "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2, 3)]
    for member in members:
        until_view(member, [1, 2, 3])
    second = cli.run("member", "--config", str(elsewhere), "--id", "2")
    assert second.returncode == 1
    assert "another process is member 2 and is in a view with others" in second.stderr.splitlines()[-1]


# ------------------------------------------------------------------------------------------------------ nonces


def test_no_nonce_is_used_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a life whose disk was lost while its clock was set back an hour: each (key, nonce) is seen once."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from ordercast.wire import seal

    used: list[tuple[bytes, bytes]] = []

    class Watched:
        def __init__(self, key: bytes) -> None:
            self._key, self._real = key, AESGCM(key)
            self.decrypt, self.decrypt_into = self._real.decrypt, self._real.decrypt_into

        def encrypt_into(self, nonce: bytes, data: bytes, about: bytes, into: memoryview) -> int:
            used.append((self._key, nonce))
            return self._real.encrypt_into(nonce, data, about, into)

        def encrypt(self, nonce: bytes, data: bytes, about: bytes) -> bytes:
            used.append((self._key, nonce))
            return self._real.encrypt(nonce, data, about)

    monkeypatch.setattr(seal, "aead", lambda key_id: Watched)
    wall = time.time_ns

    async def run(config: dict[str, Any]) -> None:
        async def one(me: int) -> None:
            async with ordercast.join(me=me, config=config, at_least=2, timeout=WAIT_SECONDS) as group:
                group.node._outgoing._count = max(group.node._outgoing._count, 2**32 - 20)  # over the edge
                for k in range(40):
                    await group.send(b"%d" % k)
                await asyncio.sleep(0.3)

        await asyncio.gather(one(1), one(2))

    config = table(tmp_path, 2)
    for state, back in (("a", 0), ("a", 0), ("lost", 3600 * 10**9)):
        monkeypatch.setattr(time, "time_ns", lambda back=back: wall() - back)
        asyncio.run(run(config | {"state_dir": str(tmp_path / state)}))
    assert len(used) > 200 and len(set(used)) == len(used)
    assert len({key for key, _ in used}) >= 12, "two members, three lives, two sub-keys each"


# ------------------------------------------------------------------------------------------------ IPv6 and names


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")
def test_ipv6(tmp_path: Path) -> None:
    """By unicast: loopback has no multicast of IPv6.  The rest of it is tested in namespaces."""
    config = table(tmp_path)
    for entry in config["member"]:
        entry["address"] = entry["address"].replace("127.0.0.1", "[::1]")
    config["net"]["mode"] = "unicast"

    async def run() -> None:
        load = Load(config)
        await asyncio.gather(*(load.start(me, 3) for me in (1, 2, 3)))
        await load.groups[1].send(b"large" * 40_000)
        await _until(lambda: all(len(got) == 1 for got in load.got.values()))
        load.kill(3)
        await _until(lambda: load.groups[1].view is not None and load.groups[1].view.members == (1, 2))
        await asyncio.gather(*(group.leave(timeout=5) for group in load.groups.values()))

    asyncio.run(run())


def test_a_name_is_waited_for_and_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Member 2 is known by name: not at all at first, then at one address, and after its restart at another."""
    hosts: dict[str, str] = {"one.test": "127.0.0.1"}

    async def look_up(self: Any, host: str, port: int, **more: Any) -> list[Any]:
        if host not in hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (hosts[host], port))]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", look_up)
    monkeypatch.setattr("ordercast.live.names.AGAIN_SECONDS", 0.1)

    async def run() -> None:
        (one, two) = free_ports(2)
        config = table(tmp_path, 2, net={"mode": "unicast"})
        config["member"] = [
            {"id": 1, "address": f"one.test:{one}", "bind": f"127.0.0.1:{one}"},
            {"id": 2, "address": f"two.test:{two}", "bind": f"127.0.0.2:{two}"},
        ]
        load = Load(config)
        await load.start(1, 1)
        await _until(lambda: any("two.test of member 2, which does not resolve" in w for w in _waits(load, 1)))
        hosts["two.test"] = "127.0.0.2"
        await load.start(2, 2)
        assert not [words for words in _waits(load, 1) if "name:" in words]
        load.kill(2)
        await _until(lambda: load.groups[1].view is not None and load.groups[1].view.members == (1,))
        hosts["two.test"] = "127.0.0.3"
        config["member"][1]["bind"] = f"127.0.0.3:{two}"
        await load.start(2, 2)
        await load.groups[1].send(b"found")
        await _until(lambda: load.got[2] == [b"found"])
        await asyncio.gather(*(group.leave(timeout=5) for group in load.groups.values()))

    def _waits(load: Load, me: int) -> list[str]:
        return list(load.groups[me].status()["waits"])

    asyncio.run(run())


# --------------------------------------------------------------------------------------------------- keys hide


def test_keys_never_appear(cli: Cli, tmp_path: Path) -> None:
    """Neither in what a run writes and says, nor in errors, nor in what Spark would be sent."""
    out = tmp_path / "run"
    words = ["run", "--members", "3", "--messages", "60", "--rate", "200", "--trace", "record", "--verify", "plain"]
    said = [cli.run(*words, "--out", str(out))]
    assert said[0].returncode == 0, said[0].stderr
    secret = (out / "group.key").read_bytes()
    assert (out / "group.key").stat().st_mode & 0o777 == 0o600
    looks = [secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)[:-1],
             base64.urlsafe_b64encode(secret)[:-1], repr(secret)[2:-1].encode()]  # fmt: skip
    said += [cli.run("status", str(out), "--json"), cli.run("replay", str(out / "trace")), cli.run("views", str(out))]
    key = keyfiles.read(out / "group.key")
    config = ordercast.config.load(out / "group.toml", 1)
    texts = [repr(key), repr(config), str(config), ordercast.config.dump(config)]
    (out / "group.key").chmod(0o644)
    with pytest.raises(ordercast.UsageError) as caught:
        keyfiles.read(out / "group.key")
    texts += [str(caught.value), repr(caught.value)]
    blobs = [pickle.dumps(config), *(text.encode() for text in texts)]
    blobs += [(done.stdout + done.stderr).encode() for done in said]
    files = [path for path in out.rglob("*") if path.is_file() and path.name != "group.key"]
    assert len(files) > 8
    blobs += [path.read_bytes() for path in files]
    for look in looks:
        assert not any(look in blob for blob in blobs)
