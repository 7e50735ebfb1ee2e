"""One member of a benchmark: sends as told, reads the first eight bytes of every message, hashes the order.

Run by bench.py as `python -m ordercast.lab.load SPEC`; it uses the library as an application would, in the batch form.
A message is the time it was due (CLOCK_MONOTONIC, shared by all processes of a machine), its number, and padding.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import resource
import struct
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from ordercast import config as configuration
from ordercast.errors import OrdercastError, Overloaded
from ordercast.lab.echo import EchoMeter, table_bytes
from ordercast.live import build, lifeline, tuning
from ordercast.live.alarm import Alarm
from ordercast.live.group import Group
from ordercast.trace.schema import Level
from ordercast.types import Batch, Service, View

CHECKPOINT_FRAMES = 64
NEVER = 2**63
VIEWS_BYTES = 1000  # from this size on messages are read without a copy
ECHO_MESSAGES = 8  # every so manieth message of a sender carries the table of the skew-free methods
QUIET_SECONDS = 10.0  # to drain after the last send
_STAMP = struct.Struct("<Q")
_HEAD = struct.Struct("<QQ")
_ORDER = struct.Struct("<IQQI")
_clock = time.monotonic_ns


class Spec(msgspec.Struct):
    """What one member of a benchmark does."""

    config: str
    me: int
    size: int
    sends: bool
    rate: float  # messages per second of this member; 0: as fast as the group takes them
    seconds: float
    warm_up: float
    service: str
    ahead: int  # messages that a sender keeps on their way when it sends as fast as it can
    profile: str = ""
    members: int = 0
    offset: float = 0.0  # seconds after the start at which the first message is due; senders take turns
    crossing: float | None = None  # the share of messages that are for everybody; the others are for this member's ring
    home: int = 0


class Load:
    """The application of one member."""

    def __init__(self, spec: Spec, group: Group) -> None:
        self.spec, self.group = spec, group
        self.service = Service[spec.service.upper()]
        self.pad = bytes(max(0, spec.size - _HEAD.size))
        self.delivered = self.sent = self.outstanding = 0
        self.near = (f"ring{spec.home}",) if spec.crossing is not None else ()  # the process group of its ring
        self.own = self.sent_near = 0  # own messages that came back in the window; sent to its ring alone
        self.share = 0.0  # of the next batch that is for everybody, as far as it has grown
        self.frames = self.views = 0  # views: since the load began
        self.per_sender = self.service in (Service.FIFO, Service.CAUSAL)  # no order but each sender's
        self.orders: dict[int, Any] = {}  # of all (0), or of each sender
        self.checkpoints: list[str] = []
        self.latencies: dict[int, list[int]] = {}  # by sender
        self.meter = EchoMeter(group.me)
        table = table_bytes(spec.members)
        self.echoes = spec.rate > 0 and 0 < table <= spec.size - _HEAD.size  # messages have room for the table
        self.opens = self.closes = NEVER
        self.window: list[tuple[int, float, float]] = []  # (delivered, user, system seconds) at both ends
        self.total: int | None = None  # all messages of all senders, once they are known
        self.done = asyncio.Event()
        self.profiler: Any = None
        if spec.profile:
            import cProfile

            self.profiler = cProfile.Profile()

    # ------------------------------------------------------------------------------------------------------- sending

    def begin(self, start: int) -> None:
        """Send from `start` to the end of the window."""
        spec, loop = self.spec, asyncio.get_running_loop()
        self.opens = start + int(spec.warm_up * 1e9)
        self.closes = self.opens + int(spec.seconds * 1e9)
        self.due = start + spec.offset * 1e9
        self.alarms = [Alarm(loop, self._snapshot), Alarm(loop, self._snapshot)]
        self.alarms[0].set(self.opens)
        self.alarms[1].set(self.closes)
        self.pace = Alarm(loop, self._send_due if spec.rate else self._fill)
        if spec.sends:
            self.pace.set(int(self.due))

    def _snapshot(self) -> None:
        if self.profiler is not None:
            (self.profiler.disable if self.window else self.profiler.enable)()
        used = os.times()
        self.window.append((self.delivered, used.user, used.system))

    def _fill(self) -> None:
        """Keep `ahead` messages on their way."""
        now, count = _clock(), self.spec.ahead - self.outstanding
        if 4 * count < self.spec.ahead or now >= self.closes:
            return  # a quarter at a time
        pack, pad, first = _HEAD.pack, self.pad, self.sent
        if self.spec.size >= _HEAD.size:
            payloads = [pack(now, number) + pad for number in range(first, first + count)]
        else:
            payloads = [pack(now, number)[: self.spec.size] for number in range(first, first + count)]
        self._submit(payloads)

    def _send_due(self) -> None:
        """Everything that is due by now, each stamped with its own time."""
        now, step = _clock(), 1e9 / self.spec.rate
        payloads: list[bytes] = []
        while self.due <= now and self.due < self.closes:
            number = self.sent + len(payloads)
            table = self.meter.table(int(self.due)) if self.echoes and number % ECHO_MESSAGES == 0 else b""
            head = _HEAD.pack(int(self.due), number)
            payloads.append((head + table + self.pad)[: self.spec.size])
            self.due += step
        if payloads:
            self._submit(payloads)
        if self.due < self.closes:
            self.pace.set(int(self.due))

    def _submit(self, payloads: list[bytes]) -> None:
        try:
            far = self._far()
            self.group.send_batch_nowait(payloads, self.service, () if far else self.near)
        except Overloaded:
            self.pace.set(_clock() + 1_000_000)
            return
        self.sent += len(payloads)
        self.sent_near += 0 if far else len(payloads)
        self.outstanding += len(payloads)

    def _far(self) -> bool:
        """Whether the next batch is for everybody: as often as its share says."""
        if self.spec.crossing is None:
            return True
        self.share += self.spec.crossing
        if self.share < 1:
            return False
        self.share -= 1
        return True

    def all_sent(self) -> bool:
        """What was due before the window closed is sent, late as its alarm may have been, and came back."""
        awaits = self.spec.sends and self.spec.rate > 0 and self.due < self.closes
        return not awaits and not self.outstanding

    # ----------------------------------------------------------------------------------------------------- receiving

    async def read(self) -> None:
        """Take every message, look into it, and note where it stands in the order."""
        me, floods = self.group.me, self.spec.sends and not self.spec.rate
        read = Batch.views if self.spec.size >= VIEWS_BYTES else Batch.payloads
        long_enough, every = self.spec.size >= _STAMP.size, self.spec.rate > 0
        stamp_of = _STAMP.unpack_from
        pack, per_sender = _ORDER.pack, self.per_sender
        async for batch in self.group.batches():
            if type(batch) is not Batch:
                self.views += self.opens < NEVER and type(batch) is View
                continue
            now = _clock()
            count = batch.count
            payloads = read(batch)
            stamps = [stamp_of(payload)[0] for payload in payloads] if long_enough else []
            self.frames += 1
            if not batch.groups:  # what not all get has no order of all
                order = self._order(batch.sender if per_sender else 0)
                order.update(pack(batch.sender, batch.incarnation, batch.counter, count))
            if not self.near and self.frames % CHECKPOINT_FRAMES == 0 and not per_sender:
                self.checkpoints.append(order.copy().hexdigest())
            self.delivered += count
            if stamps and self.opens <= now < self.closes:
                found = self.latencies.get(batch.sender)
                if found is None:
                    found = self.latencies[batch.sender] = []
                found += [now - stamp for stamp in (stamps if every else stamps[:1])]
                if self.echoes:
                    self._echo(batch.sender, stamps[0], payloads[0], now)
            if batch.sender == me:
                self.outstanding -= count
                self.own += count * (self.opens <= now < self.closes)
                if floods:
                    self._fill()
            if self.delivered == self.total:
                self.done.set()

    def _order(self, line: int) -> Any:
        """The hash of what came so far, in its order."""
        found = self.orders.get(line)
        if found is None:
            found = self.orders[line] = hashlib.blake2b(digest_size=16)
        return found

    def _echo(self, sender: int, stamp: int, first: bytes | memoryview, now: int) -> None:
        """For the method that needs no common clock and goes by single messages."""
        if _HEAD.unpack_from(first)[1] % ECHO_MESSAGES == 0:
            self.meter.received(sender, stamp, bytes(first[_HEAD.size :]), now)

    def result(self) -> dict[str, Any]:
        while len(self.window) < 2:
            self._snapshot()
        if self.profiler is not None:
            self.profiler.dump_stats(Path(self.spec.profile) / f"member-{self.group.me}.prof")
        (first, user0, system0), (last, user1, system1) = self.window
        latencies = sorted(ns for found in self.latencies.values() for ns in found)
        return {
            "member": self.group.me,
            "msgs": last - first,
            "user_s": user1 - user0,
            "system_s": system1 - system0,
            "delivered": self.delivered,
            "sent": self.sent,
            "own": self.own,
            "total": self.total,
            "frames": self.frames,
            "views": self.views,
            "p50_us": latencies[len(latencies) // 2] / 1e3 if latencies else None,
            "p99_us": latencies[int(len(latencies) * 0.99)] / 1e3 if latencies else None,
            "skew_free": self.meter.result(self.latencies if self.spec.rate else {}),
            "most_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "checkpoints": self.checkpoints,
            "order": " ".join(order.hexdigest() for _, order in sorted(self.orders.items())),
            "status": self.group.status(),
        }


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


async def main(spec: Spec) -> None:
    config = configuration.load(spec.config, spec.me)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    level, service = Level[config.trace.level.upper()], Service[spec.service.upper()]
    trace = None if level is Level.OFF else build.Trace(config.group, config.trace_path, level, service)
    group = Group(config, spec.me, folder=config.state_path(spec.me), trace=trace)
    async with group:
        load = Load(spec, group)
        reader = asyncio.create_task(load.read())
        for name in load.near if spec.me not in config.pure else ():
            await group.join_group(name)
        while group.view is not None and len(group.view.members) < len(config.members):
            await asyncio.sleep(0.01)
        tuning.rarely_collect()
        say(ready=spec.me)
        async for line in commands:
            command = json.loads(line)
            if "start" in command:
                load.begin(command["start"])
                await asyncio.sleep((load.closes - _clock()) / 1e9)
                while not load.all_sent() and not reader.done():
                    await asyncio.sleep(0.01)
                say(sent=[load.sent, load.sent_near])
            elif "total" in command:
                load.total = command["total"]
                if load.delivered < load.total and spec.me not in config.pure:
                    await asyncio.wait([asyncio.ensure_future(load.done.wait()), reader], timeout=QUIET_SECONDS,
                                       return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
                say(result=load.result())
            else:
                break
        group.node.end_trace()
        reader.cancel()


if __name__ == "__main__":
    lifeline.hold()
    tuning.keep_memory()
    tuning.short_turns()
    try:
        tuning.run(main(msgspec.json.decode(sys.argv[1], type=Spec)))
    except OrdercastError as why:
        sys.exit(f"ordercast: {why}")
