"""Every registered protocol conforms; a broken one does not."""

from __future__ import annotations

import pytest

from ordercast import registry
from ordercast.conformance.suite import NotConforming, check_protocol
from ordercast.contract import Setup
from ordercast.protocols.hybrid import Tickets
from ordercast.stack import Stack


@pytest.mark.parametrize("name", registry.names())
def test_protocol(name: str) -> None:
    assert check_protocol(name, seeds=1) >= 10


def test_a_protocol_that_never_sends_its_tickets_does_not_conform() -> None:
    info = registry.get("token_site")

    def silent(setup: Setup) -> Stack:
        stack = info.factory(setup)
        core = next(node.layer for node in stack.nodes if isinstance(node.layer, Tickets))
        core.process.null = list  # type: ignore[method-assign, assignment]
        return stack

    with pytest.raises(NotConforming, match="token_site, agreed"):
        check_protocol("token_site", silent, seeds=1)
