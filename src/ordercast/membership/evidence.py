"""Evidence of links: whom this member hears, how often each link broke, and how long a broken one stays on probation.

A *run* is an unbroken time of hearing q; a gap above T_hear ends it.  q is in `hears` while its last packet is younger
than T_hear and its run is at least as long as its probation.  Each *strike* (a broken run, a token that did not arrive,
a stuck mark, a refused agreement) beyond the second multiplies the probation by four; calm forgives one at a time.  Who
is out of `hears` is not struck beyond the fourth: more than 16 T takes a link that failed again after it was believed.

Of several lives of q one counts: the newest, at once, so that a restart waits for nothing.  One that was on no full
commit token and falls silent for T_hear is forgotten (nobody but a forger, or a start that failed, does so), and the
life before counts again when it is heard; rows of a forgotten life teach nobody.

Only the transmitter of a packet is heard, never the originator of a message that another one repeats.
"""

from __future__ import annotations

from collections.abc import Container

from ordercast.membership.timers import SPARES
from ordercast.types import Incarnation, MemberId, Nanoseconds

SECOND: Nanoseconds = 1_000_000_000
PROBATION_MAX_NS: Nanoseconds = 60 * SECOND  # also the calm that forgives one strike
FREE_STRIKES = 2
STRIKES_MAX = 12
FORGOTTEN_MAX = 4  # lives of one member that are remembered as forgotten
STRIKES_OUT_MAX = 4  # while out of `hears`


class Link:
    """What this member knows of its link from one other, of that one's newest incarnation."""

    __slots__ = (
        "again", "agreed", "calm", "heard", "hears", "incarnation", "known", "since", "spared", "spares", "strikes",
        "why",
    )  # fmt: skip

    def __init__(self, incarnation: Incarnation, now: Nanoseconds) -> None:
        self.incarnation = incarnation
        self.agreed = False  # this life was on a full commit token
        self.known = now  # first heard of, directly or through a row
        self.heard: Nanoseconds | None = None  # last packet straight from it
        self.since: Nanoseconds = now  # start of the present run, or the last strike
        self.again: Nanoseconds | None = None  # when a packet last ended a silence; a strike does not move it
        self.strikes = 0
        self.why = ""  # reason of the last one
        self.calm: Nanoseconds = now  # since when the present number of strikes could have fallen
        self.hears = False  # as of the last recomputation: in the own row
        self.spares = 0  # own pauses since its last packet
        self.spared: Nanoseconds = now  # when the last of them began


