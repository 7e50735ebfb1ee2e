"""The wall clock of a trace: rows have the monotonic clock, and each life tells once which time of day that was.

The anchor is `wall_ns` of a life's start row; headers repeat it where that row may be gone (ordercast.trace.keep).
"""

from __future__ import annotations

from datetime import UTC, datetime


def utc(wall_ns: int) -> str:
    """A moment of the wall clock, to the microsecond: 2026-11-18T00:43:51.000120Z."""
    return f"{datetime.fromtimestamp(wall_ns // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{wall_ns // 1_000 % 10**6:06d}Z"
