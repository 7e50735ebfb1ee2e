"""One piece of a campaign: a simulated group of two to five, a forger on its net, and what becomes of the members.

A quarter of what every member receives is replaced, or joined, by a forged packet that claims to come from a configured
id.  No input may end a member; a step may cost so much, and a stack weigh so much, and not more; and when the forger is
gone, all members are in one view within the bound of L1; what then still waits in vain is counted.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from heapq import heappop
from types import FrameType, ModuleType
from typing import Any

from msgspec import Struct
from tests.fuzz.forger import Forger

from ordercast import registry
from ordercast.membership.evidence import PROBATION_MAX_NS
from ordercast.membership.tuning import LOSS_TIMEOUTS_MAX
from ordercast.registry import draws
from ordercast.sim.links import Copies, Datagram
from ordercast.sim.scenario import Load, Net, Scenario
from ordercast.sim.world import World
from ordercast.stack import Stack
from ordercast.swarm.shapes import draw_rings
from ordercast.types import Peer

SHARE = 0.25  # of all packets
WEIGHT_MAX = 96 * 2**20  # of one stack, whatever was said to it
WEIGHT_AFTER_MAX = 8 * 2**20  # when the forger is gone and all is delivered
DRAIN_NS = 10_000_000_000  # virtual time
WEIGH_EVERY = 5_000  # forged packets


class Found(AssertionError):
    """A member fared ill; the text names the piece."""


class Piece(Struct):
    """What one piece showed."""

    protocol: str
    seed: int
    members: int
    forged: dict[str, int]  # packets by type
    dropped: dict[str, int]  # by reason
    longest_ms: float  # processor time of one step
    weight: int  # bytes, of the heaviest stack
    weight_after: int
    views: int  # installed by all, meanwhile
    one_view_ms: float  # virtual time until all were in one view
    left: int = 0  # packets that waited in vain after that


class Forging:
    """On the net, where faults of links stand."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.forger = Forger(world.carrier.codec, rng)
        self.count: Counter[str] = Counter()

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        return True

    def multicast(self, receivers: list[int]) -> None:
        pass

    def release(self) -> None:
        pass

    def act(self, source: int, to: int, at: int, datagram: Datagram, out: Copies) -> None:
        rng = self.rng
        self.forger.see(datagram[2])
        made = self.forger.make() if rng.random() < SHARE else None
        if made is None:
            out.append((at, datagram))
            return
        packet, _ = made
        peer = self._claimed(source, to)
        if rng.random() < 0.5:
            out.append((at, datagram))
        self.count[type(packet).__name__] += 1
        data = self.world.carrier.encode(peer, packet)
        out.append((at + rng.choice((0, 1_000, 100_000)), (datagram[0], peer, packet, len(data), data, False)))

    def _claimed(self, source: int, to: int) -> Peer:
        """Its sender, as it says: mostly the real one, or another member, in its present life or another."""
        rng, hosts = self.rng, self.world.hosts
        id = source if rng.random() < 0.6 else rng.choice([other for other in hosts if other != to])
        incarnation = hosts[id].incarnation
        if rng.random() < 0.002:
            incarnation = rng.choice((0, incarnation - 1, incarnation + 1, 2**62, 2**63 - 1))
        return Peer(id, incarnation)


def scenario_of(protocol: str, seed: int, calls: int = 0) -> tuple[Scenario, random.Random]:
    rng = random.Random(f"fuzz/{protocol}/{seed}")
    info = registry.get(protocol)
    options = {name: rng.choice(values) for name, values in draws(info.options).items() if rng.random() < 0.2}
    groups = rng.choice((0, 2)) if any("S22" in ids for ids in info.promises.values()) else 0
    regime, rate = rng.choice(("poisson", "bursts")), rng.choice((2.0, 20.0, 200.0))  # what a shaken group can carry
    load = Load(regime=regime, rate=rate / 20 if regime == "bursts" else rate, burst=20)
    members = rng.randrange(2, 6)
    nets: tuple[Net, ...] = (Net(),)
    if info.rings:
        members += 2
        _, nets = draw_rings(rng, tuple(range(1, members + 1)), Net())
    return Scenario(
        protocol=protocol, options=options, members=members, seed=seed, messages=50_000_000, load=load, nets=nets,
        sizes=rng.choice(((64,), (0, 1_000, 5_000))), groups=groups, service=rng.choice(info.provides).word,
        limit_ms=1e9, wire=True, calls=calls, durable=0.3 if calls else 0.0,
    ), rng  # fmt: skip


class Clock:
    """Processor time of the longest step."""

    def __init__(self) -> None:
        self.longest = 0

    def __call__(self, call: Callable[[Any, Any], None], a: Any, b: Any) -> None:
        since = time.process_time_ns()
        call(a, b)
        self.longest = max(self.longest, time.process_time_ns() - since)


