"""The world of one run: virtual time, one queue of events, the members' stacks driven by the contract.

An event is the tuple (time, number, what to call, two arguments).  Hosts whose steps cost nothing are called straight
from the queue, all receivers of a multicast in one event where they hear it at the same time; a host that is busy,
paused, costly or recorded takes the longer way through its input buffer.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import msgspec

from ordercast import registry
from ordercast.contract import (
    ALL,
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    Event,
    Left,
    Note,
    Originate,
    Packet,
    Receive,
    Refuse,
    Room,
    SetTimer,
    Setup,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.errors import UsageError, WireError
from ordercast.limits import DRAIN_DATAGRAMS_MAX
from ordercast.sim.application import Application, Turns, service_of
from ordercast.sim.host import Clock, CostFunction, Disk, Host, linear_cost
from ordercast.sim.injector import Injector, Trap
from ordercast.sim.links import Datagram, Filter, Remembering, wire_reason
from ordercast.sim.network import media
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import MS, Hosts, Scenario
from ordercast.sim.watch import Ended, Watch
from ordercast.stack import Stack
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Header, Kind, Level
from ordercast.trace.trace import MemorySink, Trace
from ordercast.types import Identity, Peer, ViewKind
from ordercast.version import __version__
from ordercast.wire import header as wire_header
from ordercast.wire.codec import Codec
from ordercast.workload.payload import matches
from ordercast.workload.sources import shares, source

Maker = Callable[[Setup], Stack]
NEVER = 2**63  # a cancelled timer whose event is still in the queue
GROUP = "simulated"
PACKET_BYTES = 128  # what a packet holds beside its frame and one number per member
NUMBER_BYTES = 9


def run(
    scenario: Scenario, *, level: str | Level = "deliver", maker: Maker | None = None, cost: CostFunction | None = None
) -> Outcome:
    """Carry out a scenario.  `maker` makes the stacks instead of the protocol's factory; `cost` replaces the linear
    cost of the scenario's hosts by any function (input or action, bytes, messages, work) -> (busy ns, latency ns)."""
    return World(scenario, level=level, maker=maker, cost=cost).run()


