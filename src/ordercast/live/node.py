"""One running member: calls the core, carries out its actions in order, writes the trace.  Nothing else.

A cycle reads all datagrams that have arrived (at most 1024), hands each to the stack, then says `drained`; so data is
handled before a token that a core holds until then.  Late timers come after queued packets.  Trace rows are written
before the datagrams of the same step leave.  What goes up to the application is collected during a cycle and handed
over at its end, after everything has been forwarded.  All work is per frame, never per message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ordercast.contract import (
    ALL,
    TAGGER,
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    Ended,
    Event,
    Note,
    Packet,
    Refuse,
    SetTimer,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.drivers.admission import Admission
from ordercast.drivers.incoming import Bytes, Incoming
from ordercast.drivers.terms import Agreement
from ordercast.errors import RunError, WireError
from ordercast.limits import DATAGRAM_BYTES_MAX
from ordercast.live import report
from ordercast.live.alarm import Alarm
from ordercast.live.names import Names
from ordercast.live.outgoing import Outgoing
from ordercast.live.past import Past
from ordercast.live.room import Room
from ordercast.live.sealing import Sealing
from ordercast.live.sieve import Sieve
from ordercast.live.sockets import PATIENCE_NS, NetAddresses, NetSockets, Patience
from ordercast.live.sources import Sources
from ordercast.live.storage import Storage
from ordercast.live.talk import Talk
from ordercast.registry import ProtocolInfo
from ordercast.stack import Stack
from ordercast.trace import record
from ordercast.trace.clock import utc
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Kind, Level
from ordercast.types import Identity, MemberId, Nanoseconds, NetId, Peer, Submission, View
from ordercast.wire.codec import Codec

REFUSED_NS = 10_000_000  # least time between two reports of one dead port

_clock = time.monotonic_ns


class Node:
    """Drives one stack.  `on_events` gets what went up, in order, at the end of a cycle; `on_failure` ends it all."""

    def __init__(
        self,
        info: ProtocolInfo,
        stack: Stack,
        identity: Identity,
        plans: Mapping[NetId, NetAddresses],
        storage: Storage,
        *,
        on_events: Callable[[list[Event]], None],
        on_failure: Callable[[BaseException], None],
        recorder: Recorder | None = None,
        frame_bytes: int = 1_400,
        datagram_bytes: int = DATAGRAM_BYTES_MAX,
        patience_ns: Nanoseconds = PATIENCE_NS,
        agreement: Agreement | None = None,
        sealing: Sealing | None = None,
        names: Names | None = None,
        tagger: bool = False,
    ) -> None:
        self.info, self.stack, self.identity, self.storage = info, stack, identity, storage
        self.on_events, self.on_failure = on_events, on_failure
        self.recorder = recorder if recorder is not None and recorder.level > Level.OFF else None
        self._logs = self.recorder is not None and self.recorder.log is not None
        self.codec = Codec(info.packets)
        self.delivered = self.delivered_bytes = 0  # messages, and their bytes
        me, heard = Peer(identity.me, identity.incarnation), (*identity.members, TAGGER)[: None if tagger else -1]
        self.past = Past(heard, partial(report.counts, self), _clock, me)
        if names is not None:
            names.heard = self.past.heard
        self.disk_fault: tuple[Nanoseconds, str] | None = None  # since when nothing can be stored, and why
        self.view: View | None = None
        self.running = False
        self.started_ns = self.wall_ns = 0  # this life's beginning, by the monotonic clock and by the wall clock
        self.nets: dict[NetId, NetSockets] = {}
        admission = Admission(identity, info.hears_self, info.judges_lives, sealing is not None, tagger)
        self._outgoing = Outgoing(admission.prefix, datagram_bytes)
        self.talk = Talk(identity.me, self.nets, self._outgoing, agreement, sealing, names, _clock)
        self.incoming = Incoming(
            self.codec, admission, 2 * len(identity.members), _clock, self._receive, self._dropped, agreement,
            self.talk.say, *((sealing.guard, sealing.rotation) if sealing is not None else ()),
        )  # fmt: skip
        if sealing is not None:
            sealing.attach(self.incoming, self._outgoing)
        self.timers: dict[str, Nanoseconds] = {}
        self.refused: dict[MemberId, Nanoseconds] = {}  # when a member's port was last reported as dead
        self._events, self._handing_over = list[Event](), False
        self.own_turn = False  # what goes up goes up from a callback of ours: no task of the application is running
        self.frame_bytes, self.room = frame_bytes, Room(frame_bytes)
        self._patience = Patience(patience_ns)
        try:
            for number, plan in plans.items():
                told = partial(self._unreachable, number)
                self.nets[number] = NetSockets(plan, admission.prefix, told, self._patience)
        except BaseException:
            for net in self.nets.values():
                net.close()
            raise
        sieves = sealing is not None and info.exact
        self._sources = Sources(self.nets, self.incoming, Sieve(self.nets, self.incoming, _clock) if sieves else None)

    # --------------------------------------------------------------------------------------------------- life cycle

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(self._loop, self._alarmed)
        self.running = True
        self.started_ns, self.wall_ns = _clock(), time.time_ns()
        if self.recorder is not None:
            self.recorder.event(self.started_ns, self.started_ns, Kind.START, wall_ns=self.wall_ns)
        self._sources.open(self._loop, self._readable)
        store = self.storage.store
        for name in store.damaged:
            self.incoming.drops["disk"] += 1
            if self.recorder is not None:
                self.recorder.event(self.started_ns, self.started_ns, Kind.DROP, reason="disk", what=name)
        self.past.start(self._loop)
        self.talk.start()
        self._input(record.Started, self.stack.start, self.identity, dict(store.stored))
        self._tell_room()
        self._hand_over()

    def stop(self) -> None:
        """Close everything at once; to go in good order, call leave() first and wait for Left."""
        if not self.running:
            return
        self.running = False
        self._sources.close()
        for net in self.nets.values():
            net.close()
        self._alarm.close()
        self.past.stop()
        self.talk.stop()

    def leave(self, within_ns: Nanoseconds | None = None) -> None:
        """Go in good order, at the latest after so long; Left tells what was not sent.  Asked again: sooner."""
        until = None if within_ns is None else _clock() + within_ns
        self._input(record.LeaveAsked, self.stack.leave, until)
        self._hand_over()

    def _fail(self, why: BaseException) -> None:
        """A fault in our own code: no message may pass through a member whose state is in doubt."""
        if self.running:
            self.stop()
            self.on_failure(why)

    # -------------------------------------------------------------------------------------------------- application

    def submit(self, submission: Submission) -> Accepted | Refuse | None:
        """Hand in messages: taken whole (their counters) or refused whole.  None: the core failed."""
        actions = self._input(_submitted, self.stack.submit, submission)
        answer: Accepted | Refuse | None = None
        for action in actions:
            if type(action) is Accepted or type(action) is Refuse:
                answer = action
        if type(answer) is Accepted:
            self.past.accepted(_clock(), answer)
        self._hand_over()
        return answer

    def regroup(self, group: str, join: bool) -> Refuse | None:
        """Join or leave a process group, at a place of the order; a GroupView tells when."""
        actions = self._input(record.Regrouped, self.stack.regroup, group, join)
        self._hand_over()
        return next((action for action in actions if type(action) is Refuse), None)

    def consumed(self, frames: int, size: int) -> None:
        """The application has read this much of what it was handed."""
        self.room.frames -= frames
        self.room.bytes -= size
        self._tell_room()

    @property
    def unread(self) -> tuple[int, int]:
        """Frames and bytes that wait for the application."""
        return self.room.frames, self.room.bytes

    def _tell_room(self) -> None:
        """Tell the stack how much delivery space is free, when that is news."""
        free = self.room.news(_clock)
        if free is not None and self.running:
            self._input(record.RoomGiven, self.stack.room, free)

    def _hand_over(self, own_turn: bool = False) -> None:
        """Give the application what went up.  It may submit from inside; what that causes follows."""
        if self._handing_over or not self._events:
            return
        self._handing_over, self.own_turn = True, own_turn
        try:
            while self._events:
                events, self._events = self._events, []
                self.on_events(events)
                self.own_turn = False  # an application that answers itself must not keep the event loop to itself
                self._tell_room()
        finally:
            self._handing_over = self.own_turn = False

    # ------------------------------------------------------------------------------------------------------- inputs

    def _input(self, kind: Callable[..., Any], call: Callable[..., list[Action]], *args: Any) -> list[Action]:
        """One input of the core; the struct that records it has the same fields as the call has arguments."""
        now = _clock()
        try:
            actions = call(now, *args)
        except Exception as why:
            self._log(kind(now, *args), None)
            self._fail(why)
            return []
        try:
            if self._logs:
                self._log(kind(now, *args), actions)
            if actions:
                self._do(now, actions)
        except Exception as why:  # a trace that cannot be written: what was decided is not, or half, carried out
            self._fail(why)
            return []
        return actions

    def _log(self, entry: Any, actions: list[Action] | None) -> None:
        if self._logs and self.recorder is not None:
            self.recorder.input(entry, actions)

    def _readable(self) -> None:
        self._patience.renew()
        self._drain(self._sources.read())
        self._hand_over(own_turn=True)

    def _drain(self, read: Iterator[NetId]) -> None:
        for number in read:
            if self.running:
                self._input(record.Drained, self.stack.drained, number)
            if not self.running:
                return

    def _receive(self, now: Nanoseconds, number: NetId, peer: Peer, packet: Packet, drops: int, body: Bytes) -> None:
        if not self.running:
            return
        self.past.heard[peer.id] += 1
        try:
            actions = self.stack.receive(now, number, peer, packet, drops)
        except Exception as why:
            self._log_received(now, number, peer, drops, body, None)
            self._fail(why)
            return
        try:
            if self._logs:
                self._log_received(now, number, peer, drops, body, actions)
            if actions:
                self._do(now, actions)
        except Exception as why:
            self._fail(why)

    def _dropped(self, now: Nanoseconds, why: WireError) -> None:
        if self.recorder is not None and why.reason != "own":
            try:
                self.recorder.event(now, now, Kind.DROP, detail={"reason": why.reason, "what": str(why)[:200]})
            except Exception as fault:
                self._fail(fault)

    def _log_received(
        self, now: Nanoseconds, net: NetId, peer: Peer, drops: int, body: Bytes, actions: list[Action] | None
    ) -> None:
        self._log(record.Received(now, net, peer.id, peer.incarnation, drops, bytes(body)), actions)

    def _unreachable(self, net: NetId, member: MemberId) -> None:
        """A port answered that nobody is there.  In unicast mode each datagram does; once in a while is enough."""
        now = _clock()
        if self.running and now - self.refused.get(member, 0) >= REFUSED_NS:
            self.refused[member] = now
            self._input(record.Unreachable, self.stack.unreachable, net, member)

    def _alarmed(self) -> None:
        """Queued packets first, then the timers that are (still) due, the earliest first."""
        self._patience.renew()
        self._drain(self._sources.read_all())
        timers = self.timers
        now = _clock()
        while self.running and timers:
            name = min(timers, key=timers.__getitem__)
            due = timers[name]
            if due > now:
                self._alarm.set(due)
                break
            del timers[name]
            self._input(record.Fired, self.stack.timer, name, due)
        self._hand_over(own_turn=True)

    def _stored(self, key: str, number: int, why: str) -> None:
        if not self.running:
            return
        if why:
            self.disk_fault = (self.disk_fault[0] if self.disk_fault is not None else _clock(), why)
            self._input(record.StoreFailed, self.stack.store_failed, key, number, why)
        else:
            self.disk_fault = None
            self._input(record.Stored, self.stack.stored, key, number)
        self._hand_over()

    # ------------------------------------------------------------------------------------------------------ actions

    def _do(self, now: Nanoseconds, actions: list[Action]) -> None:
        """Carry out one step."""
        if self.recorder is not None:
            self.recorder.actions(now, now, actions)
        outgoing = self._outgoing
        for action in actions:
            kind = type(action)
            if kind is Transmit:
                net, to = self.nets[action.net], action.to  # type: ignore[attr-defined]
                if to == ALL:
                    outgoing.to_all(net, action.packet)  # type: ignore[attr-defined]
                else:
                    outgoing.to_one(net, to, action.packet)  # type: ignore[attr-defined]
            elif kind is Up:
                self._up(now, action.event)  # type: ignore[attr-defined]
            elif kind is SetTimer:
                self._set_timer(action.name, action.at)  # type: ignore[attr-defined]
            elif kind is CancelTimer:
                self.timers.pop(action.name, None)  # type: ignore[attr-defined]
            elif kind is Store:
                self.storage.write_later(action.key, action.number, action.data, self._stored)  # type: ignore[attr-defined]
            elif kind is Note and action.name in report.TOLD:  # type: ignore[attr-defined]
                report.tell(self, action)  # type: ignore[arg-type]
        outgoing.flush()

    def _set_timer(self, name: str, at: Nanoseconds) -> None:
        timers, alarm = self.timers, self._alarm
        later = timers.get(name) == alarm.at
        timers[name] = at
        if later:
            alarm.move(min(timers.values()))
        else:
            alarm.set(at)

    def _up(self, now: Nanoseconds, event: Event) -> None:
        kind = type(event)
        if kind is Delivered:
            batch = event.batch  # type: ignore[attr-defined]
            size = len(batch.data)
            self.room.frames += 1
            self.room.bytes += size
            self.delivered += batch.count
            self.delivered_bytes += size
            self.past.delivered(now, batch)
        elif kind is ViewChange:
            self.view = event.view  # type: ignore[attr-defined]
            self.past.viewed(now, event.view)  # type: ignore[attr-defined]
        elif kind is Ended:
            self._loop.call_soon(self._fail, RunError(event.why))  # type: ignore[attr-defined]
        self._events.append(event)

    # ------------------------------------------------------------------------------------------------------- status

    def end_trace(self) -> None:
        """Write the last row: what is left in the queues, what is waited for, what was counted."""
        recorder, now = self.recorder, _clock()
        self.recorder, self._logs = None, False
        if recorder is None:
            return
        recorder.event(now, now, Kind.END, **report.last_row(self))
        recorder.close()

    def wall(self, at: Nanoseconds) -> str:
        """A moment of the monotonic clock by the wall clock, as it was when this life began."""
        return utc(self.wall_ns + at - self.started_ns)

    def status(self) -> dict[str, Any]:
        """Everything a person asks of a running member, in plain words where words help."""
        return report.status(self, _clock())


def _submitted(now: Nanoseconds, submission: Submission) -> record.Submitted:
    return record.Submitted(now, submission.payloads, submission.service, submission.groups)
