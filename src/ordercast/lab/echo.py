"""Latency of a benchmark by the two methods that need no common clock, beside the exact one.

Totem's paper, section 4.  Messages carry the time they were due; with room for it, the first one of a batch also
carries for every member the last such time received from it and when.  All members of a benchmark share one clock, so
the exact mean is known too, and the methods can be held against it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from ordercast.lab.latency import Differences, Echoes

HOLD_MAX_NS = 1_000_000_000  # an echo held longer says more of the clocks' drift than of the latency
_COUNT = struct.Struct("<B")
_ENTRY = struct.Struct("<IQQ")  # member, when it sent, when I received


def table_bytes(members: int) -> int:
    return _COUNT.size + members * _ENTRY.size


class EchoMeter:
    """At one member."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.echoes = Echoes(HOLD_MAX_NS)

    def table(self, sent_at: int) -> bytes:
        """What goes along with a message stamped `sent_at`."""
        last = [(peer, t1, t2) for peer, (t1, t2) in self.echoes.last.items() if t2 <= sent_at]
        return _COUNT.pack(len(last)) + b"".join(_ENTRY.pack(*entry) for entry in last)

    def received(self, sender: int, stamp: int, table: bytes, now: int) -> None:
        """A message of `sender` with its table."""
        if sender == self.me:
            return
        (count,) = _COUNT.unpack_from(table)
        entries = (_ENTRY.unpack_from(table, _COUNT.size + k * _ENTRY.size) for k in range(count))
        self.echoes.received(self.me, sender, stamp, {peer: (t1, t2) for peer, t1, t2 in entries}, now)

    def result(self, differences: Mapping[int, list[int]]) -> dict[str, Any]:
        """`differences`: by sender, receive time less transmit time of each message."""
        others = {sender: found for sender, found in differences.items() if sender != self.me}
        return {
            "differences": [[sender, self.me, len(found), sum(found)] for sender, found in others.items()],
            "echoes": [[total, count] for total, count in self.echoes.found.values()],
        }


def summary(results: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """Exact mean, and the means by the two methods, in microseconds."""
    one, total, count = Differences(), 0.0, 0
    for result in results:
        for i, j, n, difference in result["differences"]:
            one.add(i, j, difference, n)
        for latency, n in result["echoes"]:
            total, count = total + latency, count + n
    messages = sum(one.count.values())
    exact = sum(one.total.values()) / messages if messages else None
    found = {"mean_us": exact, "mean_us_method1": one.mean(), "mean_us_method2": total / count if count else None}
    return {name: None if ns is None else round(ns / 1e3, 1) for name, ns in found.items()}
