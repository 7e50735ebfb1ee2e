"""A sequencer, written as a newcomer would: the smallest member of the view says whose frame comes next.

The layer below is causal, so a frame is here before its turn is called, and one sender's frames come in their order.
When a view ends, the frames whose turn was not called follow, sender by sender, without those of members that are gone.
"""

from collections import deque

from ordercast.contract import Body, Crash, Flush, Layer, Ordered, Receive, Received, Up, ViewChange
from ordercast.framing import Framing
from ordercast.groups import Groups
from ordercast.registry import ProtocolInfo, get
from ordercast.seam import Seam
from ordercast.sender import Sender
from ordercast.stack import chain
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
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
        self.me, self.heard = setup.identity.me, {}  # frames whose turn has not come, by sender
        mine, carry = (lambda: self.heard.get(self.me, ())), (lambda frame: [self.sender.multicast(Sent(frame))])
        self.sender = Sender(setup, (Service.AGREED,), mine, carry=carry)

    def down(self, now, event):
        return self.sender.down(now, event)

    def up(self, now, event, child):
        match event:
            case Received(body=Next(sender=sender)):
                turn = self.heard.get(sender)
                return [Up(Ordered(turn.popleft())), *self.sender.settle(now)] if turn else []
            case Received(sender=sender, body=body):
                self.heard[sender].append(body.frame)
                called = [self.sender.multicast(Next(sender))] if self.me == min(self.heard) else []
                return [Receive(body.frame), *called]
            case Crash(member=member):
                self.heard[member].clear()
                return []
            case Flush():
                rest = [Up(Ordered(frame)) for _, turn in sorted(self.heard.items()) for frame in turn]
                return [*rest, Up(event)]
            case ViewChange(view=view):
                self.heard = {member: deque() for member in view.members}
        return self.sender.up(now, event)

    def timer(self, now, name, due):
        return self.sender.timer(now)


PROTOCOLS = {
    "sequencer": ProtocolInfo(
        name="sequencer", summary="One member says whose frame comes next.", paper="none",
        factory=lambda setup: chain(Groups(setup.identity.me), Framing(), Seam(), Sequencer(setup), Link(setup)),
        packets=packets(Sent | Next), provides=(Service.AGREED,), changes_views=True, judges_lives=True,
        promises=get("token_site").promises, survives=get("token_site").survives,
    )
}  # fmt: skip
