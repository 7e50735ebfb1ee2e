"""A fault at work, and values that faults override for a while."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ordercast.sim import faults as f
from ordercast.sim.host import Host
from ordercast.sim.links import Filter

Acts = dict[type[f.Fault], Callable[["Running", Any], None]]
"""How a fault of this class sets in; what ends it goes to `running.undo`."""


class Running:
    """A fault at work: how to end it, and what it did."""

    def __init__(self, fault: f.Fault, number: int, generator: random.Random) -> None:
        self.fault, self.number, self.random = fault, number, generator
        self.undo: list[Callable[[], None]] = []
        self.filters: list[Filter[Any]] = []
        self.struck: Host | None = None
        self.ended = False

    @property
    def host(self) -> Host:
        """Of the member that a fault on members strikes."""
        assert self.struck is not None
        return self.struck

    @property
    def lasting(self) -> bool:
        """It stays after the heal point."""
        return getattr(self.fault, "lasting", False)


class Overrides:
    """Values in use while faults last: of several faults on one thing the latest that still lasts counts."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, str], list[tuple[Running, Any]]] = {}

    def put(self, running: Running, what: str, usual: Any, value: Any, use: Callable[[Any], None]) -> None:
        values = self._values.setdefault((running.host.id, what), [])
        values.append((running, value))
        use(value)

        def undo() -> None:
            values.remove((running, value))
            use(values[-1][1] if values else usual)

        running.undo.append(undo)
