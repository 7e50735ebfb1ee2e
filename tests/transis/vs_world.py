"""Runs of the view-synchronous layer that are hurt at one packet of a view change, and invariants looked at on the way.

`Struck` is a simulated world with a hand on its network: it counts the packets of a view change from some moment on,
and after the k-th one strikes.  `Inspector` looks at the cores after every step: R1, R3, R4, R7.  What members
delivered in a view is compared from the trace: R11.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ordercast.contract import Note, Transmit
from ordercast.sim.faults import AnyFault, Crash, Leaving, Partition, Pause
from ordercast.sim.host import Host
from ordercast.sim.law import Delay
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Hosts, Load, Net, Scenario
from ordercast.sim.world import World
from ordercast.swarm.judge import judge_outcome
from ordercast.trace.schema import Kind
from ordercast.transis.link import Link
from ordercast.types import ViewKind

T_MS = 40.0
FLUSH = ("CommitToken", "FlushToken", "FlushData", "FlushState", "FlushNack")
ONSET, OVER, HEAL = 10.0, 18.0, 24.0  # T: the view change begins, is over; all is well again
Strike = Callable[["Struck"], None]


def links(world: World) -> dict[int, Link]:
    """The layer of everybody who is up."""
    return {host.id: link_of(host) for host in world.hosts.values() if host.up and host.stack is not None}


def link_of(host: Host) -> Link:
    assert host.stack is not None
    link = host.stack.nodes[-1].layer
    assert isinstance(link, Link)
    return link


class Hole:
    """A fault on links: what `lost(source, to, packet)` names does not arrive."""

    hits = 0

    def __init__(self, lost: Callable[[int, int, Any], bool]) -> None:
        self.lost = lost

    def wants(self, net: int, source: int, to: int, multicast: bool, packet: Any) -> bool:
        return self.lost(source, to, packet)

    def multicast(self, receivers: list[int]) -> None:
        pass

    def act(self, source: int, to: int, at: int, datagram: Any, out: list[Any]) -> None:
        self.hits += 1

    def release(self) -> None:
        pass


class Inspector:
    """Invariants of the layer that a trace does not show, after every step of a core."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.frozen: dict[tuple[int, int], tuple[Any, list[int]]] = {}

    def look(self, host: Host) -> None:
        cores = links(self.world)
        core = cores.get(host.id)
        if core is None:
            return
        self._freeze(host, core)
        for id, other in cores.items():
            if other.talk.id == core.talk.id and id != host.id and core.talk.id.seq:
                self._acknowledged(core, other)
                self._acknowledged(other, core)

    def _freeze(self, host: Host, core: Link) -> None:
        """R4: after the freeze `have` does not change until the install."""
        key, traffic = (host.id, host.incarnation), core.talk.traffic
        if not core.standing.frozen:
            self.frozen.pop(key, None)
            return
        view, have = self.frozen.setdefault(key, (traffic.id, list(traffic.have)))
        if view != traffic.id:
            self.frozen[key] = traffic.id, list(traffic.have)
        else:
            assert have == traffic.have, f"R4: member {host.id} inserted after the freeze"

    @staticmethod
    def _acknowledged(one: Link, two: Link) -> None:
        """R1: what one has not acknowledged, and two is known to have, two still buffers.  R3: stable is what all have.

        With have, as everybody acknowledges only what it has."""
        mine, theirs = one.talk.traffic, two.talk.traffic
        rank = mine.rank_of[two.me]
        acked = mine.stability.acked(rank)
        for q, (known, here) in enumerate(zip(acked, mine.have, strict=True)):
            assert known <= theirs.have[q], "an acknowledgement of what is not there"
            for k in range(here + 1, known + 1):
                assert (q, k) in theirs.stability.buffer, f"R1: {two.me} released {(q, k)}, which {one.me} lacks"
        assert all(s <= h for s, h in zip(mine.stability.stable, theirs.have, strict=True)), "R3"


