"""The network service below: one order of all PDUs, and detectors that tell when nothing was missed.

Paper: section 3, "1C" and ContiguityDetector.  Each detector is sound (true: nothing was multicast between two
receptions) and may be incomplete (false says nothing); the first reception is never contiguous.

Differs from the paper:
  E2  A miss belongs to the slot that was stored after it, not to the site.
  E3  By timing it is the idle gap between two frames that counts, not the distance of their beginnings.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Pdu = TypeVar("Pdu")


class Misses:
    """What a driver tells: datagrams lost before each one.  A gap before a report counts for the next message."""

    __slots__ = ("_missed",)

    def __init__(self) -> None:
        self._missed = True  # nothing was heard before the first

    def heard(self, drops: int, message: bool) -> bool:
        """One more PDU; whether it is contiguous with the message before it (for messages)."""
        missed = self._missed or drops > 0
        self._missed = missed and not message
        return not missed


class Buffers(Generic[Pdu]):
    """Reception buffers of a LAN interface, with a miss bit per slot (E2)."""

    __slots__ = ("_first", "_missed", "overwrite", "size", "slots")

    def __init__(self, size: int, overwrite: bool) -> None:
        self.size, self.overwrite = size, overwrite
        self.slots: deque[tuple[Pdu, bool]] = deque()
        self._missed = False  # something was lost since the last that was stored
        self._first = True

    def arrive(self, pdu: Pdu) -> None:
        if len(self.slots) < self.size:
            self.slots.append((pdu, self._missed))
            self._missed = False
        elif self.overwrite:
            self.slots[-1] = (pdu, True)
        else:
            self._missed = True

    def own(self) -> None:
        """An own transmission, which the interface did not hear."""
        self._missed = True

    def fetch(self) -> tuple[Pdu, bool] | None:
        """The oldest, and whether it is contiguous with the one fetched before."""
        if not self.slots:
            return None
        pdu, missed = self.slots.popleft()
        contiguous = not missed and not self._first
        self._first = False
        return pdu, contiguous


class Timing:
    """A LAN by time alone: no message fits into the idle gap between two frames (E3)."""

    __slots__ = ("_end", "shortest_ns")

    def __init__(self, shortest_ns: int) -> None:
        self.shortest_ns = shortest_ns  # time on the wire of the shortest message
        self._end: int | None = None

    def heard(self, begin: int, end: int) -> bool:
        contiguous = self._end is not None and begin - self._end < self.shortest_ns
        self._end = end
        return contiguous


class Deadline:
    """A WAN with synchronised clocks: PDUs are taken at their send time + delta', in that order.

    `missed` are instants at which something should have been taken and was not here; the verdict is sound only when
    nothing sent before the instant is still under way.
    """

    __slots__ = ("_last", "_missed")

    def __init__(self) -> None:
        self._last: float | None = None
        self._missed: list[float] = []

    def missed(self, instant: float) -> None:
        self._missed.append(instant)

    def taken(self, instant: float) -> bool:
        last, self._last = self._last, instant
        contiguous = last is not None and not any(last < at < instant for at in self._missed)
        self._missed = [at for at in self._missed if at >= instant]
        return contiguous


class Numbers:
    """The tagger's numbers: contiguous when every number since the last message of the own group was heard."""

    __slots__ = ("_whole", "last")

    def __init__(self) -> None:
        self.last: int | None = None  # the highest number heard
        self._whole = False  # all numbers since the last own message were heard

    def other(self, number: int) -> None:
        """A number of another group, or of a report."""
        self._whole = self._whole and self.last is not None and number == self.last + 1
        self.last = number

    def missed(self) -> None:
        """A number of the own group whose PDU is not here."""
        self._whole = False

    def own(self, number: int) -> bool:
        """A message of the own group."""
        self.other(number)
        return self.message()

    def message(self) -> bool:
        """The number that was heard last is that of a message of the own group."""
        contiguous, self._whole = self._whole, True
        return contiguous
