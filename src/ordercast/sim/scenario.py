"""Scenario: one struct says all of a simulated run.

It is what `ordercast simulate --scenario FILE` reads, what a swarm's seed expands to, what the shrinker writes, and
what a row of a sweep holds.  TOML and Python give the same values, both ways, exactly.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w
from msgspec import Meta, Struct

from ordercast.contract import TAGGER
from ordercast.drivers.sizes import least_packet
from ordercast.limits import (
    DATAGRAM_BYTES_MAX,
    DATAGRAM_BYTES_MIN,
    GROUP_NAME_BYTES_MAX,
    GROUPS_MAX,
    MEMBERS_MAX,
    STORED_NUMBER_MAX,
)
from ordercast.sim.amounts import DAY_MS, AtLeastOne, Count, Id, Ms, Size, Us
from ordercast.sim.faults import AnyFault, ClockJump, Crash, Cut, Fault, LinkFault, Partition, split_pair
from ordercast.sim.law import Delay
from ordercast.toml_input import NOTHING, Source
from ordercast.types import ALL_CONTINUE, POLICIES, Service
from ordercast.words import one_of
from ordercast.workload.sharing import Resource
from ordercast.workload.sources import PACED

MS = 1_000_000  # nanoseconds
GROUP = "simulated"

Rate = Annotated[float, Meta(ge=1e-6, le=1e9)]  # a second
Bytes = Annotated[int, Meta(ge=0, le=2**40)]


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of a scenario's tables."""


class Pace(Part, frozen=True, kw_only=True):
    """From `at_ms` on these members submit at `rate`; 0: not at all."""

    members: tuple[Id, ...] = ()  # nobody named: all senders
    rate: Annotated[float, Meta(ge=0, le=1e9)]
    at_ms: Ms = 0.0


class Load(Part, frozen=True, kw_only=True):
    """When the senders submit.

    poisson, periodic, quasi (periods with a standard deviation of 2 %): `rate` submissions a second, per sender.
    bursts: `rate` bursts a second of `burst` submissions each.  saturate: as much as keeps `window` own messages on
    their way.  one_by_one: the senders take turns, each submits when the one before was delivered to its sender.
    idle: nothing (the messages are not sent).  Each submission holds `batch` messages.
    sharing: what senders say that share a resource (sim/sharing.py), at most `messages`.
    `rates` gives senders other rates than `rate`, from the beginning or from some time on; of two for the same time the
    later one holds.  Then the messages are shared out by what each submits until they are all submitted.
    """

    regime: Literal["poisson", "periodic", "quasi", "bursts", "saturate", "one_by_one", "idle", "sharing"] = "poisson"
    rate: Rate = 1000.0
    rates: tuple[Pace, ...] = ()
    batch: AtLeastOne = 1
    burst: AtLeastOne = 50
    window: AtLeastOne = 64
    start_ms: Ms = 0.0
    sharing: Resource = Resource()

    def steps(self, member: int) -> tuple[tuple[int, float], ...]:
        """(from when in ns, submissions a second) of a sender, by time."""
        steps = {0: self.rate}
        for pace in self.rates:
            if not pace.members or member in pace.members:
                steps[round(pace.at_ms * MS)] = pace.rate
        return tuple(sorted(steps.items()))


class Edge(Part, frozen=True, kw_only=True):
    """A link of a graph net (both ways), or the delay of one pair of a `links` net: a constant, or a law of its own."""

    a: Id
    b: Id
    us: Us = 0.0
    delay: Delay | None = None


class Net(Part, frozen=True, kw_only=True):
    """One network.

    lan: one channel; transmissions follow each other, and all receivers hear a multicast at the same time.
    links: every ordered pair has a link of its own; a sender's transmissions follow each other.
    graph: `edges` join members and relays (any numbers above the members'); datagrams take the shortest way, one copy
    per edge.  `edges` of a links net set the delay of single pairs.
    """

    model: Literal["lan", "links", "graph"] = "lan"
    members: tuple[Id, ...] = ()  # who sits on it; nobody named: all
    delay: Delay = Delay("constant", mean_us=50.0)
    edges: tuple[Edge, ...] = ()
    mbit: Annotated[float, Meta(ge=0, le=1e9)] = 1000.0  # megabits a second; 0: transmission takes no time
    overhead_bytes: Annotated[int, Meta(ge=0, le=65_535)] = 46  # of each datagram below our own header
    fifo: bool = False  # no datagram overtakes another of the same pair