class Lines(Clock):
    """The same, and a bound on the lines of Python that one step runs."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.highest = most, 0

    def __call__(self, call: Callable[[Any, Any], None], a: Any, b: Any) -> None:
        self.count = 0
        sys.settrace(self._enter)
        try:
            super().__call__(call, a, b)
        finally:
            sys.settrace(None)
        self.highest = max(self.highest, self.count)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if "/ordercast/" in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count > self.most:
                raise Found(f"a step of more than {self.most} lines")
        return self._line


def piece(protocol: str, seed: int, packets: int, clock: Clock | None = None, calls: int = 0) -> Piece:
    """Let the forger loose for so many packets, then wait for the group to be whole."""
    clock = clock or Clock()
    scenario, rng = scenario_of(protocol, seed, calls)
    gc.collect()
    gc.disable()  # its pauses are no step's; what a piece leaves is collected before the next
    world = World(scenario, level="off")
    forging = Forging(world, rng)
    try:
        weight = _attack(world, forging, packets, clock)
        one_view_ms = _whole_again(world, clock)
        left = _drained(world, clock)
    except Exception as error:
        error.add_note(f"in piece {seed} of {protocol}, at {world.schedule.time} ns: {scenario.to_dict()}")
        raise
    finally:
        gc.enable()
    after = max(weigh(host.stack) for host in world.hosts.values() if host.stack is not None)
    if after > WEIGHT_AFTER_MAX:
        raise Found(f"{protocol}, piece {seed}: a stack of {after} bytes is left, expected at most {WEIGHT_AFTER_MAX}")
    return Piece(
        protocol, seed, scenario.members, dict(forging.count), dict(world.journal.drops), clock.longest / 1e6, weight,
        after, sum(host.views for host in world.hosts.values()), one_view_ms, left,
    )  # fmt: skip


def _attack(world: World, forging: Forging, packets: int, clock: Clock) -> int:
    for host in world.hosts.values():
        world.lives.start(host)
    for host in world.hosts.values():
        host.application.pump()
        if host.caller is not None:
            host.caller.begin()
    world.carrier.switch_on(forging)  # type: ignore[arg-type]
    heaviest, weighed = 0, 0
    while forging.count.total() < packets:
        _step(world, clock)
        if forging.count.total() - weighed >= min(WEIGH_EVERY, packets):
            weighed = forging.count.total()
            heaviest = max(heaviest, *(weigh(host.stack) for host in world.hosts.values() if host.stack is not None))
            if heaviest > WEIGHT_MAX:
                raise Found(f"a stack weighs {heaviest} bytes, expected at most {WEIGHT_MAX}")
    world.carrier.switch_off(forging)  # type: ignore[arg-type]
    return heaviest


def _step(world: World, clock: Clock) -> None:
    schedule = world.schedule
    schedule.time, _, call, a, b = heappop(schedule.queue)
    clock(call, a, b)


def _whole_again(world: World, clock: Clock) -> float:
    """Virtual milliseconds until all are in one view, which stays for T; at most what L1 allows."""
    for host in world.hosts.values():
        host.application.source, host.application.next = iter(()), None
    scenario, schedule = world.scenario, world.schedule
    since, timeout, n = schedule.time, scenario.timeout_ns, scenario.members
    formation = timeout * 12 // 10 + 10 * n * world.carrier.delay_ns
    bound = LOSS_TIMEOUTS_MAX * timeout + (2 if world.info.rings else 1) * formation + PROBATION_MAX_NS
    whole: int | None = None
    while schedule.time < since + bound + timeout:
        _step(world, clock)
        if not _one_view(world):
            whole = None
        elif whole is None:
            whole = schedule.time
        elif schedule.time - whole >= timeout:
            return (whole - since) / 1e6
    views = {id: host.view for id, host in world.hosts.items()}
    raise Found(f"not in one view {bound / 1e6:.0f} ms after the last forged packet: {views}")


def _drained(world: World, clock: Clock) -> int:
    """What was accepted meanwhile goes out; packets that wait in vain, because a forged word took the place of a real
    one, until another view is installed."""
    until = world.schedule.time + DRAIN_NS
    while (queued := _queued(world)) and world.schedule.time < until:
        end = world.schedule.time + world.scenario.timeout_ns
        while world.schedule.time < end:
            _step(world, clock)
    return queued


def _queued(world: World) -> int:
    stacks = [host.stack for host in world.hosts.values() if host.stack is not None]
    return sum(sum(stack.queues().values()) for stack in stacks)


def _one_view(world: World) -> bool:
    return not world.info.views or all(host.view == world.scenario.ids for host in world.hosts.values())


def weigh(stack: Stack | None) -> int:
    """Bytes of everything a stack holds."""
    seen: set[int] = set()
    todo: list[Any] = [stack]
    total = 0
    skipped = (type, ModuleType)
    while todo:
        value = todo.pop()
        if id(value) in seen or isinstance(value, skipped) or callable(value):
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        if isinstance(value, Struct):
            todo += [getattr(value, name) for name in value.__struct_fields__]
        else:
            todo += gc.get_referents(value)
    return total
