"""`ordercast run`: real processes on this machine, a workload, faults at chosen times, one directory of traces.
The launcher starts members with the command and file that users write on several machines, tells them when to begin,
kills and restarts as asked, waits until all that live have delivered everything, and ends them.  It keeps a trace of
its own, as member 0: starts, crashes, and from when on nothing more was disturbed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ordercast import config as configuration
from ordercast import keyfiles, registry
from ordercast.config import GroupConfig, Member, NetConfig, TraceConfig
from ordercast.contract import TAGGER
from ordercast.errors import RunError
from ordercast.lab.bench import KEY, free_ports, needs_tagger
from ordercast.lab.fleet import Child, Fleet, died, fleet
from ordercast.lab.rings import loopback_rings
from ordercast.lab.run_plan import Fault, RunPlan, check
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK
from ordercast.live import build
from ordercast.live.member import Work
from ordercast.trace.recorder import Recorder
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Kind, Level
from ordercast.types import MemberId, Service
from ordercast.workload.sources import shares

START_SECONDS = 30.0  # for the members to start and be in one view
STALL_SECONDS = 30.0  # without any progress: the run has failed
END_SECONDS = 5.0  # for a member to leave
PATIENCE_NS = 10_000_000_000  # without a delivery, while some member lacks messages
HOP_NS = 50_000_000  # one hop of a stable group takes at most this long, also on a busy machine
SIGNALS = {"kill": signal.SIGKILL, "pause": signal.SIGSTOP, "resume": signal.SIGCONT}
_clock = time.monotonic_ns


class Result(msgspec.Struct, kw_only=True):
    """What came of it."""

    run: str
    directory: Path
    service: str
    sent: int
    delivered: int  # by the member that delivered least, of those alive at the end in their first life
    seconds: float  # from the start of the load to the last delivery
    views: list[dict[str, Any]]  # as they came: at, member, id, members, cause
    faults: list[str]


def make_config(plan: RunPlan, base: Path) -> GroupConfig:
    port, *ports = free_ports(plan.members + 1 + sum(map(len, plan.rings)))
    info = registry.get(plan.protocol)
    return GroupConfig(
        group=f"run-{secrets.token_hex(4)}",
        protocol=plan.protocol,
        members=tuple(Member(k, "127.0.0.1", at) for k, at in enumerate(ports[: plan.members], 1)),
        options=msgspec.convert(plan.options, info.options),
        timeout_ms=plan.timeout_ms or build.timeout_here_ms(plan.members),
        datagram_bytes=DATAGRAM_BYTES_LOOPBACK,
        net=NetConfig(plan.mode, configuration.MULTICAST_ADDRESS, port, "127.0.0.1"),
        rings=loopback_rings(plan.rings, plan.mode, port, iter(ports[plan.members :])),
        trace=TraceConfig(plan.level), partition=plan.partition, key=KEY, base=base,
        tagger=Member(TAGGER, "127.0.0.1", free_ports(1)[0]) if needs_tagger(info, plan.options) else None,
    )  # fmt: skip


class Seat:
    """One member over all its lives, as the launcher knows it."""

    def __init__(self, member: MemberId, share: int) -> None:
        self.member, self.share = member, share
        self.child: Child | None = None
        self.incarnation = 0
        self.lives = self.born_ns = 0
        self.ready = self.crashed = self.halted = False  # halted: its view is not primary
        self.view: list[int] | None = None
        self.sent_before = 0  # by earlier lives
        self.sent = self.own = self.delivered = 0

    def born(self, child: Child) -> None:
        self.sent_before += self.sent
        self.child, self.ready, self.halted, self.view = child, False, False, None
        self.born_ns = _clock()
        self.sent = self.own = self.delivered = 0
        self.lives += 1

    @property
    def alive(self) -> bool:
        return self.child is not None and self.child.alive

    @property
    def done(self) -> bool:
        """Everything it had to send was sent and has come back."""
        return self.sent_all and self.own >= self.sent

    @property
    def sent_all(self) -> bool:
        return self.ready and self.sent_before + self.sent >= self.share


class Launcher:
    """One run."""

    def __init__(self, plan: RunPlan, directory: Path, group: Fleet, progress: Callable[[int, str], None]) -> None:
        self.plan, self.directory, self.fleet, self.progress = plan, directory, group, progress
        self.config = make_config(plan, directory)
        self.service = Service[plan.service.upper()]
        self.info = registry.get(plan.protocol)
        share = shares(plan.messages, self.config.ids[: plan.senders])
        self.seats = {member: Seat(member, share.get(member, 0)) for member in self.config.ids}
        self.news = asyncio.Event()
        self.changed_ns = _clock()  # when anything was last told
        self.views: list[dict[str, Any]] = []
        self.happened: list[str] = []
        self.workload = {
            "payload": "ordercast.workload.payload", "sizes": [plan.size], "messages": plan.messages,
            "rate": plan.rate, "senders": plan.senders,
        }  # fmt: skip
        self.begun_ns = self.last_ns = 0
        self.ending = False
        self.tagger: Child | None = None

    async def run(self) -> Result:
        keyfiles.write(self.directory / KEY)
        (self.directory / "group.toml").write_text(configuration.dump(self.config))
        header = build.trace_header(self.config, self.config.group, self.service, self.workload)
        life = time.time_ns()
        self.log = Recorder(RowFile(self.config.trace_path, header, 0, life), 0, life, Level.DELIVER)
        try:
            if self.config.tagger is not None:
                self.tagger = await self.fleet.start_tagger(self.directory / "group.toml")
            for seat in self.seats.values():
                await self._start(seat)
            await self._until(self._all_ready, START_SECONDS, "the members were not in one view")
            self._stable()
            self.begun_ns = self.last_ns = _clock()
            for child in self.fleet.living:
                child.tell(go=True)
            await self._carry_out_faults()
            await self._until(self._settled, None, "")
            await self._end()
        finally:
            self.log.close()
        steady = [seat.delivered for seat in self.seats.values() if seat.lives == 1 and seat.ready and not seat.crashed]
        told = sum(seat.sent_before + seat.sent for seat in self.seats.values())
        return Result(
            run=self.config.group,
            directory=self.directory,
            service=self.plan.service,
            sent=max([told, *steady]),  # the dead tell late
            delivered=min(steady, default=0),
            seconds=(self.last_ns - self.begun_ns) / 1e9,
            views=self.views,
            faults=self.happened,
        )

    # ----------------------------------------------------------------------------------------------------- processes

    async def _start(self, seat: Seat) -> None:
        share = seat.share - seat.sent_before - seat.sent
        rate = self.plan.rate / self.plan.senders
        work = Work(max(0, share), self.plan.size, rate, self.plan.service, self.config.group, self.workload)
        file = str(self.directory / "group.toml")
        arguments = ["-m", "ordercast", "member", "--config", file, "--id", str(seat.member)]
        child = await self.fleet.start(
            seat.member, [*arguments, "--work", msgspec.json.encode(work).decode()], self._said
        )
        seat.born(child)

    def _said(self, child: Child, words: dict[str, Any]) -> None:
        """A member tells something; what a life says that was already replaced is not heard."""
        seat, now = self.seats[child.member], _clock()
        if seat.child is not child or self.ending:
            return
        kind = words.get("event")
        if kind == "ready":
            seat.ready, seat.incarnation = True, words["incarnation"]
            if words["view"] is not None:
                seat.view = words["view"]["members"]
            self.log.event(
                now, now, Kind.START, sender=seat.member, sender_incarnation=seat.incarnation, launched_ns=seat.born_ns
            )
            if self.begun_ns:
                child.tell(go=True)
        elif kind == "view":
            if words["kind"] == "regular":
                seat.view, seat.halted = words["members"], words.get("primary") is False
            self.views.append({"at_ms": (now - self.begun_ns) // 1_000_000 if self.begun_ns else 0,
                               "member": seat.member, **words})  # fmt: skip
        elif kind == "progress":
            if words["delivered"] > seat.delivered:
                self.last_ns = now
            seat.sent, seat.own, seat.delivered = words["sent"], words["own"], words["delivered"]
            self.progress(min(s.delivered for s in self.seats.values() if s.alive), "messages delivered everywhere")
        self.changed_ns = now
        self.news.set()

    def _watch(self) -> None:
        """A member that ended by itself: with a fixed view the run is over; else it is one more crash."""
        if self.tagger is not None and not self.tagger.alive and not self.tagger.expected_to_die:
            raise died(self.tagger)
        for seat in self.seats.values():
            child = seat.child
            if child is None or child.alive or child.expected_to_die:
                continue
            child.expected_to_die = True
            code = child.process.returncode
            if "crash" not in self.info.survives or code is None or code >= 0:
                raise died(child)
            self._crashed(seat, f"member {seat.member} was killed by {signal.Signals(-code).name}, not by this run")

    def _crashed(self, seat: Seat, words: str) -> None:
        now = _clock()
        seat.crashed = True
        self.happened.append(words)
        self.log.event(now, now, Kind.CRASH, sender=seat.member, sender_incarnation=seat.incarnation, reason=words)

    # ---------------------------------------------------------------------------------------------------------- phases

    async def _until(self, done: Callable[[], bool], seconds: float | None, what: str) -> None:
        until = time.monotonic() + seconds if seconds is not None else None
        while not done():
            self._watch()
            if until is not None and time.monotonic() > until:
                raise RunError(f"run: {what} within {seconds:g} s: {self._who_waits()}")
            if seconds is None and _clock() - self.changed_ns > STALL_SECONDS * 1e9 + self._quiet_ns():
                raise RunError(f"run: nothing was delivered for {STALL_SECONDS:g} s: {self._who_waits()}")
            self.news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self.news.wait()

    def _who_waits(self) -> str:
        from ordercast.live import control

        words = []
        for seat in self.seats.values():
            answer = control.ask(self.config.state_path(seat.member))
            waits = answer if isinstance(answer, str) else "; ".join(answer["waits"]) or "waits for nothing"
            words.append(f"member {seat.member}: {waits}")
        return ", ".join(words)

    def _together(self) -> bool:
        """All that live are in one view, of exactly those that live."""
        living = [seat for seat in self.seats.values() if seat.alive]
        ids = [seat.member for seat in living]
        return all(seat.ready and (seat.view == ids or not self.info.views) for seat in living)

    def _all_ready(self) -> bool:
        return all(seat.alive for seat in self.seats.values()) and self._together()

    def _stable(self) -> None:
        now = _clock()
        ids = tuple(seat.member for seat in self.seats.values() if seat.alive)
        self.log.event(now, now, Kind.STABLE, members=ids, delay_ns=HOP_NS)

    async def _carry_out_faults(self) -> None:
        for fault in sorted(self.plan.faults, key=lambda f: f.at):
            due = self.begun_ns + int(fault.at * 1e9)
            await self._until(lambda due=due: _clock() >= due, fault.at + STALL_SECONDS, "a fault was not carried out")  # type: ignore[misc]
            if fault.member == TAGGER:
                await self._tagger_fault(fault)
                continue
            seat = self.seats[fault.member]
            if fault.kind == "kill" and seat.child is not None:
                seat.child.expected_to_die = True
                seat.child.signal(signal.SIGKILL)
                self._crashed(seat, f"member {seat.member} was killed at {fault.at:g} s")
                await seat.child.wait()
            elif fault.kind == "restart":
                await self._start(seat)
                self.happened.append(f"member {seat.member} was started again at {fault.at:g} s")
            elif seat.child is not None:
                self._paused(seat, fault)
        if self.plan.faults:
            await self._until(self._together, START_SECONDS, "the members were not in one view after the faults")
            self._stable()

    async def _tagger_fault(self, fault: Fault) -> None:
        """The tagger is no member: nothing is judged by what it did."""
        if fault.kind == "restart":
            self.tagger = await self.fleet.start_tagger(self.directory / "group.toml")
        elif self.tagger is not None:
            self.tagger.expected_to_die = fault.kind == "kill"
            self.tagger.signal(SIGNALS[fault.kind])
            if fault.kind == "kill":
                await self.tagger.wait()
        words = {"kill": "killed", "restart": "started again", "pause": "stopped", "resume": "let go on"}[fault.kind]
        self.happened.append(f"the tagger was {words} at {fault.at:g} s")

    def _paused(self, seat: Seat, fault: Fault) -> None:
        """Stop a process in its tracks, or let it go on."""
        assert seat.child is not None
        stops, now = fault.kind == "pause", _clock()
        seat.child.signal(signal.SIGSTOP if stops else signal.SIGCONT)
        self.log.event(
            now, now, Kind.PAUSE if stops else Kind.RESUME, sender=seat.member, sender_incarnation=seat.incarnation
        )
        self.happened.append(f"member {seat.member} was {'stopped' if stops else 'let go on'} at {fault.at:g} s")

    def _settled(self) -> bool:
        """All who live and may have sent their share, and L3's time has passed since the last delivery anywhere."""
        living = [seat for seat in self.seats.values() if seat.alive]
        if not living:
            raise RunError("run: no member is left")
        over = [seat.done or seat.halted or (not self.info.exact and seat.sent_all) for seat in living]
        if not all(over) or not self._together():
            return False
        quiet_ns = self._quiet_ns()
        if not all(seat.done for seat in living):
            quiet_ns = max(quiet_ns, PATIENCE_NS)  # own messages that a member never saw again: it was away
        if not self.happened and any(seat.delivered < self.plan.messages for seat in living):
            quiet_ns = max(quiet_ns, PATIENCE_NS)  # somebody is behind, or was out of the view for a while
        return _clock() - self.last_ns >= quiet_ns

    def _quiet_ns(self) -> int:
        """How long after the last delivery every message is due everywhere (the bound of L3)."""
        return 10 * HOP_NS + 8 * len(self.seats) * HOP_NS + 2 * self.config.timeout_ns

    async def _end(self) -> None:
        self.ending = True
        for child in self.fleet.living:
            child.expected_to_die = True
            child.tell(end=True)
            if child is self.tagger:
                child.signal(signal.SIGTERM)
        if not await self.fleet.ended(END_SECONDS):
            self.happened.append("some members did not leave in time and were killed")


async def launch(plan: RunPlan, directory: Path, progress: Callable[[int, str], None]) -> Result:
    """Run a plan into an empty directory.  Interrupted, it stops the members in order; interrupted twice, at once."""
    plan = check(plan)
    async with fleet(directory / "logs") as group:
        launcher = Launcher(plan, directory, group, progress)
        task = asyncio.ensure_future(launcher.run())
        loop = asyncio.get_running_loop()
        interrupts = 0

        def interrupted() -> None:
            nonlocal interrupts
            interrupts += 1
            if interrupts == 1:
                task.cancel()
            else:
                for child in group.living:
                    child.signal(signal.SIGKILL)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
        try:
            return await task
        except (asyncio.CancelledError, RunError):
            if not interrupts:
                raise
            for child in group.living:
                child.expected_to_die = True
            await group.stop()
            raise KeyboardInterrupt from None
