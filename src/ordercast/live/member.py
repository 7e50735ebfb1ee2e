"""The process of one member, behind `ordercast member`.

For people: each line of standard input is sent; deliveries and views are printed as JSON lines; SIGTERM leaves.
For `ordercast run`: with a Work, the process submits its share of the workload itself, takes commands (JSON lines) from
its standard input, and tells its progress; when that input closes, the starter is gone and so is the run.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
import time
from typing import Any

import msgspec

from ordercast import registry
from ordercast.config import GroupConfig
from ordercast.contract import GroupView, Missing
from ordercast.drivers.terms import Other
from ordercast.errors import Closed, NotPrimary, Overloaded
from ordercast.live import build, keychange, report, stdin, tuning
from ordercast.live.alarm import Alarm
from ordercast.live.control import Control
from ordercast.live.delays import Delays
from ordercast.live.group import Group
from ordercast.live.metrics import Metrics
from ordercast.trace.clock import utc
from ordercast.trace.schema import Level
from ordercast.types import Batch, MemberId, Service, View
from ordercast.words import short
from ordercast.workload.payload import matches, payload

WORK_SECONDS = 60.0  # a launcher that stops and starts the tagger knows by itself when that takes too long
PROGRESS_SECONDS = 0.1
FRAMES_AHEAD = 4  # of a workload without a rate: how much of it may be on its way, in frames
_clock = time.monotonic_ns


class Work(msgspec.Struct, frozen=True):
    """A member's share of a workload."""

    messages: int
    size: int
    rate: float  # messages per second; 0: as fast as the group takes them
    service: str
    run: str
    whole: dict[str, Any]  # the workload it is a share of, as the trace tells it


