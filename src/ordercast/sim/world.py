"""One run: a scenario becomes a world of hosts, nets, applications and faults, which goes on until it is over."""

from __future__ import annotations

import random
from heapq import heappop
from pathlib import Path
from typing import Any

import msgspec

from ordercast import registry
from ordercast.errors import UsageError
from ordercast.sim.application import Application, Turns, service_of
from ordercast.sim.disk import Disk
from ordercast.sim.host import Clock, CostFunction, Host, linear_cost
from ordercast.sim.injector import Injector
from ordercast.sim.lives import Lives, Maker
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import MS, Scenario
from ordercast.sim.watch import Ended, Watch
from ordercast.trace.schema import Header, Kind, Level
from ordercast.trace.trace import Trace
from ordercast.version import __version__
from ordercast.wire.header import HEADER_BYTES
from ordercast.workload.sources import shares, source

PACKET_BYTES = 128  # what a packet holds beside its frame and one number per member
NUMBER_BYTES = 9


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


class World(Lives):
    """Everything of one run."""

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
        info = registry.get(scenario.protocol)
        super().__init__(scenario, level if isinstance(level, Level) else level_of(level), info, cost)
        self.maker = maker or info.factory
        self.options = protocol_options(info, scenario.options)
        self.service = service_of(scenario.service) if scenario.service else info.default_service
        if self.service not in info.provides:
            known = ", ".join(s.word for s in info.provides)
            raise UsageError(f"service: {scenario.protocol} provides {known}, not {self.service.word}")
        self.header = self._header()
        self.record = Path(record) if record is not None and self.level >= Level.RECORD else None
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

    def _header(self) -> Header:
        scenario = self.scenario
        return Header(
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

    def _hosts(self) -> list[Host]:
        scenario, draw = self.scenario, self.generator("clocks")
        hosts = []
        for id in scenario.ids:
            nets = tuple(k for k, medium in enumerate(self.media) if id in medium.members)
            skew = draw.uniform(0, scenario.clocks.skew_ms) * MS
            drift = draw.uniform(-1, 1) * scenario.clocks.drift_percent * 10_000
            clock = Clock(1_000 * MS + int(skew), int(drift))
            disk = Disk(round(scenario.hosts.disk_us * 1000), self.generator(f"disk/{id}"))
            host = Host(id, nets, clock, disk, self.cost)
            host.buffer_packets_max = scenario.hosts.buffer_packets
            host.buffer_bytes_max = scenario.hosts.buffer_bytes
            hosts.append(host)
        return hosts

    def _applications(self) -> dict[int, Application]:
        scenario, load = self.scenario, self.scenario.load
        out = {}
        share = shares(scenario.messages, scenario.talkers)
        groups = memberships(scenario, self.generator("groups"))
        for host in self.hosts:
            submissions = source(
                load.regime, self.generator(f"load/{host.id}"), share.get(host.id, 0), scenario.sizes,
                rate=load.rate, batch=load.batch, burst=load.burst, start=round(load.start_ms * MS),
            )  # fmt: skip
            out[host.id] = Application(
                self, host, submissions, load.regime, load.window, self.turns, groups.get(host.id, ())
            )
        return out

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
            return self._outcome()
        except Exception as error:
            error.add_note(f"in the run of {self.header.run} at {self.time} ns of virtual time")
            raise

    def _outcome(self) -> Outcome:
        self.injector.end()
        status: dict[int, dict[str, Any]] = {}
        for host in self.hosts:
            if host.up and host.stack is not None:
                status[host.id] = host.stack.status()
                waits = {layer: said["waits"] for layer, said in status[host.id].items() if said.get("waits")}
                now = host.clock.now(self.time)
                traffic = {"transmitted": host.transmitted}
                if host.transmitted_bytes:
                    traffic["transmitted_bytes"] = host.transmitted_bytes
                queues = host.stack.queues() | self.applications[host.id].queues()
                host.recorder.event(self.time, now, Kind.END, queues=queues, waits=waits, traffic=traffic)
                host.recorder.close()
        steady = [host for host in self.hosts if host.up and host.lives == 1] or self.hosts
        return Outcome(
            trace=Trace(self.header, self.sink.rows),
            events=self.datagrams + self.inputs,
            datagrams=self.datagrams,
            transmitted=self.transmitted,
            messages=sum(application.submitted for application in self.applications.values()),
            delivered=min(host.delivered_all for host in steady),
            deliveries=sum(host.delivered_all for host in self.hosts),
            sim_ns=self.time,
            ended=self.watch.why,
            notes=self.notes,
            drops=self.drops,
            faults=self.injector.counts,
            effects=self.effects,
            status=status,
        )


def memberships(scenario: Scenario, draw: random.Random) -> dict[int, tuple[str, ...]]:
    """Which of the scenario's process groups each member is in: each of them with even chance, and at least one."""
    names = [f"g{k}" for k in range(1, scenario.groups + 1)]
    out = {}
    for member in scenario.ids if names else ():
        out[member] = tuple(name for name in names if draw.random() < 0.5) or (draw.choice(names),)
    return out


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
    return datagram_bytes - HEADER_BYTES - PACKET_BYTES - NUMBER_BYTES * members
