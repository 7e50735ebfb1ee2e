"""Rogues beside live members of every protocol: without a key, with an old one, with the right one and a refused id.

Each listens, sends, replays yesterday's every datagram, raises counters, installs a view that names itself, and floods.
Whatever they do: nothing is delivered that no member sent, no view changes, nobody ends, and what is kept is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.overheard import forger_of

from ordercast import config as configuration
from ordercast import keyfiles, registry
from ordercast.contract import TAGGER
from ordercast.drivers import guard
from ordercast.drivers.rates import Rates
from ordercast.drivers.terms import FreshTerms
from ordercast.lab.bench import free_ports
from ordercast.live import sieve
from ordercast.live.build import make_node
from ordercast.live.sockets import NetSockets
from ordercast.types import Peer, Service
from ordercast.wire import header
from ordercast.wire.codec import Codec, origin
from ordercast.wire.seal import GroupKey, Sealer

from .conftest import WAIT_SECONDS, Cli, environment, wait_for
from .test_sealed import Load, _until, table, until_view


@contextlib.contextmanager
def wiretap() -> Iterator[list[bytes]]:
    """Every datagram that members of this process send."""
    heard: list[bytes] = []
    real = NetSockets.send

    def send(self: NetSockets, datagrams: bytes, segment: int, to: Any) -> None:
        heard.extend(bytes(datagrams[at : at + segment]) for at in range(0, len(datagrams), segment))
        real(self, datagrams, segment, to)

    NetSockets.send = send  # type: ignore[method-assign]
    try:
        yield heard
    finally:
        NetSockets.send = real  # type: ignore[method-assign]


class Rogue:
    """A process of somebody else on the same machine."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.group = config["group"]
        self.targets = [("239.192.74.0", config["net"]["port"])]
        for entry in (*config["member"], *filter(None, [config.get("tagger")])):
            host, port = entry["address"].split(":")
            self.targets.append((host, int(port)))
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        self.sock.setblocking(False)
        self.sent = 0

    async def say(self, *datagrams: bytes) -> None:
        for datagram in datagrams:
            for target in self.targets:
                with contextlib.suppress(OSError):
                    self.sock.sendto(datagram, target)
                    self.sent += 1
            if self.sent % 64 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(0.05)

    def heard(self) -> list[bytes]:
        """Answers, which there must not be."""
        got = []
        with contextlib.suppress(BlockingIOError):
            while True:
                got.append(self.sock.recv(65_536))
        return got

    def close(self) -> None:
        self.sock.close()


@contextlib.contextmanager
def numbering(config: dict[str, Any], folder: Path) -> Iterator[None]:
    """The tagger of a group that has one, in this process."""
    if "tagger" not in config:
        yield
        return
    made, failed = configuration.make(config, TAGGER, folder), list[BaseException]()
    node = make_node(
        made, TAGGER, lambda events: None, failed.append, on_other_terms=lambda other: None,
        folder=made.state_path(TAGGER),
    )  # fmt: skip
    node.start()
    try:
        yield
        assert node.running and not failed, failed
    finally:
        node.stop()
        node.storage.close()


def made_up(protocol: str) -> Iterator[bytes]:
    """Some of each type, well-formed: who has the key can say them."""
    forger = forger_of(protocol, random.Random(17))
    for kind in map(origin, forger.codec.packets):
        some = [made[1] for _ in range(20) if (made := forger.make(kind)) is not None]
        assert some, f"no {kind.__name__} was made"
        yield from some[:3]


def forged(config: dict[str, Any], protocol: str, key: GroupKey | None, life: Peer) -> Iterator[bytes]:
    """What a process says that would like to be a life of the group: terms, and packets of each type."""
    terms = Codec(registry.get(protocol).packets).encode(FreshTerms({"protocol": protocol}, True, b"c" * 16, b"e" * 16))
    sealer = None if key is None else Sealer(key, config["group"], life)
    for counter, body in enumerate([terms, *made_up(protocol)], 1):
        for number in (counter, 2**32 + counter, 2**64 - counter):
            if sealer is None:
                yield header.pack(header.group_id(config["group"]), life.id, life.incarnation, number) + body
            else:
                yield sealer.seal(0, number, body)


def raised(datagram: bytes) -> bytes:
    counter = int.from_bytes(datagram[24:32], "little") + 2**20
    return datagram[:24] + counter.to_bytes(8, "little") + datagram[32:]


