"""The layer of replicated state: on top of a stack, over any protocol with views and a total order.

At every regular view in which the group may go on each member offers its state, all decide whose it is
(`decision.py`), and those who lack it get it (`transfer.py`), while the others go on.  Calls that come before the
decision wait for it, and are dropped by all if the view ends first.  What is said is ordered, so all see the same.
A change of view ends all that is under way: it begins anew with new Offers.

Messages of the application, and all else, pass through untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ordercast.contract import Action, Control, Down, Event, Layer, Note, Refuse, SetTimer, Setup, Up, ViewChange
from ordercast.groups import FOR_ABOVE, Above
from ordercast.membership.primary import Knows
from ordercast.state import report
from ordercast.state.answers import Answers, unknown
from ordercast.state.decision import Council
from ordercast.state.keeping import RETRY, Keeping
from ordercast.state.log import WRITE
from ordercast.state.machine import Calls, Machine, Mark, Standing
from ordercast.state.merge import Meeting
from ordercast.state.moving import SERVE, Moving
from ordercast.state.packets import (
    Ack,
    Again,
    Called,
    Chunk,
    Complete,
    Holds,
    Offer,
    Ready,
    Synced,
    Without,
    bad,
    decode,
    say,
)
from ordercast.state.replica import Entry, Failed, Phase, Replica
from ordercast.types import Identity, MemberId, Nanoseconds, Peer, Service, View, ViewKind

CATCH_UP = "catch up"
CALLS_PER_STEP = 512  # that waited, applied in one step


class State(Layer):
    """`files`: what earlier lives left on disk, by name; None: nothing is kept there."""

    name = "state"
    aside = True  # the application's messages are for the layer below

    def __init__(
        self, machine: Machine, setup: Setup, services: tuple[Service, ...], files: Mapping[str, bytes] | None = None
    ) -> None:
        identity = setup.identity
        self.me, self.members = Peer(identity.me, identity.incarnation), identity.members
        self.policy = setup.partition
        self.answers = Answers(services, setup.outbox_bytes, setup.frame_bytes)
        self.replica = Replica(machine, self.me, self.answers)
        self.keeping = Keeping(self.replica, files, setup.timeout_ns)
        self.phase = Phase.AWAY
        self.why = ""  # a sentence, where there is something to say
        self.view: View | None = None
        self.leaving = self.transitional = False
        self.entering = False  # the view has begun, and what was due before it is still applied
        self.council: Council | None = None
        self.peers: dict[MemberId, Peer] = {}  # who has offered its state in this view
        self.moving: Moving | None = None  # since the decision
        self.meeting: Meeting | None = None  # instead, where states are merged
        self._heard: dict[type, Callable[[Nanoseconds, Peer, Any], list[Action]]] = {
            Offer: self._offered, Holds: self._offered, Chunk: self._chunk, Ack: self._ack, Again: self._again,
            Complete: self._complete, Ready: self._ready, Synced: self._synced, Without: self._without,
        }  # fmt: skip

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """With the state that an earlier life left."""
        try:
            found = self.keeping.start()
        except Failed as why:
            return self._end(f"what is on disk cannot be read: {why}")
        return [Down(Above()), *report.found(self.replica, found), *report.recorded(self), *self._logged(now)]

    # -------------------------------------------------------------------------------------------------- the application

    def leave(self, now: Nanoseconds, until: Nanoseconds | None = None) -> list[Action]:
        self.leaving = True
        return super().leave(now, until)

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if not isinstance(event, Calls):
            return [Down(event)]
        why = report.closed(self)
        return [Refuse(why)] if why else self.answers.call(event, self.keeping.lacks, crowded=self.replica.crowded)

    # -------------------------------------------------------------------------------------------------------- the order

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Control:
            batch = event.batch  # type: ignore[attr-defined]
            sender, payloads = Peer(batch.sender, batch.incarnation), batch.payloads()
            heard = (self._hear(now, sender, payload[1:]) for payload in payloads if payload[:1] == FOR_ABOVE)
            return [*(action for actions in heard for action in actions), *self._logged(now)]
        if kind is ViewChange:
            view: View = event.view  # type: ignore[attr-defined]
            if view.kind is ViewKind.TRANSITIONAL:
                self.transitional = True
                return [Up(event)]
            return [Up(event), *self._guard(self._regular, now, view), *self._logged(now)]
        if kind is Knows:
            self.replica.learn(Mark(event.view, event.n, event.h))  # type: ignore[attr-defined]
            return []
        return [Up(event)]

    def _hear(self, now: Nanoseconds, sender: Peer, raw: bytes) -> list[Action]:
        try:
            said = decode(raw)
        except msgspec.MsgspecError as why:
            return [bad(str(why))]
        if isinstance(said, Called):
            return self._guard(self._called, now, sender, said, raw)
        if self.view is None or said.view != self.view.id or self.phase is Phase.ENDED:
            return []  # of an earlier view
        return self._guard(self._heard[type(said)], now, sender, said)

    def _guard(self, do: Callable[..., list[Action]], now: Nanoseconds, *args: Any) -> list[Action]:
        """Whatever the machine raises ends this replica, and no other."""
        try:
            return do(now, *args)
        except Failed as why:
            return self._end(str(why))

    def _called(self, now: Nanoseconds, caller: Peer, said: Called, raw: bytes) -> list[Action]:
        mine = caller == self.me and self.answers.ordered(said.first, len(said.payloads))
        out: list[Action] = []
        if not said.payloads:
            return [*out, bad("no calls")]
        if self.phase is Phase.COMPLETE:
            return out + self.replica.apply(Entry(caller, said, raw, self.transitional, mine))
        if self.phase is Phase.ENDED or self.phase is Phase.AWAY:
            return [*out, unknown(said.first, len(said.payloads), self.why or self.phase.value)] if mine else out
        self.replica.hold(Entry(caller, said, raw, self.transitional, mine), due=self.phase is Phase.CATCHING)
        return out + self._ask_again() if self.phase is Phase.BEHIND and self.replica.crowded else out

    # ------------------------------------------------------------------------------------------------------------ views

    def _regular(self, now: Nanoseconds, view: View) -> list[Action]:
        """What was under way ends here; a view that may go on begins with Offers."""
        out: list[Action] = []
        if self.replica.held:
            out += [Note("calls dropped", {"steps": len(self.replica.held)}), *self.replica.drop("the view changed")]
        self.view, self.transitional = view, False
        self.council = self.moving = self.meeting = None
        self.keeping.leave()
        self.peers = {}
        if self.phase is Phase.ENDED:
            return [*out, *report.without(view, self.why)]
        if view.primary is not False:
            self.council = Council(view.id, view.members, len(self.members), self.policy)
        self.entering = True
        return [*out, *self._stand(Phase.AWAY if self.council is None else Phase.OFFERING), *self._enter(now)]

    def _enter(self, now: Nanoseconds) -> list[Action]:
        """Apply what is still due from before the view, a little at a time: an Offer is of the state after it."""
        assert self.view is not None
        out = self.replica.drain(CALLS_PER_STEP, late=True)
        if self.replica.due:
            return [*out, SetTimer(CATCH_UP, now)]
        self.entering = False
        out.append(report.entered(self.replica, self.view.members))
        return out if self.council is None else [*out, *self.keeping.enter(self.view.id)]

    def _offered(self, now: Nanoseconds, sender: Peer, said: Offer | Holds) -> list[Action]:
        council = self.council
        if council is None or self.transitional or self.phase is not Phase.OFFERING:
            return []
        if not council.add(sender.id, said):
            return [bad(f"{type(said).__name__} of member {sender.id}")]
        self.peers[sender.id] = sender
        self.keeping.offered(sender.id, said)
        return self._weigh(now, asked=isinstance(said, Offer))

    def _weigh(self, now: Nanoseconds, asked: bool) -> list[Action]:
        """Somebody has spoken, or will not: is there something to compare, or to decide?"""
        council = self.council
        assert council is not None
        if asked and council.questions is not None and self.me.id not in council.held:
            return [say(self.replica.compare(council.view, council.questions), ahead=True)]
        return self._decide(now, council) if council.ready() else []

    # -------------------------------------------------------------------------------------------------------- decisions

    def _decide(self, now: Nanoseconds, council: Council, meetings: int = 0) -> list[Action]:
        """`meetings`: how often parts have begun to meet in this view."""
        assert self.view is not None
        decision, self.council = council.decide(), None
        mark = decision.mark
        if self.me.id in decision.foreign:
            return self._end("the class differs from that of the group's state: expected the same methods and version")
        out: list[Action] = [Note("state lost")] if decision.lost else []
        if decision.parts:
            members = tuple(member for member in sorted(self.peers) if member not in decision.foreign)
            self.meeting = Meeting(council, meetings, self.me.id, members, self.replica, decision)
            return out + self.meeting.begin(now)
        if mark is None:
            return self._stand(Phase.OFFERING, f"the state of view {decision.known.view}" if decision.known else "")
        if self.me.id in decision.complete and mark.place != self.replica.history.place:
            return [bad("an Offer that was not mine")]
        self.moving = Moving(self.me.id, self.replica, decision)
        out += self._learn(mark)
        behind = self.me.id in decision.behind
        if behind:
            out.append(Note("state behind", {"members": len(decision.behind)}))
        else:
            out += self.replica.decided(mark, self.peers)
            out += [report.note(self.replica, "decided", source=decision.donor), *self.answers.settled(0)]
        out += self.moving.begin(now, behind)
        self.replica.arrive(mark.view, self.peers.values())
        return out + (self._stand(Phase.BEHIND) if behind else self._catch_up(now))

    def _learn(self, mark: Mark) -> list[Action]:
        """All who heard of a decision remember it, whether they have its state or not."""
        self.replica.heard(mark)
        return [*self.keeping.decided(mark.view), *report.recorded(self)]

    def _catch_up(self, now: Nanoseconds) -> list[Action]:
        """Apply what waited, a little at a time; then this replica is complete."""
        replica, moving = self.replica, self.moving
        replica.ripen()
        cut = moving.cut if moving is not None else None
        out = [*self._stand(Phase.CATCHING), *replica.drain(CALLS_PER_STEP, cut)]
        if moving is not None and replica.history.n == cut:
            out += moving.begin(now, behind=False)
        if replica.due:
            return [*out, SetTimer(CATCH_UP, now)]
        if moving is not None and self.me.id in moving.lacking and not self._mute:
            out.append(say(Complete(moving.mark.view, *replica.history.place)))
        return [*out, *self._stand(Phase.COMPLETE), report.note(self.replica, "complete"), *self._vouch()]

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if name == CATCH_UP and not self.entering and self.phase is not Phase.CATCHING:
            return []
        more = {SERVE: self._send, WRITE: self.keeping.more, RETRY: self.keeping.retry}
        do = more[name] if name != CATCH_UP else self._enter if self.entering else self._catch_up
        return [*self._guard(do, now), *self._logged(now)]

    # --------------------------------------------------------------------------------------------------------- the disk

    def _logged(self, now: Nanoseconds) -> list[Action]:
        """After each input; also, whoever found no room hears if there is some now."""
        if self.phase is Phase.ENDED:
            return []
        room = self.answers.room(crowded=self.replica.crowded) if self.answers.refused else []
        return [*room, *self._guard(self.keeping.write, now, self.phase is Phase.COMPLETE)]

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        return [*self._guard(self.keeping.stored, now, number), *self._vouch(), *self._logged(now)]

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        return self.keeping.failed(now, why)

    def _vouch(self) -> list[Action]:
        """Tell what is on disk; who is behind has nothing there of this state."""
        return self.keeping.vouch() if self.phase is Phase.COMPLETE and not self._mute else []

    def _synced(self, now: Nanoseconds, sender: Peer, said: Synced) -> list[Action]:
        return self.keeping.synced(sender.id, said, self.peers)

    # --------------------------------------------------------------------------------------------------------- transfer

    @property
    def _mute(self) -> bool:
        """Nothing that is said now would be of use."""
        return self.transitional or self.leaving

    def _send(self, now: Nanoseconds) -> list[Action]:
        giving = self.moving or self.meeting
        return giving.send(now) if giving is not None and not self._mute else []

    def _ack(self, now: Nanoseconds, sender: Peer, ack: Ack) -> list[Action]:
        if giving := self.moving or self.meeting:
            giving.ack(sender.id, ack)
        return self._send(now)

    def _chunk(self, now: Nanoseconds, sender: Peer, chunk: Chunk) -> list[Action]:
        if self.meeting is not None:
            return [] if self._mute else self.meeting.chunk(sender.id, chunk)
        if self.moving is None:
            return []
        ack = self.moving.chunk(sender.id, chunk)
        out: list[Action] = [say(ack)] if ack is not None and not self._mute else []
        if not self.moving.arrived:
            return out
        taken = self.moving.taken()
        if taken is None:
            return out + self._ask_again()
        out += self.replica.take_over(taken.mark, taken.history, taken.restoring, self.peers)
        return [*out, report.note(self.replica, "decided", source=sender.id, taken=True), *self._catch_up(now)]

    def _ask_again(self) -> list[Action]:
        """For a later state, once for each that is on its way."""
        moving = self.moving
        if self._mute or moving is None or moving.asked:
            return []
        moving.asked = True
        return [say(Again(moving.mark.view))]

    def _again(self, now: Nanoseconds, sender: Peer, said: Again) -> list[Action]:
        """From here on, another state: who has it begins anew, who waits for it drops what came before."""
        return self._anew(now) if self.moving is not None and sender.id in self.moving.lacking else []

    def _anew(self, now: Nanoseconds) -> list[Action]:
        moving = self.moving
        assert moving is not None
        moving.serial += 1
        if self.phase is Phase.BEHIND:
            if moving.donor is None:
                self.moving = None  # the next view tries again
                return self._stand(Phase.OFFERING, "the state, and can give it")
            waited = self.replica.drop("a later state is on its way")
            return [Note("state again"), *waited, *moving.begin(now, behind=True)]
        if self.phase is Phase.CATCHING:
            moving.stop(cut=self.replica.due_n)
            return []
        return moving.begin(now, behind=False)

    def _complete(self, now: Nanoseconds, sender: Peer, said: Complete) -> list[Action]:
        if self.moving:
            self.moving.complete(sender.id)
        return self._send(now)

    # ------------------------------------------------------------------------------------------------------------ merge

    def _ready(self, now: Nanoseconds, sender: Peer, said: Ready) -> list[Action]:
        meeting = self.meeting
        if meeting is None or self.transitional or not meeting.all_ready(sender.id, said):
            return []
        return self._merge(now) if meeting.whole else [bad("ready before all states were here")]

    def _merge(self, now: Nanoseconds) -> list[Action]:
        """All hold all parts: their state is one again."""
        assert self.meeting is not None
        merged, self.meeting = self.meeting.merge(), None
        out = self._learn(merged.mark)
        out += self.replica.replace(merged.mark, merged.history, self.peers)
        self.replica.arrive(merged.mark.view, self.peers.values())
        if merged.why:
            out.append(Note("merge failed", {"why": merged.why}))
        parts = [[part.n, part.h.hex()] for part in merged.parts]
        return [*out, report.note(self.replica, "decided", parts=parts), *self._catch_up(now)]

    # ----------------------------------------------------------------------------------------------------------- ending

    def _without(self, now: Nanoseconds, sender: Peer, said: Without) -> list[Action]:
        """Somebody is no replica any more: nobody waits for it, and another serves in its place."""
        self.peers.pop(sender.id, None)
        out = self.keeping.without(sender.id, self.peers)
        if self.council is not None:
            self.council.leave(sender.id)
            return out + self._weigh(now, asked=True)
        if self.meeting is not None:
            return out + self._meet_without(now, self.meeting, sender.id)
        gone = self.moving is not None and self.moving.without(sender.id)
        return [*out, Note("donor gone"), *self._anew(now)] if gone else out

    def _meet_without(self, now: Nanoseconds, meeting: Meeting, member: MemberId) -> list[Action]:
        """Who told a part is missed: another of that part tells it, or the rest are one without it."""
        ready = meeting.without(member)
        if not meeting.needs(member):
            return self._merge(now) if ready else []
        self.meeting = None
        if self.transitional:  # the next view tries again
            return []
        return self._decide(now, meeting.council, meeting.serial + 1)

    def _end(self, why: str) -> list[Action]:
        """This member is no replica any more; the others go on without it."""
        told = report.without(self.view, why) + self.replica.end(why)
        self.entering, self.council, self.moving, self.meeting = False, None, None, None
        return [*told, *self.answers.give_up(why), *self._stand(Phase.ENDED, why)]

    # ----------------------------------------------------------------------------------------------------- what is told

    def _stand(self, phase: Phase, why: str = "") -> list[Action]:
        """Tell the application where this replica stands, if that is news."""
        news = (phase, why) != (self.phase, self.why) and phase is not Phase.CATCHING
        self.phase, self.why = phase, why
        if not news:
            return []
        n, h = self.replica.history.place
        return [Up(Standing(phase.value, n, h, why))]

    def status(self) -> dict[str, Any]:
        return report.status(self)
