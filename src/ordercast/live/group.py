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
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from ordercast.config import GroupConfig
from ordercast.contract import Accepted, Delivered, Event, GroupView, Left, Refuse, Room, ViewChange
from ordercast.errors import Closed, NotInView, Overloaded, RunError, TooLarge, UsageError
from ordercast.limits import FRAGMENTS_MAX, MESSAGE_BYTES_MAX
from ordercast.live import build
from ordercast.live.awaited import Awaited
from ordercast.live.calls import refusal, service_of, to_bytes
from ordercast.live.node import Node
from ordercast.live.reading import BatchEvent, Reading
from ordercast.types import Batch, MemberId, Message, MessageId, Service, Submission, View

GroupEvent = Message | View | GroupView


_forks = [0]  # how many forks this process is away from the first
os.register_at_fork(after_in_child=lambda: _forks.__setitem__(0, _forks[0] + 1))


class Receipt(Struct, frozen=True):
    """What is known of a message that was accepted: its id, and that it is queued here to be ordered.

    `await group.delivered(receipt)` tells when it has been delivered here, and so has its place in the order.
    """

    id: MessageId
    service: Service
    count: int = 1  # of a batch: messages id.counter .. id.counter + count - 1
    groups: tuple[str, ...] = ()  # the process groups it is addressed to; none: everybody


