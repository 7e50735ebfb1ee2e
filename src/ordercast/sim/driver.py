"""The driver's duties in virtual time: hand inputs to the members' stacks, carry out what they say, in order.

Hosts whose steps cost nothing are called straight from the queue; any other takes the longer way (`intake`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from ordercast.contract import (
    DROP,
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    Ended,
    Event,
    Left,
    Note,
    Originate,
    Packet,
    Receive,
    Refuse,
    Room,
    SetTimer,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.drivers.incoming import Bytes
from ordercast.errors import WireError
from ordercast.filing import Append, Remove, Rename, Sync
from ordercast.sim.application import Application
from ordercast.sim.caller import Caller
from ordercast.sim.carrier import Carrier
from ordercast.sim.files import Certain
from ordercast.sim.host import Host
from ordercast.sim.inputs import Item, as_input, ask
from ordercast.sim.intake import Intake, messages_in
from ordercast.sim.links import Datagram
from ordercast.sim.timers import Timers
from ordercast.types import Batch, Peer, ViewKind
from ordercast.wire import header as wire_header

FILES = frozenset((Append, Rename, Remove))


class Driver:
    """Drives every member's stack by the contract."""

    _reading: Datagram  # of the longer way
    left: Callable[[Host], None]  # told when a member left in good order
    ended: Callable[[Host, int], None]  # told when this life of a member cannot go on

    def __init__(self, carrier: Carrier) -> None:
        self.carrier, self.schedule, self.journal = carrier, carrier.schedule, carrier.journal
        self.level = self.journal.level
        self.intake = Intake(self.schedule, self.journal, self._carry_out)
        self.timers = Timers(self.schedule, self._timer, self.intake.give)
        self.datagrams = 0  # received
        self.inputs = 0  # other than datagrams
        self.notes: Counter[str] = Counter()
        self.transmit, self.give = carrier.transmit, self.intake.give
        carrier.arrive_all, carrier.arrive = self.arrive_all, self.arrive

    # ------------------------------------------------------------------------------------------------------- receiving

    def arrive_all(self, hosts: tuple[Host, ...], datagram: Datagram) -> None:
        """A multicast is at all its receivers."""
        time = self.schedule.time
        net, peer, packet, _, _, _ = datagram
        sender, perform, count = peer.id, self.perform, 0
        for host in hosts:
            if host.plain and host.known.get(sender) is peer:
                count += 1
                now = time + host.offset
                actions = host.receive(now, net, peer, packet, 0)
                if actions:
                    perform(host, actions)
                if host.plain:
                    actions = host.drained(now, net)
                    if actions:
                        perform(host, actions)
                elif host.up:
                    self.intake.was_read(host, net)
                    self.intake.work(host)
            else:
                self.arrive(host, datagram)
        self.datagrams += count

    def arrive(self, host: Host, datagram: Datagram) -> None:
        """A datagram is at a host, where a process may be or not."""
        if host.up:
            self.intake.take(host, datagram)
        else:
            self._nobody(host, datagram)

    def _receive(self, host: Host, datagram: Datagram, drops: int) -> None:
        """A datagram was read from the buffer; it may be refused, or part of a train."""
        net, peer, packet, _, data, _ = datagram
        incoming = host.incoming
        assert incoming is not None
        self._reading = datagram
        if data is None:
            incoming.decoded(net, peer, packet, drops)
        else:
            incoming.one(net, memoryview(data), drops)

    def received(self, host: Host, now: int, net: int, peer: Peer, packet: Packet, drops: int, body: Bytes) -> None:
        """A packet of the longer way."""
        self.datagrams += 1
        actions = self._ask(host, now, ("receive", net, peer, packet, drops))
        if actions:
            self.perform(host, actions)

    def refused(self, host: Host, now: int, why: WireError) -> None:
        """What is wrong with the datagram that was just read."""
        _, peer, packet, _, _, _ = self._reading
        self.journal.refused(host, why.reason, source=peer.id, packet=type(packet).__name__)

    def _nobody(self, host: Host, datagram: Datagram) -> None:
        """The host answers that no process is there; a multicast is never answered."""
        net, peer = datagram[0], datagram[1]
        carrier, asker = self.carrier, self.carrier.hosts.get(peer.id)
        self.journal.drops["nobody"] += 1
        if carrier.scenario.hosts.unreachable and not datagram[5] and asker is not None:
            for _, at in carrier.media[net].reach(self.schedule.time, host.id, (peer.id,), 64):
                self.schedule.later(at, self._unreachable, asker, (peer.incarnation, net, host.id))

    def _unreachable(self, host: Host, told: tuple[int, int, int]) -> None:
        incarnation, net, member = told
        if host.up and host.incarnation == incarnation:
            self.give(host, ("unreachable", net, member))

    # ---------------------------------------------------------------------------------------------------- other inputs

    def submit(self, host: Host, application: Application) -> None:
        """The application hands in a submission; it hears the answer by its own `accepted` or `refused`."""
        if host.plain:
            self.inputs += 1
            assert host.stack is not None
            self.perform(host, host.stack.submit(self.schedule.time + host.offset, application.submission()))
        else:
            self.give(host, ("submit", application))

    def call(self, host: Host, caller: Caller) -> None:
        """Calls on the replicated ledger; the caller hears whether they were taken."""
        if host.plain:
            self.inputs += 1
            assert host.stack is not None
            self._called(host, caller, host.stack.tell(self.schedule.time + host.offset, caller.calls()))
        else:
            self.give(host, ("tell", caller))

    def _called(self, host: Host, caller: Caller, actions: list[Action]) -> None:
        refused = [action.why for action in actions if isinstance(action, Refuse)]
        caller.taken(refused[0] if refused else "")
        if not refused:
            self.perform(host, actions)

    def _timer(self, host: Host, now: int, name: str, due: int) -> None:
        self.inputs += 1
        assert host.stack is not None
        actions = host.stack.timer(now, name, due)
        if actions:
            self.perform(host, actions)

    def _carry_out(self, host: Host, item: Item) -> None:
        """Tell the core, do what it says."""
        now = host.clock.now(self.schedule.time)
        what, told, application = item[0], item, None
        if what == "receive":
            self._receive(host, item[1], item[2])
            return
        if what == "timer":
            due = self.timers.due(host, now, item[1], item[2])
            if due is None:
                return
            told = ("timer", item[1], due)
        elif what == "submit":
            application = item[1]
            told = ("submit", application.submission())
        elif what == "tell":
            told = ("tell", item[1].calls())
        self.inputs += what != "drained"
        actions = self._ask(host, now, told)
        if what == "tell":
            self._called(host, item[1], actions)
            return
        if what == "regroup" and actions and type(actions[0]) is Refuse:
            return  # it is leaving: nobody waits for the answer
        if actions:
            self.perform(host, actions)
        if application is not None and host.up:
            application.pump()

    def _ask(self, host: Host, now: int, item: Item) -> list[Action]:
        """What the core answers; recorded where that is asked for."""
        assert host.stack is not None
        if host.recorder.log is None:
            return ask(host.stack, now, item)
        actions: list[Action] | None = None
        try:
            actions = ask(host.stack, now, item)
        finally:
            host.recorder.input(as_input(now, item, self.carrier.codec), actions)
        return actions

    # --------------------------------------------------------------------------------------------------------- actions

    def perform(self, host: Host, actions: list[Any]) -> None:
        """Carry out what a core said, in order.  Rows are written before the datagrams leave."""
        if not host.simple:
            self._perform_slowly(host, actions)
            return
        time = self.schedule.time
        if self.level:
            host.recorder.actions(time, time + host.offset, actions)
        pump = False
        for action in actions:
            kind = type(action)
            if kind is Up:
                event = action.event
                if type(event) is Delivered:
                    batch = event.batch
                    sender, n = batch.sender, batch.count
                    host.delivered += n
                    host.last[sender] = batch.counter + n
                    if sender == host.id:
                        host.own += n
                        pump = True
                else:
                    self._tell(host, event)
            elif kind is Receive or kind is Originate:
                continue
            elif kind is Transmit:
                self.transmit(host, action)
            else:
                self._other_action(host, action, kind)
        if pump:
            application = host.application
            if application.answering:
                application.own_delivered()

    def _perform_slowly(self, host: Host, actions: list[Any]) -> None:
        """The same for a host that costs time, is about to crash or pause, or whose application does not read, or
        listens."""
        if host.traps:
            actions = self._trapped(host, actions)
        time = self.schedule.time
        host.recorder.actions(time, host.clock.now(time), actions)
        cost = host.cost
        at = time  # a costly host does one thing after the other
        frames = pump = 0
        heard: list[Batch] | None = [] if host.listens else None
        for action in actions:
            kind = type(action)
            if kind is Transmit:
                if cost is not None:
                    at = self._transmit_later(host, action, at)
                else:
                    self.transmit(host, action)
            elif kind is Up and type(action.event) is Delivered:
                batch = action.event.batch
                frames += 1
                host.delivered += batch.count
                host.last[batch.sender] = batch.counter + batch.count
                if batch.sender == host.id:
                    host.own += batch.count
                    pump += 1
                if heard is not None:
                    heard.append(batch)
                if cost is not None:
                    at += cost("deliver", len(batch.data), batch.count, 0, None)[0]
            elif kind is Up:
                self._tell(host, action.event)
            else:
                self._other_action(host, action, kind)
                if cost is not None and kind is Note and action.name == "work":
                    at += cost("work", 0, 0, int(action.fields.get("units", 1)), None)[0]
        if at > time and host.up:
            self.intake.occupy(host, at)
        if frames and host.consumer is not None:
            host.consumer[1] += frames
            self.give(host, ("room", max(0, host.consumer[0] - host.consumer[1])))
        if pump and host.application.answering:
            host.application.own_delivered()
        if heard:
            host.application.hears(heard)

    def _trapped(self, host: Host, actions: list[Action]) -> list[Action]:
        """A crash or a pause that waited for such a list: only the part before it is carried out now."""
        for trap in list(host.traps):
            cut = trap.place(actions)
            if cut is not None:
                host.traps.remove(trap)
                host.refresh()
                trap.spring(actions[cut:])
                return actions[:cut]
        return actions

    def _tell(self, host: Host, event: Event) -> None:
        """What a core says to its application, deliveries apart."""
        what = type(event)
        application = host.application
        if what is ViewChange:
            if event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
                application.halted = event.view.primary is False  # type: ignore[attr-defined]
                if not application.joined and not application.halted:
                    self.schedule.later(self.schedule.time, self._join, host, host.incarnation)
                host.view = event.view.members  # type: ignore[attr-defined]
                host.views += 1
        elif what is Room:
            self.schedule.later(self.schedule.time, self._room, host, host.incarnation)
        elif what is Left:
            self.left(host)
        elif what is Ended:
            self.schedule.later(self.schedule.time, self.ended, host, host.incarnation)

    def _other_action(self, host: Host, action: Any, kind: type) -> None:
        """What is neither said upwards nor transmitted."""
        if kind is SetTimer:
            self.timers.set(host, action.name, action.at)
        elif kind is CancelTimer:
            self.timers.cancel(host, action.name)
        elif kind is Note:
            self.notes[action.name] += 1
            if action.name == DROP:
                self.journal.drops[action.fields["reason"]] += 1
        elif kind is Accepted:
            host.counter = action.counter + action.count - 1
            application = host.application
            application.submitted += action.count
            application.accepted()
        elif kind is Refuse:
            host.application.refused(action.why)
        elif kind is Store:
            self._store(host, action)
        elif kind is Sync:
            takes = int(host.disk.write_ns * host.disk.times)
            job = (host.incarnation, action, host.disk.own.flush())
            self.schedule.later(self.schedule.time + takes, self._flushed, host, job)
        elif kind in FILES:
            host.disk.own.do(action, host.disk.fault())

    def _transmit_later(self, host: Host, action: Transmit, at: int) -> int:
        """A costly host: the datagram leaves when its turn has come."""
        assert host.cost is not None
        size = self.carrier.codec.size(action.packet) + wire_header.HEADER_BYTES
        packet = action.packet
        busy, latency = host.cost("transmit", size, messages_in(packet), 0, packet)
        at += busy
        if at + latency > self.schedule.time:
            self.schedule.later(at + latency, self._depart, host, (host.incarnation, action))
        else:
            self.transmit(host, action)
        return at

    def _depart(self, host: Host, job: tuple[int, Transmit]) -> None:
        incarnation, action = job
        if host.up and host.incarnation == incarnation:
            self.transmit(host, action)

    def _room(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            host.application.room()

    def _join(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation and not host.application.joined:
            host.application.join()

    def _store(self, host: Host, action: Store) -> None:
        ticket, takes = host.disk.begin(action.key, action.number, action.data)
        self.schedule.later(self.schedule.time + takes, self._stored, host, (host.incarnation, ticket))

    def _flushed(self, host: Host, job: tuple[int, Sync, Certain]) -> None:
        incarnation, sync, covered = job
        if host.up and host.incarnation == incarnation:
            why = host.disk.flushed(covered)
            told = ("stored", sync.key, sync.number)
            self.give(host, ("store_failed", sync.key, sync.number, why) if why else told)

    def _stored(self, host: Host, job: tuple[int, int]) -> None:
        incarnation, ticket = job
        done = host.disk.finish(ticket)
        if done is None or not host.up or host.incarnation != incarnation:
            return
        key, number, why = done
        self.give(host, ("store_failed", key, number, why) if why else ("stored", key, number))