def say(**words: Any) -> None:
    """One JSON line for whoever reads us."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Process:
    """What both uses share: the group, its trace, its status socket, the signals."""

    def __init__(
        self, config: GroupConfig, me: MemberId, work: Work | None, metrics: tuple[str, int] | None = None
    ) -> None:
        self.config, self.me, self.work = config, me, work
        self._metrics_at = metrics
        folder = config.state_path(me)
        level = Level[config.trace.level.upper()]
        service = Service[work.service.upper()] if work is not None else registry.get(config.protocol).default_service
        trace = build.Trace(
            run=work.run if work is not None else config.group,
            dir=config.trace_path,
            level=level,
            service=service,
            workload={} if work is None else work.whole,
            expected=matches if work is not None else None,
        )
        patience = None if work is None or config.tagger is None else WORK_SECONDS
        self.group = Group(config, me, folder=folder, trace=trace, timeout=patience, on_other_terms=say_other_terms)
        self.control = Control(folder, self.group.status, self._ordered)
        self.stop = asyncio.Event()
        self.printer: asyncio.Task[None] | None = None
        self.code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)):
            loop.add_signal_handler(number, self._signalled, code)
        self.group.start()
        metrics = self._metrics()
        await self.control.start()
        try:
            waiting = asyncio.ensure_future(self.group.in_view())
            await self._until_stopped(waiting)
            if waiting.done():
                tuning.rarely_collect()
                await (self._work(self.work) if self.work is not None else self._talk())
            waiting.add_done_callback(lambda task: task.cancelled() or task.exception())
            waiting.cancel()
        finally:
            self.control.close()
            if metrics is not None:
                metrics.close()
            try:
                await self.group.leave()
            finally:
                if self.printer is not None:
                    await asyncio.wait([self.printer])  # what was delivered until the end is printed, too
        return self.code

    def _metrics(self) -> Metrics | None:
        if self._metrics_at is None:
            return None
        self.group.node.past.delays = delays = Delays()
        return Metrics(self._metrics_at, self.group.status, delays)

    async def _ordered(self, words: dict[str, Any]) -> dict[str, Any]:
        return await keychange.change(self.group.node, words)

    def _signalled(self, code: int) -> None:
        """The first leaves in good order, another one at once."""
        if self.stop.is_set():
            hurry = asyncio.ensure_future(self.group.leave(timeout=0))
            hurry.add_done_callback(lambda task: task.cancelled() or task.exception())
        self.code = code
        self.stop.set()

    async def _until_stopped(self, *others: asyncio.Task[Any]) -> None:
        """Until a signal comes or one of the tasks ends; a task's error is ours."""
        stopped = asyncio.ensure_future(self.stop.wait())
        done, _ = await asyncio.wait([stopped, *others], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for task in others:
            if task in done:
                task.result()

    # ------------------------------------------------------------------------------------------------ for people

    async def _talk(self) -> None:
        self.printer = asyncio.ensure_future(self._print())
        feeder = asyncio.ensure_future(self._feed())
        try:
            await self._until_stopped(self.printer, feeder)
        finally:
            feeder.cancel()
            await asyncio.wait([feeder])

    async def _feed(self) -> None:
        if self.me not in self.config.pure:
            await stdin.feed(self.group.send_batch)
        await self.stop.wait()  # the end of its input is not the end of the member

    async def _print(self) -> None:
        async for event in self.group.batches():
            at = utc(time.time_ns())
            if type(event) is Batch:
                about = {"event": "message", "time": at, "sender": event.sender}
                counters = range(event.counter, event.counter + event.count)
                messages = zip(counters, event.payloads(), strict=True)
                out = [json.dumps(about | {"counter": counter} | _text(data)) for counter, data in messages]
                sys.stdout.write("\n".join(out) + "\n")
                sys.stdout.flush()
            else:
                say(**describe(event, at))

    # --------------------------------------------------------------------------------------------- for `ordercast run`

    async def _work(self, work: Work) -> None:
        share = Share(self, work)
        reader = asyncio.ensure_future(share.read())
        _commands(asyncio.get_running_loop(), share)
        view = None if self.group.view is None else report.view(self.group.view)
        say(event="ready", incarnation=self.group.incarnation, view=view)
        ticker = asyncio.ensure_future(share.tell())
        await self._until_stopped(reader, ticker)
        ticker.cancel()
        share.end()


class Share:
    """The application of a workload's run: submits its share, reads everything."""

    def __init__(self, process: Process, work: Work) -> None:
        self.process, self.group, self.work = process, process.group, work
        self.service = Service[work.service.upper()]
        self.sent = self.own = self.delivered = 0
        self.going = False
        frame = build.frame_limit(process.config)
        self.ahead = max(1, FRAMES_AHEAD * frame // max(1, work.size + 4))
        self.pace = Alarm(asyncio.get_running_loop(), self.pump)
        self.begun = 0

    def command(self, words: dict[str, Any]) -> None:
        if "go" in words:
            self.going, self.begun = True, _clock()
            self.pump()
        elif "end" in words:
            self.process.stop.set()

    def pump(self) -> None:
        """Submit what is due, as far as what is on its way allows."""
        work = self.work
        if not self.going or self.sent >= work.messages:
            return
        count = min(work.messages - self.sent, self.ahead - (self.sent - self.own))
        if work.rate:
            due = int((_clock() - self.begun) * work.rate / 1e9) + 1
            count = min(count, due - self.sent)
            if self.sent + max(0, count) < work.messages:
                self.pace.set(self.begun + int((self.sent + max(0, count)) * 1e9 / work.rate) + 1)
        if count <= 0:
            return
        me, life = self.group.me, self.group.incarnation
        payloads = [payload(me, life, self.sent + k, work.size) for k in range(1, count + 1)]
        try:
            self.group.send_batch_nowait(payloads, self.service)
        except Overloaded:
            self.pace.set(_clock() + 10_000_000)
        except NotPrimary:
            pass  # until a view that is
        except Closed:
            self.going = False
        else:
            self.sent += count

    async def read(self) -> None:
        me, life = self.group.me, self.group.incarnation
        async for event in self.group.batches():
            if type(event) is Batch:
                self.delivered += event.count
                if event.sender == me and event.incarnation == life:
                    self.own += event.count
                    self.pump()
            else:
                say(**describe(event, utc(time.time_ns())))
                self.pump()

    async def tell(self) -> None:
        """Progress, when there is any."""
        told: tuple[Any, ...] = ()
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            now = (self.sent, self.own, self.delivered)
            if now != told:
                told = now
                say(event="progress", sent=self.sent, own=self.own, delivered=self.delivered)

    def end(self) -> None:
        """The last row: what is left in the queues, what was counted."""
        say(event="progress", sent=self.sent, own=self.own, delivered=self.delivered)
        self.group.node.end_trace()
        say(event="end", status=self.group.status())


def _commands(loop: asyncio.AbstractEventLoop, share: Share) -> None:
    def handle(lines: list[bytes]) -> None:
        for line in lines:
            loop.call_soon_threadsafe(share.command, json.loads(line))

    stdin.read_lines(handle, lambda: os._exit(1))  # the starter is gone: nothing is left to do in order


# ----------------------------------------------------------------------------------------------------------- words


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(data).decode()}


def describe(event: Batch | View | GroupView | Missing, at: str) -> dict[str, Any]:
    """An event that is no message, as a JSON line has it."""
    if isinstance(event, View):
        return {"event": "view", "time": at, **report.view(event)}
    if isinstance(event, Missing):
        return {"event": "missing", "time": at, "sender": event.sender, "tag": event.tag}
    assert isinstance(event, GroupView)
    return {"event": "group_view", "time": at, "group": short(event.group), "members": list(event.members)}


def say_other_terms(other: Other) -> None:
    """Before or between views: whom this member does not let in, and why."""
    for d in other.differences:
        say(
            event="other_terms",
            time=utc(time.time_ns()),
            member=other.member,
            term=short(d.term),
            here=short(d.here),
            there=short(d.there),
        )


def main(config: GroupConfig, me: MemberId, work: Work | None, metrics: tuple[str, int] | None = None) -> int:
    tuning.keep_memory()
    tuning.short_turns()

    async def run() -> int:
        return await Process(config, me, work, metrics).run()

    return tuning.run(run())