class World:
    """Everything of one run."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        level: str | Level = "deliver",
        maker: Maker | None = None,
        cost: CostFunction | None = None,
    ) -> None:
        scenario.check()
        self.scenario = scenario
        self.level = level if isinstance(level, Level) else level_of(level)
        self.info = registry.get(scenario.protocol)
        self.maker = maker or self.info.factory
        self.options = protocol_options(self.info, scenario.options)
        self.service = service_of(scenario.service) if scenario.service else self.info.default_service
        if self.service not in self.info.provides:
            known = ", ".join(s.word for s in self.info.provides)
            raise UsageError(f"service: {scenario.protocol} provides {known}, not {self.service.word}")
        self.codec = Codec(self.info.packets)
        self.group = wire_header.group_id(GROUP)
        self.timeout_ns = scenario.timeout_ns
        self.time = 0
        self.queue: list[tuple[int, int, Callable[[Any, Any], None], Any, Any]] = []
        self.number = count().__next__
        self.datagrams = 0  # received
        self.transmitted = 0
        self.inputs = 0  # other than datagrams
        self.notes: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()  # datagrams that a fault of this class touched
        self.media = media(scenario, self.generator("network"), self.info.hears_self)
        plain = not scenario.faults and cost is None and scenario.hosts == Hosts()
        self.sizes = not plain or any(medium.needs_size for medium in self.media)
        self.filters: list[Filter] = []
        self.memories: list[Remembering] = []
        self.slow = scenario.wire  # datagrams take the longer way
        self.sink = MemorySink()
        self.log = Recorder(self.sink, 0, 1, self.level)
        self.cost = cost or linear_cost(scenario.hosts)
        self.hosts = self._hosts()
        self.host = {host.id: host for host in self.hosts}
        self.receivers = [
            {m: tuple(self.host[x] for x in medium.others[m]) for m in medium.members} for medium in self.media
        ]
        self.turns = Turns(scenario.talkers) if scenario.load.regime == "one_by_one" else None
        self.applications = self._applications()
        self.frame_bytes = frame_bytes(scenario.datagram_bytes, scenario.members)
        self.injector = Injector(self)
        self.watch = Watch(self)

    def generator(self, name: str) -> random.Random:
        """A stream of its own for each use, so that a smaller scenario keeps the draws of the rest."""
        return random.Random(f"{self.scenario.seed}/{name}")

    def _hosts(self) -> list[Host]:
        scenario, draw = self.scenario, self.generator("clocks")
        hosts = []
        for id in scenario.ids:
            nets = tuple(k for k, medium in enumerate(self.media) if id in medium.members)
            skew = draw.uniform(0, scenario.clocks.skew_ms) * MS
            drift = draw.uniform(-1, 1) * scenario.clocks.drift_percent * 10_000
            clock = Clock(1_000 * MS + int(skew), int(drift))
            host = Host(id, nets, clock, Disk(round(scenario.hosts.disk_us * 1000)), self.cost)
            host.buffer_packets_max = scenario.hosts.buffer_packets
            host.buffer_bytes_max = scenario.hosts.buffer_bytes
            hosts.append(host)
        return hosts

    def _applications(self) -> dict[int, Application]:
        scenario, load = self.scenario, self.scenario.load
        out = {}
        share = shares(scenario.messages, scenario.talkers)
        for host in self.hosts:
            submissions = source(
                load.regime, self.generator(f"load/{host.id}"), share.get(host.id, 0), scenario.sizes,
                rate=load.rate, batch=load.batch, burst=load.burst, start=round(load.start_ms * MS),
            )  # fmt: skip
            out[host.id] = Application(self, host, submissions, load.regime, load.window, self.turns)
        return out

    # ------------------------------------------------------------------------------------------------------- the run

    def run(self) -> Outcome:
        for host in self.hosts:
            self.start(host)
        self.injector.begin()
        self.watch.begin()
        for application in self.applications.values():
            application.pump()
        queue, pop = self.queue, heappop
        try:
            while True:
                self.time, _, call, a, b = pop(queue)
                call(a, b)
        except Ended:
            pass
        return self._outcome()

    def later(self, time: int, call: Callable[[Any, Any], None], a: Any, b: Any) -> None:
        """Call it at this time, after what is in the queue for the same time already."""
        heappush(self.queue, (time, self.number(), call, a, b))

    def _outcome(self) -> Outcome:
        self.injector.end()
        status: dict[int, dict[str, Any]] = {}
        for host in self.hosts:
            if host.up and host.stack is not None:
                status[host.id] = host.stack.status()
                queues = host.stack.queues()
                waits = {k: v["waits"] for k, v in status[host.id].items() if v.get("waits")}
                host.recorder.event(self.time, host.clock.now(self.time), Kind.END, queues=queues, waits=waits)
        scenario = self.scenario
        header = Header(
            run=f"{scenario.protocol}-{scenario.seed}",
            protocol=scenario.protocol,
            service=self.service.word,
            members=scenario.ids,
            promises=tuple(self.info.promises.get(self.service.word, ())),
            level=self.level.name.lower(),
            seed=scenario.seed,
            timeout_ns=self.timeout_ns,
            options=scenario.options,
            workload={"payload": "ordercast.workload.payload", "sizes": list(scenario.sizes)},
            versions={"ordercast": __version__},
            scenario=scenario.to_dict(),
        )
        trace = Trace(header, self.sink.rows)
        submitted = sum(a.submitted for a in self.applications.values())
        steady = [h.delivered_all for h in self.hosts if h.up and h.lives == 1] or [h.delivered_all for h in self.hosts]
        return Outcome(
            trace=trace,
            events=self.datagrams + self.inputs,
            datagrams=self.datagrams,
            transmitted=self.transmitted,
            messages=submitted,
            delivered=min(steady),
            deliveries=sum(h.delivered_all for h in self.hosts),
            sim_ns=self.time,
            ended=self.watch.why,
            notes=self.notes,
            drops=self.drops,
            faults=self.injector.counts,
            effects=self.effects,
            status=status,
        )

    # ------------------------------------------------------------------------------------------------- lives of members

    def start(self, host: Host) -> None:
        """A process starts: incarnation and ring number from the wall clock, or from the disk when that is later."""
        scenario, first = self.scenario, host.lives == 0
        wall = scenario.start.wall_s * 1_000 * MS + self.time + host.wall_ns
        incarnation = max(host.disk.incarnation + 1, wall)
        ring_seq = -(-(wall // MS) // 4) * 4
        if first and scenario.start.incarnation is not None:
            incarnation = scenario.start.incarnation
        if scenario.start.ring_seq is not None:
            ring_seq = scenario.start.ring_seq + 4 * host.lives
        host.disk.incarnation = host.incarnation = incarnation
        host.lives += 1
        identity = Identity(host.id, incarnation, scenario.ids, GROUP, ring_seq)
        core_random = self.generator(f"core/{host.id}/{host.lives}")
        setup = Setup(identity, self.timeout_ns, self.options, self.frame_bytes, core_random, host.nets)
        if scenario.hosts.outbox_bytes:
            setup.outbox_bytes = scenario.hosts.outbox_bytes
        host.stack = stack = self.maker(setup)
        host.receive, host.drained = stack.receive, stack.drained
        host.peer = Peer(host.id, incarnation)
        host.recorder = Recorder(self.sink, host.id, incarnation, self.level, matches)
        host.up = True
        self.log.event(
            self.time, self.time, Kind.START, sender=host.id, sender_incarnation=incarnation, ring_seq=ring_seq
        )
        self.refresh(host)
        stored, damaged = host.disk.load()
        for _ in range(damaged):
            self.drops["disk"] += 1
            host.recorder.event(self.time, host.clock.now(self.time), Kind.DROP, reason="disk")
        self.inputs += 1
        now = host.clock.now(self.time)
        self.perform(host, stack.start(now, identity, stored))
        if host.up and scenario.hosts.room_frames:
            self.give(host, ("room", scenario.hosts.room_frames))

    def crash(self, host: Host, why: str = "crash") -> None:
        """The process is gone, with all that it held in memory."""
        if not host.up:
            return
        self.log.event(
            self.time, self.time, Kind.CRASH, sender=host.id, sender_incarnation=host.incarnation, reason=why
        )
        host.up = host.paused = False
        host.disk.crash()
        host.forget()
        self.applications[host.id].reset()
        self.refresh(host)
        if self.turns is not None and self.turns.current == host.id:
            self.next_turn()

    def restart(self, host: Host, disk: bool = True) -> None:
        if host.up:
            return
        if not disk:
            host.disk.wipe()
        self.start(host)
        self.applications[host.id].pump()

    def pause(self, host: Host) -> None:
        if host.up and not host.paused:
            host.paused = True
            self.refresh(host)
            self.log.event(self.time, self.time, Kind.PAUSE, sender=host.id, sender_incarnation=host.incarnation)

    def resume(self, host: Host) -> None:
        """Packets that came meanwhile first, then late timers."""
        if not host.up or not host.paused:
            return
        host.paused = False
        self.refresh(host)
        self.log.event(self.time, self.time, Kind.RESUME, sender=host.id, sender_incarnation=host.incarnation)
        if host.suspended:
            rest, host.suspended = host.suspended, []
            self.perform(host, rest)
        self.work(host)

    def refresh(self, host: Host) -> None:
        """Whether the host may be called straight from the queue; and the constant part of its clock."""
        clock = host.clock
        host.simple = host.cost is None and clock.ppm == 0 and not host.traps and host.consumer is None
        host.plain = (
            host.simple
            and host.up
            and not host.paused
            and not host.busy
            and not host.buffer
            and not host.late
            and not host.drops
            and self.level < Level.RECORD
        )
        host.offset = clock.base - clock.anchor

    def next_turn(self) -> None:
        assert self.turns is not None
        for _ in self.turns.talkers:
            application = self.applications[self.turns.advance()]
            if not application.idle:
                self.later(self.time, lambda a, b: a.pump(), application, None)
                return

    # ------------------------------------------------------------------------------------------------------ receiving

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

    # ------------------------------------------------------------------------------------------------- the longer way

    def give(self, host: Host, item: tuple[Any, ...]) -> None:
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
                item: tuple[Any, ...] = ("receive", datagram, drops)
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

    def _serve(self, host: Host, job: tuple[int, tuple[Any, ...]]) -> None:
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

    def _input_size(self, item: tuple[Any, ...]) -> tuple[str, int, int, int]:
        what = item[0]
        if what == "receive":
            return what, item[1][3], 1, 0
        if what == "submit":
            submission = item[1].submission()
            return what, sum(map(len, submission.payloads)), len(submission.payloads), 0
        return what, 0, 0, 0

    def _carry_out(self, host: Host, item: tuple[Any, ...]) -> None:
        """Tell the core, do what it says."""
        stack = host.stack
        assert stack is not None
        now = host.clock.now(self.time)
        what = item[0]
        if what == "receive":
            datagram = item[1]
            net, peer, packet, _, data, _ = datagram
            if data is not None:
                try:
                    peer, packet = self.decode(data)
                except WireError as why:
                    self.refused(peer.id, host.id, packet, why.reason)
                    return
            self.datagrams += 1
            actions = stack.receive(now, net, peer, packet, item[2])
        elif what == "drained":
            actions = stack.drained(now, item[1])
        elif what == "timer":
            entry = host.timers.get(item[1])
            if entry is None or entry is not item[2]:
                return
            if entry[0] > now:  # set again, or cancelled, while it waited
                self._set_timer(host, item[1], entry)
                return
            del host.timers[item[1]]
            self.inputs += 1
            actions = stack.timer(now, item[1], entry[0])
        else:
            self.inputs += 1
            actions = self._other(stack, now, item)
            if what == "submit":
                self.perform(host, actions)
                if host.up:
                    item[1].pump()
                return
        if actions:
            self.perform(host, actions)

    @staticmethod
    def _other(stack: Stack, now: int, item: tuple[Any, ...]) -> list[Action]:
        what = item[0]
        if what == "submit":
            return stack.submit(now, item[1].submission())
        if what == "stored":
            return stack.stored(now, item[1], item[2])
        if what == "store_failed":
            return stack.store_failed(now, item[1], item[2], item[3])
        if what == "unreachable":
            return stack.unreachable(now, item[1], item[2])
        if what == "room":
            return stack.room(now, item[1])
        assert what == "leave"
        return stack.leave(now)

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
            actions = self._trapped(host, actions)
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
                host.view = event.view.members  # type: ignore[attr-defined]
                host.views += 1
        elif what is Room:
            self.later(self.time, self._room, host, host.incarnation)
        elif what is Left:
            self._left(host)

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

    def _trapped(self, host: Host, actions: list[Action]) -> list[Action]:
        """A crash or a pause that waited for such a list: only the part before it is carried out now."""
        for trap in list(host.traps):
            cut = trap.springs(actions)
            if cut is None:
                continue
            host.traps.remove(trap)
            self.refresh(host)
            before, rest = actions[:cut], actions[cut:]
            if trap.pauses:
                self.pause(host)
                host.suspended = rest + host.suspended
                self.injector.after(trap.for_ns, trap.then)
                return before
            self.later(self.time, self._sprung, host, (host.incarnation, trap))
            host.paused = True  # nothing more is done by this process
            self.refresh(host)
            return before
        return actions

    def _sprung(self, host: Host, job: tuple[int, Trap]) -> None:
        incarnation, trap = job
        if host.up and host.incarnation == incarnation:
            self.crash(host, "mid-handler")
            trap.then()

    def _room(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            self.applications[host.id].room()

    def _left(self, host: Host) -> None:
        """The member left in good order: its process ends after this handler."""
        host.left = True
        self.later(self.time, self._gone, host, host.incarnation)

    def _gone(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            host.up = False
            host.forget()
            host.left = True
            self.applications[host.id].reset()
            self.refresh(host)

    def _store(self, host: Host, action: Store) -> None:
        ticket, takes = host.disk.begin(action.key, action.number, action.data)
        self.later(self.time + takes, self._stored, host, (host.incarnation, ticket))

    def _stored(self, host: Host, job: tuple[int, int]) -> None:
        incarnation, ticket = job
        done = host.disk.finish(self.time, ticket)
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

    # ---------------------------------------------------------------------------------------------------- transmitting

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

    def _transmit(self, host: Host, action: Transmit) -> None:
        net, to, packet = action.net, action.to, action.packet
        medium = self.media[net]
        size = self.codec.size(packet) + wire_header.HEADER_BYTES if self.sizes else 0
        self.transmitted += 1
        if self.slow:
            self._transmit_slowly(host, action, size)
            return
        if to == ALL:
            datagram = (net, host.peer, packet, size, None, True)
            if medium.together:
                at = medium.at(self.time, host.id, size)
                heappush(self.queue, (at, self.number(), self.arrive_all, self.receivers[net][host.id], datagram))
                return
            receivers = medium.others[host.id]
        else:
            datagram = (net, host.peer, packet, size, None, False)
            receivers = (to,) if to in medium.others[host.id] else ()
        for member, at in medium.reach(self.time, host.id, receivers, size):
            heappush(self.queue, (at, self.number(), self.arrive_all, (self.host[member],), datagram))

    def _transmit_slowly(self, host: Host, action: Transmit, size: int) -> None:
        """Through the faults on links, and through encode and decode where the scenario asks for it."""
        net, to, packet = action.net, action.to, action.packet
        multicast = to == ALL
        medium = self.media[net]
        size = size or self.codec.size(packet) + wire_header.HEADER_BYTES
        data = self.encode(host.peer, packet) if self.scenario.wire else None
        datagram = (net, host.peer, packet, size, data, multicast)
        receivers = medium.others[host.id] if multicast else ((to,) if to in medium.others[host.id] else ())
        if multicast:
            for fault in self.filters:
                fault.multicast([m for m in receivers if m != host.id])
        for member, at in medium.reach(self.time, host.id, receivers, size):
            self._fly(host.id, member, at, datagram, multicast)

    def _fly(self, source: int, to: int, at: int, datagram: Datagram, multicast: bool) -> None:
        copies = [(at, datagram)]
        net, packet = datagram[0], datagram[2]
        for fault in (*self.memories, *self.filters):
            if not fault.wants(net, source, to, multicast, packet):
                continue
            out: list[tuple[int, Datagram]] = []
            for when, copy in copies:
                fault.act(source, to, when, copy, out)
            copies = out
        for when, copy in copies:
            self.arrive_at(when, to, copy)

    def arrive_at(self, time: int, to: int, datagram: Datagram) -> None:
        host = self.host[to]
        if datagram[4] is not None:
            self.later(time, self.arrive, host, datagram)
        else:
            self.later(time, self.arrive_all, (host,), datagram)

    @property
    def delay_ns(self) -> int:
        """The longest usual delay of one hop: the d of the promises."""
        return max(medium.bound for medium in self.media)

    def lose_stragglers(self) -> None:
        """What faults have put off beyond the usual delay is lost: from now on every datagram comes in time."""
        limit, arrivals = self.time + self.delay_ns, (self.arrive_all, self.arrive)
        kept = [event for event in self.queue if event[0] <= limit or event[2] not in arrivals]
        self.drops["straggler"] += len(self.queue) - len(kept)
        self.queue[:] = kept
        heapify(self.queue)

    # ------------------------------------------------------------------------------------------------------------ wire

    def encode(self, peer: Peer, packet: Packet) -> bytes:
        head = wire_header.pack(self.group, peer.id, peer.incarnation, self.transmitted)
        return head + self.codec.encode(packet)

    def decode(self, data: bytes) -> tuple[Peer, Packet]:
        head = wire_header.unpack(data, self.group)
        return Peer(head.sender, head.incarnation), self.codec.decode(memoryview(data)[wire_header.HEADER_BYTES :])

    def judge_bytes(self, data: bytes) -> str:
        return wire_reason(data, self.group, self.codec.decode)

    # -------------------------------------------------------------------------------------------------- what was lost

    def lost(self, source: int, to: int, packet: Packet, reason: str) -> None:
        """Lost on its way: the simulator's own row."""
        self.drops[reason] += 1
        if self.level >= Level.FULL:
            kind = type(packet).__name__
            self.log.event(self.time, self.time, Kind.DROP, sender=source, reason=reason, to=to, packet=kind)

    def refused(self, source: int, to: int, packet: Packet, reason: str) -> None:
        """Refused by its receiver: that member's row."""
        self.drops[reason] += 1
        host = self.host[to]
        if host.up:
            host.recorder.event(
                self.time, host.clock.now(self.time), Kind.DROP, reason=reason, source=source,
                packet=type(packet).__name__,
            )  # fmt: skip


def level_of(word: str) -> Level:
    try:
        return Level[word.upper()]
    except KeyError:
        raise UsageError(f"level: expected one of {', '.join(v.name.lower() for v in Level)}, got {word!r}") from None


def protocol_options(info: registry.ProtocolInfo, options: dict[str, Any]) -> Any:
    try:
        return msgspec.convert(options, info.options)
    except msgspec.ValidationError as why:
        text = str(why).replace("`", "").replace(" - at $.", ", at ")
        raise UsageError(f"options of {info.name}: {text[:1].lower()}{text[1:]}") from None


def frame_bytes(datagram_bytes: int, members: int) -> int:
    """The largest frame whose packet fits a datagram."""
    return datagram_bytes - wire_header.HEADER_BYTES - PACKET_BYTES - NUMBER_BYTES * members
