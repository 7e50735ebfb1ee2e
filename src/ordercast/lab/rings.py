"""Several rings on this machine: are they possible, and where is each of them."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.config import NetConfig, Ring
from ordercast.errors import ConfigError
from ordercast.lab.namespaces import on_bridge
from ordercast.limits import RINGS_MAX
from ordercast.nets import MULTICAST_ADDRESS, apart
from ordercast.registry import ProtocolInfo
from ordercast.types import MemberId

MEMBER_PORT = 7400  # of every member in a namespace of its own
Rings = tuple[tuple[MemberId, ...], ...]  # who is on each; who is named twice is a gateway


def check_rings(rings: Rings, members: int, info: ProtocolInfo, pure: tuple[MemberId, ...] = ()) -> None:
    """All that is wrong with them, a sentence each."""
    faults = []
    if (rings or pure) and not info.rings:
        option = "--ring" if rings else "--pure"
        faults.append(f"{option}: {info.name} stands on one network; expected --protocol multiring")
        pure = pure if rings else ()
    if len(rings) > RINGS_MAX:
        faults.append(f"--ring: {len(rings)} rings: expected at most {RINGS_MAX}")
    named = sorted({member for ring in rings for member in ring})
    if rings and named != list(range(1, members + 1)):
        faults.append(f"--ring: members {named}: expected each of 1 to {members} on a ring")
    for k in apart(rings):
        words = ",".join(map(str, rings[k]))
        faults.append(f"--ring {words}: shares no member with the others: expected a gateway on it and another")
    for member in pure:
        if sum(member in ring for ring in rings) < 2:
            faults.append(f"--pure {member}: expected a gateway, on two rings or more")
    if faults:
        raise ConfigError(faults)


def loopback_rings(rings: Rings, mode: str, port: int, ports: Iterator[int]) -> tuple[Ring, ...]:
    """On loopback each ring has a multicast address of its own."""
    return tuple(
        Ring(
            number,
            NetConfig(mode, _group(number), port, "127.0.0.1"),
            {member: ("127.0.0.1", next(ports)) for member in sorted(members)},
        )
        for number, members in enumerate(rings, 1)
    )


def bridged_rings(rings: Rings, mode: str, port: int) -> tuple[Ring, ...]:
    """Each ring on a bridge of its own."""
    return tuple(
        Ring(
            number,
            NetConfig(mode, _group(number), port, f"eth{number}"),
            {member: (on_bridge(number, member), MEMBER_PORT) for member in sorted(members)},
        )
        for number, members in enumerate(rings, 1)
    )


def _group(number: int) -> str:
    head, _, last = MULTICAST_ADDRESS.rpartition(".")
    return f"{head}.{int(last) + number}"
