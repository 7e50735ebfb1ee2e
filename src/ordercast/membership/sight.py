"""What one member sees of the others: links, rows, lives and rotations, kept together and up to date.

Everything that comes from a peer passes here first: is it to be believed at all (`admit`), is it a new life, which link
does it prove, which rows does it bring.  Out of it comes the own row; what is to be done about it is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ordercast.contract import Action, Note, dropped
from ordercast.membership.choose import Row
from ordercast.membership.evidence import Evidence
from ordercast.membership.packets import VERSION_MAX, PackedRows, Rival
from ordercast.membership.plausible import Plausible
from ordercast.membership.rivals import Rivals
from ordercast.membership.standing import Standing
from ordercast.membership.table import NOBODY, Table, unpack
from ordercast.membership.tuning import Tuning
from ordercast.types import Identity, Incarnation, MemberId, Nanoseconds, Peer, ViewId

VERSION_BELIEVED = VERSION_MAX - 2**20  # nobody's row changes so often; and whoever is described so can contradict

REFUSED_TIMEOUTS = 64  # how long a word of another T counts, unless it is said again


class Refused(NamedTuple):
    """A life that said it uses another T."""

    incarnation: Incarnation
    timeout_ns: Nanoseconds
    until: Nanoseconds


class Sight:
    """Evidence, table and tuning of one member.  `say` takes notes; `reborn` hears of every new life of a member."""

    __slots__ = (
        "_rows_seen", "_same_timeout", "_say", "configured", "evidence", "implausible", "incarnation", "me",
        "other_timeout", "plausible", "reborn", "rivals", "table", "tuning",
    )  # fmt: skip

    def __init__(
        self,
        identity: Identity,
        standing: Standing,
        timeout_ns: Nanoseconds,
        probation_max_ns: Nanoseconds,
        say: Callable[[Action], None],
        reborn: Callable[[MemberId], None],
    ) -> None:
        self.me, self.incarnation = identity.me, identity.incarnation
        self.configured = frozenset(identity.members) | {identity.me}
        self.evidence = Evidence(timeout_ns, probation_max_ns)
        self.tuning = Tuning(timeout_ns)
        self.table = Table(self.me, self.incarnation, self.configured, 0)
        self.other_timeout: dict[MemberId, Refused] = {}  # they use another T
        self.plausible = Plausible(identity)
        self.rivals = Rivals(Peer(identity.me, identity.incarnation), standing, timeout_ns)
        self.implausible: dict[MemberId, tuple[int, str]] = {}  # dropped for their numbers: how many, and the last
        self.reborn = reborn
        self._say = say
        self._rows_seen: dict[MemberId, PackedRows] = {}
        self._same_timeout: dict[MemberId, Incarnation] = {}  # lives that have said they use my T

    def start(self, now: Nanoseconds, ring_seq: int) -> None:
        self.plausible.start(now, ring_seq)
        self.rivals.start(now)
        self.table.moved = self.table.shown = now
        self.tuning.start(now)

    # --------------------------------------------------------------------------------------------------------- links

    def admit(self, now: Nanoseconds, peer: Peer) -> bool:
        """Is a packet of this peer to be believed?  Not of strangers, former lives, clones, users of another T."""
        q, incarnation = peer.id, peer.incarnation
        if q not in self.configured or not self.evidence.counts(now, q, incarnation):
            return False
        if not self.plausible.life(now, incarnation):
            return self.doubt(q, f"life {incarnation}")
        if q == self.me:
            return False
        refused = self.other_timeout.get(q)
        if refused is None or refused.incarnation != incarnation:
            return True
        if now < refused.until:
            return False
        del self.other_timeout[q]
        return True

    def hear(self, now: Nanoseconds, peer: Peer) -> Nanoseconds:
        """A packet came straight from `peer`.  How long it had been silent (0 for the first packet)."""
        q = peer.id
        link = self.evidence.links.get(q)
        if link is not None and peer.incarnation < link.incarnation:
            self._turn(now, q, peer.incarnation)
        self.learn(now, q, peer.incarnation)
        link = self.evidence.links[q]
        before, since = link.heard, link.since
        self.evidence.packet(now, q)
        if link.since != since and self.evidence.on_probation(now, q):
            self._note_probation(q)
        return 0 if before is None else now - before

    def learn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        if self.evidence.learn(now, q, incarnation):
            self.table.void(now, q, incarnation)
            self._rows_seen.pop(q, None)
            self.reborn(q)

    def agreed(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        """It is on a full commit token."""
        self.learn(now, q, incarnation)
        self.evidence.agreed(q, incarnation)

    def rival(self, now: Nanoseconds, peer: Peer, rival: Rival) -> bool:
        """A life of a peer's id names its rival.  True if it counts from now on, and that one does no more."""
        link = self.evidence.links.get(peer.id)
        if link is None:
            return False
        stays = self.rivals.stays(peer, rival, link.incarnation)
        if link.incarnation == peer.incarnation or rival.incarnation != link.incarnation:
            return False
        if not stays and not self.evidence.silent(now, link):
            return False
        self.evidence.outdone[peer.id] = link.incarnation
        self._turn(now, peer.id, peer.incarnation)
        return True

    def met(self, now: Nanoseconds, incarnation: Incarnation) -> bool:
        """My id is heard, or told of, in another life.  True if that is news."""
        news = self.plausible.life(now, incarnation) and self.rivals.meet(now, incarnation)
        if news:
            self._say(Note("rival", {"incarnation": incarnation}))
        return news

    def _turn(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        """The life that counted is forgotten, with what it said."""
        self._say(Note("forgotten", {"member": q, "incarnation": self.evidence.links[q].incarnation}))
        self.evidence.turn(now, q, incarnation)
        self.table.forget(now, q)
        self._rows_seen.clear()  # what was passed over when they were seen may count now
        self.reborn(q)

    def doubt(self, q: MemberId, what: str) -> bool:
        """A packet of q is dropped for a number that cannot be true; false."""
        count = self.implausible.get(q, (0, ""))[0]
        self.implausible[q] = count + 1, what
        if not count:
            self._say(Note("implausible", {"member": q, "what": what}))
        return False

    def believable(self, now: Nanoseconds, q: MemberId, ring_seq: int, rows: PackedRows) -> bool:
        """Whether the numbers in a packet can be true."""
        highest = max(ring_seq, *(view.seq for view in rows.views), 0)
        if not self.plausible.ring(now, highest):
            return self.doubt(q, f"ring number {highest}")
        youngest = max((row.incarnation for row in rows.rows), default=0)
        return self.plausible.life(now, youngest) or self.doubt(q, f"life {youngest}")

    def same_timeout(self, peer: Peer) -> bool:
        """This life says that it uses my T, which it does for good.  True if it was refused until now."""
        self._same_timeout[peer.id] = peer.incarnation
        refused = self.other_timeout.get(peer.id)
        if refused is None or refused.incarnation != peer.incarnation:
            return False
        del self.other_timeout[peer.id]
        return True

    def refuse(self, now: Nanoseconds, peer: Peer, timeout_ns: Nanoseconds) -> None:
        """It uses another T: its packets are no evidence, and status names it.  Not so if it has said otherwise, and
        not for good: it may be somebody else who said so, and a member that is in a view says its T no more."""
        if self._same_timeout.get(peer.id) == peer.incarnation:
            self._say(dropped("timeout", member=peer.id))
            return
        length = min(self.evidence.cap_ns, REFUSED_TIMEOUTS * self.evidence.timeout_ns)
        self.other_timeout[peer.id] = Refused(peer.incarnation, timeout_ns, now + length)
        self.evidence.forget(peer.id)
        self._say(Note("other_timeout", {"member": peer.id, "timeout_ns": timeout_ns}))

    def strike(self, now: Nanoseconds, q: MemberId, why: str) -> None:
        self.evidence.strike(now, q, why)
        self._note_strike(now, q)

    def hears(self, q: MemberId) -> bool:
        link = self.evidence.links.get(q)
        return link is not None and link.hears

    def silent_longest(self, members: tuple[MemberId, ...]) -> tuple[MemberId, Nanoseconds]:
        """Of these, the one not heard for longest, and when it was."""
        links = self.evidence.links
        heard = {q: links[q].heard or 0 for q in members if q != self.me}
        q = min(heard, key=lambda q: (heard[q], q))
        return q, heard[q]

    # ---------------------------------------------------------------------------------------------------------- rows

    def recompute(self, now: Nanoseconds, view: ViewId, working: bool, ill: bool) -> bool:
        """Bring the own row up to date; `ill`: say that I am gone.  True if it changed."""
        self.evidence.hear_ns = self.tuning.loss_ns
        gone = {q for q, row in self.table.rows.items() if not row.hears}
        for q in self.evidence.recompute(now, gone):
            self._note_strike(now, q)
        hears = NOBODY if ill else self.evidence.hears() | {self.me}
        return self.table.write(now, view, working, hears)

    def absorb(self, now: Nanoseconds, peer: Peer, packed: PackedRows) -> list[Row]:
        """Take the rows of a packet; those that are news."""
        if self._rows_seen.get(peer.id) == packed:
            return []
        self._rows_seen[peer.id] = packed
        news = []
        for row in unpack(packed):
            if row.id not in self.configured or self.evidence.stale(row.id, row.incarnation):
                continue
            if row.version > VERSION_BELIEVED:
                continue
            if row.id != self.me:
                self.learn(now, row.id, row.incarnation)
            elif row.incarnation > self.incarnation:
                self.met(now, row.incarnation)
            if self.table.take(now, row):
                news.append(row)
                if row.id == self.me:
                    self._say(Note("contradiction", {"by": peer.id}))
        return news

    # -------------------------------------------------------------------------------------------------------- tuning

    def measure(self, now: Nanoseconds, rotation_ns: Nanoseconds) -> None:
        """A token rotation (direct links: a silence that ended) took so long."""
        if self.tuning.observe(now, rotation_ns):
            self._note_loss()

    def tick(self, now: Nanoseconds) -> None:
        if self.tuning.tick(now):
            self._note_loss()

    # --------------------------------------------------------------------------------------------------------- notes

    def _note_loss(self) -> None:
        self._say(Note("t_loss", {"ns": self.tuning.loss_ns}))

    def _note_strike(self, now: Nanoseconds, q: MemberId) -> None:
        link = self.evidence.links[q]
        self._say(Note("strike", {"member": q, "strikes": link.strikes, "why": link.why}))
        if self.evidence.probation_ns(q):
            self._note_probation(q, why=link.why, ns=link.since + self.evidence.probation_ns(q) - now)

    def _note_probation(self, q: MemberId, **more: Any) -> None:
        until = self.evidence.links[q].since + self.evidence.probation_ns(q)
        self._say(Note("probation", {"member": q, "until": until, **more}))
