"""Scenario: one struct says all of a simulated run.

It is what `ordercast simulate --scenario FILE` reads, what a swarm's seed expands to, what the shrinker writes, and
what a row of a sweep holds.  TOML and Python give the same values, both ways, exactly.
"""

from __future__ import annotations

import difflib
import math
import random
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.limits import DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, GROUPS_MAX, MEMBERS_MAX
from ordercast.sim import toml
from ordercast.sim.faults import AnyFault, ClockJump, Crash, Cut, Drift, Fault, LinkFault, Partition, split_pair
from ordercast.sim.law import Delay
from ordercast.toml_input import convert, told
from ordercast.types import Service

MS = 1_000_000  # nanoseconds
GROUP = "simulated"


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of a scenario's tables."""


class Load(Part, frozen=True, kw_only=True):
    """When the senders submit.

    poisson, periodic, quasi (periods with a standard deviation of 2 %): `rate` submissions a second, per sender.
    bursts: `rate` bursts a second of `burst` submissions each.  saturate: as much as keeps `window` own messages on
    their way.  one_by_one: the senders take turns, each submits when the one before was delivered to its sender.
    idle: nothing (the messages are not sent).  Each submission holds `batch` messages.
    """

    regime: Literal["poisson", "periodic", "quasi", "bursts", "saturate", "one_by_one", "idle"] = "poisson"
    rate: float = 1000.0
    batch: int = 1
    burst: int = 50
    window: int = 64
    start_ms: float = 0.0


class Edge(Part, frozen=True, kw_only=True):
    """A link of a graph net (both ways), or the delay of one pair of a `links` net."""

    a: int
    b: int
    us: float = 0.0


class Net(Part, frozen=True, kw_only=True):
    """One network.

    lan: one channel; transmissions follow each other, and all receivers hear a multicast at the same time.
    links: every ordered pair has a link of its own; a sender's transmissions follow each other.
    graph: `edges` join members and relays (any numbers above the members'); datagrams take the shortest way, one copy
    per edge.  `edges` of a links net set the delay of single pairs.
    """

    model: Literal["lan", "links", "graph"] = "lan"
    members: tuple[int, ...] = ()  # who sits on it; nobody named: all
    delay: Delay = Delay("constant", mean_us=50.0)
    edges: tuple[Edge, ...] = ()
    mbit: float = 1000.0  # megabits a second; 0: transmission takes no time
    overhead_bytes: int = 46  # of each datagram below our own header
    fifo: bool = False  # no datagram overtakes another of the same pair


class Cost(Part, frozen=True, kw_only=True):
    """What one step costs its host: `us` busy, `per_kb_us`, `per_message_us`; then `latency_us` without being busy."""

    us: float = 0.0
    per_kb_us: float = 0.0
    per_message_us: float = 0.0
    latency_us: float = 0.0


class Hosts(Part, frozen=True, kw_only=True):
    """Every host is one server with a finite input buffer."""

    buffer_packets: int = 0  # 0: no limit by number
    buffer_bytes: int = 4 * 2**20
    receive: Cost = Cost()
    transmit: Cost = Cost()
    submit: Cost = Cost()
    deliver: Cost = Cost()
    timer: Cost = Cost()
    work: Cost = Cost()  # per unit a core notes as "work"; only `us` and `latency_us`
    disk_us: float = 100.0  # one durable write
    unreachable: bool = False  # a unicast to a dead process on a host that is up is answered: nobody there
    outbox_bytes: int = 0  # submitted and not yet originated; more is refused; 0: the product's limit
    room_frames: int = 0  # delivery space of the application given at start; 0: unlimited, nothing is said


class Clocks(Part, frozen=True, kw_only=True):
    """Monotonic clocks start within `skew_ms` of each other and run within `drift_percent` of true time."""

    skew_ms: float = 1000.0
    drift_percent: float = 0.0


