"""The replicated objects of one member: how they come into being, how this member stands, what its callers hear."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ordercast.contract import Event
from ordercast.errors import FateUnknown, JoinTimeout, NotPrimary, OrdercastError, RunError, TooLarge, UsageError
from ordercast.live.calling import CALL_BYTES_MAX, Calling, ObjectDoor
from ordercast.live.entry import SAY_SECONDS, Entry
from ordercast.live.node import Node
from ordercast.replica.entries import head_of
from ordercast.replica.objects import Objects
from ordercast.replica.replica import Replica
from ordercast.state import machine
from ordercast.state.machine import BEHIND, COMPLETE, ENDED, HALTED, UNDECIDED, Answered, Calls, Standing
from ordercast.types import Service

R = TypeVar("R", bound=Replica)

log = logging.getLogger("ordercast")

WORDS = {
    UNDECIDED: "objects: the view has not decided whose state counts",
    BEHIND: "objects: the state is on its way here",
    HALTED: "objects: a primary view, of all members at a group's beginning",
    ENDED: "objects: this member is no replica any more",
}


class Replicas:
    """Of one member, in the event loop that joined."""

    def __init__(self, objects: Objects, provides: tuple[Service, ...], submit: Callable[[Calls], str]) -> None:
        self.objects = objects
        self.calling = Calling(objects.me, provides, submit)
        self.standing = Standing(HALTED, 0, b"")
        self._wanted: dict[str, tuple[Replica, bool, bool]] = {}  # what the application has brought to life
        self._coming: set[str] = set()  # those of them that are on their way
        self._changed: set[asyncio.Future[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: BaseException | None = None

    @classmethod
    def of(cls, node: Node) -> Replicas | None:
        """Of a member that has objects."""
        return None if node.objects is None else cls(node.objects, node.info.provides, node.tell)

    # ------------------------------------------------------------------------------------------------ the application

    async def begin(self, objects: Mapping[str, Replica], entry: Entry) -> None:
        """Have these before the member has joined; JoinTimeout with what is known, if that takes too long."""
        loop = asyncio.get_running_loop()
        saying = loop.call_later(SAY_SECONDS, lambda: log.warning("%s", self._words(entry))) if objects else None
        try:
            async with asyncio.timeout_at(entry.until):
                for name, object in objects.items():
                    await self.replicate(name, object)
        except TimeoutError:
            raise JoinTimeout(f"{self._words(entry)}: given up after {entry.timeout:g} s") from None
        finally:
            if saying is not None:
                saying.cancel()

    def _words(self, entry: Entry) -> str:
        return f"member {entry.me} of {entry.config.group} waits for its {self.waits() or 'objects'}"

    async def replicate(self, name: str, object: R, service: Service | str | None = None, durable: bool = False) -> R:
        """Have an object of this name in the group, and `object` be it here."""
        creation = self.objects.creation(name, object)
        safe = self.calling.service(service)
        if name in self._wanted:
            raise UsageError(f"object {name!r}: this program has replicated it already")
        self._wanted[name] = object, safe, durable
        self.objects.expect(name, object)
        self._coming.add(name)
        try:
            await self._bring(name, creation)
        except BaseException:
            del self._wanted[name]
            raise
        finally:
            self._coming.discard(name)
        return object

    async def _bring(self, name: str, creation: bytes) -> None:
        object, safe, durable = self._wanted[name]
        head = head_of(name, object)
        while True:
            await self._complete()
            there = self.objects.find(name)
            if there is None or there.head.digest != head.digest:
                if len(creation) > CALL_BYTES_MAX:
                    size = f"a first state of {len(creation)} bytes"
                    raise TooLarge(f"object {name!r}: {size}: expected at most {CALL_BYTES_MAX}, and the rest by calls")
                try:
                    await self.calling.call(creation, safe, False)
                except (FateUnknown, NotPrimary):
                    if self._end is not None:
                        raise
                    continue
            if self.objects.find(name) is not None:
                break
        for _ in self.objects.bind(name, object, ObjectDoor(self.calling, head, self.objects.observers, safe, durable)):
            await asyncio.sleep(0)

    async def _complete(self) -> None:
        """Until this member has the state of the group."""
        while self.standing.word != COMPLETE or self._end is not None:
            if self._end is not None:
                raise self._end
            change = asyncio.get_running_loop().create_future()
            self._changed.add(change)
            try:
                await change
            finally:
                self._changed.discard(change)

    # ------------------------------------------------------------------------------------------------------ the group

    def take(self, event: Event) -> bool:
        """Whether this was for objects."""
        kind = type(event)
        if kind is Answered:
            self.calling.answered(event)  # type: ignore[arg-type]
        elif kind is machine.FateUnknown:
            self.calling.unknown(event)  # type: ignore[arg-type]
        elif kind is Standing:
            self._stands(event)  # type: ignore[arg-type]
        else:
            return False
        return True

    def _stands(self, standing: Standing) -> None:
        self.standing = standing
        if standing.word == ENDED:
            log.warning("objects: this member is no replica any more: %s", standing.why)
            self.close(RunError(f"this member is no replica any more: {standing.why}"))
        elif standing.word == COMPLETE:
            for name, (object, _, _) in self._wanted.items():
                if object._here is None and name not in self._coming:
                    self._again(name, object)
        self._wake()

    def _again(self, name: str, object: Replica) -> None:
        """The state that this member took over does not have one of its objects: it comes into being anew."""

        async def bring() -> None:
            try:
                await self._bring(name, self.objects.creation(name, object))
            except OrdercastError as why:
                log.warning("object %r is not in the group any more: %s", name, why)
            finally:
                self._coming.discard(name)

        self._coming.add(name)
        task = asyncio.ensure_future(bring())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def room(self) -> None:
        """Calls that were refused may go on."""
        self.calling.flush()

    def close(self, why: BaseException) -> None:
        self._end = self._end or why
        self.calling.close(self._end)
        for task in self._tasks:
            task.cancel()
        self._wake()

    def _wake(self) -> None:
        for change in self._changed:
            if not change.done():
                change.set_result(None)

    def add_to(self, status: dict[str, Any]) -> None:
        """How the objects stand, and in plain words what they wait for."""
        status["objects"] = self.status()
        waits = self.waits()
        if waits:
            status["waits"].append(waits)

    def status(self) -> dict[str, Any]:
        standing = self.standing
        out: dict[str, Any] = {
            "standing": standing.word, "why": standing.why, "calls_waiting": self.calling.on_their_way,
            "objects": self.objects.titles(),
        }  # fmt: skip
        if standing.total_bytes:
            out["arriving"] = {"bytes": standing.done_bytes, "of": standing.total_bytes}
        return out

    def waits(self) -> str:
        """In plain words, or nothing."""
        word = WORDS.get(self.standing.word, "")
        return f"{word}: {self.standing.why}" if word and self.standing.why else word
