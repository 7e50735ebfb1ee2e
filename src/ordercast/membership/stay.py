"""Stay or go: a view begins to work, and is left when its token stays away, a member has left it, or for a better one.

The ring's token (direct links: a packet of every member) must come again within T_loss.
"""

from __future__ import annotations

from ordercast.contract import Note
from ordercast.membership import cause as causes
from ordercast.membership.automaton import Happening
from ordercast.membership.choose import Chooser
from ordercast.membership.sight import Sight
from ordercast.membership.standing import Standing
from ordercast.membership.step import Step
from ordercast.membership.timers import LOSS
from ordercast.membership.voice import Voice
from ordercast.membership.waits import Patience
from ordercast.types import Cause, MemberId, Nanoseconds, Peer, ViewId


class Stay:
    def __init__(
        self, step: Step, standing: Standing, sight: Sight, voice: Voice, chooser: Chooser, patience: Patience,
        direct: bool,
    ) -> None:  # fmt: skip
        self._step, self._standing, self._sight, self._voice = step, standing, sight, voice
        self._chooser, self._patience, self._direct = chooser, patience, direct

    def begin(self, now: Nanoseconds) -> None:
        """The view is installed, and it works."""
        standing = self._standing
        standing.install()
        standing.young = not self._direct and len(standing.installed.members) > 1
        self._voice.recompute(now)
        beyond, standing.beyond = standing.beyond, {}
        self._standing.happens(now, Happening.NEWS)
        for cause, note in beyond.values():
            self._standing.happens(now, Happening.WENT_ON, cause, note)

    def consider(self, now: Nanoseconds) -> None:
        """The table or the own row changed, or a wait may be over."""
        standing, links = self._standing, self._sight.evidence.links
        if standing.young:
            return
        mine, rows = standing.installed, standing.taught(self._sight.table.rows)
        for q in mine.members:
            if q in rows and rows[q].view > mine.id:
                return self.named(now, q, rows[q].view)
            if q != self._sight.me and links[q].incarnation != mine.incarnations[q]:
                return self._departed(now, Happening.OTHER_LIFE, q, "came back in another life")
        chosen = self._chooser(now, rows)
        if chosen is None:
            self._patience.rest(self._chooser.rest)
        elif chosen == mine.members:
            self._patience.over()
        elif not self._patience.too_early(now, rows, chosen):
            self._standing.happens(now, Happening.CHOICE, causes.choice(mine.members, chosen, rows))
        return None

    def named(self, now: Nanoseconds, q: MemberId, view: ViewId) -> None:
        """q names a view: newer than the one we share, it has left that."""
        present = self._standing.present
        if q in present.members and view > present.id:
            self._departed(now, Happening.WENT_ON, q, f"names view {view}")

    def met(self, now: Nanoseconds, peer: Peer) -> None:
        """A packet of this life of a member came."""
        if self._standing.installed.incarnations.get(peer.id, peer.incarnation) != peer.incarnation:
            self._departed(now, Happening.OTHER_LIFE, peer.id, "came back in another life")

    def remember(self, now: Nanoseconds, cause: Cause, note: Note) -> None:
        """It has left the ring that is being formed: that counts when it is installed."""
        assert cause.member is not None
        self._standing.beyond[cause.member] = cause, note

    def _departed(self, now: Nanoseconds, happening: Happening, q: MemberId, what: str) -> None:
        note = Note("departed", {"member": q, "what": what})
        self._standing.happens(now, happening, causes.moved_on(q, what), note)

    # ------------------------------------------------------------------------------------------------------ token loss

    def visited(self, now: Nanoseconds) -> None:
        """A regular token came: how long a rotation took tunes T_loss."""
        standing = self._standing
        if standing.visited is not None:
            self._sight.measure(now, now - standing.visited)
        standing.visited = now
        self.expect(now)

    def expect(self, now: Nanoseconds) -> None:
        standing = self._standing
        if len((standing.forming or standing.installed).members) > 1:
            self._step.set(LOSS, now + self._sight.tuning.loss_ns)

    def lost(self, now: Nanoseconds) -> None:
        """T_loss is over; direct links: perhaps for the one that was silent for longest."""
        standing, loss_ns = self._standing, self._sight.tuning.loss_ns
        if not self._direct:
            silent = now - standing.visited if standing.visited is not None else loss_ns
            standing.happens(now, Happening.LOSS, causes.token_loss(silent, loss_ns))
            return
        q, heard = self._sight.silent_longest(standing.present.members)
        if heard + loss_ns < now:  # longer than what counts as hearing: its link is struck in the same step
            standing.happens(now, Happening.LOSS, causes.silence(q, now - heard, loss_ns))
        else:
            self._step.set(LOSS, heard + loss_ns + 1)
