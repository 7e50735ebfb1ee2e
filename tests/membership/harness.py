"""A small world for the membership alone: n members whose owner only passes a token, in virtual time, over a scripted
network.  The owner installs after three visits of the new ring's token, as a recovery without messages does."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable

from ordercast.contract import ALL, CancelTimer, Note, Packet, SetTimer, Store, Transmit
from ordercast.membership import (
    PACKETS,
    Committed,
    CommitToken,
    Decision,
    Gathering,
    Membership,
    Outdone,
    Parted,
    Returned,
    State,
)
from ordercast.types import Identity, Peer, ViewId
from ordercast.wire.codec import Codec

MS = 1_000_000
CODEC = Codec(PACKETS)


class Token(Packet, frozen=True, array_like=True, gc=False, tag=1):
    """The trivial owner's regular token."""

    ring_id: ViewId
    number: int
    to: int


class Owner:
    """Holds a Membership and passes a token; nothing else."""

    def __init__(self, world: World, identity: Identity, timeout_ns: int, direct: bool, options: dict) -> None:
        self.world, self.me, self.seat, self.why = world, identity.me, identity.me, ""
        self.peer = Peer(identity.me, identity.incarnation)
        self.m = Membership(identity, timeout_ns, world.rng, entry=lambda: b"", direct=direct, **options)
        self.ring = ViewId(0, 0)
        self.members: tuple[int, ...] = ()
        self.number = 0
        self.visits = 0
        self.hold_ns = timeout_ns // 20
        self.parted = False

    def carry(self, now: int, actions: list) -> list:
        out = []
        for action in actions:
            out += self.decided(now, action) if isinstance(action, Decision) else [action]
        return out

    def decided(self, now: int, decision: Decision) -> list:
        match decision:
            case Gathering():
                self.members, self.number = (), 0
                return [CancelTimer("hold")]
            case Committed():
                self.ring, self.members, self.number, self.visits = decision.ring_id, decision.members, 0, 0
                self.world.check_commit(self.me, decision)
                self.cause = decision.cause
            case Returned() if len(self.members) == 1:
                return self.install(now)
            case Returned():
                return self.send_on(now)
            case Parted():
                self.parted = True
            case Outdone():
                self.parted, self.why = True, decision.why
        return []

    def install(self, now: int) -> list:
        actions = self.m.installed(now)
        self.world.installed(now, self, self.ring, self.members)
        return self.carry(now, actions)

    def send_on(self, now: int) -> list:
        if not self.members:
            return []
        self.number += 1
        to = self.members[(self.members.index(self.me) + 1) % len(self.members)]
        token = Token(self.ring, self.number, to)
        return self.carry(now, self.m.pass_token(now, to, token, self.ring, self.number))

    def receive(self, now: int, peer: Peer, packet: Packet) -> list:
        actions = self.m.heard(now, peer)
        if actions is None:
            self.world.refused[self.me] += 1
            return self.carry(now, self.m.ignored(now, peer, packet))
        out = self.carry(now, actions)
        if not isinstance(packet, Token):
            return out + self.carry(now, self.m.receive(now, peer, packet))
        if packet.ring_id != self.ring or not self.members:
            return out + self.carry(now, self.m.foreign(now, peer, packet.ring_id))
        if packet.number > self.number and packet.to != self.me:
            return out + self.carry(now, self.m.went_on(now))
        if packet.to != self.me or packet.number <= self.number:
            return out
        return out + self.visit(now, packet)

    def visit(self, now: int, token: Token) -> list:
        self.number = token.number
        out = self.carry(now, self.m.token(now, self.ring, token.number))
        if self.m.state is State.RECOVERY:
            self.visits += 1
            if self.visits == 3:
                out += self.install(now)
        if not self.members:
            return out
        if self.m.state is State.OPERATIONAL and self.me == self.members[0]:
            return [*out, SetTimer("hold", now + self.hold_ns)]
        return out + self.send_on(now)

    def timer(self, now: int, name: str, due: int) -> list:
        if name == "hold":
            return self.carry(now, self.m.stood_still(now, due)) + self.send_on(now)
        return self.carry(now, self.m.timer(now, name, due))


