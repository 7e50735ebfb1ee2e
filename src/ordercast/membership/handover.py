"""The token on its way to the successor: repeated until it is known to have gone on, and the blame if it did not.

Repetition is by unicast once, then by multicast with the addressee named, so a broken unicast path alone costs no view;
that this successor needs it is remembered for the view.  From the third time on it is repeated four times as often: a
link that loses most of what it carries then delays the ring for a rotation and costs no view.
It stops only at a sign that the token went on: the next token of the ring, or a message with a number above the copy's;
a late message of the previous holder is no sign.

Only a unicast finds out that nobody is there any more.  So each repetition by multicast goes by unicast as well; and a
successor that sent something but did not let the token come round is asked after twice the time: it may have died with
the token in its hand.

Who gives up a ring with a token outstanding after two repetitions asks the successor's Join which token it got last:
below what was sent, the link is struck.  This covers links that pass everything but tokens.
"""

from __future__ import annotations

from ordercast.contract import ALL, Action, Note, Packet, Transmit
from ordercast.membership.packets import Got
from ordercast.membership.timers import REPEAT, Deadlines
from ordercast.types import MemberId, Nanoseconds, NetId

MULTICAST_AFTER = 1  # repetitions by unicast
HASTE_AFTER = 2  # repetitions in the usual pace
BLAME_AFTER = 2  # repetitions
ASK_AFTER = 2  # times of a repetition, since the token was seen to have arrived


class Handover:
    """At most one token is outstanding."""

    __slots__ = (
        "_deadlines", "_net", "_repeat_ns", "arrived", "blamed", "by_multicast", "copy", "repetitions", "sent", "to",
    )  # fmt: skip

    def __init__(self, deadlines: Deadlines, net: NetId, repeat_ns: Nanoseconds) -> None:
        self._deadlines, self._net, self._repeat_ns = deadlines, net, repeat_ns
        self.copy: Packet | None = None
        self.to: MemberId = 0
        self.sent: Got | None = None
        self.repetitions = 0
        self.arrived: Packet | None = None  # instead of the copy: the token was used, and did not come round yet
        self.by_multicast: set[MemberId] = set()  # successors of this view that unicasts do not reach
        self.blamed: tuple[MemberId, Got] | None = None  # whose Join will tell whether my token arrived

    def send(self, now: Nanoseconds, to: MemberId, token: Packet, sent: Got) -> list[Action]:
        self.copy, self.to, self.sent, self.repetitions, self.arrived = token, to, sent, 0, None
        out = self._deadlines.set(REPEAT, now + self._repeat_ns)
        out.append(Transmit(self._net, ALL if to in self.by_multicast else to, token))
        return out

    def repeat(self, now: Nanoseconds) -> list[Action]:
        if self.copy is None:
            return self._ask(now)
        self.repetitions += 1
        wait = self._repeat_ns if self.repetitions < HASTE_AFTER else self._repeat_ns // 4
        out = self._deadlines.set(REPEAT, now + wait)
        if self.repetitions > MULTICAST_AFTER and self.to not in self.by_multicast:
            self.by_multicast.add(self.to)
            out.append(Note("token_by_multicast", {"to": self.to}))
        if self.to in self.by_multicast:
            out.append(Transmit(self._net, ALL, self.copy))
        out.append(Transmit(self._net, self.to, self.copy))
        return out

    def _ask(self, now: Nanoseconds) -> list[Action]:
        """Is anybody there?  Who is knows this token, and drops it."""
        if self.arrived is None:
            return []
        out = self._deadlines.set(REPEAT, now + ASK_AFTER * self._repeat_ns)
        out.append(Transmit(self._net, self.to, self.arrived))
        return out

    def used(self, now: Nanoseconds) -> list[Action]:
        """The token has arrived: it need not be repeated; whether its holder lives is asked for later."""
        if self.copy is None:
            return []
        self.arrived, self.copy = self.copy, None
        return self._deadlines.set(REPEAT, now + ASK_AFTER * self._repeat_ns)

    def went_on(self) -> None:
        self.copy = self.arrived = None
        self._deadlines.clear(REPEAT)

    def overtaken(self, seen: Got) -> None:
        """A commit token was seen: mine, further on its way, has arrived."""
        sent = self.sent
        if sent is not None and (seen.ring_id, seen.regular) == (sent.ring_id, sent.regular) and seen > sent:
            self.went_on()

    def give_up(self) -> None:
        """Gather begins; if the token may not have arrived, its addressee is asked about it."""
        if self.copy is not None and self.repetitions >= BLAME_AFTER and self.sent is not None:
            self.blamed = (self.to, self.sent)
        self.went_on()

    def judge(self, q: MemberId, got: Got | None) -> bool:
        """A Join of q says which token it got last.  True: mine did not arrive."""
        if self.blamed is None or self.blamed[0] != q:
            return False
        sent, self.blamed = self.blamed[1], None
        return got is None or got < sent

    def new_ring(self) -> None:
        self.by_multicast.clear()
        self.blamed = None
