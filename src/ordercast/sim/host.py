"""A host: one server with a finite input buffer, its clocks, and the process of one member on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ordercast.drivers.incoming import Incoming
from ordercast.sim.disk import Disk
from ordercast.sim.scenario import Cost, Costs
from ordercast.stack import Stack
from ordercast.types import Peer

if TYPE_CHECKING:
    from ordercast.sim.application import Application
    from ordercast.sim.caller import Caller
    from ordercast.sim.links import Datagram
    from ordercast.sim.traps import Trap

MILLION = 1_000_000
CostFunction = Callable[[str, int, int, int, object], tuple[int, int]]
"""(input or action, bytes, messages, work, packet) -> (busy ns, latency ns).  Words: receive, transmit, submit,
deliver, timer, work, and start, stored, unreachable, room, leave.  Only the first two have a packet."""


class Machine:
    """What a cost per step cannot say of a host; of most there is nothing to say."""

    def cost(self, what: str, size: int, messages: int, work: int, packet: object) -> tuple[int, int]:
        """As a CostFunction."""
        raise NotImplementedError

    def buffered(self, datagram: Datagram) -> int:
        """What it takes of the input buffer, in bytes."""
        raise NotImplementedError

    def lost(self, datagram: Datagram) -> int:
        """What one costs that found no room there, in ns."""
        raise NotImplementedError

    def stalled(self, time: int, until: int) -> int:
        """For how long it stands still while it works from `time` to `until`, in ns."""
        raise NotImplementedError


def linear_cost(hosts: Costs) -> CostFunction | None:
    """The cost function of a scenario's numbers; None when nothing costs anything."""
    parts: dict[str, Cost] = {
        "receive": hosts.receive,
        "transmit": hosts.transmit,
        "submit": hosts.submit,
        "deliver": hosts.deliver,
        "timer": hosts.timer,
        "work": hosts.work,
    }
    if all(cost == Cost() for cost in parts.values()):
        return None
    free = Cost()

    def cost(what: str, size: int, messages: int, work: int, packet: object) -> tuple[int, int]:
        c = parts.get(what, free)
        busy = c.us * (work if what == "work" else 1) + c.per_kb_us * size / 1024 + c.per_message_us * messages
        return int(busy * 1000), int(c.latency_us * 1000)

    return cost


def slower(cost: CostFunction | None, times: float, step_ns: int) -> CostFunction:
    """The same host, `times` as slow; an input that cost nothing costs `step_ns` before that."""

    def slow(what: str, size: int, messages: int, work: int, packet: object) -> tuple[int, int]:
        busy, latency = cost(what, size, messages, work, packet) if cost is not None else (0, 0)
        if what in ("receive", "submit", "timer"):
            busy = max(busy, step_ns)
        return int(busy * times), int(latency * times)

    return slow


