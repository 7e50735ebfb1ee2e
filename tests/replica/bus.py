"""An order of calls without a network: machines of several members, driven by hand or by an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from ordercast.live.replicas import Replicas
from ordercast.replica.objects import Objects
from ordercast.replica.replica import Replica
from ordercast.state.machine import COMPLETE, Answered, Calls, Context, FateUnknown, Standing
from ordercast.types import Peer, Service


class Member:
    """One machine and those who call it."""

    def __init__(self, bus: Bus, id: int, life: int = 1) -> None:
        self.bus, self.peer = bus, Peer(id, life)
        self.machine = Objects(self.peer)
        self.replicas = Replicas(self.machine, (Service.AGREED, Service.SAFE), self._submit)

    def _submit(self, calls: Calls) -> str:
        if self.bus.refuse:
            return self.bus.refuse
        self.bus.waiting.append((self, calls))
        self.bus.wake()
        return ""

    def stand(self, word: str = COMPLETE, why: str = "") -> None:
        self.replicas.take(Standing(word, self.bus.n, b"", why))

    async def have(self, name: str, object: Any, **more: Any) -> Any:
        return await self.replicas.replicate(name, object, **more)

    def take_over(self, other: Member) -> None:
        """Another's state, as it is now."""
        pieces = list(other.machine.snapshot())
        restoring = self.machine.restore()
        for piece in pieces:
            restoring.feed(piece)
        restoring.finish()
        self.stand()


class Bus:
    """Calls in the order in which they came; `held`: they wait for `step`."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.waiting: deque[tuple[Member, Calls]] = deque()
        self.n, self.refuse, self.held = 0, "", False
        self.log: list[tuple[Peer, bytes]] = []
        self._woken = False

    def join(self, id: int, life: int = 1) -> Member:
        """A member that gets the state of the others, if there are some."""
        member = Member(self, id, life)
        source = self.members[0] if self.members else None
        self.members.append(member)
        if source is not None:
            member.take_over(source)
        else:
            member.stand()
        self.present()
        return member

    def leave(self, member: Member) -> None:
        self.members.remove(member)
        self.present()

    def lives(self) -> tuple[Peer, ...]:
        return tuple(sorted(member.peer for member in self.members))

    def present(self) -> None:
        context = Context(Peer(0, 0), 0, self.n, b"present", 0, self.lives())
        for member in self.members:
            member.machine.present(self.lives(), context)

    def wake(self) -> None:
        if not self._woken and not self.held:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        while self.waiting and not self.held:
            self.step()

    def step(self) -> None:
        """One batch reaches everybody."""
        caller, calls = self.waiting.popleft()
        members = list(self.members)
        context = Context(caller.peer, calls.first, self.n, b"%d" % self.n, calls.time_ns, self.lives())
        self.n += len(calls.payloads)
        self.log += [(caller.peer, payload) for payload in calls.payloads]
        for member in members:
            answers = member.machine.apply(list(calls.payloads), context)
            if member is caller:
                member.replicas.take(Answered(calls.first, answers))

    def forget(self) -> None:
        """What waits is applied by nobody."""
        while self.waiting:
            caller, calls = self.waiting.popleft()
            caller.replicas.take(FateUnknown(calls.first, len(calls.payloads), "the view changed"))

    def states(self) -> list[bytes]:
        """What each member would give away."""
        return [b"".join(member.machine.snapshot()) for member in self.members]

    def same(self) -> None:
        first, *others = self.states()
        assert all(other == first for other in others)


def three() -> tuple[Bus, list[Member]]:
    bus = Bus()
    return bus, [bus.join(id) for id in (1, 2, 3)]


async def everywhere(members: list[Member], name: str, kind: type[Replica]) -> list[Any]:
    """One object of this class at each."""
    return [await member.have(name, kind()) for member in members]
