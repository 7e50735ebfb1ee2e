"""A group of stamping cores over a model of the layer below: causal multicast and unicast in one view, then its end.

The test decides what arrives where, and when; `end` freezes those who go on, wherever each of them is, and carries out
the install as the layer does.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from ordercast.contract import (
    Action,
    Crash,
    Down,
    Flush,
    Frozen,
    Multicast,
    Note,
    Ordered,
    Received,
    Setup,
    Submit,
    UnicastReceived,
    UnicastTo,
    Up,
    ViewChange,
    Window,
)
from ordercast.protocols.tomp.layer import Stamping, Validations
from ordercast.transis.install import insertion
from ordercast.transis.packets import Data
from ordercast.types import Identity, Submission, View, ViewId, ViewKind

VIEW = ViewId(8, 1)


class Group:
    """Hosts 1..n; a frame is named by its payload."""

    def __init__(self, n: int, *, anticipate: bool = True, core: type[Stamping] = Stamping) -> None:
        self.members = tuple(range(1, n + 1))
        self.cores: dict[int, Stamping] = {}
        self.have = {p: [0] * n for p in self.members}
        self.said: dict[tuple[int, int], Any] = {}  # (rank, seq) -> Data
        self.unicasts: dict[tuple[int, int], deque[Any]] = defaultdict(deque)
        self.delivered: dict[int, list[str]] = {p: [] for p in self.members}
        self.notes: list[Note] = []
        self.past: dict[str, tuple[str, ...]] = {}  # frame -> what its sender had delivered
        for p in self.members:
            setup = Setup(Identity(p, 1, self.members), 40_000_000, None, 1400, random.Random(p))
            self.cores[p] = core(setup, anticipate=anticipate)
            view = View(VIEW, ViewKind.REGULAR, self.members)
            self._do(p, self.cores[p].up(0, ViewChange(view), 0) + self.cores[p].up(0, Window(1000), 0))

    def _do(self, p: int, actions: Iterable[Action]) -> None:
        todo = deque(actions)
        while todo:
            match todo.popleft():
                case Down(event=Multicast(body=body)):
                    have = self.have[p]
                    have[p - 1] += 1
                    self.said[p - 1, have[p - 1]] = Data(VIEW, have[p - 1], tuple(have), 0, body)
                    todo += self.cores[p].up(0, Received(p, have[p - 1], body, tuple(have)), 0)
                case Down(event=UnicastTo(to=to, body=body)):
                    self.unicasts[p, to].append(body)
                case Up(event=Ordered(frame=frame)):
                    self.delivered[p].append(frame.data.decode())
                case Note() as note:
                    self.notes.append(note)

    # ----------------------------------------------------------------------------------------------------------- steps

    def send(self, p: int, name: str) -> None:
        self.past[name] = tuple(self.delivered[p])
        self._do(p, self.cores[p].down(0, Submit(Submission([name.encode()]))))

    def insertable(self, p: int) -> list[int]:
        """Senders whose next multicast may be inserted at p."""
        have, rank = self.have[p], p - 1
        out = []
        for q in range(len(self.members)):
            data = self.said.get((q, have[q] + 1))
            if q != rank and data is not None and all(data.vec[k] <= have[k] for k in range(len(have)) if k != q):
                out.append(q + 1)
        return out

    def pass_(self, q: int, *to: int) -> None:
        """The next multicast of q arrives; the receivers answer."""
        for p in to:
            assert q in self.insertable(p), f"nothing of {q} for {p}"
            self.have[p][q - 1] += 1
            data = self.said[q - 1, self.have[p][q - 1]]
            self._do(p, self.cores[p].up(0, Received(q, data.seq, data.body, data.vec), 0))
            self._do(p, self.cores[p].drained(0, 0))

    def answer(self, p: int, q: int) -> None:
        """The next unicast of p arrives at q."""
        self._do(q, self.cores[q].up(0, UnicastReceived(p, self.unicasts[p, q].popleft()), 0))
        self._do(q, self.cores[q].drained(0, 0))

    def calm(self) -> None:
        """Everything arrives everywhere."""
        busy = True
        while busy:
            busy = False
            for p in self.members:
                for q in self.insertable(p):
                    self.pass_(q, p)
                    busy = True
            for (p, q), line in list(self.unicasts.items()):
                while line:
                    self.answer(p, q)
                    busy = True

    def end(self, together: tuple[int, ...], listed: dict[int, int] | None = None) -> None:
        """The view ends; those go on.  `listed`: by sender, up to where somebody holds multicasts back that it cannot
        insert; the layer leaves these out."""
        states = tuple(self.cores[p].flush_state() for p in together)
        upto = [max(self.have[p][q] for p in together) for q in range(len(self.members))]
        cut = tuple(max(known, (listed or {}).get(q + 1, 0)) for q, known in enumerate(upto))
        for p in together:
            missing = {
                (q, k): self.said[q, k] for q, upto in enumerate(cut) for k in range(self.have[p][q] + 1, upto + 1)
            }
            self._do(p, self.cores[p].up(0, Frozen(), 0))
            for q, k, data in insertion(self.have[p], missing, True):
                self._do(p, self.cores[p].up(0, Received(q + 1, k, data.body, data.vec), 0))
            for q in self.members:
                if q not in together:
                    self._do(p, self.cores[p].up(0, Crash(q), 0))
            self._do(p, self.cores[p].up(0, Flush(states, cut), 0))

    def wrong(self, together: tuple[int, ...]) -> list[str]:
        """What is wrong among those who went on: another order, a sender's order, causal order by delivery."""
        lists = [self.delivered[p] for p in together]
        out = [f"member {p} delivered {self.delivered[p]}, member {together[0]} {lists[0]}"
               for p in together if self.delivered[p] != lists[0]]  # fmt: skip
        at = {name: k for k, name in enumerate(lists[0])}
        out += [f"{name} before {first}, which its sender had delivered" for name in lists[0]
                for first in self.past[name] if at.get(first, len(at)) > at[name]]  # fmt: skip
        for sender in self.members:
            own = [name for name in lists[0] if name.startswith(f"{sender}.")]
            out += [f"order of {sender}: {own}"] if own != sorted(own, key=lambda name: int(name[2:])) else []
        return out


def random_run(group: Group, rng: random.Random, steps: int) -> tuple[int, ...]:
    """A view with frames of everybody, some of them slow; then its end, for some."""
    sent = dict.fromkeys(group.members, 0)
    lazy = {pair: rng.choice((1.0, 1.0, 0.5, 0.1)) for p in group.members for q in group.members for pair in [(p, q)]}
    for _ in range(steps):
        p = rng.choice(group.members)
        what = rng.random()
        if what < 0.15 and sent[p] < 4:
            sent[p] += 1
            group.send(p, f"{p}.{sent[p]}")
        elif what < 0.6:
            ready = [q for q in group.insertable(p) if rng.random() < lazy[q, p]]
            if ready:
                group.pass_(rng.choice(ready), p)
        else:
            ready = [q for q in group.members if group.unicasts[p, q] and rng.random() < lazy[p, q]]
            if ready:
                group.answer(p, rng.choice(ready))
    together = tuple(sorted(rng.sample(group.members, rng.randint(1, len(group.members)))))
    group.end(together)
    return together


def final_of(group: Group, q: int) -> Any:
    """The last validation that q multicast."""
    bodies = [data.body for (rank, _), data in sorted(group.said.items()) if rank == q - 1]
    return next(body.finals[-1] for body in reversed(bodies) if type(body) is Validations)
