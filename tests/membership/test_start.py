"""A group started together begins with one view; a member alone waits for others first."""

import pytest
from harness import World


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("timeout_ms", [40, 200])
def test_started_together(n, timeout_ms):
    world = World(n, timeout_ms, wire=True)
    world.start()
    world.run_t(20)
    world.check_invariants()
    assert world.partition() == {world.ids}
    assert len(world.views) == n


def test_one_of_three_waits_then_forms_a_view_of_one():
    world = World(3, 40)
    world.start(2)
    world.run_t(0.4)
    assert world.views == []
    world.run_t(0.2)
    assert world.partition() == {(2,)}
