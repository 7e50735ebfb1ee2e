"""What a running member says of itself: to a person who asks, and in the last row of its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from ordercast.contract import Note
from ordercast.trace.schema import DatagramCounts
from ordercast.types import Nanoseconds, View

if TYPE_CHECKING:
    from ordercast.live.node import Node


_WAITS = "waits", "apart"  # what holds the core up; who is kept out of its view, which holds nobody up
TOLD = frozenset(("implausible", "probation", "rival"))


def told(note: Note) -> str:
    """What of a core's notes belongs into the log of whoever runs the member; "" for most."""
    fields = note.fields
    if note.name == "rival":
        return f"another process says it is this member (life {fields['incarnation']})"
    if note.name == "implausible":
        return f"packets of member {fields['member']} are dropped: {fields['what']} is a wrong clock's, there or here"
    if note.name == "probation" and "why" in fields:
        return (
            f"member {fields['member']} is kept out for {fields['ns'] / 1e9:.3g} s: its link failed ({fields['why']})"
        )
    return ""


def last_row(node: Node) -> dict[str, Any]:
    """What is left in the queues, what is waited for, what was counted."""
    sent, incoming = [net.sent for net in node.nets.values()], node.incoming
    traffic = DatagramCounts(
        transmitted=sum(counts["datagrams"] for counts in sent),
        transmitted_bytes=sum(counts["bytes"] for counts in sent),
        received=incoming.datagrams,
        received_bytes=incoming.bytes,
        delivered_bytes=node.delivered_bytes,
    )
    waits = {name: layer["waits"] for name, layer in node.stack.status().items() if layer.get("waits")}
    return {
        "queues": node.stack.queues(),
        "waits": waits,
        "drops": dict(incoming.drops),
        "traffic": asdict(traffic),
    }


def status(node: Node, now: Nanoseconds) -> dict[str, Any]:
    """Plain words where words help."""
    identity, incoming, layers = node.identity, node.incoming, node.stack.status()
    return {
        "member": identity.me,
        "incarnation": identity.incarnation,
        "group": identity.group,
        "protocol": node.info.name,
        "uptime_ms": (now - node.started_ns) // 1_000_000,
        "view": None if node.view is None else view(node.view) | {"primary": node.view.primary},
        "timers_ms": {name: round((at - now) / 1e6, 1) for name, at in sorted(node.timers.items())},
        "queues": {"unread_frames": node.room.frames, "unread_bytes": node.room.bytes, **node.stack.queues()},
        "datagrams": {
            "received": incoming.datagrams,
            "sent": sum(net.sent["datagrams"] for net in node.nets.values()),
            "lost_here": sum(net.lost for net in node.nets.values()),
            "trains_lost": incoming.station.lost,
        },
        "drops": dict(sorted(incoming.drops.items())),
        "waits": [f"{name}: {layer[key]}" for name, layer in layers.items() for key in _WAITS if layer.get(key)],
        "layers": layers,
    }


def view(of: View) -> dict[str, Any]:
    """A view as JSON has it."""
    return {"id": str(of.id), "kind": of.kind.name.lower(), "members": list(of.members), "cause": str(of.cause)}
