"""The state of a decision moves, in one view: from the donor to those who are behind, as of one place of the order.

Who lacks it may ask for a later one (*again*), and a donor that is no replica any more is followed by the next: either
is an ordered message, at which everybody begins anew with the state as it is there; the *serial* says how often.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ordercast.contract import Action, SetTimer
from ordercast.state.decision import Decision
from ordercast.state.history import History
from ordercast.state.machine import Mark, Restoring
from ordercast.state.packets import Ack, Chunk, say
from ordercast.state.replica import Replica, guarded
from ordercast.state.transfer import Arriving, Serving
from ordercast.types import MemberId, Nanoseconds

SERVE = "serve"


def send(serving: Serving | None, now: Nanoseconds) -> list[Action]:
    """One more chunk, if it may leave; the next in a step of its own."""
    if serving is None or not serving.may():
        return []
    out: list[Action] = [say(guarded("snapshot", serving.chunk))]
    return [*out, SetTimer(SERVE, now)] if serving.may() else out


class Taken(Struct, frozen=True):
    """A state that has arrived whole."""

    mark: Mark
    history: History
    restoring: Restoring


class Moving:
    """One member's part in it, as donor, as one of those behind, or as neither."""

    def __init__(self, me: MemberId, replica: Replica, decision: Decision) -> None:
        assert decision.mark is not None
        self.me, self.replica, self.mark = me, replica, decision.mark
        self.lacking = set(decision.behind)  # as far as they have said
        self._donors = [m for m in (decision.donor, *decision.complete) if m is not None]
        self.serial, self.asked = 0, False  # asked: here, for a later one than is on its way
        self.cut: int | None = None  # where it begins, if that has not been applied here yet
        self.serving: Serving | None = None
        self.arriving: Arriving | None = None
        self._restoring: Restoring | None = None

    @property
    def donor(self) -> MemberId | None:
        """Who serves: the one that was decided on, or the next if it is no replica any more."""
        return self._donors[0] if self._donors else None

    def begin(self, now: Nanoseconds, behind: bool) -> list[Action]:
        """From this place of the order on; `behind`: this member waits for it."""
        self.stop()
        stream = self.mark.view, self.serial, 0
        machine = self.replica.machine
        if behind:
            if self.donor is not None:
                self._restoring = guarded("restore", machine.restore)
                self.arriving = Arriving(stream, self.donor, self._restoring.feed, machine.digest)
        elif self.lacking and self.donor == self.me:
            pieces = guarded("snapshot", machine.snapshot)
            head = self.replica.history.pieces(guarded("the size of the state", machine.size))
            self.serving = Serving(stream, head, pieces, self.lacking)
            return [SetTimer(SERVE, now)]
        return []

    def stop(self, cut: int | None = None) -> None:
        """What was under way is over; another begins here, or at `cut`."""
        self.serving = self.arriving = self._restoring = None
        self.asked, self.cut = False, cut

    # -------------------------------------------------------------------------------------------------------- the donor

    def send(self, now: Nanoseconds) -> list[Action]:
        return send(self.serving, now)

    def ack(self, member: MemberId, ack: Ack) -> None:
        if self.serving is not None:
            self.serving.ack(member, ack)

    def complete(self, member: MemberId) -> None:
        """It has the state, and can give it, too; or it is no replica any more."""
        if member in self.lacking:
            self.lacking.remove(member)
            self._donors.append(member)
        if self.serving is not None:
            self.serving.without(member)
            if self.serving.over:
                self.serving = None

    def without(self, member: MemberId) -> bool:
        """It is no replica any more; whether the next donor has to begin."""
        was = self.donor
        self.complete(member)
        self._donors = [donor for donor in self._donors if donor != member]
        return was == member and bool(self.lacking)

    # --------------------------------------------------------------------------------------------------- who is behind

    def chunk(self, member: MemberId, chunk: Chunk) -> Ack | None:
        """The answer, if it is the next of the state that is awaited."""
        arriving = self.arriving
        if arriving is None or (chunk.view, chunk.serial, chunk.part) != arriving.stream:
            return None
        return guarded("restore", arriving.take, member, chunk)

    @property
    def arrived(self) -> bool:
        return self.arriving is not None and self.arriving.done

    def taken(self) -> Taken | None:
        """What has arrived; None: it is not what was sent."""
        arriving, restoring = self.arriving, self._restoring
        assert arriving is not None and restoring is not None
        self.arriving = self._restoring = None
        if arriving.damaged:
            return None
        try:
            history = arriving.history.finish()
        except msgspec.MsgspecError:
            return None
        if self.serial == 0 and history.place != self.mark.place:
            return None
        return Taken(Mark(self.mark.view, *history.place), history, restoring)
