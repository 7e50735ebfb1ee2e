"""ToTo by the definitions of its paper (section 4), as slow and as plain as they stand there.

Nothing is kept but the messages, what was delivered, and who is gone; everything else is computed anew at every step.
VT(c)[q] is the number of q's first message that follows any candidate, if that one follows c; infinite if it does not;
STAR if there is no such message.  Every comparison with STAR is false.
"""

from __future__ import annotations

from math import inf

from ordercast.protocols.toto.ballots import Key, Vector

STAR = None
Entry = float | None


class Definition:
    def __init__(self, n: int, quorum: int, strict: bool = True) -> None:
        self.n, self.quorum, self.strict = n, quorum, strict
        self.dag: dict[Key, tuple[Vector, bool]] = {}
        self.done: set[Key] = set()
        self.gone: set[int] = set()

    def insert(self, rank: int, seq: int, vec: Vector, agreed: bool) -> None:
        self.dag[rank, seq] = vec, agreed

    def crash(self, rank: int) -> None:
        self.gone.add(rank)

    def follows(self, m: Key, c: Key) -> bool:
        return self.dag[m][0][c[0]] >= c[1]

    def candidates(self) -> list[Key]:
        pending = [m for m, (_, agreed) in self.dag.items() if agreed and m not in self.done]
        return sorted(m for m in pending if not any(self.follows(m, o) for o in pending if o != m))

    def vt(self, c: Key, q: int, candidates: list[Key]) -> Entry:
        """An entry of the extended vector timestamp."""
        votes = sorted(m for m in self.dag if m[0] == q and any(self.follows(m, o) for o in candidates))
        if not votes:
            return inf if q in self.gone else STAR
        return votes[0][1] if self.follows(votes[0], c) else inf

    def activate(self) -> list[Key]:
        """The next set, or none."""
        m = self.candidates()
        machines = range(self.n)
        vt = {c: [self.vt(c, q, m) for q in machines] for c in m}

        def win(a: Key, b: Key) -> bool:
            return sum(_less(vt[a][q], vt[b][q]) for q in machines) >= self.quorum

        def may_win(a: Key, b: Key) -> bool:  # 1 in Future(a, b): what is not here might all be for it
            return sum(vt[a][q] is STAR or _less(vt[a][q], vt[b][q]) for q in machines) >= self.quorum

        sources = [c for c in m if not any(may_win(o, c) for o in m if o != c)]
        internal = all(c in sources or any(win(o, c) for o in m) for c in m)
        tails = {c: {o[0] for o in self.dag if self.follows(o, c)} for c in m}
        nvt = {c: sum(vt[c][q] is not STAR and vt[c][q] != inf for q in machines) for c in m}
        enough = any(nvt[s] >= self.quorum for s in sources)
        if self.strict:
            enough = enough and all(len(tails[s]) >= self.n - self.quorum + 1 for s in sources)
        external = all(vt[c][q] is not STAR for c in m for q in machines) or enough
        if not (sources and internal and external):
            return []
        self.done |= set(sources)
        return sources


def _less(a: Entry, b: Entry) -> bool:
    return a is not STAR and b is not STAR and a < b


class AllAck(Definition):
    """Section 1 of the paper: wait for a message of every machine, deliver what follows nothing else that waits."""

    def __init__(self, n: int) -> None:
        super().__init__(n, n + 1)

    def activate(self) -> list[Key]:
        candidates = self.candidates()
        heard = {m[0] for m in self.dag if any(self.follows(m, c) for c in candidates)}
        if not candidates or len(heard | self.gone) < self.n:
            return []
        self.done |= set(candidates)
        return candidates
