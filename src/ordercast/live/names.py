"""Members that are known by name: where each is, asked at the start, and again while nothing is heard of it.

A restarted container has another address under the same name; a name may not be known yet when a member starts.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

from ordercast.live.ports import Address
from ordercast.types import MemberId

AGAIN_SECONDS = 1.0
ANSWER_SECONDS = 5.0


class Names:
    """`names`: of members other than this one.  `heard`: how much came from each member so far."""

    heard: Mapping[MemberId, int] = {}

    def __init__(self, names: Mapping[MemberId, Address], ipv6: bool) -> None:
        self._names, self._family = dict(names), socket.AF_INET6 if ipv6 else socket.AF_INET
        self.found: dict[MemberId, Address] = {}
        self._before: dict[MemberId, int] = {}  # how much had come when it was last looked
        self._why: dict[MemberId, str] = {}  # a name means nothing
        self._task: asyncio.Task[None] | None = None

    def start(self, moved: Callable[[dict[MemberId, Address]], None]) -> None:
        """`moved` is told of new addresses."""
        self._task = asyncio.ensure_future(self._run(moved))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, moved: Callable[[dict[MemberId, Address]], None]) -> None:
        while True:
            silent = [member for member in self._names if self._silent(member)]
            answers = await asyncio.gather(*(self._ask(member) for member in silent))
            news = {member: address for member, address in answers if address and self.found.get(member) != address}
            if news:
                self.found |= news
                moved(news)
            await asyncio.sleep(AGAIN_SECONDS)

    def _silent(self, member: MemberId) -> bool:
        """Whether nothing came from it since this was last asked."""
        heard, before = self.heard.get(member, 0), self._before.get(member)
        self._before[member] = heard
        return member not in self.found or heard == before

    async def _ask(self, member: MemberId) -> tuple[MemberId, Address | None]:
        host, port = self._names[member]
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer: list[Any] = await loop.getaddrinfo(host, port, family=self._family, type=socket.SOCK_DGRAM)
        except TimeoutError:
            self._why[member] = "no answer"
        except (OSError, UnicodeError) as why:
            self._why[member] = str(getattr(why, "strerror", None) or why).lower()
        else:
            self._why.pop(member, None)
            places = sorted(each[4][:2] for each in answer)
            known = self.found.get(member)
            return member, known if known in places else places[0] if places else None
        return member, None

    def waits(self) -> list[str]:
        """Names that mean nothing yet, in words."""
        return [
            f"name: {self._names[member][0]} of member {member}, which does not resolve: {why}"
            for member, why in sorted(self._why.items())
        ]
