"""Lives of members: processes start, crash, pause, come back with or without their disk, leave."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ordercast.contract import ALL, TAGGER, Action, Layer, Setup, Transmit
from ordercast.drivers.admission import Admission
from ordercast.drivers.incoming import Incoming
from ordercast.drivers.store import Store
from ordercast.drivers.terms import Agreement, Terms, terms_of
from ordercast.errors import UsageError
from ordercast.sim.application import Application
from ordercast.sim.disk import Disk
from ordercast.sim.driver import Driver
from ordercast.sim.faults import OtherTimeout
from ordercast.sim.host import Host
from ordercast.sim.scenario import GROUP, MS, Scenario
from ordercast.stack import Stack
from ordercast.trace.record import started
from ordercast.trace.schema import Kind
from ordercast.types import Identity, Nanoseconds

Maker = Callable[[Setup], Stack]


class Lives:
    """Who is up, and in which life."""

    def __init__(
        self, scenario: Scenario, driver: Driver, maker: Maker, options: Any, frame_bytes: int, tagger: Maker | None
    ) -> None:
        self.scenario, self.driver, self.maker, self.tagger = scenario, driver, maker, tagger
        self.options, self.frame_bytes = options, frame_bytes
        self.schedule, self.journal = driver.schedule, driver.journal
        driver.left, driver.ended = self.left, self._outdone
        self.outdone: set[int] = set()  # members whose first process gave way to a second one

    def start(self, host: Host) -> None:
        """A process starts, with what its disk holds; as live, not at all if its incarnation cannot be stored."""
        store = host.disk.open()
        try:
            setup = self._setup(host, store)
        except OSError:
            return
        identity, scenario = setup.identity, self.scenario
        host.recorder = self.journal.recorder(host, setup)
        maker = self.tagger if host.id == TAGGER else self.maker
        assert maker is not None
        host.stack = stack = self._stack(host, maker(setup), setup)
        if scenario.groups and host.id != TAGGER and type(stack.edge.layer).regroup is Layer.regroup:
            raise UsageError(f"groups: {scenario.protocol} has no process groups")
        host.receive, host.drained = stack.receive, stack.drained
        host.up = True
        self._admit(host, setup)
        self.journal.life(host, Kind.START, ring_seq=identity.ring_seq, wall_ns=self._wall(host))
        host.refresh()
        for name in store.damaged:
            self.journal.refused(host, "disk", what=name)
        now = host.clock.now(self.schedule.time)
        self._say_first(host)
        self.driver.inputs += 1
        actions = stack.start(now, identity, store.stored)
        host.recorder.input(started(now, identity, store.stored), actions)
        self.driver.perform(host, actions)
        if host.consumer is not None:
            host.consumer[1] = 0
        room = host.consumer[0] if host.consumer is not None else scenario.hosts.room_frames
        if host.up and room:
            self.driver.give(host, ("room", room))

    def _stack(self, host: Host, stack: Stack, setup: Setup) -> Stack:
        """With a replica of the ledger on top, where there is one."""
        return host.caller.above(stack, setup) if host.caller is not None else stack

    def _admit(self, host: Host, setup: Setup) -> None:
        """A new life knows nobody."""
        driver, identity = self.driver, setup.identity
        admission = Admission(
            identity, driver.carrier.hears_self, driver.carrier.all_lives, tagger=bool(self.scenario.tagger)
        )
        host.incoming = Incoming(
            driver.carrier.codec, admission, 2 * len(identity.members), lambda: host.clock.now(self.schedule.time),
            partial(driver.received, host), partial(driver.refused, host),
            self._agreement(admission, setup), partial(self._say_terms, host),
        )  # fmt: skip
        host.peer, host.known, host.untold = admission.me, admission.last, host.incoming.untold

    def _agreement(self, admission: Admission, setup: Setup) -> Agreement | None:
        """Where some member is to have other terms; else all would say the same, and nothing would follow from it."""
        scenario, ids, timeout_ns = self.scenario, setup.identity.members, setup.timeout_ns
        if not any(isinstance(fault, OtherTimeout) for fault in scenario.faults):
            return None
        values = terms_of(scenario.protocol, setup.options, timeout_ns, ids, partition="")
        return Agreement(admission.me, ids, values, timeout_ns)

    def _say_first(self, host: Host) -> None:
        assert host.incoming is not None
        agreement = host.incoming.agreement
        if agreement is not None:
            for net in host.nets:
                self._say_terms(host, net, ALL, agreement.first())

    def _say_terms(self, host: Host, net: int, to: int, terms: Terms) -> None:
        self.driver.carrier.transmit_bytes(host, Transmit(net, to, terms))

    def _setup(self, host: Host, store: Store) -> Setup:
        scenario, identity = self.scenario, self._identity(host, store)
        timeout_ns = round(scenario.timeout_ns * host.timeouts)
        generator = scenario.generator(f"core/{host.id}/{host.lives}")
        setup = Setup(identity, timeout_ns, self.options, self.frame_bytes, generator, host.nets)
        setup.on_nets = {k: scenario.on_net(scenario.nets[k]) for k in host.nets if scenario.nets[k].members}
        setup.partition, setup.pack = scenario.partition, scenario.pack
        setup.pure = host.id in scenario.pure
        if scenario.hosts.outbox_bytes:
            setup.outbox_bytes = scenario.hosts.outbox_bytes
        return setup

    def _wall(self, host: Host) -> Nanoseconds:
        """The host's wall clock now."""
        return self.scenario.start.wall_s * 1_000 * MS + self.schedule.time + host.wall_ns

    def _identity(self, host: Host, store: Store) -> Identity:
        """Incarnation and ring number (us) from the wall clock; from the disk, or the scenario, where that is later."""
        start, time, wall = self.scenario.start, self.schedule.time, self._wall(host)
        ring_seq = -(-(wall // 1_000) // 4) * 4
        least = wall if start.incarnation is None else start.incarnation + host.lives
        if start.ring_seq is not None:  # a later life, which may have lost its disk, goes on by the clock as well
            ring_seq = start.ring_seq + (4 * host.lives - (-(time // 1_000) // 4) * 4 if host.lives else 0)
        host.incarnation = store.new_incarnation(least)
        host.lives += 1
        return Identity(host.id, host.incarnation, self.scenario.ids, GROUP, ring_seq)

    def crash(self, host: Host, why: str = "crash") -> None:
        """The process is gone, with all that it held in memory."""
        if not host.up:
            return
        self.journal.life(host, Kind.CRASH, reason=why)
        host.disk.crash()
        self._end(host)
        host.application.absent()

    def _end(self, host: Host) -> None:
        host.up = host.paused = False
        host.recorder.close()
        host.forget()
        host.application.reset()
        if host.caller is not None:
            host.caller.reset()
        host.refresh()

    def restart(self, host: Host, disk: bool = True) -> None:
        if host.up:
            return
        if not disk:
            host.disk.wipe()
        self.start(host)
        host.application.pump()

    def pause(self, host: Host) -> None:
        if host.up and not host.paused:
            host.paused = True
            host.refresh()
            self.journal.life(host, Kind.PAUSE)

    def resume(self, host: Host) -> None:
        """What it was about to do first, then packets that came meanwhile, then late timers."""
        if not host.up or not host.paused or host.doomed:
            return
        host.paused = False
        host.refresh()
        self.journal.life(host, Kind.RESUME)
        if host.suspended:
            rest, host.suspended = host.suspended, []
            self.driver.perform(host, rest)
        self.driver.intake.work(host)

    def left(self, host: Host) -> None:
        """The member left in good order: its process ends after this handler."""
        host.left = True
        self.schedule.later(self.schedule.time, self._gone, host, host.incarnation)

    def _gone(self, host: Host, incarnation: int) -> None:
        if host.up and host.incarnation == incarnation:
            self._end(host)
            host.left = True

    def _outdone(self, host: Host, incarnation: int) -> None:
        """Another process has its place."""
        if host.up and host.incarnation == incarnation:
            self.crash(host, "outdone")
            if self.driver.carrier.hosts[host.id] is host:
                self.outdone.add(host.id)

    def second(self, first: Host) -> Host:
        """Another process that says it is this member starts; its application only reads."""
        disk = Disk(first.disk.write_ns, self.scenario.generator(f"disk/second/{first.id}"))
        host = Host(first.id, first.nets, first.clock.copy(), disk, first.cost, first.recorded, first.machine)
        host.wall_ns, host.lives = first.wall_ns, first.lives
        host.buffer_packets_max, host.buffer_bytes_max = first.buffer_packets_max, first.buffer_bytes_max
        host.application = Application(self.scenario, self.driver, host, iter(()), first.application.service, None, ())
        host.caller = first.caller.silent(host) if first.caller is not None else None
        self.driver.carrier.seat(host)
        self.start(host)
        first.lives = host.lives  # no two lives have one number
        return host

    # ------------------------------------------------------------------------------------------------ in mid-handler

    def pause_inside(self, host: Host, rest: list[Action]) -> None:
        """The process stands still while it holds what it was about to do."""
        self.pause(host)
        host.suspended = rest + host.suspended

    def crash_inside(self, host: Host, then: Callable[[], None]) -> None:
        """Nothing more is done by this process; it is gone after this handler."""
        host.paused = host.doomed = True
        host.refresh()
        self.schedule.later(self.schedule.time, self._sprung, host, (host.incarnation, then))

    def _sprung(self, host: Host, job: tuple[int, Callable[[], None]]) -> None:
        incarnation, then = job
        if host.up and host.incarnation == incarnation:
            self.crash(host, "mid-handler")
            then()
