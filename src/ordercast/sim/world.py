"""One run: a scenario becomes a world of hosts, nets, applications and faults, which goes on until it is over."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ordercast import registry
from ordercast.contract import TAGGER
from ordercast.drivers.sizes import frame_bytes
from ordercast.errors import UsageError
from ordercast.sim.application import Application, Turns, service_of
from ordercast.sim.caller import Caller
from ordercast.sim.carrier import Carrier
from ordercast.sim.disk import Disk
from ordercast.sim.driver import Driver
from ordercast.sim.fault_plan import FaultPlan
from ordercast.sim.host import Clock, CostFunction, Host, Machine
from ordercast.sim.journal import Journal
from ordercast.sim.lives import Lives, Maker
from ordercast.sim.models import costs, machines
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import MS, Hosts, Scenario
from ordercast.sim.schedule import Schedule
from ordercast.sim.sharing import Said, Sharing
from ordercast.sim.watch import Watch
from ordercast.toml_input import struct_of
from ordercast.trace.schema import Header, Kind, Level
from ordercast.trace.trace import Trace
from ordercast.types import Service
from ordercast.version import __version__
from ordercast.wire.codec import Codec
from ordercast.workload.sources import Submissions, portions, shares, source


def run(
    scenario: Scenario,
    *,
    level: str | Level = "deliver",
    maker: Maker | None = None,
    cost: CostFunction | None = None,
    record: str | Path | None = None,
) -> Outcome:
    """Carry out a scenario.

    `maker` makes the stacks instead of the protocol's factory.  `cost` replaces the linear cost of the scenario's hosts
    by any function (input or action, bytes, messages, work) -> (busy ns, latency ns).  At level record every input of
    every core goes into the directory `record`, for `ordercast replay`.
    """
    return World(scenario, level=level, maker=maker, cost=cost, record=record).run()


class World:
    """Everything of one run: its parts, each made from those below it."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        level: str | Level = "deliver",
        maker: Maker | None = None,
        cost: CostFunction | None = None,
        record: str | Path | None = None,
    ) -> None:
        scenario.check()
        self.scenario, self.info = scenario, registry.get(scenario.protocol)
        info, options = self.info, protocol_options(self.info, scenario.options, scenario.ids)
        service = service_of(scenario.service) if scenario.service else info.default_service
        if service not in info.provides:
            known = ", ".join(s.word for s in info.provides)
            raise UsageError(f"service: {scenario.protocol} provides {known}, not {service.word}")
        needs = info.tagger is not None and getattr(options, "channel", "tagger") == "tagger"
        if scenario.tagger is None:
            self.scenario = scenario = msgspec.structs.replace(scenario, tagger=needs)
        if scenario.tagger and not needs:
            raise UsageError(f"tagger: {scenario.protocol} has no use for one here")
        if getattr(options, "channel", "") == "wan" and (scenario.clocks.skew_ms or scenario.clocks.drift_percent):
            raise UsageError("channel: wan needs clocks that run together, [clocks] skew_ms = 0 and drift_percent = 0")
        if needs and not scenario.tagger:
            raise UsageError(f"tagger: {scenario.protocol} needs one, tagger = true, unless its channel is another")
        if wrong := info.without(scenario.partition):
            raise UsageError(f"partition: {wrong}")
        level = level if isinstance(level, Level) else level_of(level)
        if scenario.calls and not info.replicates:
            raise UsageError(f"calls: {scenario.protocol} has no total order with views, which replicas need")
        if scenario.calls and level >= Level.RECORD:
            raise UsageError("calls: what replicas hear is not recorded: expected level off, deliver or full")
        sizes = cost is not None or bool(scenario.faults or scenario.other_hosts) or scenario.hosts != Hosts()
        special = machines(scenario) if cost is None else {}
        each = costs(scenario, special) if cost is None else dict.fromkeys((TAGGER, *scenario.ids), cost)
        self.schedule = Schedule()
        self.header = self._header(service, level)
        self.journal = Journal(self.schedule, self.header, level, Path(record) if record is not None else None)
        self.hosts = hosts_of(scenario, each, special, level)
        self.carrier = Carrier(
            scenario, self.schedule, self.journal, self.hosts, Codec(info.packets),
            hears_self=info.hears_self and getattr(options, "hears_self", True),
            all_lives=info.judges_lives, sizes=sizes,
        )  # fmt: skip
        self.driver = Driver(self.carrier)
        largest = scenario.datagram_bytes if info.one_datagram else scenario.packet_largest
        size = frame_bytes(largest, scenario.members)
        self.lives = Lives(scenario, self.driver, maker or info.factory, options, size, info.tagger)
        self._seat_applications(service)
        if scenario.calls:
            self._seat_callers()
        self.plan = FaultPlan(self.lives, each)
        self.watch = Watch(scenario, self.schedule, self.hosts, self.plan, info)

    def _header(self, service: Service, level: Level) -> Header:
        scenario = self.scenario
        return Header(
            run=f"{scenario.protocol}-{scenario.seed}",
            protocol=scenario.protocol,
            service=service.word,
            members=scenario.ids,
            promises=self.info.promised(service.word, scenario.partition, bool(scenario.calls)),
            partition=scenario.partition,
            level=level.name.lower(),
            seed=scenario.seed,
            timeout_ns=scenario.timeout_ns,
            options=scenario.options,
            workload={"payload": "ordercast.workload.payload", "sizes": list(scenario.sizes)},
            versions={"ordercast": __version__},
            scenario=scenario.to_dict(),
        )

    def _seat_applications(self, service: Service) -> None:
        """One on each host."""
        scenario, load, hosts = self.scenario, self.scenario.load, self.hosts
        start = round(load.start_ms * MS)

        def submissions(id: int, messages: int) -> Submissions:
            return source(
                load.regime, scenario.generator(f"load/{id}"), messages, scenario.sizes,
                rate=load.rate, batch=load.batch, burst=load.burst, start=start,
                steps=load.steps(id) if load.rates else (),
            )  # fmt: skip

        if load.rates:
            share = portions(scenario.messages, {id: submissions(id, scenario.messages) for id in scenario.talkers})
        else:
            share = shares(scenario.messages, scenario.talkers)
        groups = memberships(scenario, scenario.generator("groups"))
        one_by_one = load.regime == "one_by_one"
        turns = Turns(self.schedule, [hosts[id] for id in scenario.talkers]) if one_by_one else None
        said: Said = {}
        for id, host in hosts.items():  # the tagger's has nothing to say
            if load.regime == "sharing":
                host.application = Sharing(scenario, self.driver, host, service, said, groups.get(id, ()))
                host.listens = True
                continue
            line = submissions(id, share.get(id, 0))
            host.application = Application(scenario, self.driver, host, line, service, turns, groups.get(id, ()))

    def _seat_callers(self) -> None:
        """One on each host, where the members replicate a ledger: calls until the heal point, or for a second."""
        scenario = self.scenario
        span = round((scenario.heal_ms or 1_000.0) * MS)
        share = shares(scenario.calls, scenario.talkers)
        for id, host in self.hosts.items():
            if id == TAGGER:
                continue
            draw = scenario.generator(f"calls/{id}")
            times = iter(sorted(draw.randrange(span) for _ in range(share.get(id, 0))))
            host.caller = Caller(self.driver, host, times, draw, scenario.durable, self.info.provides)

    def run(self) -> Outcome:
        for host in self.hosts.values():
            self.lives.start(host)
        self.plan.begin()
        self.watch.begin()
        for host in self.hosts.values():
            host.application.pump()
            if host.caller is not None:
                host.caller.begin()
        try:
            self.schedule.run()
        except Exception as error:
            error.add_note(f"in the run of {self.header.run} at {self.schedule.time} ns of virtual time")
            raise
        return self._outcome()

    def _outcome(self) -> Outcome:
        self.plan.end()
        hosts = [host for host in self.hosts.values() if host.id != TAGGER]
        driver, journal = self.driver, self.journal
        steady = [host for host in hosts if host.up and host.lives == 1] or hosts
        return Outcome(
            status={host.id: self._last_words(host) for host in hosts if host.up},
            trace=Trace(self.header, journal.sink.rows),
            events=driver.datagrams + driver.inputs,
            datagrams=driver.datagrams,
            transmitted=self.carrier.transmitted,
            messages=sum(host.application.submitted for host in hosts),
            delivered=min(host.delivered_all for host in steady),
            deliveries=sum(host.delivered_all for host in hosts),
            sim_ns=self.schedule.time,
            ended=self.watch.why,
            notes=driver.notes,
            drops=journal.drops,
            trains_lost=sum(host.incoming.station.lost for host in hosts if host.incoming is not None),
            faults=self.plan.counts,
            effects=journal.effects,
        )

    def _last_words(self, host: Host) -> dict[str, Any]:
        """The last row of a member that is up at the end; its status."""
        assert host.stack is not None
        status = host.stack.status()
        waits = {layer: said["waits"] for layer, said in status.items() if said.get("waits")}
        traffic = {"transmitted": host.transmitted}
        if host.transmitted_bytes:
            traffic["transmitted_bytes"] = host.transmitted_bytes
        queues = host.stack.queues() | host.application.queues()
        time = self.schedule.time
        host.recorder.event(time, host.clock.now(time), Kind.END, queues=queues, waits=waits, traffic=traffic)
        host.recorder.close()
        agreement = host.incoming.agreement if host.incoming is not None else None
        if agreement is not None and agreement.others:  # the driver's, no wait of the core: not in the row
            status["terms"] = {"waits": "; ".join(agreement.words())}
        if host.caller is not None:
            status["state"]["ledger"] = host.caller.ledger.fingerprint()
        return status


