"""A fixed sequencer, written as a newcomer would: the smallest member says whose frame comes next.

Everybody multicasts its frames; of each frame it hears, the sequencer multicasts whose it was.  The layer below is
causal, so a frame is here before its turn is called, and the frames of one sender come in their order.
"""

from collections import deque

from ordercast.contract import Body, Layer, Ordered, Receive, Received, Up
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.registry import ProtocolInfo
from ordercast.sender import Sender
from ordercast.stack import chain
from ordercast.transis.link import Link
from ordercast.transis.packets import Data, Nack, Retrans, Status
from ordercast.types import U32, Frame, Service


class Sent(Body, frozen=True, gc=False, tag=1):
    frame: Frame

    def check(self):
        self.frame.check()


class Next(Body, frozen=True, gc=False, tag=2):
    sender: U32


class Sequencer(Layer):
    name = "sequencer"

    def __init__(self, setup):
        self.leads = setup.identity.me == min(setup.identity.members)
        self.heard = {member: deque() for member in setup.identity.members}  # frames whose turn has not come
        mine = self.heard[setup.identity.me]
        self.sender = Sender(setup, (Service.AGREED,), lambda: mine, carry=self.carry)

    def carry(self, frame):
        return [self.sender.multicast(Sent(frame))]

    def down(self, now, event):
        return self.sender.down(now, event)

    def up(self, now, event, child):
        if type(event) is not Received:
            return self.sender.up(now, event)
        if type(event.body) is Next:
            turn = self.heard.get(event.body.sender)
            return [Up(Ordered(turn.popleft())), *self.sender.settle(now)] if turn else []
        self.heard[event.sender].append(event.body.frame)
        called = [self.sender.multicast(Next(event.sender))] if self.leads else []
        return [Receive(event.body.frame), *called]

    def timer(self, now, name, due):
        return self.sender.timer(now)


PROTOCOLS = {
    "sequencer": ProtocolInfo(
        name="sequencer", summary="One member says whose frame comes next.", paper="none",
        factory=lambda setup: chain(Groups(setup.identity.me), Framing(), Sequencer(setup), Link(setup)),
        packets=(Data[Sent | Next], Retrans[Sent | Next], Status, Nack), provides=(Service.AGREED,),
        promises={
            "agreed": ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S9", "S10", "S14", "S15", "S16", "S17", "S18", "S19",
                       "S22", "L3", "L4", "L6", "L7", "L12", "L13"),
        },
        survives=frozenset({"loss", "duplication", "reordering", "delay", "clog", "replay", "partition", "pause",
                            "slow", "drift", "clock", "overload"}),
    )
}  # fmt: skip
