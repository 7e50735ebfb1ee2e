"""The token-site family on the view-synchronous layer: frames that come and go, nulls, probes, views.

Paper: L. Rodrigues, H. Fonseca, P. Verissimo, "A dynamic hybrid protocol for total order in large-scale systems".
Provides: agreed.  Needs below: the view-synchronous layer in causal order.
The order itself is in process.py.  Here is what stands around it in a view.

An active process that is silent holds everybody up.  It sends a null after T_null of silence while it has tickets to
send, or something undelivered, or has seen a ticket above its own last promise; so an idle group falls silent.

At a view change the order is *drained* (Process.close): all this follows from what was agreed upon, so nobody has to
contribute anything.  In the next view roles are those that were given (static), or what they were if everybody comes
from one view, with the highest id active if none is left; else the highest id alone is: who comes from elsewhere knows
no roles.

Differs from the paper (the errata of docs/protocols/hybrid.md, beside those of process.py):
  H14 Tickets leave at once in a packet of their own when the input is drained (option tickets_at_once), else after
      T_null; an idle active process never holds the group up.
  HL  The paper carries tickets over a view change; here no frame is delivered in another view than it was sent in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ordercast.contract import (
    Accepted,
    Action,
    Body,
    CancelTimer,
    Crash,
    Down,
    Event,
    Flush,
    Frozen,
    Layer,
    Leave,
    Receive,
    Received,
    SetTimer,
    Setup,
    Submit,
    UnicastReceived,
    Up,
    ViewChange,
    Window,
    dropped,
)
from ordercast.protocols.hybrid.numbers import Lamport
from ordercast.protocols.hybrid.packets import (
    NUMBER_MAX,
    TICKET_BYTES,
    TICKETS_MAX,
    TICKETS_RIDING_MAX,
    Ping,
    Pong,
    Role,
    Sent,
)
from ordercast.protocols.hybrid.plausible import OWN_MAX, Plausible
from ordercast.protocols.hybrid.policy import Policy
from ordercast.protocols.hybrid.process import ACTIVE, Process
from ordercast.protocols.hybrid.ways import Ways
from ordercast.sender import LEAVE, Sender
from ordercast.types import Frame, MemberId, Nanoseconds, NetId, Service, View, ViewKind

NULL, PROBE = "null", "probe"  # timers
NULLS_PER_T = 50  # T_null = T / 50
HOLLOW_MAX = 16  # nulls only because something is undelivered, while one that is silent holds all up
Fixed = Callable[[tuple[MemberId, ...]], Iterable[MemberId]]  # members of a view -> those that are active in it


class Tickets(Layer):
    """One member.  `fixed`: its roles; None: they change, and `policy` says when.  `ways`: distances are measured."""

    name = "hybrid"

    def __init__(
        self,
        setup: Setup,
        numbers: Lamport,
        fixed: Fixed | None = None,
        policy: Policy | None = None,
        ways: Ways | None = None,
        process: type[Process] = Process,
    ) -> None:
        self.me, self.at_once = setup.identity.me, setup.options.tickets_at_once
        self.sender = Sender(setup, (Service.AGREED,), self._unsettled, carry=self._carry, go=self._go)
        self.fixed, self.policy, self.ways = fixed, policy, ways
        self.null_ns = max(1, setup.timeout_ns // NULLS_PER_T)  # T_null
        self.probe_ns = setup.timeout_ns
        self.numbers = numbers
        self.process = process(self.me, numbers, self._say, self._open)
        self.process.riding_max = TICKETS_RIDING_MAX
        self.process.together_max = max(1, min(TICKETS_MAX, setup.frame_bytes // TICKET_BYTES))
        if ways is not None:
            self.process.distance = ways.distance
        self.null_set = self.probe_set = self.moved = False
        self._reset(())

    def _reset(self, members: tuple[MemberId, ...]) -> None:
        """All that belongs to one view, but the process."""
        self.members = members
        self.plausible = Plausible(self.process, members, self.fixed is None)
        self.said = self.limit = 0  # own frames; as many as the layer below takes
        self.hollow = 0  # nulls in a row that nobody was known to wait for
        self.said_at: Nanoseconds = -(2**63)
        self.gone: set[MemberId] = set()  # of this view, who does not come along
        self.frozen = False

    # --------------------------------------------------------------------------------------------------------- sending

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        self.process.now = now
        out = self.sender.down(now, event)
        if self.policy is not None and type(event) is Submit and out and type(out[0]) is Accepted:
            self.policy.submitted(now)
            out += self._decide(now)
        return out

    def _carry(self, frame: Frame) -> list[Action]:
        return self.process.send(frame)

    def _say(self, body: Body) -> Action:
        self.said += type(body) is Sent
        self.said_at = self.process.now
        return self.sender.multicast(body)

    def _open(self) -> list[Action]:
        """Frames leave: as many as the layer below takes, no more than `OWN_MAX` undelivered, none between roles."""
        process, most = self.process, 0
        if process.steady and not self.frozen:
            most = max(0, min(self.limit - self.said, process.l + OWN_MAX - process.c))
        return self.sender.up(process.now, Window(most))

    # ------------------------------------------------------------------------------------------------------- receiving

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        self.process.now = now
        if kind is Received:
            return self._receive(now, event)  # type: ignore[arg-type]
        if kind is Window:
            self.limit = self.said + event.frames  # type: ignore[attr-defined]
            return self._open()
        if kind is UnicastReceived:
            return self._unicast(now, event)  # type: ignore[arg-type]
        if kind is Crash:
            self.gone.add(event.member)  # type: ignore[attr-defined]
            return []
        if kind is Flush:
            return [*self.process.close(self.gone), Up(event)]
        if kind is Frozen:
            self.frozen = self.process.quiet = True
        elif kind is ViewChange and event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
            return self._enter(now, event.view) + self.sender.up(now, event)  # type: ignore[attr-defined]
        return self.sender.up(now, event)

    def _receive(self, now: Nanoseconds, event: Received) -> list[Action]:
        j, body, process, sender = event.sender, event.body, self.process, self.sender
        why = self.plausible.doubt(j, body)
        if why:
            return [dropped(why, member=j)]
        out: list[Action] = []
        if type(body) is Sent:
            if not event.told:
                out.append(Receive(body.frame))
            if self.ways is not None:
                out += self._watch(now, j)
        out += process.receive(j, body)
        if sender.window <= 0 and self.limit > self.said and sender and process.steady and not self.frozen:
            out += self._open()
        return out + sender.settle(now) if sender.leaving else out

    # ------------------------------------------------------------------------------------------------------------ nulls

    def _owes(self) -> bool:
        process = self.process
        if process.state is not ACTIVE or self.frozen:
            return False
        return self._awaited() or (bool(process.Q) and self.hollow < HOLLOW_MAX)

    def _awaited(self) -> bool:
        return bool(self.process.LT) or self.process.seen > self.process.promised

    def _null(self) -> list[Action]:
        self.hollow = 0 if self._awaited() else self.hollow + 1
        return self.process.null()

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        process = self.process
        process.now = now
        out: list[Action] = []
        if process.state is ACTIVE and not self.frozen:
            if process.LT and self.at_once:
                out = self._null()
            elif not self.null_set and self._owes():
                due = now + self.null_ns if process.LT else self.said_at + self.null_ns
                out = self._null() if due <= now else self._set_null(due)
        return out + self.sender.settle(now) if self.sender.leaving else out

    def _set_null(self, due: Nanoseconds) -> list[Action]:
        self.null_set = True
        return [SetTimer(NULL, due)]

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        self.process.now = now
        if name == LEAVE:
            return self.sender.timer(now)
        if name == PROBE:
            return self._probe(now)
        assert name == NULL
        self.null_set = False
        if not self._owes():
            return []
        quiet = self.said_at + self.null_ns
        return [*self._null(), *self._set_null(now + self.null_ns)] if quiet <= now else self._set_null(quiet)

    # --------------------------------------------------------------------------------------------- roles and distances

    def _watch(self, now: Nanoseconds, j: MemberId) -> list[Action]:
        """Distances are measured while there is traffic."""
        self.moved = True
        if self.policy is not None and j != self.me:
            self.policy.heard += 1
        if self.probe_set or self.frozen or (self.policy is None and self._measured()):
            return []
        self.probe_set = True
        return [SetTimer(PROBE, now)]

    def _measured(self) -> bool:
        """Where roles are static, a few round trips are enough."""
        assert self.ways is not None
        return all(self.ways.known(q) for q in self.process.actives if q != self.me)

    def _probe(self, now: Nanoseconds) -> list[Action]:
        assert self.ways is not None
        self.probe_set = False
        if self.frozen or not self.moved:
            return []
        self.moved = False
        if self.policy is not None:
            self.policy.count(now)
        whom = [q for q in sorted(self.process.actives) if q != self.me]
        if self.policy is None:
            whom = [q for q in whom if not self.ways.known(q)]
        if not whom:
            return []
        self.probe_set = True
        asked = [self.sender.unicast(member, ping) for member, ping in self.ways.ask(now, whom)]
        return [*asked, SetTimer(PROBE, now + self.probe_ns)]

    def _unicast(self, now: Nanoseconds, event: UnicastReceived) -> list[Action]:
        source, body = event.source, event.body
        if type(body) is Ping:
            return [self.sender.unicast(source, Pong(body.number))]
        assert type(body) is Pong
        if self.ways is None or not self.ways.answered(now, source, body.number):
            return [dropped("probe", member=source)]
        return self._decide(now)

    def _decide(self, now: Nanoseconds) -> list[Action]:
        """Change the role, or the sequencer, if that is better."""
        if self.policy is None or self.frozen or self.limit <= self.said or self.sender.leaving or self.sender.halted:
            return []
        process, wanted = self.process, self.policy.decide(now, self.process)
        if wanted is None:
            return []
        if wanted == "active":
            out = process.go_active()
        elif wanted == "passive":
            out = process.go_passive()
        else:
            out = process.change_sequencer()
        if not process.steady:
            self.sender.window = 0
        return out

    # ---------------------------------------------------------------------------------------------------- view changes

    def _enter(self, now: Nanoseconds, view: View) -> list[Action]:
        """Everything starts anew but the numbers.  Such as no honest process reaches start anew, too: else the next one
        might be beyond all numbers."""
        process, members = self.process, view.members
        if self.numbers.t >= NUMBER_MAX // 2:
            self.numbers.restart()
        before = process.role if process.state is ACTIVE else None
        process.enter(members, *self._roles(view))
        self._reset(members)
        self.sender.window = 0
        out: list[Action] = [CancelTimer(name) for name, on in ((NULL, self.null_set), (PROBE, self.probe_set)) if on]
        self.null_set = self.probe_set = False
        if self.fixed is None and before != (process.role if process.state is ACTIVE else None):
            out.append(process.mode())
        if self.ways is not None and len(members) > 1:
            self.probe_set = self.moved = True
            out.append(SetTimer(PROBE, now))
        return out

    def _roles(self, view: View) -> tuple[dict[MemberId, int], Iterable[MemberId]]:
        members, process = view.members, self.process
        if self.fixed is not None:
            return dict.fromkeys(members, 0), self.fixed(members)
        highest = members[-1]
        if len(view.components) > 1 or not process.actives:
            return dict.fromkeys(members, 0), (highest,)
        rn = {member: process.rn[member] for member in members}
        actives = process.actives & set(members)
        if not actives:
            rn[highest] += 1
        return rn, actives or (highest,)

    # --------------------------------------------------------------------------------------------------------- reports

    def _unsettled(self) -> Iterator[Frame]:
        """Own frames without a place in the order."""
        mine = (item for (sender, _), item in self.process.Q.items() if sender == self.me)
        return (item for item in mine if not isinstance(item, Role))

    def _go(self, now: Nanoseconds, until: Nanoseconds) -> list[Action]:
        """Not without the tickets of what was received, which only this one can give."""
        nulls = self._null() if self.process.LT and self.process.state is ACTIVE else []
        return [*nulls, Down(Leave(until))]

    def status(self) -> dict[str, Any]:
        process = self.process
        return {
            "role": process.state,
            "role_number": process.role[1],
            "sequencer": process.S[0],
            "active": sorted(process.actives),
            "undelivered": len(process.Q),
            "tickets": len(process.UT),
            "tickets_to_send": len(process.LT),
            "sender": self.sender.status(),
            "queues": {
                "outbox": self.sender.outbox.waiting(), "undelivered": len(process.Q), "tickets": len(process.UT),
                "tickets_to_send": len(process.LT),
            },
            "waits": self._waits(),
        }  # fmt: skip

    def _waits(self) -> str:
        process = self.process
        if process.UT:
            number, _, sender, c = process.UT[0]
            if (sender, c) not in process.Q:
                return f"message {c} of member {sender}, whose ticket is here"
            late = [q for q in sorted(process.actives) if q != self.me and process.hi[q] < number]
            return f"promises of members {late}" if late else "own tickets that are not sent"
        if process.Q:
            return f"tickets of members {sorted(process.actives)}"
        return "the window of the layer below" if self.sender else self.sender.waits()
