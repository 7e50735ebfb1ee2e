"""Two lives of one id at once: a state folder copied, a service started twice, a member that was thought dead.

A newer life counts at once, so that a restart waits for nothing; so a second process takes the first one's place until
they meet.  Who hears its own id in another life names that one, its *rival*, in its Hellos for as long as it goes on.
No replay can do that: both live.  Who was in a view with others when they met stays, else who has lived longer, else
the lower incarnation; each says of itself what it was then, so all judge alike.  The peers take the packets of that one
again and drop the other's, which ends.  One that falls silent has lost, whatever it said.

A rival is also met in a row: where members speak to addresses, two processes of one id hear each other through others.
One packet, which may be forged, ends nobody: the rival must go on naming me for a while.
"""

from __future__ import annotations

from ordercast.membership.packets import Rival
from ordercast.membership.standing import Standing
from ordercast.types import Incarnation, MemberId, Nanoseconds, Peer

Claim = tuple[bool, Nanoseconds, int]  # in a view with others, age, and the lower incarnation: the larger claim stays
LIVES_MAX = 4  # of one id whose claims are remembered
PATIENCE = 8  # a rival must name me for T / 8 at least


class Rivals:
    """Of one member: its own rival, and what peers of one id claim."""

    __slots__ = ("_began", "_claims", "_heard", "_me", "_mine", "_named", "_standing", "_timeout", "life")

    def __init__(self, me: Peer, standing: Standing, timeout_ns: Nanoseconds) -> None:
        self._me, self._standing, self._timeout = me, standing, timeout_ns
        self._began: Nanoseconds = 0
        self.life: Incarnation | None = None  # of my rival; the last one met
        self._heard: Nanoseconds = 0
        self._mine = Rival(0, False, 0)  # what I was when we met
        self._named: tuple[Nanoseconds, Nanoseconds] | None = None  # when a better one first and last named me
        self._claims: dict[MemberId, dict[Incarnation, Claim]] = {}

    def start(self, now: Nanoseconds) -> None:
        self._began = now

    # ------------------------------------------------------------------------------------------------------- my own id

    def meet(self, now: Nanoseconds, life: Incarnation) -> bool:
        """My id is heard in another life.  True if that is news."""
        news = life != self.life or now - self._heard > self._timeout
        self._heard = now
        if news:
            self.life, self._named = life, None
            self._mine = Rival(life, len(self._standing.installed.members) > 1, now - self._began)
        return news

    def name(self, now: Nanoseconds) -> Rival | None:
        """What my Hello says, as long as it goes on."""
        return self._mine if self.life is not None and now - self._heard <= self._timeout else None

    def outdone(self, now: Nanoseconds, life: Incarnation, rival: Rival) -> bool:
        """My rival's Hello names somebody.  True: me, for a while now, and it has the better claim."""
        if life != self.life or rival.incarnation != self._me.incarnation:
            return False
        if _claim(life, rival) < _claim(self._me.incarnation, self._mine):
            self._named = None
            return False
        first, last = self._named or (now, now)
        self._named = first if now - last <= self._timeout else now, now
        return now - self._named[0] >= self._timeout // PATIENCE

    # ---------------------------------------------------------------------------------------------------- ids of others

    def stays(self, peer: Peer, rival: Rival, counts: Incarnation) -> bool:
        """A life of a peer names its rival.  Is that the one that counts, and has the other the better claim?"""
        claims = self._claims.setdefault(peer.id, {})
        claims.pop(peer.incarnation, None)
        claims[peer.incarnation] = _claim(peer.incarnation, rival)
        if len(claims) > LIVES_MAX:
            del claims[next(iter(claims))]
        if peer.incarnation == counts or rival.incarnation != counts:
            return False
        together = self._standing.installed.incarnations.get(peer.id) == counts
        return claims[peer.incarnation] > claims.get(counts, (together, 0, -counts))


def _claim(life: Incarnation, rival: Rival) -> Claim:
    return rival.together, rival.age_ns, -life
