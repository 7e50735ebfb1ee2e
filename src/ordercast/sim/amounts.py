"""How much a scenario may ask for: every number in it has bounds, so that none makes a run without end or sense.

Times are of virtual time.  The bounds are wide: what lies outside is a slip of the pen, or a run nobody waits for.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ordercast.limits import MESSAGE_BYTES_MAX

DAY_MS = 86_400_000.0
ID_MAX = 2**32 - 1

Share = Annotated[float, Meta(ge=0, le=1)]  # a probability
Ms = Annotated[float, Meta(ge=0, le=DAY_MS)]
Us = Annotated[float, Meta(ge=0, le=DAY_MS * 1000)]
Times = Annotated[float, Meta(ge=0, le=1e6)]  # so many times as long
Count = Annotated[int, Meta(ge=0, le=10**9)]
AtLeastOne = Annotated[int, Meta(ge=1, le=10**6)]
Copies = Annotated[int, Meta(ge=0, le=1_000)]  # of each datagram
Size = Annotated[int, Meta(ge=0, le=2 * MESSAGE_BYTES_MAX)]  # of a message; too large ones are sent to be refused
Id = Annotated[int, Meta(ge=0, le=ID_MAX)]  # a member, relay or net
