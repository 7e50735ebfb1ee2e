"""The driver's duties in virtual time: hand inputs to the members' stacks, carry out what they say, in order.

Hosts whose steps cost nothing are called straight from the queue; one that is busy, paused, costly or recorded takes
the longer way through its input buffer: datagrams first, then drained, then late timers and everything else.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappush
from typing import Any

from ordercast.contract import (
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    Event,
    Left,
    Note,
    Originate,
    Receive,
    Refuse,
    Room,
    SetTimer,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.errors import WireError
from ordercast.limits import DRAIN_DATAGRAMS_MAX
from ordercast.registry import ProtocolInfo
from ordercast.sim.application import Application
from ordercast.sim.host import CostFunction, Host
from ordercast.sim.inputs import Item, as_input, ask
from ordercast.sim.links import Datagram
from ordercast.sim.scenario import Scenario
from ordercast.sim.traffic import Traffic
from ordercast.trace.schema import Kind, Level
from ordercast.types import ViewKind
from ordercast.wire import header as wire_header

NEVER = 2**63  # a cancelled timer whose event is still in the queue


class Driver(Traffic):
    """Drives every member's stack by the contract."""

    applications: dict[int, Application]

    def __init__(self, scenario: Scenario, level: Level, info: ProtocolInfo, cost: CostFunction | None) -> None:
        super().__init__(scenario, level, info, cost)
        self.inputs = 0  # other than datagrams
        self.notes: Counter[str] = Counter()

    def refresh(self, host: Host) -> None:
        raise NotImplementedError

    def trapped(self, host: Host, actions: list[Action]) -> list[Action]:
        raise NotImplementedError

    def left(self, host: Host) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- receiving

    def arrive_all(self, hosts: tuple[Host, ...], datagram: Datagram) -> None:
        """A multicast is at all its receivers."""
        time = self.time
        net, peer, packet, _, _, _ = datagram
        perform = self.perform
        for host in hosts:
            if host.plain:
                self.datagrams += 1
                now = time + host.offset
                actions = host.receive(now, net, peer, packet, 0)
                if actions:
                    perform(host, actions)
                if host.plain:
                    actions = host.drained(now, net)
                    if actions:
                        perform(host, actions)
                elif host.up:
                    self._read(host, net)
                    self.work(host)
            else:
                self.arrive(host, datagram)

    def arrive(self, host: Host, datagram: Datagram) -> None:
        """A datagram is at a host: into its buffer, if there is room."""
        if not host.up:
            self._nobody(host, datagram)
            return
        size = datagram[3]
        over = host.buffer_packets_max and len(host.buffer) >= host.buffer_packets_max
        if host.buffer and (over or host.buffer_bytes + size > host.buffer_bytes_max):
            host.drops += 1
            host.plain = False
            self.drops["buffer"] += 1
            host.recorder.event(
                self.time, host.clock.now(self.time), Kind.DROP, reason="buffer", source=datagram[1].id,
                packet=type(datagram[2]).__name__,
            )  # fmt: skip
            return
        host.buffer.append((datagram, host.drops))
        host.plain = False
        host.drops = 0
        host.buffer_bytes += size
        if not host.busy and not host.paused:
            self.work(host)

    def _nobody(self, host: Host, datagram: Datagram) -> None:
        """The host answers that no process is there; a multicast is never answered."""
        net, peer = datagram[0], datagram[1]
        asker = self.host.get(peer.id)
        self.drops["nobody"] += 1
        if self.scenario.hosts.unreachable and not datagram[5] and asker is not None:
            back = self.media[net].reach(self.time, host.id, (peer.id,), 64)
            for _, at in back:
                self.later(at, self._unreachable, asker, (peer.incarnation, net, host.id))

    def _unreachable(self, host: Host, told: tuple[int, int, int]) -> None:
        incarnation, net, member = told
        if host.up and host.incarnation == incarnation:
            self.give(host, ("unreachable", net, member))

    def _read(self, host: Host, net: int) -> None:
        host.read += 1
        if net not in host.read_nets:
            host.read_nets.append(net)

    # -------------------------------------------------------------------------------------------------- the longer way

    def give(self, host: Host, item: Item) -> None:
        """An input that is no datagram: after the datagrams that are there already."""
        host.late.append(item)
        host.plain = False
        if host.up and not host.busy and not host.paused:
            self.work(host)

    def work(self, host: Host) -> None:
        """Serve what waits: datagrams, then drained, then late timers and the rest."""
        while host.up and not host.busy and not host.paused:
            if host.buffer and host.read < DRAIN_DATAGRAMS_MAX:
                datagram, drops = host.buffer.popleft()
                host.buffer_bytes -= datagram[3]
                item: Item = ("receive", datagram, drops)
                self._read(host, datagram[0])
            elif host.read:
                nets, host.read_nets, host.read = host.read_nets, [], 0
                for net in nets:
                    if host.up:
                        self._carry_out(host, ("drained", net))
                continue
            elif host.late:
                item = host.late.popleft()
            else:
                self.refresh(host)
                return
            if host.cost is not None:
                busy, latency = host.cost(*self._input_size(item))
                if busy + latency > 0:
                    host.busy = True
                    self.later(self.time + busy + latency, self._serve, host, (host.incarnation, item))
                    return
            self._carry_out(host, item)

    def _serve(self, host: Host, job: tuple[int, Item]) -> None:
        """A costly input is done with: the core answers now."""
        incarnation, item = job
        if not host.up or host.incarnation != incarnation:
            return
        if host.paused:
            host.late.appendleft(item)
            host.busy = False
            return
        host.busy = False
        self._carry_out(host, item)
        if not host.busy:
            self.work(host)

    def _free(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            host.busy = False
            self.work(host)

    def _input_size(self, item: Item) -> tuple[str, int, int, int]:
        what = item[0]
        if what == "receive":
            return what, item[1][3], 1, 0
        if what == "submit":
            submission = item[1].submission()
            return what, sum(map(len, submission.payloads)), len(submission.payloads), 0
        return what, 0, 0, 0

    def _carry_out(self, host: Host, item: Item) -> None:
        """Tell the core, do what it says."""
        now = host.clock.now(self.time)
        what, application = item[0], None
        if what == "receive":
            told = self._decoded(host, item)
            if told is None:
                return
            self.datagrams += 1
        elif what == "timer":
            due = self._due(host, now, item)
            if due is None:
                return
            told = ("timer", item[1], due)
        elif what == "submit":
            application = item[1]
            told = ("submit", application.submission())
        else:
            told = item
        self.inputs += what not in ("receive", "drained")
        actions = self._ask(host, now, told)
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
            host.recorder.input(as_input(now, item, self.codec), actions)
        return actions

    def _decoded(self, host: Host, item: Item) -> Item | None:
        """A datagram as the core gets it; None for one that is refused."""
        _, datagram, drops = item
        net, peer, packet, _, data, _ = datagram
        if data is not None:
            try:
                peer, packet = self.decode(data)
            except WireError as why:
                self.refused(peer.id, host.id, packet, why.reason)
                return None
        return "receive", net, peer, packet, drops

    def _due(self, host: Host, now: int, item: Item) -> int | None:
        """When a late timer was due; None if it was set again, or cancelled, while it waited."""
        name: str = item[1]
        entry: list[int] = item[2]
        if host.timers.get(name) is not entry:
            return None
        due = entry[0]
        if due > now:
            self._set_timer(host, name, entry)
            return None
        del host.timers[name]
        return due

    def submit(self, host: Host, application: Application) -> None:
        """The application hands in a submission; it hears the answer by its own `accepted` or `refused`."""
        if host.plain:
            self.inputs += 1
            assert host.stack is not None
            self.perform(host, host.stack.submit(self.time + host.offset, application.submission()))
        else:
            self.give(host, ("submit", application))

    # --------------------------------------------------------------------------------------------------------- actions

    def perform(self, host: Host, actions: list[Any]) -> None:
        """Carry out what a core said, in order.  Rows are written before the datagrams leave."""
        if not host.simple:
            self._perform_slowly(host, actions)
            return
        time = self.time
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
                self._transmit(host, action)
            else:
                self._other_action(host, action, kind)
        if pump:
            application = self.applications[host.id]
            if application.answering:
                application.own_delivered()

    def _perform_slowly(self, host: Host, actions: list[Any]) -> None:
        """The same for a host that costs time, is about to crash or pause, or whose application does not read."""
        if host.traps:
            actions = self.trapped(host, actions)
        time = self.time
        host.recorder.actions(time, host.clock.now(time), actions)
        cost = host.cost
        at = time  # a costly host does one thing after the other
        frames = pump = 0
        for action in actions:
            kind = type(action)
            if kind is Transmit:
                if cost is not None:
                    at = self._transmit_later(host, action, at)
                else:
                    self._transmit(host, action)
            elif kind is Up and type(action.event) is Delivered:
                batch = action.event.batch
                frames += 1
                host.delivered += batch.count
                host.last[batch.sender] = batch.counter + batch.count
                if batch.sender == host.id:
                    host.own += batch.count
                    pump += 1
                if cost is not None:
                    at += cost("deliver", len(batch.data), batch.count, 0)[0]
            elif kind is Up:
                self._tell(host, action.event)
            else:
                self._other_action(host, action, kind)
                if cost is not None and kind is Note and action.name == "work":
                    at += cost("work", 0, 0, int(action.fields.get("units", 1)))[0]
        if at > time and host.up:
            host.busy = True
            host.plain = False
            self.later(at, self._free, host, host.incarnation)
        if frames and host.consumer is not None:
            host.consumer[1] += frames
            self.give(host, ("room", max(0, host.consumer[0] - host.consumer[1])))
        application = self.applications[host.id]
        if pump and application.answering:
            application.own_delivered()

    def _tell(self, host: Host, event: Event) -> None:
        """What a core says to its application, deliveries apart."""
        what = type(event)
        application = self.applications[host.id]
        if what is Accepted:
            host.counter = event.counter + event.count - 1  # type: ignore[attr-defined]
            application.submitted += event.count  # type: ignore[attr-defined]
            application.accepted()
        elif what is ViewChange:
            if event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
                if not host.view and application.groups:
                    self.later(self.time, self._join, host, host.incarnation)
                host.view = event.view.members  # type: ignore[attr-defined]
                host.views += 1
        elif what is Room:
            self.later(self.time, self._room, host, host.incarnation)
        elif what is Left:
            self.left(host)

    def _other_action(self, host: Host, action: Any, kind: type) -> None:
        """What is neither said upwards nor transmitted."""
        if kind is SetTimer:
            entry = host.timers.get(action.name)
            if entry is None:
                entry = host.timers[action.name] = [action.at, NEVER]
            else:
                entry[0] = action.at
            self._set_timer(host, action.name, entry)
        elif kind is CancelTimer:
            entry = host.timers.get(action.name)
            if entry is not None:
                entry[0] = NEVER
        elif kind is Note:
            self.notes[action.name] += 1
        elif kind is Refuse:
            self.applications[host.id].refused(action.why)
        elif kind is Store:
            self._store(host, action)

    def _transmit_later(self, host: Host, action: Transmit, at: int) -> int:
        """A costly host: the datagram leaves when its turn has come."""
        assert host.cost is not None
        busy, latency = host.cost("transmit", self.codec.size(action.packet) + wire_header.HEADER_BYTES, 1, 0)
        at += busy
        if at + latency > self.time:
            self.later(at + latency, self._depart, host, (host.incarnation, action))
        else:
            self._transmit(host, action)
        return at

    def _depart(self, host: Host, job: tuple[int, Transmit]) -> None:
        incarnation, action = job
        if host.up and host.incarnation == incarnation:
            self._transmit(host, action)

    def _room(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            self.applications[host.id].room()

    def _join(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            self.applications[host.id].join()

    def _store(self, host: Host, action: Store) -> None:
        ticket, takes = host.disk.begin(action.key, action.number, action.data)
        self.later(self.time + takes, self._stored, host, (host.incarnation, ticket))

    def _stored(self, host: Host, job: tuple[int, int]) -> None:
        incarnation, ticket = job
        done = host.disk.finish(ticket)
        if done is None or not host.up or host.incarnation != incarnation:
            return
        key, number, why = done
        self.give(host, ("store_failed", key, number, why) if why else ("stored", key, number))

    # ---------------------------------------------------------------------------------------------------------- timers

    def _set_timer(self, host: Host, name: str, entry: list[int]) -> None:
        """One event per timer is in the queue; one that comes too early goes back in."""
        due = entry[0]
        if due == NEVER:
            return
        clock = host.clock
        time = due - host.offset if clock.ppm == 0 else clock.time(due)
        if time < self.time:
            time = self.time
        if time < entry[1]:
            entry[1] = time
            heappush(self.queue, (time, self.number(), self._fire, host, name))

    def reset_timer(self, host: Host, name: str, entry: list[int]) -> None:
        """The clock's pace changed: find the timer's event again."""
        entry[1] = NEVER
        self._set_timer(host, name, entry)

    def _fire(self, host: Host, name: str) -> None:
        entry = host.timers.get(name)
        time = self.time
        if entry is None or entry[1] != time:
            return
        due = entry[0]
        if due == NEVER:
            del host.timers[name]
            return
        entry[1] = NEVER
        now = host.clock.now(time)
        if due > now:
            self._set_timer(host, name, entry)
        elif host.plain:
            del host.timers[name]
            self.inputs += 1
            assert host.stack is not None
            actions = host.stack.timer(now, name, due)
            if actions:
                self.perform(host, actions)
        else:
            self.give(host, ("timer", name, entry))
