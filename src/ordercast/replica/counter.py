"""A number that is the same at every member."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.errors import RunError
from ordercast.replica.replica import Part, Replica, ordered

LIMIT = 2**63


class Counter(Replica):
    """`value` is read here; `add` and `set` are ordered, and tell the new value."""

    value: int = 0

    def __init__(self, value: int = 0) -> None:
        self.value = value

    @ordered
    def add(self, by: int = 1) -> int:
        return self._become(self.value + by)

    @ordered
    def set(self, value: int) -> int:
        return self._become(value)

    @ordered
    def compare_and_set(self, expected: int, value: int) -> bool:
        """Set it if it is as expected, and tell whether it was."""
        if self.value != expected:
            return False
        self._become(value)
        return True

    def _become(self, value: int) -> int:
        if not -LIMIT <= value < LIMIT:
            raise OverflowError(f"a counter has 64 bits: {value}")
        self.value = value
        return value

    def merge(self, parts: Sequence[Part]) -> None:
        """What was added in every part; what was set elsewhere is set after it, in the order of the parts."""
        for part in parts[1:]:
            if part.calls is None:
                raise RunError("a part of which the calls were not kept")
            for call in part.calls:
                getattr(self, call.method)(*call.arguments)