class Struck(World):
    """A run in which something happens after the k-th packet of a view change (0: never)."""

    def __init__(
        self, scenario: Scenario, after: int = 0, strike: Strike | None = None, *,
        packets: Iterable[str] = FLUSH, inspect: bool = True, maker: Any = None,
        note: tuple[str, Callable[[Struck, int], None]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(scenario, level="full", maker=maker)
        self.note = note  # once, when a member notes this after the onset
        self.after, self.strike, self.counted = after, strike, tuple(packets)
        self.count = 0  # packets of the view change
        self.last: tuple[int, Transmit] | None = None  # of them
        self._transmit, self._perform = self.carrier.transmit, self.driver.perform
        self.driver.transmit = self._counting
        self.inspector = Inspector(self) if inspect else None
        if inspect or note:
            self.driver.perform = self._inspected

    @property
    def t_ns(self) -> int:
        return self.scenario.timeout_ns

    def _inspected(self, host: Host, actions: list[Any]) -> None:
        if self.note is not None and self.schedule.time >= ONSET * self.t_ns:
            name, act = self.note
            if any(type(action) is Note and action.name == name for action in actions):
                self.note = None
                act(self, host.id)
        self._perform(host, actions)
        if self.inspector is not None:
            self.inspector.look(host)

    def _counting(self, host: Host, action: Transmit) -> None:
        if type(action.packet).__name__ in self.counted and ONSET <= self.schedule.time / self.t_ns < OVER:
            self.count += 1
            self.last = (host.id, action)
            if self.count == self.after and self.strike is not None:
                self._transmit(host, action)
                self.strike(self)
                return
        self._transmit(host, action)

    # ---------------------------------------------------------------------------------------------------- what strikes

    def later(self, timeouts: float, call: Callable[[], None]) -> None:
        self.plan.after(round(timeouts * self.t_ns), call)

    def crash(self, member: int, down: float | None = 3.0) -> None:
        """After the step in which it happens."""
        host = self.hosts[member]
        self.later(0, lambda: self.lives.crash(host))
        if down is not None:
            self.later(down, lambda: self.lives.restart(host))

    def pause(self, member: int, length: float = 2.0) -> None:
        host = self.hosts[member]
        self.later(0, lambda: self.lives.pause(host))
        self.later(length, lambda: self.lives.resume(host))

    def lose(self, lost: Callable[[int, int, Any], bool], length: float | None) -> Hole:
        hole = Hole(lost)
        self.carrier.switch_on(hole)  # type: ignore[arg-type]
        if length is not None:
            self.later(length, lambda: self.carrier.switch_off(hole))  # type: ignore[arg-type]
        return hole

    def isolate(self, member: int, length: float | None = 3.0) -> None:
        self.lose(lambda source, to, packet: member in (source, to), length)


# ------------------------------------------------------------------------------------------------------------ scenarios

CHANGES: dict[str, Callable[[int], tuple[AnyFault, ...]]] = {
    "crash of the first": lambda n: (Crash(at_ms=ONSET * T_MS, member=1),),
    "crash of the last": lambda n: (Crash(at_ms=ONSET * T_MS, member=n),),
    "leave": lambda n: (Leaving(at_ms=ONSET * T_MS, member=2),),
    "split": lambda n: (_split(n, ONSET, HEAL),),
    "merge": lambda n: (_split(n, ONSET - 6, ONSET),),
    "restart": lambda n: (Crash(at_ms=(ONSET - 6) * T_MS, member=2, down_ms=6 * T_MS),),
    "return": lambda n: (Pause(at_ms=(ONSET - 3) * T_MS, member=2, for_ms=3 * T_MS),),
}


def _split(n: int, at: float, until: float) -> AnyFault:
    halves = tuple(range(1, n // 2 + 1)), tuple(range(n // 2 + 1, n + 1))
    return Partition(shape="halves", groups=halves, at_ms=at * T_MS, until_ms=until * T_MS)


def scenario(n: int, protocol: str, faults: tuple[AnyFault, ...] = (), seed: int = 1, **fields: Any) -> Scenario:
    """A group under a steady load; everything heals, and the core says a few words more."""
    settings: dict[str, Any] = {
        "protocol": protocol, "members": n, "seed": seed, "timeout_ms": T_MS, "messages": 30 * n,
        "load": Load(regime="poisson", rate=30.0, start_ms=2 * T_MS),
        "nets": (Net(model="links", delay=Delay("uniform", low_us=50.0, high_us=600.0), mbit=0.0),),
        "hosts": Hosts(disk_us=100.0), "faults": faults, "heal_ms": HEAL * T_MS, "closing": 3,
        "settle_ms": 8 * T_MS, "limit_ms": 400 * T_MS,
    }  # fmt: skip
    return Scenario(**settings | fields)


def hurt(world: World) -> list[str]:
    """What is wrong with a run: broken promises, lists that differ (R11), no common view in the end."""
    return wrong(world, world.run())


def wrong(world: World, outcome: Outcome) -> list[str]:
    found = [f"{b.promise}: {b.text}" for b in judge_outcome(outcome).breaks]
    up = tuple(host.id for host in world.hosts.values() if host.up)
    found += [f"member {id} ends in {world.hosts[id].view}" for id in up if world.hosts[id].view != up]
    return found + same_lists(outcome.trace, ordered="S17" in outcome.trace.header.promises)


def delivered_in(trace: Any) -> dict[tuple[int, int], dict[tuple[int, int], tuple[list[Any], Any]]]:
    """View -> life -> what it delivered in it and its transitional view, and the row of the next view."""
    out: dict[Any, dict[Any, tuple[list[Any], Any]]] = defaultdict(dict)
    view: dict[Any, Any] = {}
    for row in trace.rows:
        life = (row.member, row.incarnation)
        if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR:
            if life in view:
                out[view[life]][life] = (out[view[life]][life][0], row)
            view[life] = (row.view_seq, row.view_rep)
            out[view[life]][life] = ([], None)
        elif row.kind == Kind.DELIVER and life in view:
            out[view[life]][life][0].append((row.sender, row.sender_incarnation, row.counter, row.count))
    return out


def same_lists(trace: Any, ordered: bool) -> list[str]:
    """R11, as far as a trace shows it: of those in one transitional set, whatever view came next, same lists."""
    found: list[str] = []
    sets: dict[Any, dict[Any, frozenset[int]]] = defaultdict(dict)
    for row in trace.rows:
        if row.kind == Kind.VIEW and row.view_kind == ViewKind.TRANSITIONAL:
            old = (row.previous_seq, row.previous_rep)
            sets[old][row.member, row.incarnation] = frozenset(row.members)
    for view, lives in delivered_in(trace).items():
        lists: dict[frozenset[int], list[Any]] = {}
        for life, (messages, then) in sorted(lives.items()):
            if then is None or life not in sets[view]:
                continue
            what = messages if ordered else sorted(messages)
            first = lists.setdefault(sets[view][life], what)
            if first != what:
                found.append(f"R11: member {life[0]} delivered another list in view {view} than its companions")
    return found
