"""What a simulated run gives back."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any

from ordercast.trace.trace import Trace


class Outcome:
    """The trace and the figures of one run."""

    def __init__(
        self,
        *,
        trace: Trace,
        events: int,
        datagrams: int,
        transmitted: int,
        messages: int,
        delivered: int,
        deliveries: int,
        sim_ns: int,
        ended: str,
        notes: Counter[str],
        drops: Counter[str],
        trains_lost: int,
        faults: Counter[str],
        effects: Counter[str],
        status: dict[int, dict[str, Any]],
    ) -> None:
        self.trace = trace
        self.events = events  # inputs given to cores (drained not counted)
        self.datagrams = datagrams  # received
        self.transmitted = transmitted
        self.messages = messages  # accepted
        self.delivered = delivered  # at the slowest member that was up all the time
        self.deliveries = deliveries  # at all members together
        self.sim_ns = sim_ns
        self.ended = ended  # why the run ended
        self.notes = notes
        self.drops = drops  # datagrams and records lost, by reason
        self.trains_lost = trains_lost  # packets of several datagrams that did not all come, to the last lives
        self.faults = faults  # how often each class set in
        self.effects = effects  # datagrams each class touched
        self.status = status

    @cached_property
    def digest(self) -> str:
        """BLAKE2b over deliver, view and crash rows; at level off over nothing."""
        return self.trace.digest()

    def __repr__(self) -> str:
        return f"Outcome({self.trace.header.run}, {self.messages} messages, {self.events} events, {self.digest[:8]})"
