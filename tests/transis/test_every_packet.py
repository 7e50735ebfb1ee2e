"""V22, a sample: a fault after a packet of a view change (`make every-packet` tries them all)."""

from __future__ import annotations

import random

import every_packet
import pytest
from vs_world import CHANGES

SAMPLE = 70


def _sample() -> list[every_packet.Case]:
    """Every kind of change and of fault, at packets drawn anywhere in the first rotations and after them."""
    rng = random.Random(22)
    out = []
    for k in range(SAMPLE):
        n = rng.choice(every_packet.SIZES)
        change = list(CHANGES)[k % len(CHANGES)]
        strike = rng.choice(list(every_packet.strikes(n)))
        out.append((every_packet.PROTOCOLS[k % 2], change, n, strike, rng.randint(1, 24)))
    return out


@pytest.mark.parametrize("case", _sample(), ids=lambda case: "-".join(map(str, case)).replace(" ", "_"))
def test_V22_a_fault_after_a_packet(case: every_packet.Case) -> None:
    assert every_packet.run(case) == []
