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
from array import array
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from heapq import heappop, heappush
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from ordercast import config as configuration
from ordercast.config import GroupConfig
from ordercast.contract import Accepted, Delivered, Event, GroupView, Left, Refuse, Room, ViewChange
from ordercast.errors import Closed, NotInView, Overloaded, RunError, TooLarge, UsageError
from ordercast.limits import FRAGMENTS_MAX, MESSAGE_BYTES_MAX
from ordercast.live import build
from ordercast.live.node import Node
from ordercast.types import Batch, MemberId, Message, MessageId, Service, Submission, View

PAUSE_MESSAGES = 256  # an iterator lets the event loop run at least once per so many messages

GroupEvent = Message | View | GroupView
BatchEvent = Batch | View | GroupView


class Receipt(Struct, frozen=True):
    """What is known of a message that was accepted: its id, and that it is queued here to be ordered.

    `await group.delivered(receipt)` tells when it has been delivered here, and so has its place in the order.
    """

    id: MessageId
    service: Service
    count: int = 1  # of a batch: messages id.counter .. id.counter + count - 1


class Group:
    """A member of a group.  Use it as ``async with ordercast.join(...) as group``."""

    def __init__(
        self, config: GroupConfig, me: MemberId, *, folder: Path | None = None, trace: build.Trace | None = None
    ) -> None:
        self.config, self.me = config, me
        self._folder, self._trace = folder, trace
        self._node: Node | None = None
        self._queue: deque[BatchEvent] = deque()
        self._reader: asyncio.Future[None] | None = None  # an iterator waits for the queue
        self._rest: deque[Message] = deque()  # of the frame that is being read message by message
        self._reading = 0  # bytes of the frame last given out
        self._since = 0  # messages given out since the event loop last ran
        self._room: deque[asyncio.Future[None]] = deque()  # senders wait for room
        self._own = 0  # last own message delivered here
        self._deliveries: list[tuple[int, int, asyncio.Future[None]]] = []  # heap: wait for own message so-and-so
        self._in_view: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None  # done when Left came
        self._end: BaseException | None = None  # why nothing more can be sent
        self._over = False  # nothing more will come up
        self._thread = self._process = 0

    # --------------------------------------------------------------------------------------------- joining, leaving

    async def __aenter__(self) -> Group:
        """Start, and wait for the first view."""
        if self._node is not None or self._end is not None:
            raise UsageError(
                f"member {self.me} has already joined {self.config.group}: make a new group object instead"
            )
        loop = asyncio.get_running_loop()
        self._thread, self._process = threading.get_ident(), os.getpid()
        self._in_view, self._gone = loop.create_future(), loop.create_future()
        self._node = build.make_node(
            self.config, self.me, self._take, self._failed, folder=self._folder, trace=self._trace
        )
        try:
            self._node.start(self._node.storage.load())
            if self._node.info.views and self.view is None:
                await self._in_view
        except BaseException:
            self._close(Closed("joining was given up"))
            raise
        if self._end is not None:
            raise self._end
        return self

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
        for _, _, waiter in self._deliveries:
            if not waiter.done():
                waiter.set_exception(Closed("the group was left before the message was delivered"))
                waiter.exception()  # it is no fault if nobody asks any more
        self._deliveries.clear()

    def end_trace(self) -> None:
        """Write the trace's last row now; what follows is not part of the run."""
        if self._node is not None:
            self._node.end_trace()

    def _failed(self, why: BaseException) -> None:
        """The node stopped: a fault of ours or of the machine."""
        self._end = RunError(f"member {self.me} of {self.config.group} stopped: {type(why).__name__}: {why}")
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
        last = receipt.id.counter + receipt.count - 1
        if last <= self._own:
            return
        if self._over:
            raise Closed("the group was left before the message was delivered")
        waiter = asyncio.get_running_loop().create_future()
        heappush(self._deliveries, (last, id(waiter), waiter))
        await waiter

    def _submission(
        self, payloads: Iterable[bytes], service: Service | str | None, groups: Iterable[str]
    ) -> Submission:
        """Everything that can be wrong with a call, before anything changes."""
        self._check_here("send")
        if isinstance(payloads, (str, bytes, bytearray, memoryview)):
            raise TypeError("send_batch: expected a list of messages; send takes a single one")
        copies = [data if type(data) is bytes else _to_bytes(data) for data in payloads]
        node = self._node
        assert node is not None
        if not copies:
            raise ValueError("send_batch: no messages: expected at least one")
        largest = max(map(len, copies))
        limit = min(MESSAGE_BYTES_MAX, FRAGMENTS_MAX * (node.frame_bytes - 8))
        if largest > limit:
            raise TooLarge(f"a message of {largest} bytes: expected at most {limit}")
        provides = node.info.provides
        wanted = node.info.default_service if service is None else _service(service)
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
            return Receipt(first, submission.service, answer.count)
        if answer is None:
            raise self._end or Closed("the member stopped")
        assert type(answer) is Refuse
        raise _refusal(answer.why, submission)

    def _check_here(self, what: str) -> None:
        """This loop, this thread, this process, and still open."""
        if self._node is None:
            raise self._end or NotInView(f"{what}: the group was not joined yet: use `async with ordercast.join(...)`")
        if os.getpid() != self._process:
            raise Closed(f"{what}: this process was forked from the member's; only the original one may use the group")
        if threading.get_ident() != self._thread:
            raise UsageError(f"{what}: called from another thread: use asyncio.run_coroutine_threadsafe with its loop")
        if self._end is not None and what == "send":
            raise self._end

    # ---------------------------------------------------------------------------------------------------- receiving

    def _take(self, events: list[Event]) -> None:
        """What went up in one cycle of the node."""
        queue, me = self._queue, self.me
        for event in events:
            kind = type(event)
            if kind is Delivered:
                batch: Batch = event.batch  # type: ignore[attr-defined]
                queue.append(batch)
                if batch.sender == me:
                    self._own = batch.counter + batch.count - 1
                    if self._deliveries:
                        self._confirm()
            elif kind is ViewChange:
                queue.append(event.view)  # type: ignore[attr-defined]
                if self._in_view is not None and not self._in_view.done():
                    self._in_view.set_result(None)
            elif kind is GroupView:
                queue.append(event)  # type: ignore[arg-type]
            elif kind is Room:
                self._wake_senders()
            elif kind is Left:
                self._over = True
                if self._gone is not None and not self._gone.done():
                    self._gone.set_result(None)
        self._wake_reader()

    def _confirm(self) -> None:
        while self._deliveries and self._deliveries[0][0] <= self._own:
            waiter = heappop(self._deliveries)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _wake_senders(self) -> None:
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)

    async def batches(self) -> AsyncIterator[BatchEvent]:
        """The cheap form: the messages of a frame at a time (see Batch), and views, in their true order."""
        while True:
            event = await self._next()
            if event is None:
                return
            yield event

    async def __aiter__(self) -> AsyncIterator[GroupEvent]:
        """Messages and views, one by one, in the order that all members see."""
        while True:
            rest = self._rest
            while rest:
                yield rest.popleft()
            event = await self._next()
            if event is None:
                return
            if type(event) is Batch:
                rest.extend(event.messages())
            else:
                yield event  # type: ignore[misc]

    async def _next(self) -> BatchEvent | None:
        """The next frame's messages or the next view; None at the end.  What was given out before counts as read."""
        self._check_here("reading")
        node, queue = self._node, self._queue
        assert node is not None
        if self._rest:
            return self._unread_rest()
        if self._reading:
            node.consumed(1, self._reading)
            self._reading = 0
        if self._since >= PAUSE_MESSAGES:
            self._since = 0
            await asyncio.sleep(0)
        while not queue:
            if self._over:
                if isinstance(self._end, RunError):
                    raise self._end
                return None
            if self._reader is not None and not self._reader.done():
                raise UsageError("two tasks read one group: expected one, since each message is given out once")
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        event = queue.popleft()
        if type(event) is Batch:
            self._reading = len(event.data) or 1
            self._since += event.count
        return event

    def _unread_rest(self) -> Batch:
        """Somebody stopped in the middle of a frame's messages and goes on with batches."""
        rest = list(self._rest)
        self._rest.clear()
        first, payloads = rest[0], [message.data for message in rest]
        lengths = array("I", map(len, payloads)).tobytes()
        data = b"".join(payloads)
        return Batch(
            first.sender, first.incarnation, first.counter, len(rest), first.service, lengths, data, first.groups
        )

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