class Start(Part, frozen=True, kw_only=True):
    """Numbers to start from, to come just below a wrap point: ring sequence number, incarnation, wall clock."""

    ring_seq: int | None = None
    incarnation: int | None = None
    wall_s: int = 1_700_000_000


class Scenario(Part, frozen=True, kw_only=True):
    """One simulated run."""

    protocol: str = "totem"
    options: dict[str, Any] = {}  # of the protocol
    service: str = ""  # the protocol's own default when empty
    members: int = 3
    seed: int = 1
    messages: int = 1000  # of all senders together
    sizes: tuple[int, ...] = (64,)  # bytes; each message draws one of them
    senders: tuple[int, ...] = ()  # nobody named: all talk
    groups: int = 0  # process groups; each member joins some, and submits to these
    load: Load = Load()
    nets: tuple[Net, ...] = (Net(),)
    hosts: Hosts = Hosts()
    clocks: Clocks = Clocks()
    start: Start = Start()
    timeout_ms: float = 40.0  # T
    datagram_bytes: int = 1472
    packet_bytes: int = 0  # the largest packet; above datagram_bytes it travels as a train; 0: as large as a datagram
    wire: bool = False  # every datagram goes through encode and decode
    faults: tuple[AnyFault, ...] = ()
    heal_ms: float | None = None  # all faults but lasting ones end, the core is up for good
    core: tuple[int, ...] = ()  # who is up after the heal point; nobody named: all
    away: Literal["crashed", "cut"] = "crashed"  # what the others are from then on
    closing: int = 0  # messages the core submits 4 T after the heal point, in turn: what liveness is judged by
    settle_ms: float = 400.0  # calm after the last message and the heal point before the run ends
    limit_ms: float = 60_000.0  # the run ends here whatever happens

    # ------------------------------------------------------------------------------------------------------ reading

    @classmethod
    def from_toml(cls, text: str, place: str = "scenario") -> Scenario:
        """Raise UsageError, one sentence with the place, for anything that is not a scenario."""
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as why:
            raise UsageError(f"{place}: not TOML: {_lower(str(why))}") from None
        return cls.from_dict(table, place)

    @classmethod
    def from_file(cls, path: str | Path) -> Scenario:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as why:
            raise UsageError(f"{path}: cannot be read: {_lower(why.strerror or str(why))}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not TOML: expected text in UTF-8") from None
        return cls.from_toml(text, str(path))

    @classmethod
    def from_dict(cls, table: dict[str, Any], place: str = "scenario") -> Scenario:
        """Raise ConfigError, a sentence for each fault."""
        scenario, against = convert(table, cls, _SPARE)
        if scenario is None or against:
            found = [_sentence(text) for text in against]
            if scenario is not None and not any(map(_leant_upon, against)):
                found += scenario._faults()
            raise told(place, found)
        scenario.check(place)
        return scenario

    # ------------------------------------------------------------------------------------------------------ writing

    def to_dict(self) -> dict[str, Any]:
        """Plain values, defaults left out; the protocol is always named."""
        return {"protocol": self.protocol, **_without_none(msgspec.to_builtins(self))}

    def to_toml(self) -> str:
        return toml.dumps(self.to_dict())

    def changed(self, **fields: Any) -> Scenario:
        """A copy with other values."""
        return msgspec.structs.replace(self, **fields)

    # ----------------------------------------------------------------------------------------------------- checking

    def check(self, place: str = "scenario") -> None:
        """Raise ConfigError, a sentence for each thing that cannot be meant."""
        found = self._faults()
        if found:
            raise told(place, found)

    def _faults(self) -> list[str]:
        found: list[str] = []
        say = found.append
        if not 1 <= self.members <= MEMBERS_MAX:
            say(f"members: expected 1 to {MEMBERS_MAX}, got {self.members}")
            return found
        if not 0 <= self.seed < 2**64:
            say(f"seed: expected 0 to 2^64 - 1, got {self.seed}")
        if not 0 <= self.groups <= GROUPS_MAX:
            say(f"groups: expected 0 to {GROUPS_MAX}, got {self.groups}")
        for name in ("messages", "closing"):
            if getattr(self, name) < 0:
                say(f"{name}: expected 0 or more, got {getattr(self, name)}")
        if self.closing and self.heal_ms is None:
            say("closing: expected heal_ms beside it")
        if self.service and self.service not in [s.word for s in Service]:
            say(f"service: expected one of {', '.join(s.word for s in Service)}, got {self.service!r}")
        if not self.sizes or min(self.sizes) < 0:
            say("sizes: expected at least one size of 0 bytes or more")
        if not DATAGRAM_BYTES_MIN <= self.datagram_bytes <= DATAGRAM_BYTES_MAX:
            say(f"datagram_bytes: expected {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX}, got {self.datagram_bytes}")
        if self.packet_bytes and not self.datagram_bytes <= self.packet_bytes <= DATAGRAM_BYTES_MAX:
            say(f"packet_bytes: expected {self.datagram_bytes} to {DATAGRAM_BYTES_MAX}, got {self.packet_bytes}")
        for name in ("timeout_ms", "limit_ms"):
            if not 0 < getattr(self, name) < 1e12:
                say(f"{name}: expected more than 0, got {getattr(self, name)}")
        for where, ids in (("senders", self.senders), ("core", self.core)):
            found += self._strangers(where, ids)
        if self.load.rate <= 0 or self.load.batch < 1 or self.load.burst < 1 or self.load.window < 1:
            say("load: expected rate above 0 and batch, burst and window of at least 1")
        if not 0 <= self.clocks.drift_percent <= 10:
            say(f"clocks.drift_percent: expected 0 to 10, got {self.clocks.drift_percent}")
        found += self._net_faults()
        for k, fault in enumerate(self.faults):
            found += [f"faults[{k}] ({fault.word}): {text}" for text in self._fault_faults(fault)]
        return found

    def _net_faults(self) -> list[str]:
        found: list[str] = [] if self.nets else ["nets: expected at least one"]
        for k, net in enumerate(self.nets):
            found += self._strangers(f"nets[{k}].members", net.members)
            found += [f"nets[{k}].delay: {text}" for text in net.delay.faults()]
            if net.mbit < 0 or not math.isfinite(net.mbit):
                found.append(f"nets[{k}].mbit: expected 0 or more, got {net.mbit}")
            if net.model == "graph" and not net.edges:
                found.append(f"nets[{k}].edges: expected at least one, a graph has none otherwise")
        homeless = [m for m in self.ids if not any(m in self.on_net(net) for net in self.nets)]
        if homeless and self.nets:
            found.append(f"nets: member {homeless[0]} sits on none")
        return found

    def _fault_faults(self, fault: Fault) -> list[str]:
        found = self._time_faults(fault)
        if isinstance(fault, LinkFault):
            for pair in fault.pairs:
                try:
                    split_pair(pair)
                except ValueError:
                    found.append(f'pairs: expected "1>2", "1-2" or "*" for an end, got {pair!r}')
                    return found
            if fault.net is not None and not 0 <= fault.net < len(self.nets):
                found.append(f"net: expected 0 to {len(self.nets) - 1}, got {fault.net}")
            if fault.down_ms and not fault.up_ms:
                found.append("up_ms: expected more than 0 beside down_ms")
        if not (isinstance(fault, Cut) and fault.edges):
            found += self._strangers("members", fault.named_members())
        if isinstance(fault, Partition) and fault.shape == "gateway" and fault.member is None:
            found.append("member: expected the gateway to cut off")
        for name in ("p", "to_bad", "to_good", "p_good", "p_bad"):
            if not 0 <= getattr(fault, name, 0.0) <= 1:
                found.append(f"{name}: expected 0 to 1, got {getattr(fault, name)}")
        if isinstance(fault, Drift) and not -10 <= fault.percent <= 10:
            found.append(f"percent: expected -10 to 10, got {fault.percent}")
        if (
            isinstance(fault, ClockJump)
            and fault.by_ms < 0
            and any(isinstance(f, Crash) and not f.disk for f in self.faults)
        ):
            found.append("a backward jump and a restart without disk exclude each other")
        return found

    @staticmethod
    def _time_faults(fault: Fault) -> list[str]:
        found: list[str] = []
        if not 0 <= fault.at_ms < 1e12:
            found.append(f"at_ms: expected 0 or more, got {fault.at_ms}")
        if fault.until_ms is not None and fault.until_ms < fault.at_ms:
            found.append(f"until_ms: expected at least at_ms ({fault.at_ms}), got {fault.until_ms}")
        return found

    def _strangers(self, where: str, ids: tuple[int, ...]) -> list[str]:
        for member in ids:
            if not 1 <= member <= self.members:
                return [f"{where}: expected members 1 to {self.members}, got {member}"]
        return []

    # ------------------------------------------------------------------------------------------------ what it means

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.members + 1))

    @property
    def talkers(self) -> tuple[int, ...]:
        return tuple(sorted(self.senders)) or self.ids

    @property
    def packet_largest(self) -> int:
        return self.packet_bytes or self.datagram_bytes

    @property
    def timeout_ns(self) -> int:
        return round(self.timeout_ms * MS)

    def generator(self, name: str) -> random.Random:
        """A stream of its own for each use of chance, so that a smaller scenario keeps the draws of the rest."""
        return random.Random(f"{self.seed}/{name}")

    def on_net(self, net: Net) -> tuple[int, ...]:
        """Who sits on a net, sorted."""
        return tuple(sorted(net.members)) or self.ids


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(part) for part in value]
    return value


