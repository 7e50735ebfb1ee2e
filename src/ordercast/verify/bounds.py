"""When a run was undisturbed, and how long things may take then: what both forms of the liveness checks stand on.

Bounds are in units of T, the run's one timeout, and d, the bound on one hop (a `stable` row says it; else T).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from ordercast.trace.schema import Header, Kind, Row

_DISTURBING = frozenset(map(int, (Kind.FAULT, Kind.CRASH, Kind.PAUSE, Kind.ABSENT)))
_ENDING = frozenset(map(int, (Kind.END, Kind.LEAVE, Kind.CRASH, Kind.PAUSE)))


class Stability(Struct, frozen=True):
    """From `since` to `until` exactly `members` are up and connected both ways."""

    members: frozenset[int]
    since_ns: int
    until_ns: int
    delay_ns: int
    stated: bool  # by a `stable` row; else the run had no fault at all


def stability(header: Header, rows: Iterable[Row], begin_ns: int, end_ns: int) -> Stability | None:
    """From the run's life-cycle rows (not deliver, originate, submit, receive); None: it was never undisturbed."""
    rows = list(rows)
    stated = [row for row in rows if row.kind == Kind.STABLE]
    if stated:
        last = max(stated, key=lambda row: (row.time_ns, row.index))
        members, since = frozenset(last.members or header.members), last.time_ns
        delay = int((last.detail or {}).get("delay_ns", header.timeout_ns))
    elif any(row.kind in _DISTURBING for row in rows):
        return None
    else:
        members, since, delay = frozenset(header.members), begin_ns, header.timeout_ns
    until = min(
        (row.time_ns for row in rows if row.kind in _ENDING and row.time_ns >= since and _subject(row) in members),
        default=end_ns,
    )
    return Stability(members, since, until, delay, bool(stated))


def _subject(row: Row) -> int:
    return row.sender if row.member == 0 and row.sender is not None else row.member


def rotation_ns(n: int, delay_ns: int) -> int:
    """A token's way around n members, work included."""
    return 2 * n * delay_ns


def delivery_ns(header: Header, stable: Stability) -> int | None:
    """L3; None when the run has no unit to measure in."""
    if not header.timeout_ns:
        return None
    rotations = 4 if header.service == "safe" else 2
    return 10 * stable.delay_ns + rotations * rotation_ns(len(stable.members), stable.delay_ns) + 2 * header.timeout_ns


def precision_ns(header: Header, stable: Stability, notes: Iterable[Row]) -> int:
    """L1: loss timeout in force + 1.2 T + 10 n d, and what is left of a probation between two that stay.

    Where rings are joined (S23) with one formation more: a ring, then the topology.
    """
    loss, probation = header.timeout_ns, 0
    for row in notes:
        detail = row.detail or {}
        if row.member not in stable.members or row.time_ns > stable.until_ns:
            continue
        if detail.get("name") == "t_loss":
            loss = max(loss, int(detail["ns"]))
        elif detail.get("name") == "probation" and detail["member"] in stable.members:
            ends = row.time_ns + int(detail["until"]) - row.now_ns  # its own clock, taken to that of the run
            probation = max(probation, min(ends - stable.since_ns, PROBATION_NS_MAX))
    formation = header.timeout_ns * 6 // 5 + 10 * len(stable.members) * stable.delay_ns
    return loss + (2 if "S23" in header.promises else 1) * formation + probation


def state_ns(header: Header, formation_ns: int, size: int) -> int | None:
    """A5: L1, a quarter of the network's rate for the bytes of the state, and 20 T; None: the rate is not known."""
    due = formation_ns + 20 * header.timeout_ns
    if header.scenario is None:
        return None if size else due
    rates = [net.get("mbit", MBIT) * 1e6 / 8 for net in header.scenario.get("nets") or [{}]]  # 0: no time at all
    return due + max((int(size / (rate / 4) * 1e9) for rate in rates if rate), default=0)


def token_ns(header: Header, stable: Stability) -> int:
    """L5: a rotation, and the time an idle token may be held."""
    return rotation_ns(len(stable.members), stable.delay_ns) + header.timeout_ns


def constant_load(header: Header) -> bool:
    """L10: whether the run's load leaves nothing to chance but small deviations."""
    if header.scenario is None:
        return bool(header.workload.get("rate"))
    return header.scenario.get("load", {}).get("regime") in ("periodic", "quasi")


def load_changes(header: Header) -> list[int]:
    """L10: when the load of a simulated run begins, and when its rates change, ns."""
    load = (header.scenario or {}).get("load", {})
    times = [load.get("start_ms", 0.0), *(pace.get("at_ms", 0.0) for pace in load.get("rates", ()))]
    return sorted({round(at * 1e6) for at in times})


def drain_ns(header: Header) -> int:
    """L6: 8 T, at most five seconds."""
    return min(8 * header.timeout_ns, DRAIN_NS_MAX) if header.timeout_ns else DRAIN_NS_MAX


def flapping_views(header: Header, faults: Iterable[Row], span_ns: int) -> int:
    """L2: how many views lasting faults that come and go, or let tokens alone fail, may cost in `span_ns`."""
    links = 0
    for row in faults:
        fields = (row.detail or {}).get("fields", {})
        comes_and_goes = fields.get("up_ms") or fields.get("down_ms") or fields.get("packets")
        if (row.detail or {}).get("state") == "on" and fields.get("lasting") and comes_and_goes:
            links += max(1, len(fields.get("pairs", ())))
    if not links:
        return 0
    per_link = 2 * (2 + math.log(max(1.0, PROBATION_NS_MAX / max(1, header.timeout_ns)), 4)) + 3
    return links * (math.ceil(per_link) + 2 * -(-span_ns // PROBATION_NS_MAX))


MBIT = 1000.0  # of a simulated network that says nothing else
PROBATION_NS_MAX = 60 * 10**9
DRAIN_NS_MAX = 5 * 10**9
ROLES_NS, ROLES_MAX = 20 * 10**9, 2  # L10: after a change of the load