@pytest.mark.parametrize("limited", [True, False], ids=["limited", "without rates"])
@pytest.mark.parametrize("protocol", registry.names())
def test_rogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, limited: bool) -> None:
    if not limited:  # what stands behind the rates holds without them
        monkeypatch.setattr(Rates, "take", lambda self, now, who: True)
        monkeypatch.setattr(sieve, "FLOOD_PER_S", 10**9)
    config = table(tmp_path, protocol=protocol, timeout_ms=1000)
    if registry.get(protocol).tagger:
        config["tagger"] = {"address": f"127.0.0.1:{free_ports(1)[0]}"}
    good, old = keyfiles.read(tmp_path / "group.key"), GroupKey(b"o" * 32)
    rogues = (
        (None, Peer(2, 2**62)), (None, Peer(9, 5)), (old, Peer(2, 2**62)), (old, Peer(9, 5)),
        (good, Peer(9, 5)), (good, Peer(0, 5)), (good, Peer(2**32 - 1, 2**64 - 1)),
        (good, Peer(2, 7)), (good, Peer(3, 2**63)), (good, Peer(2, 2**62)),
    )  # fmt: skip
    ids = {1, 2, 3, TAGGER} if "tagger" in config else {1, 2, 3}
    stranger, today = b"hello from outside", [b"%d" % k for k in range(30)]

    async def day(said: list[bytes]) -> Load:
        load = Load(config)
        await asyncio.gather(*(load.start(me, 3) for me in (1, 2, 3)))
        known = {me: group.node.incoming.admission.last for me, group in load.groups.items()}
        await _until(lambda: all(ids <= {me, *heard} for me, heard in known.items()))  # a view would tell
        for data in said:
            await load.groups[1 + len(data) % 3].send(data)
        await _until(lambda: all(len(got) >= len(said) for got in load.got.values()))
        return load

    async def run() -> None:
        with wiretap() as yesterday, numbering(config, tmp_path):
            load = await day([b"of yesterday %d" % k for k in range(30)])
            for group in [*load.groups.values()]:
                await group.leave(timeout=5)
        with numbering(config, tmp_path):
            await harassed(yesterday[:600], await day([]))

    async def harassed(yesterday: list[bytes], load: Load) -> None:
        rogue = Rogue(config)
        with wiretap() as now:
            await load.groups[2].send(today[0])
            await _until(lambda: all(len(got) == 1 for got in load.got.values()))
        views = {me: len(seen) for me, seen in load.views.items()}
        await rogue.say(b"", b"o", b"oc", bytes(65_000), stranger, b"oc\x01" + bytes(45), b"oc\x01\x01" + bytes(60_000))
        await rogue.say(*yesterday)
        await rogue.say(
            *map(raised, yesterday), *now, *map(raised, now), *[d[:-1] for d in now], *[d + b"x" for d in now]
        )
        for key, life in rogues:
            await rogue.say(*forged(config, protocol, key, life))
        for data in today[1:]:
            await load.groups[1 + len(data) % 3].send(data)
        await _until(lambda: all(len(got) == len(today) for got in load.got.values()))
        await asyncio.sleep(0.3)
        assert {me: len(seen) for me, seen in load.views.items()} == views, "no view changed"
        for me, group in load.groups.items():
            assert sorted(load.got[me]) == sorted(today)
            assert load.got[me] == load.got[1] or Service.AGREED not in registry.get(protocol).provides
            drops, door = group.status()["drops"], group.node.talk.sealing.guard  # type: ignore[union-attr]
            assert {"magic", "short"} <= drops.keys() and (limited or {"tag", "replay", "key"} <= drops.keys()), drops
            assert ("rate" in drops) is limited
            assert len(door._others) <= guard.LIVES_MAX and len(door._let_in) <= 8 * 3 and len(door.lacks) <= 8
            known = group.node.incoming.admission.last.values()
            assert {peer.id for peer in known} <= ids and not {life for _, life in rogues} & set(known)
        said = rogue.heard()
        assert not said, "no answer to whom it may concern"
        rogue.close()
        await asyncio.gather(*(group.leave(timeout=5) for group in load.groups.values()))

    asyncio.run(run())


FLOOD = """
import socket, sys, time
host, port, rate, seconds, body = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
body, begun, sent = bytes.fromhex(body), time.monotonic(), 0
while (passed := time.monotonic() - begun) < seconds:
    for _ in range(min(200, int(passed * rate) - sent)):
        sock.sendto(body, (host, port))
        sent += 1
    time.sleep(0.001)
print(sent)
"""


def test_a_flood_changes_no_view(cli: Cli, tmp_path: Path) -> None:
    """Of datagrams that look like a member's, for a while: the view stays, status answers, messages go through."""
    config = table(tmp_path, timeout_ms=2000)
    made = configuration.make(config, base=tmp_path)
    file = tmp_path / "group.toml"
    file.write_text(configuration.dump(made))
    members = [cli.start("member", "--config", str(file), "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2, 3)]
    for member in members:
        until_view(member, [1, 2, 3])
    before = cli.json("status", "--config", str(file), "--id", "1")["members"][0]["view_causes"]
    forged = bytearray(Sealer(GroupKey(b"f" * 32), made.group, Peer(2, 5)).seal(0, 1, bytes(300)))
    forged[3] = keyfiles.read(tmp_path / "group.key").id
    words = [sys.executable, "-c", FLOOD, "127.0.0.1", str(made.member(1).port), "10000", "3", bytes(forged).hex()]
    flood = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        members[1].stdin.write("through\n")
        members[1].stdin.flush()
        for member in members:
            line = json.loads(member.stdout.readline())
            assert line.get("data") == "through", line
        assert flood.communicate(timeout=WAIT_SECONDS)[0]
    finally:
        flood.kill()
        flood.wait()

    def counted() -> bool:
        (each,) = cli.json("status", "--config", str(file), "--id", "1")["members"]
        assert each["view_causes"] == before, each["views"]
        refused = each["drops"].get("rate", 0) + each["datagrams"]["sieved"]
        return bool(refused > 10_000 and each["drops"]["tag"] < 500)

    wait_for(counted)
    for member in members:
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [0, 0, 0]
