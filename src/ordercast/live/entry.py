"""Entering a group: the first view with enough members, where an application's part of the order begins.

A member alone is soon in a view of its own.  An application that began there would take its first messages for those of
the group, so what comes before the view it waits for is passed over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ordercast import addresses
from ordercast.config import GroupConfig
from ordercast.contract import TAGGER, Delivered, Event, GroupView, ViewChange
from ordercast.drivers.terms import Other
from ordercast.errors import JoinTimeout
from ordercast.live.node import Node
from ordercast.types import MemberId, View, ViewKind

SAY_SECONDS = 2.0  # of waiting, then it is said what for
TAGGER_SECONDS = 5.0  # so long a tagger's machine may be silent, if that is more than T
POLL_SECONDS = 0.005

log = logging.getLogger("ordercast")


class Entry:
    """Of one member: `at_least` members in its view, within `timeout` seconds (None: as long as it takes)."""

    def __init__(self, config: GroupConfig, me: MemberId, at_least: int, timeout: float | None) -> None:
        self.config, self.me, self.at_least, self.timeout = config, me, at_least, timeout
        self.done = False  # the view has come
        self.pure = me in config.pure  # nobody reads
        self.until: float | None = None  # by the event loop's clock: then it is given up
        self._wait: asyncio.Future[None] | None = None
        self._groups: dict[str, GroupView] = {}  # as they were told before it

    def sift(self, events: list[Event], consumed: Callable[[int, int], None]) -> list[Event]:
        """What of these is for the application; frames passed over are `consumed` (frames, bytes)."""
        out: list[Event] = []
        for event in events:
            kind = type(event)
            if kind is Delivered and (self.pure or not self.done):
                consumed(1, len(event.batch.data))  # type: ignore[attr-defined]
            elif self.done:
                out.append(event)
            elif kind is ViewChange and self._enough(event.view):  # type: ignore[attr-defined]
                self.done = True
                out += [event, *(group for group in self._groups.values() if group.members)]
                self.wake()
            elif kind is GroupView:
                self._groups[event.group] = event  # type: ignore[attr-defined, assignment]
            elif kind is not ViewChange:
                out.append(event)
        return out

    def _enough(self, view: View) -> bool:
        return view.kind is ViewKind.REGULAR and len(view.members) >= self.at_least

    def wake(self) -> None:
        """The view has come, or never will."""
        if self._wait is not None and not self._wait.done():
            self._wait.set_result(None)

    async def wait(self, node: Node) -> None:
        """Until the view has come; JoinTimeout with what is known, if it does not in time."""
        if self.timeout is not None:
            self.until = asyncio.get_running_loop().time() + self.timeout
        if not node.info.views:
            await self._tagger(node)
            return
        if self.done:
            return
        loop = asyncio.get_running_loop()
        self._wait = loop.create_future()
        saying = loop.call_later(SAY_SECONDS, lambda: log.warning("%s", self._words(node)))
        try:
            async with asyncio.timeout(self.timeout):
                await self._wait
        except TimeoutError:
            raise JoinTimeout(f"{self._words(node)}: given up after {self.timeout:g} s") from None
        finally:
            saying.cancel()

    async def _tagger(self, node: Node) -> None:
        """Until the tagger has answered, where there is one; JoinTimeout if nobody is there in T, or all is silent."""
        tagger, heard = self.config.tagger, node.past.heard
        if tagger is None:
            return
        patience, since = self.config.timeout_ms / 1_000, time.monotonic()
        longest = self.timeout or max(TAGGER_SECONDS, patience)
        while not heard[TAGGER] and node.running:
            waited = time.monotonic() - since
            nobody = TAGGER in node.refused and not self.timeout and waited > patience
            if nobody or waited > longest:
                where = addresses.written(tagger.address, tagger.port)
                how = "nobody is there" if nobody else f"nothing came from there in {longest:g} s"
                why = "; ".join([how, *node.talk.waits(time.monotonic_ns())])
                words = f"member {self.me} of {self.config.group}: the tagger at {where} does not answer"
                raise JoinTimeout(f"{words}: {why}: expected one, ordercast tagger with this group's file")
            await asyncio.sleep(POLL_SECONDS)

    def _words(self, node: Node) -> str:
        """What joining waits for, and all that may say why."""
        here = "it is in no view yet" if node.view is None else f"it is in a view of {list(node.view.members)}"
        missing = sorted(set(self.config.ids) - {self.me, *node.incoming.admission.last})
        unheard = f"has not heard of {', '.join(map(str, missing))}" if missing else ""
        known = "; ".join(filter(None, [here, unheard, *node.status()["waits"]]))
        return f"member {self.me} of {self.config.group} waits for a view of {self.at_least} members or more: {known}"

    def logged(self, found: Callable[[Other], None]) -> Callable[[Other], None]:
        """To be told of a member with other terms, which is never in a view with this one: into the log as well."""

        def told(other: Other) -> None:
            log.warning("member %d of %s does not let in another: %s", self.me, self.config.group, other)
            found(other)

        return told
