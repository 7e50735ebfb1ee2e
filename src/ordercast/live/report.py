"""What a running member says of itself: to a person who asks, and in the last row of its trace."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from ordercast.contract import DROP, Note
from ordercast.trace.schema import DatagramCounts
from ordercast.types import Nanoseconds, View
from ordercast.wire.train import Station

if TYPE_CHECKING:
    from ordercast.live.node import Node

TRAINS_LOST_MIN, TRAINS_LOST_SHARE = 20, 0.05  # from here on it is no accident, and repeating costs more than it saves


TOLD = frozenset(
    (DROP, "implausible", "probation", "rival", "state damaged", "state lost")
)  # notes that the driver of a live member reads
_logger = logging.getLogger("ordercast")


def tell(node: Node, note: Note) -> None:
    """Count what a core dropped; log what whoever runs the member should know."""
    if note.name == DROP:
        node.incoming.drops[note.fields["reason"]] += 1
    elif words := told(note):
        _logger.warning("ordercast: member %d: %s", node.identity.me, words)


def told(note: Note) -> str:
    """What of a core's notes belongs into the log of whoever runs the member; "" for most."""
    fields = note.fields
    if note.name == "rival":
        return f"another process says it is this member (life {fields['incarnation']})"
    if note.name == "implausible":
        return f"packets of member {fields['member']} are dropped: {fields['what']} is a wrong clock's, there or here"
    if note.name == "state damaged":
        files = ", ".join(fields["files"])
        return f"of the state on disk, {files}: damaged, and passed over; what is missing here comes from the others"
    if note.name == "state lost":
        return "no member has the newest state of the group any more: it goes on with what is left of it"
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


def counts(node: Node) -> dict[str, int]:
    """What rates are made of."""
    return {
        "submitted": node.past.submitted,
        "delivered": node.delivered,
        "datagrams_received": node.incoming.datagrams,
        "datagrams_sent": sum(net.sent["datagrams"] for net in node.nets.values()),
        **{f"from {member}": packets for member, packets in node.past.heard.items()},
    }


def status(node: Node, now: Nanoseconds) -> dict[str, Any]:
    """Plain words where words help."""
    identity, incoming, layers = node.identity, node.incoming, node.stack.status()
    station = incoming.station
    station.sweep(now)
    rates = node.past.rates()
    in_view = node.view is not None and all(layer.get("in_view", True) for layer in layers.values())
    agreement = incoming.agreement
    return {
        "member": identity.me,
        "incarnation": identity.incarnation,
        "group": identity.group,
        "protocol": node.info.name,
        "time": node.wall(now),
        "started": node.wall(node.started_ns),
        "uptime_ms": (now - node.started_ns) // 1_000_000,
        "in_view": in_view or not node.info.views,
        "view": None if node.view is None else view(node.view) | {"primary": node.view.primary},
        "views": [
            {"time": node.wall(seen.at), "standstill_ms": seen.standstill_ms, **view(seen.view)}
            for seen in node.past.views
        ],
        "view_causes": dict(sorted(node.past.causes.items())),
        "counts": {name: count for name, count in counts(node).items() if not name.startswith("from ")},
        "rates": {name: rate for name, rate in rates.items() if not name.startswith("from ")},
        "peers": _peers(node, layers, rates),
        "timers_ms": {name: round((at - now) / 1e6, 1) for name, at in sorted(node.timers.items())},
        "queues": {"unread_frames": node.room.frames, "unread_bytes": node.room.bytes, **node.stack.queues()},
        "datagrams": {
            "received": incoming.datagrams,
            "sent": sum(net.sent["datagrams"] for net in node.nets.values()),
            "lost_here": sum(net.lost for net in node.nets.values()),
            "sieved": sum(net.sieved for net in node.nets.values()),
            "unsent": sum(net.sent["full"] for net in node.nets.values()),
            "trains": station.arrived,
            "trains_lost": station.lost,
            "before_terms": 0 if agreement is None else agreement.early,
        },
        "drops": dict(sorted(incoming.drops.items())),
        "key": None if node.talk.sealing is None else node.talk.sealing.status(),
        "other_terms": [] if agreement is None else agreement.status(now),
        "waits": _waits(node, layers, now),
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


def _peers(node: Node, layers: dict[str, Any], rates: dict[str, float]) -> list[dict[str, Any]]:
    """Of each other member: what came from it, and what of it had to be asked for again."""
    return [
        {
            "member": member,
            "packets": packets,
            "packets_per_s": rates[f"from {member}"],
            "frames_lost": sum(layer.get("repeated", {}).get(member, 0) for layer in layers.values()),
        }
        for member, packets in node.past.heard.items()
        if member != node.identity.me
    ]


def _waits(node: Node, layers: dict[str, Any], now: Nanoseconds) -> list[str]:
    """What it waits for, and since when: first what only its driver knows, the disk and the application."""
    agreement = node.incoming.agreement
    said: list[tuple[str, Nanoseconds | None]] = []
    if agreement is not None:
        said += [(f"terms: {words}", None) for words in agreement.words()]
    said += [(words, None) for words in node.talk.waits(now)]
    if node.disk_fault is not None:
        since, why = node.disk_fault
        said.append((f"disk: {node.storage.dir}, which cannot be written: {why}", since))
    if node.room.full_ns is not None:
        frames, size = node.room.unread
        said.append((f"application: it does not read: {frames} frames of {size} bytes wait", node.room.full_ns))
    for name, layer in layers.items():
        if layer.get("waits"):
            said.append((f"{name}: {layer['waits']}", layer.get("waits_since_ns")))
        if layer.get("apart"):
            said.append((f"{name}: {layer['apart']}", None))
    return [words if since is None else f"{words}, since {node.wall(since)}" for words, since in said]


def view(of: View) -> dict[str, Any]:
    """A view as JSON has it."""
    out = {"id": str(of.id), "kind": of.kind.name.lower(), "members": list(of.members), "cause": str(of.cause)}
    return out if of.primary is None else out | {"primary": of.primary}