_SPARE = {"faults": {"fault": "loss"}, "nets": {}, "edges": {"a": 1, "b": 1}}


def _leant_upon(fault: str) -> bool:
    """Was something taken out that other keys are judged by?  An unknown key may have been meant for it."""
    return re.search(r"at `\$\.(?!members|nets|heal_ms|faults)", fault) is None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _sentence(text: str) -> str:
    """What msgspec found, with the place first."""
    what, _, where = text.partition(" - at `$")
    where = where.rstrip("`").lstrip(".")
    what = what.replace("`", "")
    unknown = re.match(r"Object contains unknown field (\S+)", what)
    if unknown:
        near = difflib.get_close_matches(unknown[1], [key for key in _KEYS if key != unknown[1]], 1)
        what = f"unknown key {unknown[1]!r}" + (f"; did you mean {near[0]}?" if near else "")
    if "missing required field" in what:
        what = what.replace("Object missing required field", "expected the key")
    bad_tag = re.match(r"Invalid value '(.*)'", what)
    if bad_tag and where.endswith(".fault"):
        near = difflib.get_close_matches(bad_tag[1], _TAGS, 1)
        what = f"unknown fault {bad_tag[1]!r}: expected one of {', '.join(_TAGS)}"
        what += f"; did you mean {near[0]}?" if near else ""
    bad_word = re.match(r"Invalid enum value (.*)", what)
    if bad_word:
        what = f"expected one of {', '.join(_CHOICES.get(where.rpartition('.')[2], ()))}, got {bad_word[1]}"
    what = _lower(what)
    return f"{where}: {what}" if where else what


_TABLES: tuple[type[Struct], ...] = (
    Scenario, Load, Net, Edge, Hosts, Cost, Clocks, Start, Delay, *AnyFault.__args__
)  # fmt: skip
_KEYS = sorted({name for table in _TABLES for name in table.__struct_fields__})
_CHOICES = {
    name: get_args(hint)
    for table in _TABLES
    for name, hint in get_type_hints(table).items()
    if get_origin(hint) is Literal
}
_TAGS = sorted(str(fault.__struct_config__.tag) for fault in AnyFault.__args__)
