"""What a running member says of itself: to a person who asks, and in the last row of its trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from ordercast.trace.schema import DatagramCounts
from ordercast.types import Nanoseconds, View
from ordercast.wire.train import Station

if TYPE_CHECKING:
    from ordercast.live.node import Node

TRAINS_LOST_MIN, TRAINS_LOST_SHARE = 20, 0.05  # from here on it is no accident, and repeating costs more than it saves


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
    station = incoming.station
    station.sweep(now)
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
            "unsent": sum(net.sent["full"] for net in node.nets.values()),
            "trains": station.arrived,
            "trains_lost": station.lost,
        },
        "drops": dict(sorted(incoming.drops.items())),
        "waits": [f"{name}: {layer['waits']}" for name, layer in layers.items() if layer.get("waits")],
        "advice": advice(station),
        "layers": layers,
    }


def advice(station: Station) -> list[str]:
    """What would help, in words."""
    lost, all = station.lost, station.lost + station.arrived
    if lost < TRAINS_LOST_MIN or lost < TRAINS_LOST_SHARE * all:
        return []
    return [
        f"{lost} of {all} packets in several datagrams were lost with one of these: "
        "packet_bytes no larger than datagram_bytes would lose less at a time"
    ]


def view(of: View) -> dict[str, Any]:
    """A view as JSON has it."""
    return {"id": str(of.id), "kind": of.kind.name.lower(), "members": list(of.members), "cause": str(of.cause)}