class Cost(Part, frozen=True, kw_only=True):
    """What one step costs its host: `us` busy, `per_kb_us`, `per_message_us`; then `latency_us` without being busy."""

    us: Us = 0.0
    per_kb_us: Us = 0.0
    per_message_us: Us = 0.0
    latency_us: Us = 0.0


class Costs(Part, frozen=True, kw_only=True):
    """What the steps of a host cost."""

    receive: Cost = Cost()
    transmit: Cost = Cost()
    submit: Cost = Cost()
    deliver: Cost = Cost()
    timer: Cost = Cost()
    work: Cost = Cost()  # per unit a core notes as "work"; only `us` and `latency_us`


class OtherHosts(Costs, frozen=True, kw_only=True):
    """Hosts of some members that are not like those of the others."""

    members: tuple[Id, ...]


class Hosts(Costs, frozen=True, kw_only=True):
    """Every host is one server with a finite input buffer."""

    model: Literal["", "dpg-paper", "totem-paper"] = ""  # the machines of a paper instead of the costs: sim/models.py
    buffer_packets: Count = 0  # 0: no limit by number
    buffer_bytes: Bytes = 4 * 2**20
    disk_us: Us = 100.0  # one durable write
    unreachable: bool = False  # a unicast to a dead process on a host that is up is answered: nobody there
    outbox_bytes: Bytes = 0  # submitted and not yet originated; more is refused; 0: the product's limit
    room_frames: Count = 0  # delivery space of the application given at start; 0: unlimited, nothing is said


class NamedGroup(Part, frozen=True, kw_only=True):
    """A process group, who is in it, and which share of its members' messages goes to it."""

    name: Annotated[str, Meta(min_length=1, max_length=GROUP_NAME_BYTES_MAX)]
    members: tuple[Id, ...]
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0  # beside those of the other groups that a sender is in


class Clocks(Part, frozen=True, kw_only=True):
    """Monotonic clocks start within `skew_ms` of each other and run within `drift_percent` of true time."""

    skew_ms: Ms = 1000.0
    drift_percent: Annotated[float, Meta(ge=0, le=10)] = 0.0


class Start(Part, frozen=True, kw_only=True):
    """Numbers to start from, to come just below a wrap point: ring sequence number, incarnation, wall clock."""

    ring_seq: Annotated[int, Meta(ge=0, le=STORED_NUMBER_MAX)] | None = None
    incarnation: Annotated[int, Meta(ge=0, le=STORED_NUMBER_MAX)] | None = None
    wall_s: Annotated[int, Meta(ge=0, le=2**32)] = 1_700_000_000


