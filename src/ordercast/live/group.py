"""The library: one member of a group inside an application's event loop.

    async with ordercast.join("demo", me=1, members=3, insecure=True) as group:
        await group.send(b"hello")
        async for event in group:  # messages and views, in the order that all members see
            print(event)

Messages and views come from one iterator, because their relative order is the guarantee.  Everything runs in the event
loop that joined; an application that blocks the loop blocks its member.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ordercast.config import GroupConfig
from ordercast.contract import Delivered, Event, GroupView, Left, Missing, PassedBy, Room, ViewChange
from ordercast.drivers.terms import Other
from ordercast.errors import Closed, NotInView, NotSent, OrdercastError, Overloaded, RunError, UsageError
from ordercast.live import build
from ordercast.live.awaited import Awaited
from ordercast.live.calls import Receipt, handed_in, refusal, stopped, submission
from ordercast.live.entry import Entry
from ordercast.live.node import Node
from ordercast.live.owner import Owner
from ordercast.live.reading import BatchEvent, Reading
from ordercast.live.replicas import R, Replicas
from ordercast.live.wait import Turn
from ordercast.replica.replica import Replica
from ordercast.types import Batch, MemberId, Message, Service, Submission, View

GroupEvent = Message | View | GroupView | Missing


class Group:
    """A member of a group.  Use it as ``async with ordercast.join(...) as group``."""

    def __init__(
        self,
        config: GroupConfig,
        me: MemberId,
        *,
        folder: Path | None = None,
        trace: build.Trace | None = None,
        at_least: int = 1,
        timeout: float | None = None,
        on_other_terms: Callable[[Other], None] = lambda other: None,
        objects: Mapping[str, Replica] | None = None,
    ) -> None:
        self.config, self.me = config, me
        self._entry = Entry(config, me, at_least, timeout)
        self._on_other_terms = on_other_terms
        self._folder, self._trace = folder, trace
        self._node: Node | None = None
        self._reading = Reading()
        self._room: deque[asyncio.Future[None]] = deque()  # senders wait for room
        self._turn = Turn()  # of senders that never wait
        self._awaited = Awaited(me)
        self._gone: asyncio.Future[None] | None = None  # done when Left came
        self._end: BaseException | None = None  # why nothing more can be sent
        self._over = False  # nothing more will come up
        self._unsent: tuple[int, int] | None = None  # what leaving left behind
        self._deaf = False  # leaving, and nobody reads: what comes up is no longer kept
        self._owner: Owner | None = None
        self._objects = objects  # those it begins with; None: it has none, and can have none
        self._replicas: Replicas | None = None

    # --------------------------------------------------------------------------------------------- joining, leaving

    async def __aenter__(self) -> Group:
        """Start, and wait for a view of enough members."""
        self.start()
        await self.in_view()
        return self

    def start(self) -> None:
        """Open the sockets and begin to speak."""
        if self._node is not None or self._end is not None:
            raise UsageError(f"member {self.me} has already joined {self.config.group}: make a new group object")
        loop = asyncio.get_running_loop()
        self._owner = Owner()
        self._gone = loop.create_future()
        self._node = build.make_node(
            self.config, self.me, self._take, self._failed,
            on_other_terms=self._entry.logged(self._on_other_terms), folder=self._folder, trace=self._trace,
            objects=self._objects,
        )  # fmt: skip
        self._replicas = Replicas.of(self._node)
        try:
            self._node.start()
        except BaseException:
            self._close(Closed("joining was given up"))
            raise

    async def in_view(self) -> None:
        """Wait for a view of enough members (without views, for the tagger), then for the objects it begins with."""
        try:
            await self._entry.wait(self.node)
            if self._replicas is not None and self._end is None:
                await self._replicas.begin(self._objects or {}, self._entry)
        except BaseException:
            self._close(Closed("joining was given up"))
            raise
        if self._end is not None:
            raise self._end

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.leave()
        except OrdercastError as why:
            if value is None:
                raise
            value.add_note(str(why))

    async def leave(self, timeout: float | None = None) -> None:
        """Send what is queued, say good-bye, stop.  What was delivered and not read yet can still be read.

        It waits until every member of the view holds what was accepted here, for as long as that moves, and at most
        `timeout` seconds; raises NotSent with what may not have arrived by then.  Called again, it may end sooner.
        """
        node = self._node
        if node is None or self._over:
            self._close(Closed("the group was left"))
            return
        self._check_here("leave")
        if self._end is None:
            self._end = Closed("the group was left")
            self._wake_senders()
        assert self._gone is not None
        try:
            node.leave(None if timeout is None else max(0, round(timeout * 1e9)))
            if node.running:
                await asyncio.wait([self._gone])
        finally:
            self._close(self._end)
        if isinstance(self._end, RunError):
            raise self._end
        if self._unsent is not None:
            raise NotSent(*self._unsent)

    def _close(self, why: BaseException) -> None:
        if self._end is None:
            self._end = why
        self._over = True
        node = self._node
        if node is not None:
            if isinstance(self._end, RunError) and node.recorder is not None:
                node.recorder.close()  # without an end row: this life did not end in order
                node.recorder = None
            node.end_trace()
            node.stop()
            node.storage.close()
        self._wake_senders()
        self._wake_reader()
        self._awaited.close()
        if self._replicas is not None:
            self._replicas.close(self._end)

    def _failed(self, why: BaseException) -> None:
        """The node stopped: a fault of ours or of the machine."""
        self._end = stopped(f"member {self.me} of {self.config.group}", why)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        self._entry.wake()
        self._close(self._end)

    # ------------------------------------------------------------------------------------------------------ sending

    async def send(self, data: bytes, service: Service | str | None = None, groups: Iterable[str] = ()) -> Receipt:
        """Queue one message; waits while the send queue is full.  Cancelled, it has queued nothing."""
        return await self.send_batch([data], service, groups)

    async def send_batch(
        self, payloads: Iterable[bytes], service: Service | str | None = None, groups: Iterable[str] = ()
    ) -> Receipt:
        """Queue several messages in one call, all of them or none; much cheaper than one by one."""
        checked = self._submission(payloads, service, groups)
        if self._turn.over():
            await asyncio.sleep(0)
        while True:
            try:
                return self._submit(checked)
            except Overloaded:
                waiter = asyncio.get_running_loop().create_future()
                self._room.append(waiter)
                await waiter

    def send_nowait(self, data: bytes, service: Service | str | None = None, groups: Iterable[str] = ()) -> Receipt:
        """Queue one message now or raise Overloaded."""
        return self._submit(self._submission([data], service, groups))

    def send_batch_nowait(
        self, payloads: Iterable[bytes], service: Service | str | None = None, groups: Iterable[str] = ()
    ) -> Receipt:
        """Queue several messages now, all of them, or raise Overloaded."""
        return self._submit(self._submission(payloads, service, groups))

    async def delivered(self, receipt: Receipt) -> None:
        """Wait until the message (of a batch: its last) has been delivered here: its place in the order is known.

        Raises ValueError if at that place this member is in none of its groups, Closed if the group is left before.
        """
        self._check_here("delivered")
        await self._awaited.delivery_of(receipt, self.incarnation, self._over)

    def _submission(
        self, payloads: Iterable[bytes], service: Service | str | None, groups: Iterable[str]
    ) -> Submission:
        """Everything that can be wrong with a call, before anything changes."""
        self._check_here("send")
        return submission(self.node.info, self.node.frame_bytes, payloads, service, groups)

    def _submit(self, submission: Submission) -> Receipt:
        node = self._node
        if node is None or self._end is not None:
            raise self._end or NotInView("nothing can be sent before the group was joined")
        answer = node.submit(submission)
        if answer is None:
            raise self._end or Closed("the member stopped")
        return handed_in(answer, submission, node.identity)

    def _check_here(self, what: str) -> None:
        """This loop, this thread, this process, and still open."""
        if self._node is None or self._owner is None:
            raise self._end or NotInView(f"{what}: the group was not joined yet: use `async with ordercast.join(...)`")
        self._owner.check(what)
        if self._end is not None and what == "send":
            raise self._end

    # ------------------------------------------------------------------------------------------- replicated objects

    async def replicate(self, name: str, object: R, service: Service | str | None = None, durable: bool = False) -> R:
        """Have an object of this name in the group, and let this one be it here: what others have done to it is done
        when this returns.  `service` and `durable` are how its calls are made, unless they say otherwise."""
        self._check_here("send")
        if self._replicas is None:
            raise UsageError(
                f"replicate: {self.config.group} has no objects: expected join(objects=...) at all members"
            )
        return await self._replicas.replicate(name, object, service, durable)

    # ----------------------------------------------------------------------------------------------- process groups

    async def join_group(self, name: str) -> None:
        """Join a process group: from its place in the order on, messages to it are delivered here."""
        await self._regroup(name, True)

    async def leave_group(self, name: str) -> None:
        """Leave a process group."""
        await self._regroup(name, False)

    @property
    def groups(self) -> frozenset[str]:
        """The process groups this member is in."""
        return frozenset(self._awaited.groups)

    async def _regroup(self, name: str, join: bool) -> None:
        self._check_here("send")
        if not isinstance(name, str):
            raise TypeError(f"a group's name is a string, not {type(name).__name__}")
        if (name in self._awaited.groups) is join:
            return
        assert self._node is not None
        refused = self._node.regroup(name, join)
        if refused is not None:
            raise refusal(refused.why, Submission([], groups=(name,)))
        await self._awaited.regrouping(name, join)

    # ---------------------------------------------------------------------------------------------------- receiving

    def _take(self, events: list[Event]) -> None:
        """What went up in one cycle of the node."""
        queue, me = self._reading.queue, self.me
        if self._end is not None and not self._keeps():
            queue = deque()
        if (self._entry.pure or not self._entry.done) and self._node is not None and self._node.info.views:
            events = self._entry.sift(events, self._node.consumed)
        for event in events:
            kind = type(event)
            if kind is Delivered:
                batch: Batch = event.batch  # type: ignore[attr-defined]
                queue.append(batch)
                if batch.sender == me:
                    self._awaited.delivered(batch.counter + batch.count - 1)
            elif kind is ViewChange:
                queue.append(event.view)  # type: ignore[attr-defined]
            elif kind is GroupView:
                queue.append(event)  # type: ignore[arg-type]
                self._awaited.group_view(event)  # type: ignore[arg-type]
            elif kind is Missing:
                queue.append(event)  # type: ignore[arg-type]
            elif kind is PassedBy:
                first: int = event.counter  # type: ignore[attr-defined]
                self._awaited.passed_by(first, first + event.count - 1)  # type: ignore[attr-defined]
            elif kind is Room:
                self._wake_senders()
            elif kind is Left:
                self._over, self._unsent = True, event.unsent  # type: ignore[attr-defined]
                if self._gone is not None and not self._gone.done():
                    self._gone.set_result(None)
            elif self._replicas is not None:
                self._replicas.take(event)
        self._wake_reader()

    def _keeps(self) -> bool:
        """Who leaves holds nobody up: once its application has so much unread, the rest is not for it any more."""
        self._deaf = self._deaf or self.node.room.full
        return not self._deaf

    def _wake_reader(self) -> None:
        self._reading.wake(self._node is not None and self._node.own_turn)

    def _wake_senders(self) -> None:
        if self._replicas is not None:
            self._replicas.room()
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)

    async def batches(self) -> AsyncIterator[BatchEvent]:
        """The cheap form: the messages of a frame at a time (see Batch), and views, in their true order."""
        while True:
            event = self._next()
            if event is not None:
                yield event
            elif self._ended():
                return
            else:
                await self._reading.more()

    async def __aiter__(self) -> AsyncIterator[GroupEvent]:
        """Messages and views, one by one, in the order that all members see."""
        while True:
            rest = self._reading.rest
            while rest:
                yield rest.popleft()
                if rest and self._reading.tired():
                    await self._reading.more()
            event = self._next()
            if type(event) is Batch:
                rest.extend(event.messages())
            elif event is not None:
                yield event  # type: ignore[misc]
            elif self._ended():
                return
            else:
                await self._reading.more()

    def _next(self) -> BatchEvent | None:
        """The next frame's messages or the next view, if there is one.  What was given out before counts as read."""
        self._check_here("reading")
        assert self._node is not None
        return self._reading.next(self._node.consumed)

    def _ended(self) -> bool:
        """Whether nothing more will come."""
        if self._reading.queue or not self._over:
            return False
        if isinstance(self._end, RunError):
            raise self._end
        return True

    # ------------------------------------------------------------------------------------------------------- status

    @property
    def view(self) -> View | None:
        """The view this member is in; None for a protocol without views."""
        return self._node.view if self._node is not None else None

    @property
    def incarnation(self) -> int:
        """This life of the member; larger at each start."""
        return self._node.identity.incarnation if self._node is not None else 0

    @property
    def node(self) -> Node:
        """What drives this member, once it has started."""
        assert self._node is not None
        return self._node

    def status(self) -> dict[str, Any]:
        """What this member does, and in plain words what it waits for."""
        self._check_here("status")
        status = self.node.status() | {"senders_waiting": len(self._room), "insecure": self.config.insecure}
        if self.node.info.views and not self._entry.done:
            status["waits"].insert(0, f"join: a view of at least {self._entry.at_least} members")
        if self._replicas is not None:
            self._replicas.add_to(status)
        return status
