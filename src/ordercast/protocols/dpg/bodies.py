"""Bodies of messages a site keeps, to deliver and to send again; as many as its ordering buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Tag = Any


class Bodies:
    """Full buffers give up the oldest delivered body, else that of the latest message behind the new one (seizure)."""

    __slots__ = ("_size", "held", "seized")

    def __init__(self, size: int) -> None:
        self._size = size
        self.held: dict[Tag, Any] = {}
        self.seized = 0

    def __contains__(self, tag: Tag) -> bool:
        return tag in self.held

    def keep(self, tag: Tag, body: Any) -> None:
        """An own one: always kept."""
        self.held[tag] = body

    def store(
        self, tag: Tag, body: Any, delivered: Iterable[Tag], behind: Callable[[], Iterable[Tag]]
    ) -> tuple[bool, Tag | None]:
        """Whether there is room for it, and whose body it cost that is needed again.

        delivered: from the oldest on.  behind: what follows `tag` and is not incorporated, nearest first.
        """
        held = self.held
        if tag in held:
            return True, None
        if len(held) >= self._size:
            old = next((done for done in delivered if done in held), None)
            if old is not None:
                del held[old]
            else:
                victim = None
                for other in behind():
                    if other in held:
                        victim = other
                if victim is None:
                    return False, None
                self.seized += 1
                held[tag] = body
                del held[victim]
                return True, victim
        held[tag] = body
        return True, None