class Evidence:
    """All links of one member.  `hear_ns` is T_hear in force; the caller keeps it equal to T_loss."""

    __slots__ = ("at", "before", "cap_ns", "forgotten", "hear_ns", "links", "outdone", "timeout_ns")

    def __init__(self, timeout_ns: Nanoseconds, cap_ns: Nanoseconds = PROBATION_MAX_NS) -> None:
        self.timeout_ns = timeout_ns
        self.hear_ns = timeout_ns
        self.cap_ns = cap_ns
        self.at: Nanoseconds = 0  # of the last recomputation
        self.links: dict[MemberId, Link] = {}
        self.before: dict[MemberId, Link] = {}  # of the life that counted before
        self.outdone: dict[MemberId, Incarnation] = {}  # life that had to give way to another one
        self.forgotten: dict[MemberId, tuple[Incarnation, ...]] = {}  # lives whose rows teach nobody

    # ------------------------------------------------------------------------------------------------- what was seen

    def learn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> bool:
        """(q, incarnation) exists.  True if that is news: a new life starts without strikes and unheard."""
        link = self.links.get(q)
        if link is not None:
            if link.incarnation >= incarnation:
                return False
            if link.agreed or q not in self.before:
                self.before[q] = link
        self.links[q] = Link(incarnation, now)
        return True

    def stale(self, q: MemberId, incarnation: Incarnation) -> bool:
        """Not the life of q that counts, nor a new one: what others say of it proves nothing."""
        link = self.links.get(q)
        if link is None or incarnation == link.incarnation:
            return False
        return incarnation < link.incarnation or incarnation in self.forgotten.get(q, ())

    def counts(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> bool:
        """Whether a packet straight from this life is to be believed: the newest, unless that one is forgotten, or
        outdone by the one that counts and is heard."""
        link = self.links.get(q)
        if link is None or incarnation == link.incarnation:
            return True
        if incarnation > link.incarnation:
            return self.outdone.get(q) != incarnation or self.silent(now, link)
        return not link.agreed and self.silent(now, link)

    def silent(self, now: Nanoseconds, link: Link) -> bool:
        return now - (link.known if link.heard is None else link.heard) > self.hear_ns

    def turn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        """This life of q counts from now on, and the one that did is forgotten."""
        link, before = self.links[q], self.before.pop(q, None)
        self.forgotten[q] = (*self.forgotten.get(q, ()), link.incarnation)[-FORGOTTEN_MAX:]
        same = before is not None and before.incarnation == incarnation
        self.links[q] = before if same and before is not None else Link(incarnation, now)

    def agreed(self, q: MemberId, incarnation: Incarnation) -> None:
        """It was on a full commit token; one that was never heard itself, only somebody's word, may be forgotten."""
        link = self.links[q]
        if link.incarnation == incarnation and link.heard is not None:
            link.agreed = True
            self.before.pop(q, None)

    def packet(self, now: Nanoseconds, q: MemberId) -> None:
        """A packet came straight from q, of its newest incarnation."""
        link = self.links[q]
        if link.heard is None or now - link.heard > self.hear_ns:
            link.since = link.again = now
        link.heard, link.spares = now, 0

    def forget(self, q: MemberId) -> None:
        """q is said to be gone: out of `hears` until its next packet; no strike, for nothing broke."""
        link = self.links.get(q)
        if link is not None:
            link.heard, link.hears = None, False

    def stood_still(self, now: Nanoseconds, grace: Nanoseconds) -> None:
        """This member itself was paused: nobody it heard was silent, unless that was said of this silence before."""
        for link in self.links.values():
            if not link.hears:
                continue
            if not link.spares or now - link.spared >= grace:
                if link.spares >= SPARES:
                    continue
                link.spares, link.spared = link.spares + 1, now
            link.heard = now

    # --------------------------------------------------------------------------------------------------- what follows

    def probation_ns(self, q: MemberId) -> Nanoseconds:
        """How long a good run q needs before it is believed."""
        strikes = self.links[q].strikes
        return 0 if strikes <= FREE_STRIKES else min(self.cap_ns, self.timeout_ns * 4 ** (strikes - FREE_STRIKES))

    def on_probation(self, now: Nanoseconds, q: MemberId) -> bool:
        link = self.links.get(q)
        return link is not None and link.strikes > FREE_STRIKES and now - link.since < self.probation_ns(q)

    def left_ns(self, q: MemberId) -> Nanoseconds:
        """How much of q's probation was left at the last recomputation, if q is heard from there on."""
        link, whole = self.links[q], self.probation_ns(q)
        if not whole or link.hears:
            return 0
        broken = link.heard is None or self.at - link.heard > self.hear_ns  # then the run begins with its next packet
        return whole if broken else max(0, link.since + whole - self.at)

    def strike(self, now: Nanoseconds, q: MemberId, why: str) -> None:
        """Count a break of the link.  One that puts q on probation takes it out of `hears` at once."""
        link = self.links[q]
        self._forgive(now, link)
        self._strike(now, link, why, STRIKES_MAX if link.hears else STRIKES_OUT_MAX)

    def _strike(self, now: Nanoseconds, link: Link, why: str, most: int) -> None:
        link.strikes, link.why = max(link.strikes, min(most, link.strikes + 1)), why
        link.since = link.calm = now
        if link.strikes > FREE_STRIKES:
            link.hears = False

    def recompute(self, now: Nanoseconds, gone: Container[MemberId] = ()) -> list[MemberId]:
        """Bring `hears` up to date; the members that dropped out, each struck.  Of the `gone` nothing else is due."""
        self.at = now
        return [q for q, link in self.links.items() if self._recompute(now, q, link, q in gone)]

    def hears(self) -> frozenset[MemberId]:
        """Whom the own row names, as of the last recomputation."""
        return frozenset(q for q, link in self.links.items() if link.hears)

    def fresh(self, now: Nanoseconds, q: MemberId, settle_ns: Nanoseconds) -> bool:
        """q was first heard of, or heard again after a silence, less than `settle_ns` ago."""
        link = self.links.get(q)
        if link is None:
            return False
        return now - link.known < settle_ns or (link.again is not None and now - link.again < settle_ns)

    def _recompute(self, now: Nanoseconds, q: MemberId, link: Link, gone: bool) -> bool:
        before = link.hears
        if before:
            self._forgive(now, link)
        link.hears = (
            link.heard is not None
            and now - link.heard <= self.hear_ns
            and (link.strikes <= FREE_STRIKES or now - link.since >= self.probation_ns(q))
        )
        if before and not link.hears and not gone:
            self._strike(now, link, "silence", STRIKES_MAX)
            return True
        if link.hears and not before:
            link.calm = max(link.calm, now)
        return False

    def _forgive(self, now: Nanoseconds, link: Link) -> None:
        if link.hears and link.strikes:
            calm = min(link.strikes, (now - link.calm) // self.cap_ns)
            link.strikes -= calm
            link.calm += calm * self.cap_ns
