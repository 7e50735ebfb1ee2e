"""The short campaign: every protocol, every packet type, work counted in lines."""

from __future__ import annotations

import random

import pytest
from tests.fuzz import inputs
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


@pytest.mark.parametrize("protocol", ["totem", "token_site"])
def test_a_forger_between_replicas_ends_hangs_and_bloats_nobody(protocol: str) -> None:
    """Offers, chunks and acknowledgements are ordered messages: they are forged inside their frames."""
    lines = Lines(LINES_MAX)
    shown = piece(protocol, 0, PACKETS, lines, calls=300)
    assert lines.highest and sum(shown.forged.values()) >= PACKETS


def test_pieces_follow_from_their_seeds() -> None:
    one, other = (piece("totem", 3, 300) for _ in range(2))
    assert one.forged == other.forged and one.dropped == other.dropped and one.views == other.views
    assert len({scenario_of("totem", seed)[0].members for seed in range(20)}) == 4


@pytest.mark.parametrize("target", inputs.targets())
def test_damaged_inputs_give_documented_errors(target: str) -> None:
    inputs.run(target, 0, 150 * inputs.targets()[target])


@pytest.mark.parametrize("protocol", registry.names())
def test_what_is_said_with_the_key_is_often_understood(protocol: str) -> None:
    """Else the inputs of `inside` would show nothing: half of the lives that speak are let in, half is not damaged."""
    door = inputs.Door(protocol)
    for kind in map(origin, door.codec.packets):
        for k in range(100):
            chance = random.Random(k)
            door.hear(door.sealed(inputs.said(door.forger, kind, chance), chance), chance)
        assert door.used[kind.__name__] >= 15, kind.__name__
    assert {"packet", "short"} & door.incoming.drops.keys()
