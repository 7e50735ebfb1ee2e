"""What a token or a ticket says that cannot be true of this group: it holds nobody up for longer than a rotation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.mutants.parts import token_site, totem

from ordercast.contract import Action, Event, Received, Setup
from ordercast.protocols.hybrid import Null, Tickets
from ordercast.protocols.totem.packets import Token
from ordercast.protocols.totem.turning import Turning
from ordercast.sim.faults import Consumer
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.stack import Stack
from ordercast.types import Nanoseconds, Peer

NOBODY = 99  # no member of the ring


@pytest.mark.parametrize("owner", [NOBODY, 0, 3], ids=["a stranger", "member 0", "a member that reads"])
@pytest.mark.parametrize("hold_after", [0, 3])
def test_no_room_at_nobody_is_repaired_by_the_next_token(owner: int, hold_after: int) -> None:
    """One token says that somebody has no room.  A member takes that off at its own visit; nobody never would."""
    forged: list[int] = []

    class Forged(Turning):
        def token_came(self, now: Nanoseconds, source: Peer, token: Token) -> list[Action]:
            if not forged and token.to == self.me == 2 and token.seq > 20:
                forged.append(token.seq)
                token = replace(token, room=0, room_id=owner)
            return super().token_came(now, source, token)

    outcome = _run(lambda setup: totem(setup, turn=Forged), {"hold_after": hold_after})
    assert forged and outcome.delivered == 90
    assert outcome.notes["drop"] == (owner != 3), "it is counted"


def test_a_reader_that_is_slow_holds_the_senders_back() -> None:
    """Told apart from it: the room of a member of the ring counts, until the member itself takes it off."""
    scenario = Scenario(
        protocol="totem", members=3, messages=900, load=Load(regime="saturate"), faults=(Consumer(member=3, frames=2),)
    )
    outcome = run(scenario)
    assert outcome.delivered < 900


def test_a_promise_of_one_who_issues_nothing_moves_no_clock() -> None:
    """Numbers end at 2^63: a sequencer whose ticket clock were pushed there could give no ticket that anybody takes."""

    class Pushed(Tickets):
        told = False

        def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
            if (
                self.process.state == "active"
                and self.process.c
                and not Pushed.told
                and type(event) is Received
                and event.sender == 1
            ):
                Pushed.told = True
                super().up(now, replace(event, body=Null((), 2**63 - 1)), child)
            return super().up(now, event, child)

    outcome = _run(lambda setup: token_site(setup, order=Pushed), {}, "token_site")
    assert Pushed.told and outcome.delivered == 90


def _run(maker: object, options: dict[str, object], protocol: str = "totem") -> Outcome:
    scenario = Scenario(
        protocol=protocol, members=3, messages=90, load=Load(rate=400), options=options, wire=True, settle_ms=400.0
    )

    def make(setup: Setup) -> Stack:
        stack: Stack = maker(setup)  # type: ignore[operator]
        return stack

    return run(scenario, maker=make)
