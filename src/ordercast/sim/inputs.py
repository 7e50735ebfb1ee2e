"""Inputs that wait for a host, as plain tuples, and how a core is told each; recorded ones have a form for files."""

from __future__ import annotations

from typing import Any

from ordercast.contract import Action
from ordercast.stack import Stack
from ordercast.trace import record
from ordercast.wire.codec import Codec

Item = tuple[Any, ...]
"""(word, arguments of the stack's method of that name)."""


def ask(stack: Stack, now: int, item: Item) -> list[Action]:
    """Tell the core; what it answers."""
    actions: list[Action] = getattr(stack, item[0])(now, *item[1:])
    return actions


def as_input(now: int, item: Item, codec: Codec) -> record.AnyInput:
    """The same as a recording holds it."""
    what, *rest = item
    if what == "receive":
        net, source, packet, drops = rest
        return record.Received(now, net, source.id, source.incarnation, drops, codec.encode(packet))
    if what == "submit":
        (submission,) = rest
        return record.Submitted(now, submission.payloads, int(submission.service), submission.groups)
    made: record.AnyInput = _RECORDED[what](now, *rest)
    return made


_RECORDED: dict[str, Any] = {
    "drained": record.Drained,
    "timer": record.Fired,
    "stored": record.Stored,
    "store_failed": record.StoreFailed,
    "unreachable": record.Unreachable,
    "room": record.RoomGiven,
    "leave": record.LeaveAsked,
    "regroup": record.Regrouped,
}
