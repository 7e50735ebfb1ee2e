"""The ballots of one view: which messages are next in the order, decided from the causal order alone.

Paper: D. Dolev, S. Kramer, D. Malki, "Early delivery totally ordered multicast in asynchronous environments", sections
4 and 5.  A *pending* message is agreed and has no place yet; a *candidate* is pending, with no other pending message in
its past.  A machine's ballot is the set of candidates that its first message which follows any of them follows.  Of two
candidates a beats b when a quorum of ballots have a and not b.  A *source* is one that nobody beats or can still beat.
Once enough is known the sources are delivered, in the order of their senders, and the next candidates are voted on.

Why it is right: the messages delivered so far fix the candidates and every ballot.  A ballot that is here is final, and
holds no candidate that is not, since a message comes after its past.  So wins only grow.  Two wins cannot chain, as two
quorums meet: somebody is unbeaten.  At a delivery sources are beaten by no known candidate, and by no unknown one, as
only the n - V ballots still out can hold it, fewer than a quorum; whoever else is known has lost for good, and whoever
is unknown will lose against the source that a quorum holds.  With all ballots here nobody is unknown.  Hence what was
delivered is a function of the set of messages held, not of the way they came.

Differs from the paper:
  E1  A message that follows no candidate is no ballot; figure 3 would make it an empty one.
  E2  Nothing is compared with a ballot that is not here, not even with another one.
  E3  `strict` keeps the clause on NTail, which agreement does not need: what is delivered is at n - Q + 1 machines.
  E4  After a delivery every ballot is cast anew from all messages held, also those that came before.
  E7  The quorum is more than half of the machines; with n + 1 nobody ever wins, and all ballots are waited for: this is
      the protocol all-ack.
  E8  A machine that is gone votes empty only where nothing it sent follows a candidate; n and the quorum stay.

Ballots are bit masks over the machines' ranks, and a reception costs a step per candidate, not per pending message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from operator import ge, itemgetter, le

NEVER = 2**63  # above every number of a message
TRIM_AFTER = 16  # deliveries between two looks at what may be forgotten

Key = tuple[int, int]  # (rank, seq)
Vector = tuple[int, ...]


class Ballots:
    """Of one member, in a view of n; messages come in causal order."""

    def __init__(self, n: int, quorum: int, strict: bool = True) -> None:
        assert n < 2 * quorum <= 2 * (n + 1), "no quorum"  # E7
        self.n, self.quorum, self.strict = n, quorum, strict
        self.full = (1 << n) - 1
        self.log: list[list[Vector]] = [[] for _ in range(n)]  # vectors of what each rank sent, as far back as needed
        self.base = [1] * n  # the number of the first one in it
        self.last: list[Vector] = [(0,) * n] * n  # the newest of each
        self.queue: list[deque[int]] = [deque() for _ in range(n)]  # pending messages of each
        self.head = [NEVER] * n  # the first of them
        self.candidates: list[int] = []  # ranks: a sender has at most one
        self.first: list[list[int]] = [
            [] for _ in range(n)
        ]  # of a candidate: the first message of each that follows it
        self.votes = [0] * n  # of a candidate: whose ballots hold it
        self.tail = [0] * n  # of a candidate: who sent anything that follows it (Tail)
        self.voted = 0  # who has a ballot
        self.gone = 0  # Defunc
        self.activations = 0
        self.beaten = 0  # candidates that the last delivery left behind
        self._entry: list[Callable[[Vector], int]] = [itemgetter(rank) for rank in range(n)]

    # ---------------------------------------------------------------------------------------------------------- events

    def insert(self, rank: int, seq: int, vec: Vector, agreed: bool) -> bool:
        """A message enters; true if it may have decided something: then `activate`, as long as that delivers."""
        bit = 1 << rank
        assert not self.gone & bit, "a message after its sender's crash"
        if not all(map(le, self.last[rank], vec)):  # of a liar; made to follow what the one before it followed
            vec = tuple(map(max, self.last[rank], vec))
        self.last[rank] = vec
        if agreed:
            self.queue[rank].append(seq)
            if self.head[rank] == NEVER:
                self.head[rank] = seq
                if sum(map(ge, vec, self.head)) == 1:  # of all that is pending it follows itself alone
                    self.candidates.append(rank)
                    self.first[rank], self.votes[rank], self.tail[rank] = [0] * self.n, 0, 0
        if not self.candidates:
            self.base[rank] = seq + 1
            return False
        self.log[rank].append(vec)
        return self._vote(rank, seq, vec, bit)

    def _vote(self, rank: int, seq: int, vec: Vector, bit: int) -> bool:
        """Count it where it follows a candidate; the first that does so is its sender's ballot."""
        head, tail, votes, new = self.head, self.tail, self.votes, not self.voted & bit
        grew = False
        for candidate in self.candidates:
            if vec[candidate] >= head[candidate]:
                if not tail[candidate] & bit:
                    tail[candidate] |= bit
                    self.first[candidate][rank] = seq
                    grew = True
                if new:
                    votes[candidate] |= bit
        if grew and new:
            self.voted |= bit
            return True
        return grew and self.strict

    def crash(self, rank: int) -> None:
        """Nothing more comes of it: where it has no ballot, its ballot is empty."""
        self.gone |= 1 << rank
        self.voted |= 1 << rank

    def close(self) -> None:
        """The view is over for everybody: who has no ballot has the empty one, so that nothing stays pending."""
        self.gone = self.voted = self.full

    # -------------------------------------------------------------------------------------------------------- decision

    def activate(self) -> list[Key]:
        """The next set of the order, by sender; empty if nothing is decided yet."""
        sources = self._sources()
        if not sources:
            return []
        head = self.head
        keys = [(rank, head[rank]) for rank in sources]
        for rank in sources:
            queue = self.queue[rank]
            queue.popleft()
            head[rank] = queue[0] if queue else NEVER
        self.activations += 1
        self._next(sources)
        return keys

    def _sources(self) -> Sequence[int]:
        """The sources if the set is stable, in itself and towards what is not known yet."""
        candidates, votes, quorum, voted = self.candidates, self.votes, self.quorum, self.voted
        if not candidates or (voted != self.full and max([votes[c].bit_count() for c in candidates]) < quorum):
            return ()
        if len(candidates) == 1:
            return candidates
        out = self.n - voted.bit_count()
        sources: list[int] = []
        for m in candidates:
            without, most = ~votes[m], 0
            for o in candidates:
                most = max(most, (votes[o] & without).bit_count())
            if most + out < quorum:
                sources.append(m)
            elif most < quorum:
                return ()  # it may still be either: no internal stability
        assert sources or voted != self.full, "all ballots are here, and everybody is beaten"  # L9
        if voted != self.full:  # else no candidate is unknown
            if max([votes[s].bit_count() for s in sources], default=0) < quorum:
                return ()
            if self.strict and min([self.tail[s].bit_count() for s in sources]) <= self.n - quorum:
                return ()
        sources.sort()
        return sources

    def _next(self, delivered: Sequence[int]) -> None:
        """Candidates after a delivery, and everybody's ballot among them."""
        head, log, base = self.head, self.log, self.base
        candidates = [rank for rank in self.candidates if rank not in delivered]
        self.beaten = len(candidates)
        for rank, seq in enumerate(head):
            if seq != NEVER and rank not in candidates and sum(map(ge, log[rank][seq - base[rank]], head)) == 1:
                candidates.append(rank)
                self._open(rank, seq)
        self.candidates = candidates
        self._cast()
        if not candidates or self.activations % TRIM_AFTER == 0:
            self._forget()

    def _open(self, candidate: int, seq: int) -> None:
        """Find who follows it: vectors of one sender only grow."""
        entry, first, tail = self._entry[candidate], [0] * self.n, 0
        for rank, line in enumerate(self.log):
            if line and line[-1][candidate] >= seq:
                first[rank] = self.base[rank] + bisect_left(line, seq, key=entry)
                tail |= 1 << rank
        self.first[candidate], self.tail[candidate] = first, tail

    def _cast(self) -> None:
        candidates, votes, tail = self.candidates, self.votes, self.tail
        self.voted = self.gone
        if len(candidates) == 1:
            only = candidates[0]
            votes[only] = tail[only]
            self.voted |= tail[only]
            return
        for c in candidates:
            votes[c] = 0
            self.voted |= tail[c]
        for rank in range(self.n):
            bit = 1 << rank
            follows = [c for c in candidates if tail[c] & bit]
            if follows:
                earliest = min([self.first[c][rank] for c in follows])
                for c in follows:
                    if self.first[c][rank] == earliest:
                        votes[c] |= bit

    def _forget(self) -> None:
        """Every pending message follows a candidate: what came before the first that does so is not asked for again."""
        for rank, line in enumerate(self.log):
            needed = [self.first[c][rank] for c in self.candidates if self.tail[c] >> rank & 1]
            unneeded = min(needed) - self.base[rank] if needed else len(line)
            if unneeded:
                del line[:unneeded]
                self.base[rank] += unneeded

    # --------------------------------------------------------------------------------------------------------- answers

    def lacks(self, rank: int) -> bool:
        """Whether a vote of this machine is waited for."""
        return bool(self.candidates) and not self.voted >> rank & 1

    def pending_in(self, vec: Vector) -> bool:
        """Whether something that has no place yet is in this past."""
        return any(map(ge, vec, self.head))

    def held_by_all(self, rank: int, seq: int) -> bool:
        """Whether everybody sent something that follows this message (NTail = n)."""
        return min(map(self._entry[rank], self.last)) >= seq
