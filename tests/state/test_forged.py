"""What no honest replica says, in its place in the order: it ends, hangs and bloats no process."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from abstract_order import Group
from test_layer import Chances

from ordercast.groups import FOR_ABOVE
from ordercast.types import POLICIES, Peer

EDGES = (0, 1, 2, 3, 2**8, 2**16, 2**32, 2**62, 2**63 - 1)


def another(held: Any, draw: random.Random) -> Any:
    """With one thing in it changed."""
    if isinstance(held, list) and held:
        at = draw.randrange(len(held))
        return draw.choice(([*held[:at], another(held[at], draw), *held[at + 1 :]], held[:at] + held[at + 1 :]))
    if isinstance(held, bool) or held is None:
        return draw.choice((True, False, None))
    if isinstance(held, int):
        return draw.choice((held + 1, max(0, held - 1), *EDGES))
    if isinstance(held, bytes):
        return draw.choice((b"", held[:-1], bytes(16), held + b"x"))
    return draw.choice((held, [], 0, b"", "x"))


class Forging(Group):
    """Every now and then somebody's message is said again, as another's or with something else in it."""

    forged = 0

    def turn(self, id: int) -> bool:
        moved = super().turn(id)
        member, draw = self.of[id], self.draw
        if moved and member.view is not None and draw.random() < 0.3:
            ordered = self.lists[member.view.id]
            peer, payload = draw.choice([item for items in self.lists.values() for item in items[-20:]])
            held = msgspec.msgpack.decode(payload[len(FOR_ABOVE) :])
            for _ in range(draw.choice((0, 1, 1, 2))):
                held = another(held, draw)
            claimed = Peer(draw.choice(self.ids), peer.incarnation) if draw.random() < 0.5 else peer
            ordered.append((claimed, FOR_ABOVE + msgspec.msgpack.encode(held)))
            self.forged += 1
        return moved


@pytest.mark.parametrize("policy", POLICIES)
def test_forged_messages_end_and_hang_nobody(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_layer.Group", Forging)
    monkeypatch.setattr("abstract_order.Member._held_by_all", lambda *_: None)
    forged = 0
    for seed in range(12):
        group = Chances(policy, seed, n=3, disks=seed % 2 == 1).group
        assert isinstance(group, Forging)
        forged += group.forged
        assert all(member.standing is not None for member in group.of.values())
    assert forged > 300