class Scenario(Part, frozen=True, kw_only=True):
    """One simulated run."""

    protocol: str = "totem"
    options: dict[str, Any] = {}  # of the protocol
    service: str = ""  # the protocol's own default when empty
    members: Annotated[int, Meta(ge=1, le=MEMBERS_MAX)] = 3
    seed: int = 1
    messages: Count = 1000  # of all senders together
    sizes: tuple[Size, ...] = (64,)  # bytes; each message draws one of them
    senders: tuple[Id, ...] = ()  # nobody named: all talk
    groups: Annotated[int, Meta(ge=0, le=GROUPS_MAX)] = 0  # process groups; each member joins some and submits to them
    named_groups: tuple[NamedGroup, ...] = ()  # instead: these
    pure: tuple[Id, ...] = ()  # gateways that send nothing and read nothing
    load: Load = Load()
    calls: Count = 0  # on a replicated ledger, by all members together, until the heal point; 0: there is none
    durable: Annotated[float, Meta(ge=0, le=1)] = 0.0  # the chance that a call is
    pack: bool = True  # messages share frames; false: each has one, or several, of its own
    nets: tuple[Net, ...] = (Net(),)
    hosts: Hosts = Hosts()
    other_hosts: tuple[OtherHosts, ...] = ()
    clocks: Clocks = Clocks()
    start: Start = Start()
    timeout_ms: Annotated[float, Meta(ge=1, le=DAY_MS)] = 40.0  # T
    datagram_bytes: Annotated[int, Meta(ge=DATAGRAM_BYTES_MIN, le=DATAGRAM_BYTES_MAX)] = 1472
    packet_bytes: Bytes = 0  # the largest packet; above datagram_bytes it travels as a train; 0: as large as a datagram
    partition: str = ALL_CONTINUE  # the policy
    wire: bool = False  # every datagram goes through encode and decode
    tagger: bool | None = None  # one more host, number 0, numbers datagrams and is no member; null: where one is needed
    faults: tuple[AnyFault, ...] = ()
    heal_ms: Ms | None = None  # all faults but lasting ones end, the core is up for good
    core: tuple[Id, ...] = ()  # who is up after the heal point; nobody named: all
    away: Literal["crashed", "cut"] = "crashed"  # what the others are from then on
    closing: Count = 0  # messages the core submits 4 T after the heal point, in turn: what liveness is judged by
    settle_ms: Ms = 400.0  # calm after the last message and the heal point before the run ends
    limit_ms: Annotated[float, Meta(ge=1e-3, le=100 * DAY_MS)] = 60_000.0  # the run ends here whatever happens

    # ------------------------------------------------------------------------------------------------------ reading

    @classmethod
    def from_toml(cls, text: str, place: str = "scenario") -> Scenario:
        return cls.from_source(Source.of_text(text, place))

    @classmethod
    def from_file(cls, path: str | Path) -> Scenario:
        return cls.from_source(Source.of_file(Path(path), "scenario.toml"))

    @classmethod
    def from_dict(cls, table: dict[str, Any], place: str = "scenario") -> Scenario:
        return cls.from_source(Source(place, table))

    @classmethod
    def from_source(cls, source: Source) -> Scenario:
        """Raise ConfigError, a sentence for each fault: of form, and of what can be judged in spite of these."""
        try:
            scenario = NOTHING if source.odd else msgspec.convert(source.data, cls)
        except msgspec.ValidationError:
            scenario = NOTHING
        if scenario is NOTHING:
            scenario = source.part(source.data, cls)
        if isinstance(scenario, cls):
            strange = set(source.data) - set(cls.__struct_fields__)  # any may have been meant for one of these
            if not source.faulty("members", "nets", "heal_ms", "faults", *strange):
                scenario._judge(source)
        source.refuse()
        return scenario

    # ------------------------------------------------------------------------------------------------------ writing

    def to_dict(self) -> dict[str, Any]:
        """Plain values, defaults left out; the protocol is always named."""
        return {"protocol": self.protocol, **_without_none(msgspec.to_builtins(self))}

    def to_toml(self) -> str:
        return tomli_w.dumps(self.to_dict())

    def changed(self, **fields: Any) -> Scenario:
        """A copy with other values."""
        return msgspec.structs.replace(self, **fields)

    # ----------------------------------------------------------------------------------------------------- checking

    def check(self, place: str = "scenario") -> None:
        """Raise ConfigError, a sentence for each thing that cannot be meant."""
        self.from_dict(self.to_dict(), place)

    def _judge(self, source: Source) -> None:
        """What types and bounds do not say."""
        if not 0 <= self.seed < 2**64:
            source.wrong("seed", self.seed, "a whole number from 0 to 2^64 - 1")
        if self.closing and self.heal_ms is None:
            source.wrong("closing", self.closing, "heal_ms beside it")
        services = [service.word for service in Service]
        if self.service and self.service not in services:
            source.wrong("service", self.service, one_of(self.service, services))
        if self.partition not in POLICIES:
            source.wrong("partition", self.partition, one_of(self.partition, POLICIES))
        if not self.sizes:
            source.wrong("sizes", [], "at least one size")
        if self.packet_bytes and not self.datagram_bytes <= self.packet_bytes <= DATAGRAM_BYTES_MAX:
            source.wrong("packet_bytes", self.packet_bytes, f"{self.datagram_bytes} to {DATAGRAM_BYTES_MAX}, or 0")
        elif self.packet_largest < (least := least_packet(self.members)):
            key = "packet_bytes" if self.packet_bytes else "datagram_bytes"
            source.wrong(key, self.packet_largest, f"{least} or more with {self.members} members")
        self._known(source, "senders", self.senders)
        self._known(source, "core", self.core)
        if wrong := self.load.sharing.wrong():
            source.fault("load.sharing.need", wrong)
        self._judge_rates(source)
        self._known(source, "pure", self.pure)
        for k, group in enumerate(self.named_groups):
            self._known(source, f"named_groups[{k}].members", group.members)
        for k, hosts in enumerate(self.other_hosts):
            self._known(source, f"other_hosts[{k}].members", hosts.members)
        if self.groups and self.named_groups:
            source.fault("groups", f"{self.groups}, and groups are named: remove one of the two")
        self._judge_nets(source)
        for k, fault in enumerate(self.faults):
            self._judge_fault(source, f"faults[{k}]", fault)

    def _judge_rates(self, source: Source) -> None:
        load = self.load
        if load.rates and load.regime not in PACED:
            source.wrong("load.regime", load.regime, f"one of {', '.join(PACED)} beside load.rates")
        for k, pace in enumerate(load.rates):
            silent = [member for member in pace.members if member not in self.talkers]
            if silent:
                names = ", ".join(map(str, self.talkers))
                source.fault(f"load.rates[{k}].members", f"member {silent[0]}: expected some of the senders {names}")

    def _judge_nets(self, source: Source) -> None:
        if not self.nets:
            source.wrong("nets", [], "at least one")
        for k, net in enumerate(self.nets):
            self._known(source, f"nets[{k}].members", net.members)
            for words in net.delay.faults():
                source.fault(f"nets[{k}].delay", words)
            for j, edge in enumerate(net.edges):
                for words in edge.delay.faults() if edge.delay else ():
                    source.fault(f"nets[{k}].edges[{j}].delay", words)
                if edge.delay and edge.us:
                    source.wrong(f"nets[{k}].edges[{j}].us", edge.us, "nothing beside the edge's delay")
            if net.model == "graph" and not net.edges:
                source.wrong(f"nets[{k}].edges", [], "at least one, a graph has none otherwise")
        homeless = [m for m in self.ids if not any(m in self.on_net(net) for net in self.nets)]
        if homeless and self.nets:
            source.fault("nets", f"member {homeless[0]} sits on none")
        for k, member in enumerate(self.pure):
            if len(self.nets_of(member)) < 2 or member in self.senders:
                source.wrong(f"pure[{k}]", member, "a member on two nets or more that sends nothing")

    def _judge_fault(self, source: Source, path: str, fault: Fault) -> None:
        def wrong(key: str, expected: str) -> None:
            source.wrong(f"{path}.{key}", getattr(fault, key), f"{expected} ({fault.word})")

        if fault.until_ms is not None and fault.until_ms < fault.at_ms:
            wrong("until_ms", f"at least at_ms, which is {fault.at_ms:g}")
        if isinstance(fault, LinkFault):
            bad = [pair for pair in fault.pairs if not _is_pair(pair)]
            if bad:
                source.wrong(f"{path}.pairs", bad[0], f'"1>2", "1-2" or "*" for an end ({fault.word})')
                return
            if fault.net is not None and not 0 <= fault.net < len(self.nets):
                wrong("net", f"0 to {len(self.nets) - 1}")
            if fault.down_ms and not fault.up_ms:
                wrong("up_ms", "more than 0 beside down_ms")
        if not (isinstance(fault, Cut) and fault.edges):
            self._known(source, path, fault.named_members(), f" ({fault.word})")
        if isinstance(fault, Partition) and fault.shape == "gateway" and fault.member is None:
            source.fault(f"{path}.member", "is missing: expected the gateway to cut off (partition)")
        forgetful = any(isinstance(other, Crash) and not other.disk for other in self.faults)
        if isinstance(fault, ClockJump) and fault.by_ms < 0 and forgetful:
            wrong("by_ms", "0 or more: a backward jump and a restart without disk exclude each other")

    def _known(self, source: Source, path: str, ids: tuple[int, ...], whose: str = "") -> None:
        strangers = [member for member in ids if not 1 - bool(self.tagger) <= member <= self.members]
        if strangers:
            source.fault(path, f"member {strangers[0]}: expected members 1 to {self.members}{whose}")

    # ------------------------------------------------------------------------------------------------ what it means

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.members + 1))

    @property
    def talkers(self) -> tuple[int, ...]:
        return tuple(sorted(self.senders)) or tuple(id for id in self.ids if id not in self.pure)

    @property
    def packet_largest(self) -> int:
        return self.packet_bytes or self.datagram_bytes

    @property
    def timeout_ns(self) -> int:
        return round(self.timeout_ms * MS)

    def generator(self, name: str) -> random.Random:
        """A stream of its own for each use of chance, so that a smaller scenario keeps the draws of the rest."""
        return random.Random(f"{self.seed}/{name}")

    def nets_of(self, member: int) -> tuple[int, ...]:
        return tuple(k for k, net in enumerate(self.nets) if member in self.on_net(net))

    def on_net(self, net: Net) -> tuple[int, ...]:
        """Who sits on a net, sorted."""
        members = tuple(sorted(net.members)) or self.ids
        return (TAGGER, *members) if self.tagger else members


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(part) for part in value]
    return value


def _is_pair(text: str) -> bool:
    try:
        split_pair(text)
    except ValueError:
        return False
    return True
