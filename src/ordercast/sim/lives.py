"""Lives of members: processes start, crash in or between handlers, pause, come back with or without their disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordercast.contract import Action, Layer, Setup
from ordercast.drivers.store import Store
from ordercast.errors import UsageError
from ordercast.registry import ProtocolInfo
from ordercast.sim.application import Turns
from ordercast.sim.driver import Driver
from ordercast.sim.host import CostFunction, Host
from ordercast.sim.injector import Injector
from ordercast.sim.plan import Trap
from ordercast.sim.scenario import MS, Scenario
from ordercast.sim.traffic import GROUP
from ordercast.stack import Stack
from ordercast.trace.record import RecordWriter, recorded, started
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Header, Kind, Level
from ordercast.types import Identity, Peer
from ordercast.workload.payload import matches

Maker = Callable[[Setup], Stack]


class Lives(Driver):
    """Who is up, and in which life."""

    maker: Maker
    options: Any
    frame_bytes: int
    header: Header
    turns: Turns | None
    injector: Injector
    record: Path | None  # where inputs are kept, if anywhere

    def __init__(self, scenario: Scenario, level: Level, info: ProtocolInfo, cost: CostFunction | None) -> None:
        super().__init__(scenario, level, info, cost)
        self.timeout_ns = scenario.timeout_ns

    def start(self, host: Host) -> None:
        """A process starts, with what its disk holds; as live, not at all if its incarnation cannot be stored."""
        scenario = self.scenario
        store = host.disk.open()
        try:
            identity = self._identity(host, store)
        except OSError:
            return
        generator = self.generator(f"core/{host.id}/{host.lives}")
        setup = Setup(
            identity, round(self.timeout_ns * host.timeouts), self.options, self.frame_bytes, generator, host.nets
        )
        if scenario.hosts.outbox_bytes:
            setup.outbox_bytes = scenario.hosts.outbox_bytes
        log = RecordWriter(self.record, recorded(self.header, setup)) if self.record is not None else None
        host.recorder = Recorder(self.sink, host.id, host.incarnation, self.level, matches, log)
        host.stack = stack = self.maker(setup)
        if scenario.groups and type(stack.top.layer).regroup is Layer.regroup:
            raise UsageError(f"groups: {scenario.protocol} has no process groups")
        host.receive, host.drained = stack.receive, stack.drained
        host.peer = Peer(host.id, host.incarnation)
        host.up = True
        self._life(host, Kind.START, ring_seq=identity.ring_seq)
        self.refresh(host)
        now = host.clock.now(self.time)
        for name in store.damaged:
            self.drops["disk"] += 1
            host.recorder.event(self.time, now, Kind.DROP, reason="disk", what=name)
        self.inputs += 1
        actions = stack.start(now, identity, store.stored)
        host.recorder.input(started(now, identity, store.stored), actions)
        self.perform(host, actions)
        if host.consumer is not None:
            host.consumer[1] = 0
        room = host.consumer[0] if host.consumer is not None else scenario.hosts.room_frames
        if host.up and room:
            self.give(host, ("room", room))

    def _identity(self, host: Host, store: Store) -> Identity:
        """Incarnation and ring number (us) from the wall clock; from the disk, or the scenario, where that is later."""
        start = self.scenario.start
        wall = start.wall_s * 1_000 * MS + self.time + host.wall_ns
        ring_seq = -(-(wall // 1_000) // 4) * 4
        least = wall if start.incarnation is None else start.incarnation + host.lives
        if start.ring_seq is not None:  # a later life, which may have lost its disk, goes on by the clock as well
            ring_seq = start.ring_seq + (4 * host.lives - (-(self.time // 1_000) // 4) * 4 if host.lives else 0)
        host.incarnation = store.new_incarnation(least)
        host.lives += 1
        return Identity(host.id, host.incarnation, self.scenario.ids, GROUP, ring_seq)

    def _life(self, host: Host, kind: Kind, **detail: Any) -> None:
        """The simulator's own row about a member."""
        self.log.event(self.time, self.time, kind, sender=host.id, sender_incarnation=host.incarnation, **detail)

    def crash(self, host: Host, why: str = "crash") -> None:
        """The process is gone, with all that it held in memory."""
        if not host.up:
            return
        self._life(host, Kind.CRASH, reason=why)
        host.up = host.paused = False
        host.recorder.close()
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
            self._life(host, Kind.PAUSE)

    def resume(self, host: Host) -> None:
        """Packets that came meanwhile first, then late timers."""
        if not host.up or not host.paused:
            return
        host.paused = False
        self.refresh(host)
        self._life(host, Kind.RESUME)
        if host.suspended:
            rest, host.suspended = host.suspended, []
            self.perform(host, rest)
        self.work(host)

    def left(self, host: Host) -> None:
        """The member left in good order: its process ends after this handler."""
        host.left = True
        self.later(self.time, self._gone, host, host.incarnation)

    def _gone(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            host.up = False
            host.recorder.close()
            host.forget()
            host.left = True
            self.applications[host.id].reset()
            self.refresh(host)

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

    # ----------------------------------------------------------------------------------------------------------- traps

    def trapped(self, host: Host, actions: list[Action]) -> list[Action]:
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