def join(
    group: str | None = None,
    *,
    me: MemberId,
    members: int | Mapping[int, str] | Iterable[int] | None = None,
    protocol: str | None = None,
    port: int | None = None,
    mode: str | None = None,
    interface: str | None = None,
    options: Mapping[str, Any] | None = None,
    timeout_ms: int | None = None,
    datagram_bytes: int | None = None,
    state_dir: str | Path | None = None,
    insecure: bool = False,
    config: str | Path | Mapping[str, Any] | GroupConfig | None = None,
) -> Group:
    """A group to enter with `async with`.

    Either `config` names a group.toml (or is a dict of its shape), or the keywords say what it would: `members` is
    a number (all on this machine, ports counted up from `port`), or a mapping of id to address.  Without a `state_dir`
    nothing is kept on disk.
    """
    if config is not None:
        given = (group, members, protocol, port, mode, interface, options, timeout_ms, datagram_bytes, state_dir)
        if any(value is not None for value in given):
            raise UsageError("join: expected either config or the keywords that describe a group, not both")
        if isinstance(config, GroupConfig):
            checked = config
        elif isinstance(config, Mapping):
            checked = configuration.make(config, me)
        else:
            checked = configuration.load(config, me)
        return Group(checked, me, folder=checked.state_path(me))
    if group is None or members is None:
        raise UsageError("join: expected a group's name and its members, or config")
    base_port = configuration.PORT if port is None else port
    net: dict[str, Any] = {"port": base_port}
    data: dict[str, Any] = {"group": group, "insecure": insecure, "net": net, "trace": {"level": "off"}}
    data["member"] = [{"id": id, "address": address} for id, address in _addresses(members, base_port).items()]
    net |= {key: value for key, value in (("mode", mode), ("interface", interface)) if value is not None}
    more = {"protocol": protocol, "timeout_ms": timeout_ms, "datagram_bytes": datagram_bytes}
    data |= {key: value for key, value in more.items() if value is not None}
    if options is not None:
        data["options"] = dict(options)
    if state_dir is not None:
        data["state_dir"] = str(state_dir)
    checked = configuration.make(data, me)
    return Group(checked, me, folder=checked.state_path(me) if state_dir is not None else None)


def _addresses(members: int | Mapping[int, str] | Iterable[int], port: int) -> dict[int, str]:
    if isinstance(members, Mapping):
        return dict(members)
    ids = range(1, members + 1) if isinstance(members, int) else members
    return {id: f"127.0.0.1:{port + id}" for id in ids}


def _service(service: Service | str) -> Service:
    if isinstance(service, Service):
        return service
    try:
        return Service[str(service).upper()]
    except KeyError:
        words = ", ".join(s.word for s in Service)
        raise ValueError(f"unknown service {service!r}: expected one of {words}") from None


def _to_bytes(data: Any) -> bytes:
    """A copy, so that a buffer changed later changes no message."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a message is bytes, not {type(data).__name__}: encode it first")


def _refusal(why: str, submission: Submission) -> Exception:
    if why == "overloaded":
        return Overloaded("the send queue is full: use `await send`, which waits")
    if why == "closed":
        return Closed("the group was left")
    if why == "too large":
        return TooLarge(f"a message of {max(map(len, submission.payloads))} bytes is above the limit")
    if why == "not in view":
        return NotInView("nothing can be sent before the first view")
    return ValueError(f"not accepted: {why}")