class Clock:
    """A member's monotonic clock: never goes back, may run fast or slow."""

    __slots__ = ("anchor", "base", "ppm")

    def __init__(self, base: int, ppm: int) -> None:
        self.anchor, self.base, self.ppm = 0, base, ppm

    def now(self, time: int) -> int:
        passed = time - self.anchor
        return self.base + passed + passed * self.ppm // MILLION

    def time(self, now: int) -> int:
        """The first virtual time at which the clock shows `now` or more."""
        passed = -(-(now - self.base) * MILLION // (MILLION + self.ppm))
        time = self.anchor + passed
        return time if self.now(time) >= now else time + 1

    def copy(self) -> Clock:
        clock = Clock(self.base, self.ppm)
        clock.anchor = self.anchor
        return clock

    def drift(self, time: int, ppm: int) -> None:
        """Run at another pace from now on."""
        self.base, self.anchor = self.now(time), time
        self.ppm = ppm


class Host:
    """State of one member's host and process, as the world keeps it."""

    __slots__ = (
        "accepted", "application", "buffer", "buffer_bytes", "buffer_bytes_max", "buffer_packets_max", "busy", "caller",
        "clock", "consumer", "cost", "counter", "delivered", "disk", "doomed", "drained", "drops", "earlier", "id",
        "incarnation", "incoming", "known", "last", "late", "left", "listens", "lives", "machine", "nets", "offset",
        "owed", "own", "paused", "peer", "plain", "read", "reading", "receive", "recorded", "recorder", "simple",
        "stack", "suspended", "timeouts", "timers", "transmitted", "transmitted_bytes", "traps", "untold", "up", "view",
        "views", "wall_ns",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        nets: tuple[int, ...],
        clock: Clock,
        disk: Disk,
        cost: CostFunction | None = None,
        recorded: bool = False,
        machine: Machine | None = None,
    ) -> None:
        self.id, self.nets, self.clock, self.disk, self.cost = id, nets, clock, disk, cost
        self.recorded = recorded  # every input is kept
        self.machine = machine  # None: a datagram takes its bytes of the buffer, a lost one costs nothing
        self.wall_ns = 0  # how far the wall clock jumped
        self.timeouts = 1.0  # its process uses so many times the timeout of the others
        self.buffer_packets_max = 0
        self.buffer_bytes_max = 0
        self.incarnation = 0
        self.lives = 0
        self.views = 0  # regular views installed, over all lives
        self.earlier = 0  # messages delivered in earlier lives
        self.delivered = 0
        self.consumer: list[int] | None = None  # [capacity, used] while the application does not read
        self.up = self.paused = self.busy = self.left = False
        self.plain = False  # may be called straight from the queue
        self.simple = True  # what it says may be carried out straight away
        self.offset = 0
        self.peer = Peer(id, 0)
        self.recorder: Any = None
        self.application: Application
        self.listens = False  # the application is given what is delivered
        self.caller: Caller | None = None
        self.forget()

    @property
    def delivered_all(self) -> int:
        """Messages delivered, over all lives."""
        return self.earlier + self.delivered

    @property
    def calls_nothing(self) -> bool:
        """No call on the replicated ledger is still to come."""
        return self.caller is None or self.caller.done

    def refresh(self) -> None:
        """Whether it may be called straight from the queue; and the constant part of its clock."""
        clock = self.clock
        waits = self.traps or self.consumer is not None or self.listens
        self.simple = self.cost is None and clock.ppm == 0 and not waits
        self.plain = (
            self.simple
            and self.up
            and not self.paused
            and not self.busy
            and not self.buffer
            and not self.late
            and not self.drops
            and not self.untold
            and not self.recorded
        )
        self.offset = clock.base - clock.anchor

    def forget(self) -> None:
        """All that a process holds in memory."""
        self.stack: Stack | None = None
        self.receive: Any = None
        self.drained: Any = None
        self.buffer: deque[Any] = deque()
        self.buffer_bytes = 0
        self.owed = 0  # ns that lost datagrams cost, to be paid with the next input
        self.drops: dict[int, int] = {}  # by net: datagrams lost since the last one that found room
        self.incoming: Incoming | None = None
        self.known: dict[int, Peer] = {}  # lives of others that it has heard of
        self.untold: dict[int, int] = {}  # by net: datagrams lost, of which the core has not heard
        self.late: deque[Any] = deque()  # inputs that wait for the packets before them
        self.read = 0  # datagrams since the last drained
        self.reading = 0  # the net that is read
        self.timers: dict[str, list[int]] = {}
        self.suspended: list[Any] = []  # actions a pause in mid-handler held back
        self.traps: list[Trap] = []  # crashes and pauses that wait for their moment
        self.transmitted = self.transmitted_bytes = 0  # datagrams of this life; bytes where sizes matter
        self.counter = 0  # last message submitted
        self.accepted = 0
        self.own = 0  # own messages delivered here
        self.earlier += self.delivered
        self.delivered = 0
        self.last: dict[int, int] = {}  # sender -> the counter after the last one delivered
        self.view: tuple[int, ...] = ()
        self.busy = False
        self.left = False
        self.doomed = False  # it crashed in this handler, and is gone after it
