"""Calls to replicated objects on their way: from methods that are awaited to batches that are ordered, and back.

Calls that are made in one turn of the event loop are handed to the core together; each has one future, and no task.
A call is answered once: with what its method returned or raised, or with FateUnknown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

from ordercast.errors import Closed, FateUnknown, NotPrimary, OrdercastError, Overloaded, RunError, TooLarge, UsageError
from ordercast.limits import MESSAGE_BYTES_MAX
from ordercast.live.told import Told
from ordercast.replica.entries import Raised, key_of
from ordercast.replica.objects import SYNC
from ordercast.replica.pieces import ObjectHead
from ordercast.replica.shapes import Method
from ordercast.state import machine
from ordercast.state.keeping import NO_DISK
from ordercast.state.machine import Answered, Calls
from ordercast.types import Peer, Service
from ordercast.words import short

Answer = TypeVar("Answer")

UNSENT_BYTES_MAX = 64 * 2**20  # of calls that wait for room; then callers get Overloaded
CALL_BYTES_MAX = MESSAGE_BYTES_MAX // 2 - 1_024  # the largest call
BATCH_BYTES = 128 * 1_024  # of calls that are ordered together

Future = asyncio.Future[Any]


class Calling:
    """Of one member.  `submit` hands a batch to the core and tells why it was refused, or nothing."""

    def __init__(self, me: Peer, provides: tuple[Service, ...], submit: Callable[[Calls], str]) -> None:
        self.me, self.provides, self._submit = me, provides, submit
        self._loop = asyncio.get_running_loop()
        self._number = 0  # of the last call that was handed to the core
        self.tickets = 0  # of all objects, so that one that comes into being anew does not begin anew
        self._waiting: dict[int, Future] = {}  # calls on their way, by number
        self._unsent: list[tuple[bytes, bool, bool, Future]] = []
        self._unsent_bytes = 0
        self._flushing = self._handing = False
        self._end: BaseException | None = None
        self.waits: set[Future] = set()  # for something to become true
        self.watches: WeakSet[Told] = WeakSet()
        self.tasks: set[asyncio.Task[None]] = set()  # calls that are repeated until they are applied

    # ---------------------------------------------------------------------------------------------------------- down

    def call(self, data: bytes, safe: bool, durable: bool) -> Future:
        """To be awaited; cancelled, its answer is dropped, and it may be applied all the same."""
        if self._end is not None:
            raise self._end
        size = len(data)
        if size > CALL_BYTES_MAX:
            raise TooLarge(f"a call of {size} bytes: expected at most {CALL_BYTES_MAX}")
        if self._unsent_bytes + size > UNSENT_BYTES_MAX and self._unsent:
            raise Overloaded(f"{len(self._unsent)} calls wait to be sent: await some of them first")
        future: Future = self._loop.create_future()
        self._unsent.append((data, safe, durable, future))
        self._unsent_bytes += size
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self.flush)
        return future

    def service(self, service: Service | str | None) -> bool:
        """Whether calls are safe: by default wherever the protocol has it."""
        if service is None:
            return Service.SAFE in self.provides
        may = [each for each in self.provides if each in (Service.SAFE, Service.AGREED)]
        wanted = next((each for each in may if service is each or str(service).lower() == each.word), None)
        if wanted is None:
            given = service.word if isinstance(service, Service) else short(service)
            words = ", ".join(each.word for each in may)
            raise ValueError(f"service {given}: calls in this group may be {words}")
        return wanted is Service.SAFE

    def flush(self) -> None:
        """Hand over what was called since; what finds no room waits for `flush` to be called again."""
        self._flushing = False
        if self._handing:
            return  # the core says from inside that there is room: whoever hands over goes on
        self._handing = True
        try:
            self._hand_over()
        finally:
            self._handing = False

    def _hand_over(self) -> None:
        unsent, done = self._unsent, 0
        now = time.time_ns()
        while done < len(unsent) and self._end is None:
            _, safe, durable, _ = unsent[done]
            last = done
            size = 0
            while last < len(unsent) and unsent[last][1] is safe and unsent[last][2] is durable:
                size += len(unsent[last][0])
                if size > BATCH_BYTES and last > done:
                    break
                last += 1
            batch = unsent[done:last]
            first = self._number + 1
            self._number += len(batch)
            for number, (_, _, _, future) in enumerate(batch, first):
                self._waiting[number] = future
            why = self._submit(Calls(first, [data for data, *_ in batch], now, safe, durable))
            if why:
                for number in range(first, first + len(batch)):
                    self._waiting.pop(number, None)
                if why == "overloaded":
                    break
                fault = refusal(why)
                for *_, future in batch:
                    _fail(future, fault)
            done = last
        if done and unsent is self._unsent:  # else it was closed meanwhile
            self._unsent_bytes -= sum(len(data) for data, *_ in unsent[:done])
            del unsent[:done]

    # ------------------------------------------------------------------------------------------------------------ up

    def answered(self, event: Answered) -> None:
        waiting, number = self._waiting, event.first
        for answer in event.answers:
            future = waiting.pop(number, None)
            number += 1
            if future is None or future.done():
                continue
            if type(answer) is Raised:
                _fail(future, answer.why)
            else:
                future.set_result(answer)

    def unknown(self, event: machine.FateUnknown) -> None:
        for number in range(event.first, event.first + event.count):
            future = self._waiting.pop(number, None)
            if future is not None:
                _fail(future, FateUnknown(f"it is not known whether this call was, or will be, applied: {event.why}"))

    def close(self, why: BaseException) -> None:
        """Nothing more comes: what was sent may be applied, what was not, is not."""
        self._end = self._end or why
        unsent, self._unsent = self._unsent, []
        for *_, future in unsent:
            _fail(future, self._end)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            _fail(future, FateUnknown(f"it is not known whether this call was, or will be, applied: {self._end}"))
        for future in tuple(self.waits):
            _fail(future, self._end)
        for watch in tuple(self.watches):
            watch.close()
        for task in tuple(self.tasks):
            task.cancel()

    @property
    def on_their_way(self) -> int:
        return len(self._waiting) + len(self._unsent)


def refusal(why: str) -> OrdercastError:
    if why == "not primary":
        return NotPrimary("this member's view is not primary, and nothing is called in it: wait for one that is")
    if why == "closed":
        return Closed("the group was left")
    if why == NO_DISK:
        return UsageError("durable: this member keeps nothing on disk: expected a state_dir")
    if why.startswith(NO_DISK):
        who = why.removeprefix(f"{NO_DISK} at ")
        return UsageError(f"durable: {who} of this group keeps nothing on disk: expected a state_dir at every member")
    if why == "too large":
        return TooLarge("a call above the limit of the group's messages")
    return RunError(f"not accepted: {why}")


def _fail(future: Future, why: BaseException) -> None:
    if isinstance(why, StopIteration):  # which no future can hold
        why = RuntimeError(f"a method raised StopIteration: {why}")
    if not future.done():
        future.set_exception(why)
        future.exception()  # it is no fault if nobody asks any more


class ObjectDoor:
    """The way of one object to its group."""

    def __init__(
        self, calling: Calling, head: ObjectHead, observers: list[Callable[[], None]], safe: bool, durable: bool
    ) -> None:
        self._calling, self.me, self._head = calling, calling.me, head
        self._observers = observers
        self._safe, self._durable = safe, durable
        key = key_of(head)
        self._heads = [key + bytes((number,)) for number in range(256)]

    def ticket(self) -> int:
        self._calling.tickets += 1
        return self._calling.tickets

    def call(
        self, method: Method, args: tuple[Any, ...], named: dict[str, Any], service: str | None, durable: bool | None
    ) -> Future:
        data = self._heads[method.number] + method.arguments(args, named)
        safe = self._safe if service is None else self._calling.service(service)
        return self._calling.call(data, safe, self._durable if durable is None else durable)

    def surely(self, call: Callable[[], Awaitable[Any]]) -> None:
        try:
            first: Awaitable[Any] | None = call()
        except Overloaded:
            first = None
        except OrdercastError:
            return
        task = asyncio.ensure_future(self._repeated(call, first))
        self._calling.tasks.add(task)
        task.add_done_callback(self._calling.tasks.discard)

    async def _repeated(self, call: Callable[[], Awaitable[Any]], under_way: Awaitable[Any] | None) -> None:
        """Where it can be made: at once; else after the next step of the order, which each decision begins with."""
        with suppress(OrdercastError):  # the group was left
            while True:
                try:
                    await (call() if under_way is None else under_way)
                    return
                except FateUnknown:
                    pass
                except (NotPrimary, Overloaded):
                    looks = iter((None,))
                    await self.until(lambda: next(looks, True), None)  # noqa: B023 - asked before it goes on
                under_way = None

    def sync(self) -> Awaitable[None]:
        return self._calling.call(SYNC, self._calling.service(None), False)

    async def until(self, what: Callable[[], Answer | None], timeout: float | None) -> Answer:
        found = what()
        if found is not None:
            return found
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def look() -> None:
            if not done.done():
                try:
                    found = what()
                except Exception as why:
                    _fail(done, why)
                else:
                    if found is not None:
                        done.set_result(found)

        self._observers.append(look)
        self._calling.waits.add(done)
        try:
            async with asyncio.timeout(timeout):
                return await done
        finally:
            self._observers.remove(look)
            self._calling.waits.discard(done)

    def patience(self, timeout: float | None) -> Callable[[], float | None]:
        clock = asyncio.get_running_loop().time
        end = None if timeout is None else clock() + timeout
        return lambda: None if end is None else end - clock()

    def told(self, listeners: list[Callable[[Any], None]], wanted: Callable[[Any], bool]) -> Told:
        watch = Told(self._head.name, listeners, wanted)
        self._calling.watches.add(watch)
        return watch
