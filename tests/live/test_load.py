"""What a member of a benchmark says it has sent."""

from typing import Any

import pytest

from ordercast.lab.load import Load, Spec

SECOND = 10**9


class Told:
    """A group that takes everything at once."""

    me = 1

    def send_batch_nowait(self, payloads: list[bytes], service: Any) -> None:
        pass


@pytest.mark.parametrize("sends", [True, False])
def test_what_was_due_is_waited_for_when_its_alarm_is_late(sends: bool) -> None:
    spec = Spec("", 1, 100, sends, 500.0, 1.0, 0.5, "agreed", 10)
    load = Load(spec, Told())  # type: ignore[arg-type]
    load.due, load.closes = SECOND - 1.0, SECOND  # nothing is on its way, but one message was due before the end
    assert load.all_sent() is not sends
    load.due = float(SECOND)
    assert load.all_sent()
    load.outstanding = 1
    assert not load.all_sent()
