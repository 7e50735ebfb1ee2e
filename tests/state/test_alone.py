"""What is said for the state layer where there is none: it is counted, and reaches nobody."""

from __future__ import annotations

import random

from ordercast.contract import Control, Note, Setup, Up
from ordercast.groups import FOR_ABOVE, Groups
from ordercast.sim.ledger import Ledger
from ordercast.stack import chain
from ordercast.state.layer import State
from ordercast.types import Batch, Identity, Service

SETUP = Setup(Identity(1, 1, (1, 2)), 40_000_000, None, 1_400, random.Random(0))


def control(payload: bytes) -> Control:
    return Control(Batch(2, 1, 0, 1, Service.AGREED, len(payload).to_bytes(4, "little"), payload))


def test_without_the_layer_it_is_dropped_and_counted() -> None:
    groups = Groups(1)
    for payload in (FOR_ABOVE, FOR_ABOVE + b"\x91\x03", FOR_ABOVE * 1_000):
        (told,) = groups.up(0, control(payload), 0)
        assert isinstance(told, Note) and told.name == "drop" and told.fields["reason"] == "control"


def test_with_the_layer_what_cannot_be_read_is_counted_there() -> None:
    groups = Groups(1)
    stack = chain(State(Ledger(), SETUP, (Service.AGREED,)), groups)
    stack.start(0, SETUP.identity, {})
    (up,) = groups.up(0, control(FOR_ABOVE + b"\x91\x03"), 0)
    assert isinstance(up, Up)
    (told,) = stack.top.layer.up(0, up.event, 0)
    assert isinstance(told, Note) and told.fields["reason"] == "state"
