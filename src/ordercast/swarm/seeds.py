"""A seed becomes a scenario: protocol, service, size, load, payloads, timeouts, faults.

A run has five phases: warm-up (nothing happens), faults, heal (a random core is up and connected for good, the others
come back or stay away), liveness (the core is given more to say), final check.  Each dimension draws from its own
generator, named by seed and protocol, so that `--protocol P --seeds 7:8` is the very run that seed 7 was when all
protocols took part and the draw fell on P, and a dimension that is added later leaves the others as they were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct, structs

from ordercast import registry
from ordercast.drivers.sizes import frame_bytes
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK, MESSAGE_BYTES_MAX
from ordercast.registry import ProtocolInfo
from ordercast.sim.faults import AnyFault, Claimant, ClockJump, Crash, DiskFault, Storm
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Cost, Edge, Hosts, Load, Net, Pace, Scenario, Start
from ordercast.swarm.apart import apart_again, half_installed
from ordercast.swarm.shapes import draw_bus, draw_rings, gateways, pure_gateways
from ordercast.swarm.state import with_state
from ordercast.swarm.trouble import FAMILIES, MAKERS, PERMANENT, Ground, more, short
from ordercast.types import ALL_CONTINUE
from ordercast.wire.codec import origin
from ordercast.workload.sources import PACED

ALONE_T = 10  # a message that waits for a report of another, in a group that is silent else, is there by then
TIMEOUT_MS = 40.0  # T before scaling
SCALES = (0.5, 1.0, 2.0, 10.0)
REGIMES = ("idle", "one at a time", "sparse", "bursts", "saturated", "one talker", "all talk")
DATAGRAMS = (548, 1472, 1472, 8972, 60_000)
SMALL = 1472
TRAINS = (2, 3, 8, 40)  # datagrams of the largest packet, where packets travel in several
WRAPS = (2**31, 2**32, 2**48)
_SIZES_OF_GROUPS = {n: 6 if 3 <= n <= 8 else 2 if n == 2 else 1 for n in range(1, 17)}


class SeedPlan(Struct, frozen=True):
    """What a seed expands to, and in which words it is told."""

    seed: int
    scenario: Scenario
    regime: str
    scale: float
    on: tuple[str, ...]  # families of faults drawn
    off: tuple[str, ...]  # survived, but not drawn this time
    left_out: tuple[str, ...]  # not survived by the protocol, never drawn
    shape: str = ""  # of its rings, for a protocol that joins several

    def text(self) -> str:
        """One line of options."""
        s = self.scenario
        sizes = ",".join(map(str, s.sizes))
        core = "all" if len(s.core) == s.members else f"{_ids(s.core)} ({s.away} rest)"
        words = [
            f"seed {self.seed}: {s.protocol} {s.service} n={s.members}",
            f"load={self.regime}", *([f"rates={len(s.load.rates)}"] if s.load.rates else ()),
            f"messages={s.messages}", f"sizes={sizes}",
            f"T={s.timeout_ms:g}ms (x{self.scale:g})", f"net={s.nets[0].model}/{s.nets[0].delay.law}",
            f"datagram={s.datagram_bytes}", *([f"packet={s.packet_bytes}"] if s.packet_bytes else ()),
            f"wire={str(s.wire).lower()}",
            *([f"groups={s.groups}"] if s.groups else ()),
            *([f"calls={s.calls}", f"durable={s.durable:g}"] if s.calls else ()),
            *([f"rings={self.shape}/{len(s.nets)}"] if self.shape else ()),
            *([f"pure={_ids(s.pure)}"] if s.pure else ()),
            *([s.partition] if s.partition != ALL_CONTINUE else ()),
            f"faults={'+'.join(self.on) or 'none'} ({len(s.faults)})",
            f"heal={s.heal_ms:g}ms core={core}" if s.heal_ms is not None else "never healed",
        ]  # fmt: skip
        words += [f"{key}={value}" for key, value in sorted(s.options.items())]
        return " ".join(words)


def _ids(ids: Sequence[int]) -> str:
    return "{" + ",".join(map(str, ids)) + "}"


def expand(seed: int, protocols: Sequence[str] = (), state: bool = False) -> SeedPlan:
    """The plan of one seed; `protocols`: those to draw from, all of the registry when none are named; `state`: with
    replicas of a ledger above, where the protocol has views and a total order, and everything else the same."""
    names = sorted(protocols) or [name for name in registry.names() if not state or registry.get(name).replicates]
    protocol = random.Random(f"swarm/{seed}/protocol").choice(names)
    plan = _Expansion(seed, registry.get(protocol)).plan()
    return structs.replace(plan, scenario=with_state(plan.scenario)) if state else plan


class _Expansion:
    """The draws of one seed, dimension by dimension."""

    def __init__(self, seed: int, info: ProtocolInfo) -> None:
        self.seed, self.info = seed, info
        self.changes = info.changes_views

    def draw(self, dimension: str) -> random.Random:
        return random.Random(f"swarm/{self.seed}/{self.info.name}/{dimension}")

    def plan(self) -> SeedPlan:
        on, off, left_out = self.families()
        bus = draw_bus(self.draw("bus")) if self.info.on_a_bus else frozenset()
        if bus:
            on = tuple(family for family in on if family in bus)
        if PERMANENT in on:
            on = (PERMANENT,)
        n = self.members(*((2, 9) if PERMANENT in on else (1, 16)))
        ids = tuple(range(1, n + 1))
        scale = self.draw("timeouts").choice(SCALES)
        timeout = TIMEOUT_MS * scale
        draw = self.draw("phases")
        warm = round(draw.uniform(2, 6) * timeout, 1)
        heal = round(warm + draw.uniform(6, 30 if n <= 8 else 12) * timeout, 1)
        datagram = self.draw("datagram").choice([d for d in DATAGRAMS if d >= SMALL] if self.info.rings else DATAGRAMS)
        regime, senders, messages, load = self.load(ids, timeout, heal)
        net = self.net(ids, timeout)
        if bus:
            net = Net(delay=Delay("constant", mean_us=net.delay.mean_us or 50.0))
        shape, nets = draw_rings(self.draw("rings"), ids, net) if self.info.rings else ("", (net,))
        pure = pure_gateways(self.draw("pure"), nets, senders)
        load = self.rates(load, tuple(member for member in senders or ids if member not in pure), heal)
        packet = self.packet(datagram, net)
        sizes = self.sizes(packet or datagram, n, messages)
        groups = self.groups()
        ground = Ground(
            self.draw("faults"), ids, _packet_names(self.info), timeout, warm, heal, datagram, sizes, groups,
            gateways(nets),
        )  # fmt: skip
        faults = [fault for family in on for fault in MAKERS[family](ground)]
        ground.random = self.draw("more")
        faults += more(ground, on)
        partition = self.partition()
        if partition != ALL_CONTINUE and "partition" in on and n > 1:
            ground.random = self.draw("apart")
            faults += apart_again(ground, on)
            ground.random = self.draw("half")
            if "crash" in on:
                faults += half_installed(ground)
        faults = _compatible(faults, partition)
        core, away = self.core(ids, gateways(nets))
        permanent = PERMANENT in on
        if permanent:  # what a link fails to carry is noticed when something is to be carried
            load = structs.replace(load, start_ms=min([load.start_ms, *(fault.at_ms for fault in faults)]))
        alone = messages if bus and load.regime == "one_by_one" else 0  # one that is not heard by its sender, at a time
        scenario = Scenario(
            protocol=self.info.name,
            options=self.options() | (self.info.on_a_bus if bus else {}),
            service=self.draw("service").choice(self.info.provides).word,
            members=n,
            seed=self.seed,
            messages=messages,
            sizes=sizes,
            groups=groups,
            senders=senders,
            pure=pure,
            load=load,
            nets=nets,
            hosts=self.hosts(),
            clocks=Clocks(skew_ms=short(self.draw("clocks").uniform(0, 10_000))),
            start=self.start(),
            timeout_ms=timeout,
            datagram_bytes=datagram,
            packet_bytes=packet,
            partition=partition,
            wire=self.draw("wire").random() < 0.25 or "corruption" in on,
            faults=tuple(faults),
            heal_ms=None if permanent else heal,
            core=() if permanent else core,
            away="crashed" if bus else away,
            closing=0 if permanent else self.draw("closing").randint(1, 8),
            settle_ms=short(8 * timeout),
            limit_ms=self.limit(warm, heal, timeout, permanent) + (alone * ALONE_T * timeout),
        )
        scenario.check(f"seed {self.seed}")
        return SeedPlan(self.seed, scenario, regime, scale, on, off, left_out, shape)

    # -------------------------------------------------------------------------------------------------- dimensions

    def families(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """On with probability one half each; all on in 5 % of the seeds, none in 5 %."""
        draw = self.draw("families")
        able = [family for family in FAMILIES if family in self.info.survives]
        left_out = tuple(family for family in FAMILIES if family not in self.info.survives)
        whole = draw.random()
        if PERMANENT in able:
            able.remove(PERMANENT)
            lasting = self.draw("lasting") if self.info.rings else draw  # came later: the other draws stay as they were
            if lasting.random() < 0.12:
                return (PERMANENT,), tuple(able), left_out
        if whole < 0.05:
            on = able
        elif whole < 0.1:
            on = []
        else:
            on = [family for family in able if draw.random() < 0.5]
        return tuple(on), tuple(family for family in able if family not in on), left_out

    def members(self, least: int, most: int) -> int:
        draw = self.draw("members")
        sizes = [n for n in _SIZES_OF_GROUPS if least <= n <= most]
        return draw.choices(sizes, [_SIZES_OF_GROUPS[n] for n in sizes])[0]

    def load(self, ids: tuple[int, ...], timeout: float, heal: float) -> tuple[str, tuple[int, ...], int, Load]:
        """Who says how much, when.  Open loads are stretched over the whole run, closed ones begin somewhere in it."""
        draw = self.draw("load")
        regime = draw.choice(REGIMES)
        n = len(ids)
        most = 400 if n <= 8 else 160
        span = heal + 2 * timeout
        senders: tuple[int, ...] = ()
        messages = int(_log_uniform(draw, 10, most))
        batch = draw.choice((1, 1, 1, 2, 10))
        start = round(draw.uniform(0, heal * 0.7), 1)
        kind = draw.choice(("poisson", "periodic", "quasi"))
        window = draw.choice((1, 4, 16, 64, 256))
        burst = draw.choice((5, 20, 60))
        if regime == "idle":
            return regime, (), 0, Load(regime="idle")
        if regime == "one at a time":
            return regime, (), min(messages, 80), Load(regime="one_by_one", start_ms=start)
        if regime == "sparse":
            messages = max(n, min(messages, 40))
        elif regime == "one talker":
            senders = (draw.choice(ids),)
        elif draw.random() < 0.3:
            senders = tuple(sorted(draw.sample(ids, draw.randint(1, n))))
        talkers = len(senders) or n
        if regime == "saturated":
            messages = int(_log_uniform(draw, 100, 3 * most))
            return regime, senders, messages, Load(regime="saturate", window=window, batch=batch, start_ms=start)
        rate = short(messages / talkers / batch / span * 1000)
        if regime == "bursts":
            burst = min(burst, max(1, messages // talkers))
            return (
                regime,
                senders,
                messages,
                Load(regime="bursts", rate=short(2 * rate / burst), burst=burst, batch=batch),
            )
        return regime, senders, messages, Load(regime=kind, rate=rate, batch=batch)

    def rates(self, load: Load, talkers: tuple[int, ...], heal: float) -> Load:
        """In one run of four that go by a rate, where several talk, senders have rates of their own; in half of these
        some fall silent or begin anew, or all change, up to three times."""
        draw = self.draw("rates")
        if load.regime not in PACED or len(talkers) < 2 or draw.random() < 0.75:
            return load
        shares = [_log_uniform(draw, 0.02, 1) for _ in talkers]
        scale = load.rate * len(talkers) / sum(shares)
        rates = [
            Pace(members=(member,), rate=short(share * scale)) for member, share in zip(talkers, shares, strict=True)
        ]
        for _ in range(draw.choice((0, 0, 1, 2, 3))):
            some = tuple(sorted(draw.sample(talkers, draw.randint(1, len(talkers) - 1))))
            rate = draw.choice((0.0, 1.0, _log_uniform(draw, 0.05, 20))) * load.rate
            rates.append(Pace(members=some, rate=short(rate), at_ms=round(draw.uniform(0, heal), 1)))
        return structs.replace(load, rates=tuple(rates))

    def packet(self, datagram: int, net: Net) -> int:
        """Where datagrams are small and overtake each other, in one run of two packets travel as trains of them."""
        draw = self.draw("packet")
        mixes = not net.fifo and not net.delay.same_for_all
        if datagram > SMALL or not mixes or draw.random() < 0.5:
            return 0
        return min(draw.choice(TRAINS) * datagram, DATAGRAM_BYTES_LOOPBACK)

    def sizes(self, packet: int, n: int, messages: int) -> tuple[int, ...]:
        """One to four sizes: the empty, the small, and those just below and above what fits one frame."""
        draw = self.draw("sizes")
        frame = frame_bytes(packet, n)
        edge = frame - 4  # one message and its length
        pool = [0, 1, 7, 8, 64, 1024, edge - 1, edge, edge + 1, frame, 2 * edge, 2 * edge + 1]
        weights = [2, 2, 1, 1, 6, 3, 1, 1, 1, 1, 1, 1]
        sizes = draw.choices(pool, weights, k=draw.randint(1, 4))
        if draw.random() < 0.1:
            sizes.append(min(5 * edge, 60_000))
        if draw.random() < 0.2 and messages <= 16:
            sizes.append(MESSAGE_BYTES_MAX + 1)  # refused
        budget = 3_000_000 // max(1, messages * n)  # bytes a message may weigh on average, over all members
        kept = [size for size in sizes if size <= max(1100, budget) or size > MESSAGE_BYTES_MAX]
        return tuple(dict.fromkeys(kept)) or (64,)

    def groups(self) -> int:
        """In two runs of five process groups share the order, where the protocol has them."""
        draw = self.draw("groups")
        able = any("S22" in ids for ids in self.info.promises.values())
        return draw.randint(1, 8) if draw.random() < 0.4 and able else 0

    def partition(self) -> str:
        """In three runs of ten only one part of a split group goes on, where the protocol can."""
        draw = self.draw("partition")
        others = [policy for policy in self.info.partitions if policy != ALL_CONTINUE]
        return draw.choice(others) if draw.random() < 0.3 and others else ALL_CONTINUE

    def options(self) -> dict[str, object]:
        """Every boolean option of the protocol, on or off; of those that say what may be drawn, one in four is set."""
        draw = self.draw("options")
        chosen: dict[str, object] = {}
        for name, values in registry.draws(self.info.options).items():
            if isinstance(values[0], bool):
                chosen[name] = draw.random() < 0.5
            elif draw.random() < 0.25:
                chosen[name] = draw.choice(values)
        default = self.info.options()
        return {name: value for name, value in chosen.items() if value != getattr(default, name)}

    def net(self, ids: tuple[int, ...], timeout: float) -> Net:
        draw = self.draw("net")
        mean = short(_log_uniform(draw, 1 / 4000, 1 / (12 * max(4, len(ids)))) * timeout * 1000)  # us
        law = draw.choice(("constant", "uniform", "exponential", "normal", "chi_square"))
        delay = {
            "constant": Delay("constant", mean_us=mean),
            "uniform": Delay("uniform", low_us=short(mean / 2), high_us=short(mean * 1.5)),
            "exponential": Delay("exponential", mean_us=mean, low_us=short(mean / 4)),
            "normal": Delay("normal", mean_us=mean, sd_us=short(mean / 10)),
            "chi_square": Delay("chi_square", low_us=short(mean / 2), degrees=4, scale_us=short(mean / 8)),
        }[law]
        model = draw.choices(("lan", "links", "graph"), (6, 3, 1))[0]
        fifo = draw.random() < 0.5
        if model == "graph":
            relay = len(ids) + 1
            edges = tuple(Edge(a=member, b=relay, us=short(mean / 2)) for member in ids)
            return Net(model="graph", delay=delay, edges=edges, fifo=fifo)
        return Net(model=model, delay=delay, fifo=fifo)

    def hosts(self) -> Hosts:
        """In one run of three steps cost time; in one of four the application has little room, or the sockets have."""
        draw = self.draw("hosts")
        fields: dict[str, object] = {}
        if draw.random() < 0.33:
            cost = Cost(us=short(_log_uniform(draw, 0.5, 20)))
            fields |= {"receive": cost, "transmit": cost, "deliver": Cost(us=short(_log_uniform(draw, 0.1, 5)))}
        if draw.random() < 0.25 and "overload" in self.info.survives:
            fields["room_frames"] = draw.choice((64, 256, 1024))
        if draw.random() < 0.25 and "overload" in self.info.survives:
            fields["buffer_packets"] = draw.choice((16, 64, 256))
        if draw.random() < 0.25:
            fields["outbox_bytes"] = draw.choice((1, 1000, 10_000))
        fields["unreachable"] = draw.random() < 0.5
        return Hosts(**fields)  # type: ignore[arg-type]

    def start(self) -> Start:
        """One run of six begins just below a wrap point."""
        draw = self.draw("start")
        if draw.random() < 5 / 6:
            return Start()
        return Start(ring_seq=draw.choice(WRAPS) - 4 * draw.randint(1, 6), incarnation=draw.choice((1, 2**32 - 1)))

    def core(self, ids: tuple[int, ...], gateways: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
        """Who is up for good after the heal point: everybody in half of the runs, and always in a fixed view; of those
        who join rings all, so that the core hangs together."""
        draw = self.draw("core")
        if not self.changes or draw.random() < 0.5:
            return ids, "crashed"
        core = sorted({*draw.sample(ids, draw.randint(1, len(ids))), *gateways})
        return tuple(core), draw.choice(("crashed", "cut"))

    @staticmethod
    def limit(warm: float, heal: float, timeout: float, permanent: bool) -> float:
        """Whatever happens, a run ends: after healing in the time of a few probations."""
        return short(warm + 60 * timeout if permanent else heal + 120 * timeout + 6_000)


def _log_uniform(draw: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** draw.random())


def _packet_names(info: ProtocolInfo) -> tuple[str, ...]:
    """What `packets` of a fault may name: packet types, and the bodies that ride in them."""
    names: list[str] = []
    for packet in info.packets:
        names.append(origin(packet).__name__)
        for body in getattr(packet, "__args__", ()):
            names += [part.__name__ for part in getattr(body, "__args__", (body,))]
    return tuple(dict.fromkeys(names))


def _compatible(faults: list[AnyFault], partition: str) -> list[AnyFault]:
    """Who is primary is remembered on disks, and one that forgets what it said it had written is no help with that.

    Numbers are taken from the wall clock where a disk was lost, so there clocks do not go back; and no clock but the
    forgetful member's own goes ahead: the others' numbers would follow it, and its next life begin below them."""
    if partition != ALL_CONTINUE:
        faults = [fault for fault in faults if not (isinstance(fault, DiskFault) and fault.how == "lost")]
    forgetful = {
        fault.member
        for fault in faults
        if (isinstance(fault, (Crash, Storm)) and not fault.disk)
        or (isinstance(fault, DiskFault) and fault.how != "slow")
        or isinstance(fault, Claimant)
    }
    out: list[AnyFault] = []
    for fault in faults:
        if not forgetful or not isinstance(fault, ClockJump):
            out.append(fault)
        elif forgetful == {fault.member}:
            out.append(ClockJump(member=fault.member, at_ms=fault.at_ms, by_ms=abs(fault.by_ms)))
    return out
