"""The library for code without asyncio: the member lives in a thread of its own.

    with ordercast.blocking.join("demo", me=1, members=3, insecure=True, objects={"notes": ordercast.Dict()}) as group:
        notes = group["notes"]
        notes.set("a", 1)
        print(notes.get("a"))

What is awaited elsewhere returns here when it is done, with the same results and the same exceptions.  Any number of
threads may call; while one waits, the member goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from types import TracebackType
from typing import Any

from ordercast.errors import Closed, UsageError
from ordercast.live.group import Group as AsyncGroup
from ordercast.live.group import GroupEvent
from ordercast.live.join import join as async_join
from ordercast.replica.replica import Replica
from ordercast.words import short

_END: Any = object()


def join(group: str | None = None, *, objects: Mapping[str, Replica] | None = None, **words: Any) -> Group:
    """A group to enter with `with`; takes what `ordercast.join` takes."""
    return Group(async_join(group, objects=objects, **words), objects or {})


class Thread:
    """An event loop in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self.over, self._lock = False, threading.Lock()  # whoever asks before it is over is answered
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._give_up())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _give_up(self) -> None:
        """Whatever other threads still wait for."""
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What this comes to; interrupted, it is cancelled there."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("blocking: called by the member's own thread, which would wait for itself")
        with self._lock:
            if self.over:
                work.close()
                raise Closed("the group was left")
            future: Future[Any] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Closed("the group was left") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        with self._lock:
            self.over = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class Group:
    """A member of a group, for any thread.  Use it as ``with ordercast.blocking.join(...) as group``."""

    def __init__(self, group: AsyncGroup, objects: Mapping[str, Replica]) -> None:
        self._group, self._names = group, dict(objects)
        self._thread: Thread | None = None
        self._objects: dict[str, Object] = {}

    def __enter__(self) -> Group:
        if self._thread is not None:
            raise UsageError(f"member {self._group.me} has already joined: make a new group object")
        self._thread = Thread(f"ordercast-{self._group.config.group}-{self._group.me}")
        try:
            self._thread.wait(self._group.__aenter__())
        except BaseException:
            self._thread.stop()
            raise
        self._objects = {name: Object(self._thread, object) for name, object in self._names.items()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread = self._in()
        try:
            thread.wait(self._group.__aexit__(kind, value, traceback))
        finally:
            thread.stop()

    def _in(self) -> Thread:
        if self._thread is None:
            raise UsageError("the group was not joined yet: use `with ordercast.blocking.join(...)`")
        return self._thread

    def __getitem__(self, name: str) -> Any:
        """The object of this name."""
        if name not in self._objects:
            names = ", ".join(sorted(self._objects)) or "none"
            raise UsageError(f"object {short(name)}: this program has not replicated it; it has {names}")
        return self._objects[name]

    def replicate(self, name: str, object: Replica, **words: Any) -> Any:
        """As `Group.replicate`; what it gives is called without await."""
        thread = self._in()
        self._objects[name] = made = Object(thread, thread.wait(self._group.replicate(name, object, **words)))
        return made

    def __iter__(self) -> Iterator[GroupEvent]:
        """Messages and views, one by one, in the order that all members see."""
        return _each(self._in(), self._group.__aiter__())

    def __getattr__(self, name: str) -> Any:
        return _bridged(self._in(), self._group, name)


class Object:
    """A replicated object, for any thread."""

    _thread: Thread
    _object: Replica
    _fences: threading.local

    def __init__(self, thread: Thread, object: Replica) -> None:
        fences = threading.local()  # of a lock: the numbers that a thread entered it with
        vars(self).update(_thread=thread, _object=object, _fences=fences)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refused, as it is everywhere outside of an ordered method."""
        setattr(self._object, name, value)

    def __getattr__(self, name: str) -> Any:
        return _bridged(self._thread, self._object, name)

    def __getitem__(self, key: Any) -> Any:
        return _bridged(self._thread, self._object, "__getitem__")(key)

    def __contains__(self, key: Any) -> bool:
        return bool(_bridged(self._thread, self._object, "__contains__")(key))

    def __len__(self) -> int:
        return int(_bridged(self._thread, self._object, "__len__")())

    def __iter__(self) -> Iterator[Any]:
        return iter(_bridged(self._thread, self._object, "__iter__")())

    def __enter__(self) -> int:
        """Of a lock: hold it."""
        fence: int = self.acquire()
        self._fences.held = [*getattr(self._fences, "held", ()), fence]
        return fence

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release(self._fences.held.pop())


def _bridged(thread: Thread, target: Any, name: str) -> Any:
    """An attribute as other threads see it: methods are called in the member's thread, and waited for."""
    found = getattr(target, name)
    return partial(_called, thread, found) if callable(found) else found


def _called(thread: Thread, what: Callable[..., Any], *args: Any, **named: Any) -> Any:
    async def work() -> Any:
        answer = what(*args, **named)
        return await answer if inspect.isawaitable(answer) else answer

    if thread.over:
        return _after(what(*args, **named))
    answer = thread.wait(work())
    return _each(thread, answer) if hasattr(answer, "__anext__") else answer


def _after(answer: Any) -> Any:
    """The group was left: what an object holds stays readable, and nothing else."""
    if inspect.isawaitable(answer) or hasattr(answer, "__anext__"):
        getattr(answer, "close", lambda: None)()
        raise Closed("the group was left")
    return answer


def _each(thread: Thread, events: Any) -> Iterator[Any]:
    """What is iterated with `async for` elsewhere."""

    async def following() -> Any:
        return await anext(events, _END)

    while (event := thread.wait(following())) is not _END:
        yield event
