"""The driver itself, with a tiny protocol whose every step is known."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ordercast.contract import (
    ALL,
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    Layer,
    Note,
    Packet,
    Refuse,
    SetTimer,
    Store,
    Transmit,
    Up,
)
from ordercast.errors import RunError, UsageError, WireError
from ordercast.lab.bench import free_ports
from ordercast.limits import RECEIVE_BUFFER_BYTES
from ordercast.live import tuning
from ordercast.live.node import Node
from ordercast.live.sockets import NetAddresses, NetSockets, Patience
from ordercast.live.storage import Storage
from ordercast.registry import ProtocolInfo
from ordercast.stack import chain
from ordercast.types import Batch, Identity, Peer, Service, Submission
from ordercast.wire import header

from .conftest import WAIT_SECONDS


class Said(Packet, frozen=True, gc=False, tag=1):
    text: bytes

    def check(self) -> None:
        if self.text == b"never":
            raise WireError("text", "never")


class Echo(Layer):
    """Multicasts what is submitted, delivers what it hears, and writes down every input."""

    name = "echo"

    def __init__(self) -> None:
        self.inputs: list[tuple[Any, ...]] = []
        self.scripts: dict[bytes, list[Action]] = {}

    def submit(self, now: int, submission: Submission) -> list[Action]:
        if submission.groups:
            return [Refuse("groups")]
        out: list[Action] = [Accepted(1, len(submission.payloads), submission.service, ())]
        return out + [Transmit(0, ALL, Said(data)) for data in submission.payloads]

    def receive(self, now: int, net: int, source: Peer, packet: Packet, drops: int) -> list[Action]:
        assert isinstance(packet, Said)
        self.inputs.append(("receive", source.id, packet.text))
        if packet.text in self.scripts:
            return self.scripts[packet.text]
        if packet.text == b"fault":
            raise AssertionError("a fault of ours")
        batch = Batch(source.id, source.incarnation, 1, 1, Service.FIFO, b"", packet.text)
        return [Note("heard"), Up(Delivered(batch))]

    def drained(self, now: int, net: int) -> list[Action]:
        self.inputs.append(("drained", net))
        return []

    def timer(self, now: int, name: str, due: int) -> list[Action]:
        assert now >= due
        self.inputs.append(("timer", name))
        return []

    def stored(self, now: int, key: str, number: int) -> list[Action]:
        self.inputs.append(("stored", key, number))
        return []

    def store_failed(self, now: int, key: str, number: int, why: str) -> list[Action]:
        self.inputs.append(("store_failed", key, number, why))
        return []

    def unreachable(self, now: int, net: int, member: int) -> list[Action]:
        self.inputs.append(("unreachable", net, member))
        return []

    def room(self, now: int, frames: int) -> list[Action]:
        self.inputs.append(("room", frames))
        return []


def info(hears_self: bool = False) -> ProtocolInfo:
    return ProtocolInfo(
        name="echo", summary="", paper="", factory=lambda setup: chain(Echo()), packets=(Said,),
        provides=(Service.FIFO,), promises={}, hears_self=hears_self,
    )  # fmt: skip


class Place:
    """Nodes of one group in this process."""

    def __init__(
        self,
        count: int,
        folder: Path | None = None,
        unicast: bool = False,
        hears_self: bool = False,
        datagram_bytes: int = 65_507,
    ) -> None:
        self.datagram_bytes = datagram_bytes
        port, *ports = free_ports(count + 1)
        self.addresses = {k: ("127.0.0.1", at) for k, at in enumerate(ports, 1)}
        self.group = None if unicast else ("239.192.74.1", port)
        self.hears_self = hears_self
        self.name = f"node-{os.getpid()}-{port}"
        self.events: dict[int, list[Any]] = {}
        self.failures: dict[int, BaseException] = {}
        self.nodes: dict[int, Node] = {}
        self.folder = folder
        self.incarnation = 1000

    def start(self, me: int) -> Node:
        self.incarnation += 1
        identity = Identity(me, self.incarnation, tuple(self.addresses), self.name)
        plan = NetAddresses(me, self.addresses, self.group, hears_self=self.hears_self)
        events = self.events.setdefault(me, [])
        storage = Storage(self.folder / f"member-{me}" if self.folder else None, me)
        made = info(self.hears_self)
        node = Node(
            made, made.factory(None), identity, {0: plan}, storage,  # type: ignore[arg-type]
            on_events=events.extend, on_failure=lambda why: self.failures.__setitem__(me, why),
            datagram_bytes=self.datagram_bytes,
        )  # fmt: skip
        node.start()
        self.nodes[me] = node
        return node

    def core(self, me: int) -> Echo:
        return self.nodes[me].stack.top.layer  # type: ignore[return-value]

    def heard(self, me: int) -> list[bytes]:
        return [i[2] for i in self.core(me).inputs if i[0] == "receive"]

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()
            node.storage.close()


async def until(what: Any) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not what():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.005)


def play(place: Place, work: Any, run: Callable[[Any], None] = asyncio.run) -> None:
    async def bounded() -> None:
        try:
            await asyncio.wait_for(work, WAIT_SECONDS)
        finally:
            place.stop()

    run(bounded())


def raw(place: Place, to: int, *datagrams: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for datagram in datagrams:
            sock.sendto(datagram, place.addresses[to])


@pytest.mark.parametrize("unicast", [False, True])
@pytest.mark.parametrize("hears_self", [False, True])
@pytest.mark.parametrize("datagram_bytes", [65_507, 1_472, 548])
def test_everybody_hears_each_packet_once(unicast: bool, hears_self: bool, datagram_bytes: int) -> None:
    place = Place(3, unicast=unicast, hears_self=hears_self, datagram_bytes=datagram_bytes)

    async def work() -> None:
        for me in (1, 2, 3):
            place.start(me)
        for size in (10, 10, 10, 5, 1_000, 1_000, 999, 1_001, 60_000, 20_000, 20_000, 20_000, 20_000, 7):
            place.nodes[1].submit(Submission([bytes([size % 251]) * size] * 3))
        texts = [bytes([s % 251]) * s for s in (10, 10, 10, 5, 1_000, 1_000, 999, 1_001, 60_000, *[20_000] * 4, 7)]
        expected = [text for text in texts for _ in range(3)]
        ears = (1, 2, 3) if hears_self else (2, 3)
        await until(lambda: all(len(place.heard(me)) == len(expected) for me in ears))
        for me in ears:
            assert place.heard(me) == expected
            assert place.core(me).inputs[-1] == ("drained", 0) or place.core(me).inputs[-1][0] == "room"
            assert len([e for e in place.events[me] if type(e) is Delivered]) == len(expected)
        if not hears_self:
            assert (
                place.heard(1) == [] and place.nodes[1].incoming.drops.total() == place.nodes[1].incoming.drops["own"]
            )

    play(place, work())


def test_equal_datagrams_of_one_step_leave_in_one_call() -> None:
    place = Place(2)

    async def work() -> None:
        place.start(1)
        place.start(2)
        net = place.nodes[1].nets[0]
        place.nodes[1].submit(Submission([bytes([k]) * 1_000 for k in range(100)] + [b"short"]))
        await until(lambda: len(place.heard(2)) == 101)
        assert place.heard(2) == [bytes([k]) * 1_000 for k in range(100)] + [b"short"]
        if net.joins:
            assert net.sent["calls"] <= 4
        net._segments = False  # a kernel without segmentation offload
        place.nodes[1].submit(Submission([bytes([k]) * 1_000 for k in range(100)]))
        await until(lambda: len(place.heard(2)) == 201)
        assert place.heard(2)[101:] == place.heard(2)[:100]

    play(place, work())


def test_trains_travel_without_offload_too_and_a_lost_car_loses_only_its_train() -> None:
    place = Place(2, datagram_bytes=1_472)

    async def work() -> None:
        place.start(1)
        place.start(2)
        net = place.nodes[1].nets[0]
        net._segments = False  # a kernel without segmentation offload
        texts = [bytes([k]) * 20_000 for k in range(5)]
        place.nodes[1].submit(Submission(texts))
        await until(lambda: len(place.heard(2)) == 5)
        send, count = net._send, 0

        def lossy(datagram: Any, address: Any) -> None:
            nonlocal count
            count += 1
            if count != 20:
                send(datagram, address)

        net._send = lossy  # type: ignore[method-assign]
        place.nodes[1].submit(Submission(texts))
        await until(lambda: len(place.heard(2)) == 9)
        assert place.heard(2) == [*texts, texts[0], *texts[2:]]
        assert place.nodes[2].status()["datagrams"]["trains"] == 9
        await until(lambda: place.nodes[2].status()["datagrams"]["trains_lost"] == 1)

    play(place, work())


def test_who_receives_few_whole_trains_is_advised_to_use_smaller_packets() -> None:
    place = Place(2, datagram_bytes=1_472)

    async def work() -> None:
        place.start(1)
        place.start(2)
        station = place.nodes[2].incoming.station
        net = place.nodes[1].nets[0]
        net._segments = False
        send, count = net._send, 0

        def lossy(datagram: Any, address: Any) -> None:
            nonlocal count
            count += 1
            if count % 40:  # of three trains one loses a car
                send(datagram, address)

        place.nodes[1].submit(Submission([bytes(20_000)] * 60))
        await until(lambda: station.arrived == 60)
        assert place.nodes[2].status()["advice"] == []
        net._send = lossy  # type: ignore[method-assign]
        place.nodes[1].submit(Submission([bytes(20_000)] * 60))
        await until(lambda: station.lost + station.arrived == 120 if place.nodes[2].status() else False)
        (words,) = place.nodes[2].status()["advice"]
        assert f"{station.lost} of 120" in words and "packet_bytes" in words

    play(place, work())


def test_bad_datagrams_are_counted_and_change_nothing() -> None:
    place = Place(3)

    def datagram(group: str = "", sender: int = 3, life: int = 5, body: bytes = b"", **changed: Any) -> bytes:
        head = bytearray(header.pack(header.group_id(group or place.name), sender, life, 1))
        for at, value in changed.items():
            head[int(at[2:])] = value
        return bytes(head) + (body or node.codec.encode(Said(b"x")))

    async def work() -> None:
        global node
        node = place.start(1)
        bad = {
            "short": [b"", b"x", bytes(32)],
            "magic": [bytes(100), datagram(at0=0)],
            "version": [datagram(at2=9)],
            "key": [datagram(at3=1)],
            "group": [datagram(group="another")],
            "sender": [datagram(sender=9), datagram(sender=0), datagram(sender=2**32 - 1)],
            "incarnation": [datagram(life=2**64 - 1), datagram(life=2**63)],
            "earlier incarnation": [datagram(sender=1, life=1)],
            "packet": [
                datagram(body=b"\x92\x02\xc4\x00"), datagram(body=b"\x91" * 60_000),
                datagram(body=node.codec.encode(Said(b"x"))[:-1]), datagram(body=node.codec.encode(Said(b"x")) + b"\0"),
                datagram(body=b"\xdd\xff\xff\xff\xff"), datagram(body=b"\x92\x01\xc6\xff\xff\xff\xff"),
            ],
            "train": [
                datagram(body=b"\xc1"), datagram(body=b"\xc1\0\0\x02\0"), datagram(body=b"\xc1\0\0\x01\0x"),
                datagram(body=b"\xc1\x02\0\x02\0x"), datagram(body=b"\xc1\0\0\xff\xffx"),
            ],
            "text": [datagram(body=node.codec.encode(Said(b"never")))],
        }  # fmt: skip
        for datagrams in bad.values():
            raw(place, 1, *datagrams)
        rng = random.Random(1)
        good = datagram(body=node.codec.encode(Said(b"y" * 30)))
        junk = [rng.randbytes(rng.randrange(1, 300)) for _ in range(200)]
        raw(place, 1, *junk)
        await until(lambda: node.incoming.drops.total() == sum(map(len, bad.values())) + len(junk))
        for reason, datagrams in bad.items():
            assert node.incoming.drops[reason] >= len(datagrams), reason
        assert place.heard(1) == []
        flips = [bytearray(good) for _ in range(300)]
        for k, flipped in enumerate(flips):
            flipped[rng.randrange(32)] ^= 1 << k % 8
        raw(place, 1, *map(bytes, flips), good)
        await until(
            lambda: (
                node.incoming.drops.total() + node.incoming.datagrams >= sum(map(len, bad.values())) + len(junk) + 301
            )
        )
        assert node.running and not place.failures
        raw(place, 1, datagram(life=2**62), datagram(life=2**62 - 1))
        await until(lambda: node.incoming.drops["earlier incarnation"] >= 2)
        raw(place, 1, datagram(sender=1, life=2**62, body=node.codec.encode(Said(b"I am you"))))
        await until(lambda: b"I am you" in place.heard(1) and node.incoming.drops["second claimant"] >= 1)
        place.start(2).submit(Submission([b"still here"]))
        await until(lambda: b"still here" in place.heard(1))

    play(place, work())


node: Node


def test_a_probation_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    place = Place(2)

    async def work() -> None:
        place.start(1)
        struck = Note("probation", {"member": 2, "until": 9, "why": "silence", "ns": 2_560_000_000})
        place.core(1).scripts[b"struck"] = [struck, Note("probation", {"member": 2, "until": 10})]
        place.start(2).submit(Submission([b"struck"]))
        await until(lambda: caplog.messages)
        assert caplog.messages == ["ordercast: member 1: member 2 is kept out for 2.56 s: its link failed (silence)"]

    play(place, work())


def test_timers_come_once_after_queued_packets_and_never_when_cancelled() -> None:
    place = Place(2)

    async def work() -> None:
        place.start(1)
        first = place.start(2)
        core, now = place.core(1), time.monotonic_ns()
        core.scripts = {
            b"set": [
                SetTimer("late", now + 900_000_000),
                SetTimer("moved", now + 1),
                SetTimer("gone", now + 800_000_000),
            ],
            b"move": [SetTimer("moved", now + 950_000_000), CancelTimer("gone")],
        }
        first.submit(Submission([b"set", b"move"]))
        await until(lambda: ("receive", 2, b"move") in core.inputs)
        first.submit(Submission([b"queued"]))
        time.sleep(1.0)  # all timers are late now, and a packet waits
        await until(lambda: ("timer", "moved") in core.inputs)
        names = [i for i in core.inputs if i[0] in ("timer", "receive")]
        assert [i for i in names if i[0] == "timer"] == [("timer", "late"), ("timer", "moved")]
        assert names.index(("receive", 2, b"queued")) < names.index(("timer", "late"))

    play(place, work())


def test_what_is_stored_is_there_in_the_next_life(tmp_path: Path) -> None:
    place = Place(2, folder=tmp_path)

    async def work() -> None:
        node = place.start(1)
        first = place.start(2)
        core = place.core(1)
        core.scripts = {b"store": [Store("ring", 7, b"bytes"), Store("ring", 8, b"more")]}
        first.submit(Submission([b"store"]))
        await until(lambda: ("stored", "ring", 8) in core.inputs)
        assert [i for i in core.inputs if i[0] == "stored"] == [("stored", "ring", 7), ("stored", "ring", 8)]
        with pytest.raises(UsageError, match="already runs"):
            Storage(tmp_path / "member-1", 1)
        node.stop()
        node.storage.close()
        again = Storage(tmp_path / "member-1", 1)
        assert again.store.stored == {"echo/ring": (8, b"more")} and again.store.damaged == []
        life = again.new_incarnation()
        assert again.new_incarnation() > life
        again.close()

    play(place, work())


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(2, folder=tmp_path)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def work() -> None:
        place.start(1)
        first = place.start(2)
        core = place.core(1)
        core.scripts = {b"store": [Store("ring", 7, b"bytes")]}
        monkeypatch.setattr(os, "fsync", full)
        first.submit(Submission([b"store"]))
        await until(lambda: any(i[0] == "store_failed" for i in core.inputs))
        assert ("store_failed", "ring", 7, "no space left on device") in core.inputs

    play(place, work())


@pytest.mark.parametrize("run", [asyncio.run, tuning.run])
def test_a_dead_port_is_reported_and_costs_no_datagram(run: Callable[[Any], None]) -> None:
    """On uvloop, too, which stops to watch a socket that has an error to tell."""
    place = Place(3)

    async def work() -> None:
        node = place.start(1)
        place.start(2)
        core = place.core(1)
        core.scripts = {b"call": [Transmit(0, 3, Said(b"there?")), Transmit(0, 2, Said(b"you?"))]}
        for _ in range(3):
            place.nodes[2].submit(Submission([b"call"]))
            await until(lambda: ("unreachable", 0, 3) in core.inputs)
            core.inputs.clear()
            await asyncio.sleep(0.02)  # one report per 10 ms
        await until(lambda: place.heard(2).count(b"you?") == 3)
        node.submit(Submission([b"all"]))
        await until(lambda: b"all" in place.heard(2))

    play(place, work(), run)


def test_a_fault_of_ours_stops_the_member_and_is_told() -> None:
    place = Place(2)

    async def work() -> None:
        node = place.start(1)
        place.start(2).submit(Submission([b"fault", b"after"]))
        await until(lambda: 1 in place.failures)
        assert isinstance(place.failures[1], AssertionError) and not node.running
        assert place.heard(1) == [b"fault"]

    play(place, work())


class Full:
    """A recorder whose disk is full."""

    log = None

    def actions(self, *_: Any) -> None:
        raise RunError("cannot extend the trace file: No space left on device")

    def event(self, *_: Any, **__: Any) -> None:
        self.actions()


def test_a_trace_that_cannot_be_written_stops_the_member_and_is_told() -> None:
    place = Place(3)

    async def work() -> None:
        sender = place.start(3)
        for me, provoke in ((1, lambda: sender.submit(Submission([b"to all"]))), (2, lambda: raw(place, 2, b"bad"))):
            node = place.start(me)
            place.core(me).scripts = {b"to all": [SetTimer("again", 0)]}
            node.recorder = Full()  # type: ignore[assignment]
            provoke()
            await until(lambda me=me: me in place.failures)
            assert isinstance(place.failures[me], RunError) and not node.running
        sender.recorder = Full()  # type: ignore[assignment]
        assert sender.submit(Submission([b"x"])) is None and 3 in place.failures

    play(place, work())


class Answering:
    """A socket that first says what became of earlier datagrams."""

    def __init__(self, real: socket.socket, *errors: int) -> None:
        self.real, self.errors = real, list(errors)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def _answer(self) -> None:
        if self.errors:
            number = self.errors.pop(0)
            raise OSError(number, os.strerror(number))

    def sendto(self, *args: Any) -> int:
        self._answer()
        return self.real.sendto(*args)

    def sendmsg(self, *args: Any) -> int:
        self._answer()
        return self.real.sendmsg(*args)

    def recvmsg_into(self, *args: Any) -> Any:
        self._answer()
        return self.real.recvmsg_into(*args)


def test_a_host_that_cannot_be_reached_costs_the_others_nothing() -> None:
    """The kernel reports it at the next call of the socket, whatever that is about."""
    one, two = (("127.0.0.1", port) for port in free_ports(2))
    got: list[bytes] = []
    net = NetSockets(NetAddresses(1, {1: one, 2: two}), b"", lambda member: None)
    peer = NetSockets(NetAddresses(2, {1: one, 2: two}), b"", lambda member: None)
    real, far = net._unicast, errno.EHOSTUNREACH
    try:
        net._unicast = Answering(real, far)  # type: ignore[assignment]
        net.send(b"one", 3, (two,))
        net._unicast = Answering(real, far)  # type: ignore[assignment]
        net.send(bytes(2500), 1000, (two,))
        assert net.joins, "a lost host is no reason to give up offload"
        peer._unicast = Answering(peer._unicast, far)  # type: ignore[assignment]

        def several(data: memoryview, segment: int, drops: int) -> None:
            got.extend(bytes(data[at : at + segment]) for at in range(0, len(data), segment))

        peer.read(peer._unicast, lambda data, drops: got.append(bytes(data)), several, 100)
        assert [len(data) for data in got] == [3, 1000, 1000, 500]
    finally:
        net.close()
        peer.close()


def test_trains_of_the_largest_datagrams_leave_one_by_one() -> None:
    one, two = (("127.0.0.1", port) for port in free_ports(2))
    net = NetSockets(NetAddresses(1, {1: one, 2: two}), b"", lambda member: None)
    try:
        net.send(bytes(65_507 + 300), 65_507, (one,))
        assert net.read(net._unicast, lambda data, drops: None, lambda data, size, drops: None, 10) == 2
    finally:
        net.close()


def test_datagrams_that_find_the_buffer_full_are_counted_and_told() -> None:
    one, two = (("127.0.0.1", port) for port in free_ports(2))
    net = NetSockets(NetAddresses(1, {1: one, 2: two}), b"", lambda member: None)
    peer = NetSockets(NetAddresses(2, {1: one, 2: two}), b"", lambda member: None)
    told: list[int] = []

    def read() -> None:
        while peer.read(peer._unicast, lambda data, drops: told.append(drops), lambda *_: None, 100):
            pass

    try:
        read()
        assert peer.lost == 0
        sent = 2 * RECEIVE_BUFFER_BYTES // 50_000
        for _ in range(sent):
            net.send(bytes(50_000), 50_000, (two,))
        read()
        net.send(b"the kernel tells with the next one", 100, (two,))
        read()
        assert sum(told) == peer.lost > 0 and len(told) + peer.lost == sent + 1
    finally:
        net.close()
        peer.close()


def test_losses_are_counted_in_multicast_mode_too_whatever_was_sent_meanwhile() -> None:
    """The kernel counts own multicasts that its filter drops among the losses, and no other send of ours."""
    port, *ports = free_ports(3)
    one, two = (("127.0.0.1", at) for at in ports)
    group = ("239.192.74.9", port)
    prefixes = [bytes([me]) * 24 for me in (1, 2)]
    net, peer = (
        NetSockets(NetAddresses(me, {1: one, 2: two}, group), prefix, lambda member: None)
        for me, prefix in enumerate(prefixes, 1)
    )
    told: list[int] = []
    read = 0

    def drain() -> None:
        nonlocal read
        while count := peer.read(peer._unicast, lambda data, drops: told.append(drops), lambda *_: None, 100):
            read += count

    def speak(times: int) -> None:
        for _ in range(times):
            peer.send(prefixes[1] + bytes(100), 124, peer.targets)
            peer.send((prefixes[1] + bytes(976)) * 4, 1000, peer.targets)  # four datagrams in one call
            peer.send(prefixes[1] + bytes(100), 124, (one,))
            peer.send((prefixes[1] + bytes(976)) * 4, 1000, (one,))

    try:
        sent = 0
        for _ in range(2):
            speak(50)
            drain()
            assert peer.lost == sum(told) == sent - read
            flood = 2 * RECEIVE_BUFFER_BYTES // 50_000
            for _ in range(flood):
                net.send(prefixes[0] + bytes(50_000), 50_024, net.targets)
            speak(50)
            sent += flood
            before, lost = sum(told), peer.lost
            assert lost > before, "known before the kernel can tell with a datagram"
            drain()
            net.send(prefixes[0] + b"the kernel tells with the next one", 100, net.targets)
            sent += 1
            drain()
            assert peer.lost == sum(told) == lost == sent - read
    finally:
        net.close()
        peer.close()
    assert peer.lost == sum(told), "also after the sockets are closed"


class Slow:
    """A socket whose buffer is full: a send that waits takes `seconds`, and then succeeds or not."""

    def __init__(self, sock: socket.socket, seconds: float, drains: bool) -> None:
        self.sock, self.seconds, self.drains = sock, seconds, drains
        self.waits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sock, name)

    def sendto(self, data: Any, flags: int, address: Any) -> None:
        self.sendmsg((data,), (), flags, address)

    def sendmsg(self, data: Any, control: Any, flags: int, address: Any) -> None:
        if flags & socket.MSG_DONTWAIT:
            raise BlockingIOError
        self.waits += 1
        time.sleep(self.seconds)
        if not self.drains:
            raise BlockingIOError


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("drains, waits", [(True, 10), (False, 1)])
def test_a_turn_waits_for_a_full_buffer_no_longer_than_its_patience(segments: bool, drains: bool, waits: int) -> None:
    one, two = (("127.0.0.1", port) for port in free_ports(2))
    patience = Patience(40_000_000)
    net = NetSockets(NetAddresses(1, {1: one, 2: two}), b"", lambda member: None, patience)
    net._segments = segments
    slow = net._unicast = Slow(net._unicast, 0.004, drains)  # type: ignore[assignment]
    try:
        for _ in range(30):  # a visit: 30 trains of 45 datagrams
            net.send(bytes(45 * 1_400), 1_400, (two,))
        assert slow.waits <= waits, "the whole visit waited, not each datagram"
        cars = 45 if segments else 1
        assert net.sent["full"] == 30 * 45 - cars * (slow.waits if drains else 0)
        patience.renew()
        net.send(b"x", 1, (two,))
        assert slow.waits <= waits + drains, "what did not drain is not waited for in the next turn either"
        net._unicast = slow.sock
        net.send(b"x", 1, (two,))
        assert not net._stuck, "it takes something again"
    finally:
        net.close()


def test_room_follows_what_the_application_has_read() -> None:
    place = Place(2)

    async def work() -> None:
        node = place.start(1)
        sender = place.start(2)
        core = place.core(1)
        assert core.inputs[0] == ("room", 1024)
        for _ in range(15):
            sender.submit(Submission([b"x"] * 64))
            await asyncio.sleep(0.002)
        await until(lambda: len(place.heard(1)) == 960)
        told = [i[1] for i in core.inputs if i[0] == "room"]
        assert 5 <= len(told) <= 12 and told == sorted(told, reverse=True) and told[-1] <= 192
        sender.submit(Submission([b"x"] * 64))
        await until(lambda: ("room", 0) in core.inputs)
        node.consumed(1, 1)
        assert core.inputs[-1] == ("room", 1)
        node.consumed(1023, 1023)
        assert core.inputs[-1] == ("room", 1024)

    play(place, work())


def test_addresses_that_cannot_be_bound_are_told() -> None:
    (busy,) = free_ports(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", busy))
        place = Place(1)
        place.addresses[1] = ("127.0.0.1", busy)
        with pytest.raises(UsageError, match="in use"):
            place.start(1)
    place.addresses[1] = ("192.0.2.1", busy)
    with pytest.raises(UsageError, match="not local"):
        place.start(1)