def hosts_of(
    scenario: Scenario, cost: Mapping[int, CostFunction | None], special: Mapping[int, Machine], level: Level
) -> dict[int, Host]:
    """A host for each member, on its nets, with its own clock and disk."""
    draw = scenario.generator("clocks")
    hosts = {}
    for id in (TAGGER, *scenario.ids) if scenario.tagger else scenario.ids:
        skew = draw.uniform(0, scenario.clocks.skew_ms) * MS
        drift = draw.uniform(-1, 1) * scenario.clocks.drift_percent * 10_000
        clock = Clock(1_000 * MS + int(skew), int(drift))
        disk = Disk(round(scenario.hosts.disk_us * 1000), scenario.generator(f"disk/{id}"))
        recorded = level >= Level.RECORD
        host = hosts[id] = Host(id, scenario.nets_of(id), clock, disk, cost[id], recorded, special.get(id))
        nets = max(1, len(host.nets))  # each has a socket, with a buffer of its own
        host.buffer_packets_max = scenario.hosts.buffer_packets * nets
        host.buffer_bytes_max = scenario.hosts.buffer_bytes * nets
    return hosts


def memberships(scenario: Scenario, draw: random.Random) -> dict[int, tuple[str, ...]]:
    """Which of the scenario's process groups each member is in: each of them with even chance, and at least one."""
    names = [f"g{k}" for k in range(1, scenario.groups + 1)]
    out = {}
    for member in scenario.ids if scenario.named_groups else ():
        out[member] = tuple(group.name for group in scenario.named_groups if member in group.members)
    for member in scenario.ids if names else ():
        out[member] = tuple(name for name in names if draw.random() < 0.5) or (draw.choice(names),)
    return {member: groups for member, groups in out.items() if member not in scenario.pure}


def level_of(word: str) -> Level:
    try:
        return Level[word.upper()]
    except KeyError:
        raise UsageError(f"level: expected one of {', '.join(v.name.lower() for v in Level)}, got {word!r}") from None


def protocol_options(info: registry.ProtocolInfo, options: dict[str, Any], members: Sequence[int]) -> Any:
    made = struct_of(options, info.options, f"options of {info.name}")
    if wrong := info.misfit(made, members):
        raise UsageError(f"options of {info.name}: {wrong}")
    return made
