"""Several rings on this machine: are they possible, and where is each of them."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.config import NetConfig, Ring
from ordercast.errors import UsageError
from ordercast.nets import MULTICAST_ADDRESS
from ordercast.registry import ProtocolInfo
from ordercast.types import MemberId

Rings = tuple[tuple[MemberId, ...], ...]  # who is on each; who is named twice is a gateway


def check_rings(rings: Rings, members: int, info: ProtocolInfo) -> None:
    if not rings:
        return
    if not info.rings:
        raise UsageError(f"--ring: {info.name} stands on one network; expected --protocol multiring")
    named = sorted({member for ring in rings for member in ring})
    if named != list(range(1, members + 1)):
        raise UsageError(f"--ring: members {named}: expected each of 1 to {members} on a ring")


def loopback_rings(rings: Rings, mode: str, port: int, ports: Iterator[int]) -> tuple[Ring, ...]:
    """On loopback each ring has a multicast address of its own."""
    head, _, last = MULTICAST_ADDRESS.rpartition(".")
    return tuple(
        Ring(
            number,
            NetConfig(mode, f"{head}.{int(last) + number}", port, "127.0.0.1"),
            {member: ("127.0.0.1", next(ports)) for member in sorted(members)},
        )
        for number, members in enumerate(rings, 1)
    )
