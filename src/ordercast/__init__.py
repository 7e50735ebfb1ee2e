"""ordercast: several processes see the same messages in the same order.

    async with ordercast.join("demo", me=1, members=3, insecure=True) as group:
        await group.send(b"hello")
        async for event in group:
            print(event)

The names below are the library; what stands behind them is imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordercast.config import GroupConfig
    from ordercast.contract import GroupView
    from ordercast.errors import (
        Closed,
        ConfigError,
        FateUnknown,
        JoinTimeout,
        NotInView,
        NotPrimary,
        OrdercastError,
        Overloaded,
        RunError,
        TooLarge,
        TraceError,
        UsageError,
    )
    from ordercast.live.calls import Receipt
    from ordercast.live.group import Group
    from ordercast.live.join import join
    from ordercast.replica.counter import Counter
    from ordercast.replica.dict import Dict
    from ordercast.replica.leader import Leader
    from ordercast.replica.lock import Lock
    from ordercast.replica.queue import Queue
    from ordercast.replica.replica import Replica, ordered
    from ordercast.types import Batch, Cause, MemberId, Message, MessageId, Service, View, ViewId, ViewKind
    from ordercast.version import __version__

_HOME = {
    "Group": "ordercast.live.group",
    "Receipt": "ordercast.live.calls",
    "join": "ordercast.live.join",
    **dict.fromkeys(("Replica", "ordered"), "ordercast.replica.replica"),
    **{name: f"ordercast.replica.{name.lower()}" for name in ("Counter", "Dict", "Leader", "Lock", "Queue")},
    **dict.fromkeys(
        ("Batch", "Cause", "MemberId", "Message", "MessageId", "Service", "View", "ViewId", "ViewKind"),
        "ordercast.types",
    ),
    **dict.fromkeys(
        (
            "Closed", "ConfigError", "FateUnknown", "JoinTimeout", "NotInView", "NotPrimary", "NotSent",
            "OrdercastError", "Overloaded", "RunError", "TooLarge", "TraceError", "UsageError",
        ),
        "ordercast.errors",
    ),
    "GroupConfig": "ordercast.config",
    "GroupView": "ordercast.contract",
    "__version__": "ordercast.version",
}  # fmt: skip

__all__ = [
    "Batch", "Cause", "Closed", "ConfigError", "Counter", "Dict", "FateUnknown", "Group", "GroupConfig", "GroupView",
    "JoinTimeout", "Leader", "Lock", "MemberId", "Message", "MessageId", "NotInView", "NotPrimary", "NotSent",
    "OrdercastError", "Overloaded", "Queue", "Receipt", "Replica", "RunError", "Service", "TooLarge", "TraceError",
    "UsageError", "View", "ViewId", "ViewKind", "__version__", "join", "ordered",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
