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
    from ordercast.types import Batch, Cause, MemberId, Message, MessageId, Service, View, ViewId, ViewKind
    from ordercast.version import __version__

_HOME = {
    "Group": "ordercast.live.group",
    "Receipt": "ordercast.live.calls",
    "join": "ordercast.live.join",
    **dict.fromkeys(
        ("Batch", "Cause", "MemberId", "Message", "MessageId", "Service", "View", "ViewId", "ViewKind"),
        "ordercast.types",
    ),
    **dict.fromkeys(
        (
            "Closed", "ConfigError", "JoinTimeout", "NotInView", "NotPrimary", "NotSent", "OrdercastError",
            "Overloaded", "RunError", "TooLarge", "TraceError", "UsageError",
        ),
        "ordercast.errors",
    ),
    "GroupConfig": "ordercast.config",
    "GroupView": "ordercast.contract",
    "__version__": "ordercast.version",
}  # fmt: skip

__all__ = [
    "Batch", "Cause", "Closed", "ConfigError", "Group", "GroupConfig", "GroupView", "JoinTimeout",
    "MemberId", "Message", "MessageId", "NotInView", "NotPrimary", "NotSent", "OrdercastError", "Overloaded", "Receipt",
    "RunError", "Service", "TooLarge", "TraceError", "UsageError", "View", "ViewId", "ViewKind", "__version__", "join",
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
