"""A small protocol that uses unicasts: every frame is answered by each other member, to its sender alone.

Frames go up in causal order, as they come.  An answer carries the number of answers between this pair in this view, so
that its receiver can tell a lost, repeated or overtaken one; a sender waits, under "queues", for all its answers.
"""

from collections import Counter

from ordercast.contract import Body, Crash, Layer, Ordered, Receive, Received, UnicastReceived, Up, ViewChange
from ordercast.framing import Framing
from ordercast.registry import ProtocolInfo, get
from ordercast.seam import Seam
from ordercast.sender import Sender
from ordercast.stack import chain
from ordercast.transis.link import Link
from ordercast.transis.packets import packets
from ordercast.types import U63, Frame, Service, ViewId, ViewKind


class Sent(Body, frozen=True, gc=False, tag=1):
    frame: Frame

    def check(self):
        self.frame.check()


class Answer(Body, frozen=True, gc=False, tag=2):
    number: U63
    view: ViewId


class Answering(Layer):
    name = "answering"

    def __init__(self, setup):
        self.me = setup.identity.me
        self.sender = Sender(setup, (Service.CAUSAL,), tuple, carry=self.carry)
        self.said, self.came, self.wanted = Counter(), Counter(), Counter()
        self.others = ()

    def carry(self, frame):
        self.wanted.update(self.others)
        return [self.sender.multicast(Sent(frame))]

    def down(self, now, event):
        return self.sender.down(now, event)

    def up(self, now, event, child):
        match event:
            case Received(sender=sender, body=body):
                out = [Receive(body.frame), Up(Ordered(body.frame))]
                if sender != self.me:
                    self.said[sender] += 1
                    out.append(self.sender.unicast(sender, Answer(self.said[sender], self.sender.view)))
                return out
            case UnicastReceived(source=source, body=body):
                assert body.view == self.sender.view, "a unicast of another view"
                self.came[source] += 1
                assert body.number == self.came[source], f"answer {body.number} instead of {self.came[source]}"
                self.wanted[source] -= 1
                return []
            case Crash():
                return []
            case ViewChange(view=view) if view.kind is ViewKind.REGULAR:
                self.said, self.came, self.wanted = Counter(), Counter(), Counter()
                self.others = tuple(member for member in view.members if member != self.me)
        return self.sender.up(now, event)

    def timer(self, now, name, due):
        return self.sender.timer(now)

    def status(self):
        return {"queues": {"unanswered": sum(self.wanted.values())}}


PROTOCOLS = {
    "answering": ProtocolInfo(
        name="answering", summary="Every frame is answered.", paper="none", changes_views=True, judges_lives=True,
        factory=lambda setup: chain(Framing(), Seam(), Answering(setup), Link(setup)),
        packets=packets(Sent, Answer), provides=(Service.CAUSAL,),
        promises=get("causal").promises, survives=get("causal").survives, probes=("unicast again",),
    )
}  # fmt: skip
