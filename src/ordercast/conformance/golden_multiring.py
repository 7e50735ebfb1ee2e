"""Golden vectors of several rings: when a frame may go up as agreed, and as safe, and the stamps of their order."""

from __future__ import annotations

from ordercast.conformance.golden import Case, differ
from ordercast.protocols.totem.guarantee import deliverable, safe_prefix
from ordercast.protocols.totem.lamport import Lamport


def guarantee_vector(case: Case) -> list[str]:
    gv = {int(ring): int(stamp) for ring, stamp in case["gv"].items()}
    return differ("deliverable", case["expect"], deliverable(map(tuple, case["pending"]), gv))


def multi_safe(case: Case) -> list[str]:
    ga = {int(r): {int(s): int(stamp) for s, stamp in row.items()} for r, row in case["ga"].items()}
    return differ("safe", case["expect"], safe_prefix(map(tuple, case["agreed"]), ga))


def lamport(case: Case) -> list[str]:
    clock = Lamport(case["clock"])
    stamps = []
    for what, *stamp in case["events"]:
        if what == "send":
            stamps.append(clock.send())
        else:
            clock.receive(*stamp)
    return differ("stamps", case["stamps"], stamps) + differ("final", case["final"], clock.clock)


KINDS = {"guarantee_vector": guarantee_vector, "multi_safe": multi_safe, "lamport": lamport}