class World:
    """Virtual time, a lossy network with a filter, members that crash, restart and pause."""

    def __init__(
        self, n: int, timeout_ms: int, seed: int = 1, *, direct: bool = False, wire: bool = False, **options
    ) -> None:
        self.ids = tuple(range(1, n + 1))
        self.timeout_ns = timeout_ms * MS
        self.rng = random.Random(seed)
        self.direct, self.options, self.wire = direct, options, wire
        self.now = 0
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.counter = 0
        self.owners: dict[int, Owner] = {}
        self.timers: dict[tuple[int, str], tuple[int, int]] = {}
        self.disk: dict[int, int] = {}
        self.store_ns = 0
        self.broken_disks: set[int] = set()
        self.paused: dict[int, list] = {}
        self.drop: Callable[[int, int, Packet, bool], bool] = lambda a, b, packet, unicast: False
        self.unreachable = False
        self.delay: Callable[[], int] = lambda: self.rng.randint(50_000, 600_000)
        self.views: list[tuple[int, int, ViewId, tuple[int, ...], str]] = []
        self.committed: dict[ViewId, tuple[int, ...]] = {}
        self.notes: list[tuple[int, int, Note]] = []
        self.incarnation = 0
        self.refused: Counter[int] = Counter()

    # ---------------------------------------------------------------------------------------------------- the clock

    def at(self, time: int, do: Callable[[], None]) -> None:
        self.counter += 1
        heapq.heappush(self.heap, (max(time, self.now), self.counter, do))

    def run(self, until_ns: int) -> None:
        heap = self.heap
        while heap and heap[0][0] <= until_ns:
            self.now, _, do = heapq.heappop(heap)
            do()
        self.now = until_ns

    def run_t(self, timeouts: float) -> None:
        self.run(self.now + int(timeouts * self.timeout_ns))

    # -------------------------------------------------------------------------------------------------------- members

    def start(self, *ids: int) -> None:
        for q in ids or self.ids:
            self.incarnation += 1
            identity = Identity(q, self.incarnation, self.ids, ring_seq=0)
            owner = Owner(self, identity, self.timeout_ns, self.direct, self.options)
            self.owners[q] = owner
            stored = {"ring_seq": (self.disk[q], b"")} if q in self.disk else {}
            self.do(owner, owner.carry(self.now, owner.m.start(self.now, stored)))

    def second(self, q: int) -> Owner:
        """A second process says it is q: its multicasts are heard by all, what is sent to q's address is not for it."""
        self.incarnation += 1
        owner = Owner(self, Identity(q, self.incarnation, self.ids), self.timeout_ns, self.direct, self.options)
        owner.seat = -q
        self.owners[owner.seat] = owner
        self.do(owner, owner.carry(self.now, owner.m.start(self.now, {})))
        return owner

    def unplug(self, q: int) -> Owner:
        """Its address goes to another machine; the process lives on."""
        owner = self.owners.pop(q)
        owner.seat = -q
        self.owners[-q], self.disk[-q] = owner, self.disk[q]
        for seat, name in [key for key in self.timers if key[0] == q]:
            self.set_timer(-q, name, self.timers.pop((seat, name))[0])
        return owner

    def crash(self, q: int) -> None:
        del self.owners[q]
        self.paused.pop(q, None)
        for key in [key for key in self.timers if key[0] == q]:
            del self.timers[key]

    def pause(self, q: int) -> None:
        self.paused[q] = []

    def resume(self, q: int) -> None:
        """Queued packets first, then late timers, as drivers do."""
        queue = self.paused.pop(q)
        for source, packet in queue:
            self.arrive(source, q, packet)
        late = sorted((due, name) for (p, name), (due, _) in self.timers.items() if p == q and due <= self.now)
        for due, name in late:
            self.fire(q, name, due, None)

    def leave(self, q: int) -> None:
        owner = self.owners[q]
        self.do(owner, owner.carry(self.now, owner.m.leave(self.now)))

    # -------------------------------------------------------------------------------------------------------- actions

    def do(self, owner: Owner, actions: list) -> None:
        for action in actions:
            match action:
                case Transmit():
                    self.transmit(owner, action)
                case SetTimer():
                    self.set_timer(owner.seat, action.name, action.at)
                case CancelTimer():
                    self.timers.pop((owner.seat, action.name), None)
                case Store():
                    self.at(self.now + self.store_ns, lambda o=owner, a=action: self.stored(o, a))
                case Note():
                    self.notes.append((self.now, owner.seat, action))
        if owner.parted and self.owners.get(owner.seat) is owner:
            self.crash(owner.seat)

    def stored(self, owner: Owner, store: Store) -> None:
        if self.owners.get(owner.seat) is not owner:
            return
        if owner.seat in self.broken_disks:
            why = "no space left"
            self.do(owner, owner.carry(self.now, owner.m.store_failed(self.now, store.key, store.number, why)))
        else:
            self.disk[owner.seat] = max(store.number, self.disk.get(owner.seat, 0))
            self.do(owner, owner.carry(self.now, owner.m.stored(self.now, store.key, store.number)))

    def transmit(self, owner: Owner, action: Transmit) -> None:
        packet = action.packet
        if isinstance(packet, CommitToken):
            assert self.disk.get(owner.seat, 0) >= packet.ring_id.seq, "M7: ring_seq on storage >= every id on a token"
        if self.wire and not isinstance(packet, Token):
            packet = CODEC.decode(CODEC.encode(packet))
        unicast = action.to != ALL
        for q in (action.to,) if unicast else (*self.ids, *(seat for seat in self.owners if seat < 0)):
            if q == owner.seat or self.drop(owner.me, abs(q), packet, unicast):
                continue
            self.at(
                self.now + self.delay(),
                lambda p=owner.peer, q=q, packet=packet, u=unicast: self.arrive(p, q, packet, u),
            )

    def arrive(self, source: Peer, q: int, packet: Packet, unicast: bool = False) -> None:
        if q in self.paused:
            self.paused[q].append((source, packet))
            return
        owner = self.owners.get(q)
        if owner is not None:
            self.do(owner, owner.receive(self.now, source, packet))
        elif unicast and self.unreachable and source.id in self.owners:
            sender = self.owners[source.id]
            if sender.peer == source:
                self.at(self.now + self.delay(), lambda: self.hint(sender, q))

    def hint(self, owner: Owner, q: int) -> None:
        if self.owners.get(owner.seat) is owner:
            self.do(owner, owner.carry(self.now, owner.m.unreachable(self.now, q)))

    def set_timer(self, q: int, name: str, at: int) -> None:
        self.counter += 1
        generation = self.counter
        self.timers[q, name] = (at, generation)
        self.at(at, lambda: self.fire(q, name, at, generation))

    def fire(self, q: int, name: str, due: int, generation: int | None) -> None:
        timer = self.timers.get((q, name))
        if timer is None or q in self.paused or (generation is not None and timer[1] != generation):
            return
        del self.timers[q, name]
        owner = self.owners[q]
        self.do(owner, owner.timer(self.now, name, due))

    # --------------------------------------------------------------------------------------------------------- judging

    def check_commit(self, q: int, committed: Committed) -> None:
        assert q in committed.members, "M2"
        before = self.committed.setdefault(committed.ring_id, committed.members)
        assert before == committed.members, "one id, one set of members"

    def installed(self, now: int, owner: Owner, ring: ViewId, members: tuple[int, ...]) -> None:
        last = [v for v in self.views if v[1] == owner.seat]
        assert not last or last[-1][2] < ring, "view ids grow along a member"
        self.views.append((now, owner.seat, ring, members, str(owner.cause)))

    def check_invariants(self) -> None:
        for q, owner in self.owners.items():
            m = owner.m
            if m.state is State.OPERATIONAL and q not in self.paused and not m.standing.young:
                chosen = m.chooser(self.now, m.standing.taught(m.sight.table.rows))
                assert chosen == m.members or "m.poll" in m.step.deadlines.due, f"M8 at {q}: {chosen} != {m.members}"
            assert m.number.stored >= m.number.used or not m.frozen

    def count(self, since_ns: int, until_ns: int | None = None) -> dict[int, int]:
        """Views installed per member in a stretch of time."""
        until_ns = self.now if until_ns is None else until_ns
        out = dict.fromkeys(self.ids, 0)
        for when, q, *_ in self.views:
            if q in out and since_ns < when <= until_ns:
                out[q] += 1
        return out

    def partition(self) -> set[tuple[int, ...]]:
        """The views in force; fails if they are not disjoint and complete."""
        views = {q: owner.m.members for q, owner in self.owners.items() if owner.m.state is State.OPERATIONAL}
        for q, members in views.items():
            assert all(views.get(r) == members for r in members), f"{q} in {members}: {views}"
        return set(views.values())


__all__ = ["MS", "Token", "World"]
