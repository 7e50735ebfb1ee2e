"""A tiny protocol whose packets and inputs can be counted: no order, no repair, every input leaves a note.

Each submitted frame is multicast once as a Word and delivered by whoever hears it.  Every 10 ms each member sends a
Token to the next one, stores how many it sent, and multicasts nothing else.
"""

import pytest

from ordercast import registry
from ordercast.contract import (
    ALL,
    FreeSpace,
    Layer,
    Left,
    Note,
    Ordered,
    Packet,
    Receive,
    SetTimer,
    Setup,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.framing import Framing
from ordercast.sender import Sender
from ordercast.stack import Node, Stack
from ordercast.types import U63, Cause, Frame, Service, View, ViewId, ViewKind

TICK = 10_000_000


class Word(Packet, frozen=True, gc=False, tag=1):
    frame: Frame


class Token(Packet, frozen=True, gc=False, tag=2):
    number: U63


class Tiny(Layer):
    name = "tiny"

    def __init__(self, setup: Setup) -> None:
        self.setup, self.me = setup, setup.identity.me
        self.sender = Sender(setup, (Service.AGREED,), lambda: (), wake=self.speak, go=lambda now, until: [Up(Left())])
        self.sent = 0

    def start(self, now, identity, stored):
        members = identity.members
        self.next = members[(members.index(self.me) + 1) % len(members)]
        view = View(ViewId(1, members[0]), ViewKind.REGULAR, members, members, cause=Cause("start"))
        told = {key: number for key, (number, _) in stored.items()}
        note = Note("started", {"stored": told, "ring_seq": identity.ring_seq})
        return [note, Up(ViewChange(view)), *self.sender.enter(view.id), SetTimer("tick", now + TICK)]

    def down(self, now, event):
        if type(event) is FreeSpace:
            return [Note("room", {"frames": event.frames})]
        return self.sender.down(now, event)

    def speak(self, now):
        out = []
        for frame in self.sender.take(1000):
            out += [*self.sender.originated([frame]), Note("work", {"units": 1})]
            out += [Transmit(net, ALL, Word(frame)) for net in self.setup.nets]
            out.append(Up(Ordered(frame)))
        return out

    def receive(self, now, net, source, packet, drops):
        kind = type(packet).__name__
        note = Note("got", {"kind": kind, "source": source.id, "life": source.incarnation, "net": net, "drops": drops})
        if kind == "Token":
            return [note]
        return [note, Receive(packet.frame), Up(Ordered(packet.frame))]

    def drained(self, now, net):
        return [Note("drained", {"net": net})]

    def timer(self, now, name, due):
        self.sent += 1
        token = Transmit(self.setup.nets[0], self.next, Token(self.sent))
        note = Note("tick", {"late": now - due, "number": self.sent})
        return [note, token, Store("sent", self.sent, b"12345678"), SetTimer("tick", now + TICK)]

    def stored(self, now, key, number):
        return [Note("stored", {"number": number})]

    def store_failed(self, now, key, number, why):
        return [Note("store_failed", {"number": number, "why": why})]

    def unreachable(self, now, net, member):
        return [Note("unreachable", {"member": member})]

    def status(self):
        return {"sent": self.sent}


def make(setup: Setup) -> Stack:
    return Stack(Node(Framing(), [Node(Tiny(setup), nets=setup.nets)]))


INFO = registry.ProtocolInfo(
    name="tiny",
    summary="Says everything once.",
    paper="none",
    factory=make,
    packets=(Word, Token),
    provides=(Service.AGREED,),
    promises={"agreed": ("S1",)},
)


@pytest.fixture(autouse=True, scope="module")
def _tiny():
    registry.register(INFO)
    yield
    registry.unregister("tiny")