class Group:
    """A member of a group.  Use it as ``async with ordercast.join(...) as group``."""

    def __init__(
        self, config: GroupConfig, me: MemberId, *, folder: Path | None = None, trace: build.Trace | None = None
    ) -> None:
        self.config, self.me = config, me
        self._folder, self._trace = folder, trace
        self._node: Node | None = None
        self._reading = Reading()
        self._room: deque[asyncio.Future[None]] = deque()  # senders wait for room
        self._awaited = Awaited(me)
        self._in_view: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None  # done when Left came
        self._end: BaseException | None = None  # why nothing more can be sent
        self._over = False  # nothing more will come up
        self._thread = self._forks = 0

    # --------------------------------------------------------------------------------------------- joining, leaving

    async def __aenter__(self) -> Group:
        """Start, and wait for the first view."""
        self.start()
        await self.in_view()
        return self

    def start(self) -> None:
        """Open the sockets and begin to speak."""
        if self._node is not None or self._end is not None:
            raise UsageError(
                f"member {self.me} has already joined {self.config.group}: make a new group object instead"
            )
        loop = asyncio.get_running_loop()
        self._thread, self._forks = threading.get_ident(), _forks[0]
        self._in_view, self._gone = loop.create_future(), loop.create_future()
        self._node = build.make_node(
            self.config, self.me, self._take, self._failed, folder=self._folder, trace=self._trace
        )
        try:
            self._node.start()
        except BaseException:
            self._close(Closed("joining was given up"))
            raise

    async def in_view(self) -> None:
        """Wait for the first view; a protocol without views needs none."""
        assert self._node is not None and self._in_view is not None
        try:
            if self._node.info.views and self.view is None:
                await asyncio.shield(self._in_view)
        except BaseException:
            self._close(Closed("joining was given up"))
            raise
        if self._end is not None:
            raise self._end

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Send what is queued, say good-bye, stop.  What was delivered and not read yet can still be read."""
        node = self._node
        if node is None or self._end is not None:
            self._close(Closed("the group was left"))
            return
        self._check_here("leave")
        self._end = Closed("the group was left")
        self._wake_senders()
        assert self._gone is not None
        try:
            node.leave()
            if node.running:
                # the stack itself gives up draining after one timeout; this is for a stack that hangs
                await asyncio.wait([self._gone], timeout=20 * self.config.timeout_ms / 1e3)
        finally:
            self._close(self._end)

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

    def end_trace(self) -> None:
        """Write the trace's last row now; what follows is not part of the run."""
        if self._node is not None:
            self._node.end_trace()

    def _failed(self, why: BaseException) -> None:
        """The node stopped: a fault of ours or of the machine."""
        words = str(why) if isinstance(why, RunError) else f"{type(why).__name__}: {why}"
        self._end = RunError(f"member {self.me} of {self.config.group} stopped: {words}")
        self._end.__cause__ = why
        for future in (self._in_view, self._gone):
            if future is not None and not future.done():
                future.set_result(None)
        self._close(self._end)

    # ------------------------------------------------------------------------------------------------------ sending

    async def send(self, data: bytes, service: Service | str | None = None, groups: Iterable[str] = ()) -> Receipt:
        """Queue one message; waits while the send queue is full.  Cancelled, it has queued nothing."""
        return await self.send_batch([data], service, groups)

    async def send_batch(
        self, payloads: Iterable[bytes], service: Service | str | None = None, groups: Iterable[str] = ()
    ) -> Receipt:
        """Queue several messages in one call, all of them or none; much cheaper than one by one."""
        submission = self._submission(payloads, service, groups)
        while True:
            try:
                return self._submit(submission)
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
        """Wait until the message (of a batch: its last) has been delivered here: its place in the order is known."""
        self._check_here("delivered")
        if receipt.groups and self._awaited.groups.isdisjoint(receipt.groups):
            raise ValueError(f"the message is for {', '.join(receipt.groups)}, and this member is in none of them")
        last = receipt.id.counter + receipt.count - 1
        if last <= self._awaited.own:
            return
        if self._over:
            raise Closed("the group was left before the message was delivered")
        await self._awaited.delivery(last)

    def _submission(
        self, payloads: Iterable[bytes], service: Service | str | None, groups: Iterable[str]
    ) -> Submission:
        """Everything that can be wrong with a call, before anything changes."""
        self._check_here("send")
        if isinstance(payloads, (str, bytes, bytearray, memoryview)):
            raise TypeError("send_batch: expected a list of messages; send takes a single one")
        copies = [data if type(data) is bytes else to_bytes(data) for data in payloads]
        node = self._node
        assert node is not None
        if not copies:
            raise ValueError("send_batch: no messages: expected at least one")
        largest = max(map(len, copies))
        limit = min(MESSAGE_BYTES_MAX, FRAGMENTS_MAX * (node.frame_bytes - 8))
        if largest > limit:
            raise TooLarge(f"a message of {largest} bytes: expected at most {limit}")
        provides = node.info.provides
        wanted = node.info.default_service if service is None else service_of(service)
        if wanted not in provides:
            words = ", ".join(s.word for s in provides)
            raise ValueError(f"service {wanted.word}: {node.info.name} provides {words}")
        if isinstance(groups, str):
            raise TypeError("groups: expected a list of names, not a single string")
        return Submission(copies, wanted, tuple(groups))

    def _submit(self, submission: Submission) -> Receipt:
        node = self._node
        if node is None or self._end is not None:
            raise self._end or NotInView("nothing can be sent before the group was joined")
        answer = node.submit(submission)
        if type(answer) is Accepted:
            identity = node.identity
            first = MessageId(identity.me, identity.incarnation, answer.counter)
            return Receipt(first, submission.service, answer.count, submission.groups)
        if answer is None:
            raise self._end or Closed("the member stopped")
        assert type(answer) is Refuse
        raise refusal(answer.why, submission)

    def _check_here(self, what: str) -> None:
        """This loop, this thread, this process, and still open."""
        if self._node is None:
            raise self._end or NotInView(f"{what}: the group was not joined yet: use `async with ordercast.join(...)`")
        if _forks[0] != self._forks:
            raise Closed(f"{what}: this process was forked from the member's; only the original one may use the group")
        if threading.get_ident() != self._thread:
            raise UsageError(f"{what}: called from another thread: use asyncio.run_coroutine_threadsafe with its loop")
        if self._end is not None and what == "send":
            raise self._end

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
        for event in events:
            kind = type(event)
            if kind is Delivered:
                batch: Batch = event.batch  # type: ignore[attr-defined]
                queue.append(batch)
                if batch.sender == me:
                    self._awaited.delivered(batch.counter + batch.count - 1)
            elif kind is ViewChange:
                queue.append(event.view)  # type: ignore[attr-defined]
                if self._in_view is not None and not self._in_view.done():
                    self._in_view.set_result(None)
            elif kind is GroupView:
                queue.append(event)  # type: ignore[arg-type]
                self._awaited.group_view(event)  # type: ignore[arg-type]
            elif kind is Room:
                self._wake_senders()
            elif kind is Left:
                self._over = True
                if self._gone is not None and not self._gone.done():
                    self._gone.set_result(None)
        self._wake_reader()

    def _wake_reader(self) -> None:
        self._reading.wake(self._node is not None and self._node.own_turn)

    def _wake_senders(self) -> None:
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

    def status(self) -> dict[str, Any]:
        """What this member does, and in plain words what it waits for."""
        self._check_here("status")
        assert self._node is not None
        return self._node.status() | {"senders_waiting": len(self._room), "insecure": self.config.insecure}
