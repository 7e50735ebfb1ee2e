"""The short campaign: every protocol, every packet type, work counted in lines."""

from __future__ import annotations

import pytest
from tests.fuzz.campaign import Lines, piece, scenario_of

from ordercast import registry
from ordercast.wire.codec import origin

LINES_MAX = 100_000
PACKETS = 1_500


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", registry.names())
def test_a_forger_between_honest_members_ends_hangs_and_bloats_nobody(protocol: str, seed: int) -> None:
    lines = Lines(LINES_MAX)
    shown = piece(protocol, seed, PACKETS, lines)
    assert lines.highest and sum(shown.forged.values()) >= PACKETS
    assert set(shown.forged) == {origin(kind).__name__ for kind in registry.get(protocol).packets}


def test_pieces_follow_from_their_seeds() -> None:
    one, other = (piece("totem", 3, 300) for _ in range(2))
    assert one.forged == other.forged and one.dropped == other.dropped and one.views == other.views
    assert len({scenario_of("totem", seed)[0].members for seed in range(20)}) == 4
