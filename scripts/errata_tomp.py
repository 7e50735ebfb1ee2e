"""E1 of the TOMP paper as a picture: two hosts, two messages, on the product's queues and on those of the letter."""

from __future__ import annotations

from tests.mutants.stamps import NoJump

from ordercast.papers.draw import schedule
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes

A, B = (0, 1), (1, 1)  # rank of the sender, number


class Hosts:
    """Two hosts that say what each step gave."""

    def __init__(self, kind: type[Book]) -> None:
        self.books = [kind(1, 2), kind(2, 2)]
        self.votes = {A: Votes([1, 2]), B: Votes([1, 2])}
        self.orders: list[list[str]] = [[], []]
        self.words: list[tuple[int, int, str, str]] = []

    def data(self, host: int, mid: tuple[int, int]) -> None:
        number = self.books[host].propose(mid[0])
        self.votes[mid].add(host + 1, number, tuple(self.books[host].next_mid))
        self._say(host, "send" if host == mid[0] else "recv", f"{_name(mid)} {number}.{host + 1}")

    def validation(self, host: int, mid: tuple[int, int]) -> None:
        final: Stamp = self.votes[mid].final
        self.books[host].decide(*mid, final)
        out = [_name((rank, n)) for _, rank, n in self.books[host].deliverable()]
        self.orders[host] += out
        self._say(host, "role", f"{_name(mid)} = {final[0]}.{final[1]}" + (f": {' '.join(out)}" if out else ""))

    def _say(self, host: int, kind: str, word: str) -> None:
        self.words.append((2 * len(self.words), host, kind, word))


def _name(mid: tuple[int, int]) -> str:
    return "ab"[mid[0]]


def run(kind: type[Book]) -> Hosts:
    hosts = Hosts(kind)
    for step, host, mid in (("data", 1, B), ("data", 0, A), ("data", 1, A), ("validation", 0, A), ("data", 0, B),
                            ("validation", 1, B), ("validation", 0, B), ("validation", 1, A)):  # fmt: skip
        getattr(hosts, step)(host, mid)
    return hosts


def e1() -> str:
    """b is lost for a while on its way to host 1, which delivers a meanwhile."""
    wrong, right = run(NoJump), run(Book)
    assert wrong.orders[0] != wrong.orders[1] and right.orders[0] == right.orders[1] == ["a", "b"]
    arrows = [(0, 1, 8, 0), (2, 0, 4, 1)]
    notes = [
        "Blue: sends, and proposes a stamp; white: receives, and proposes; orange: learns a final stamp, and delivers.",
        f"    By the letter host 1 delivers {' '.join(wrong.orders[0])}, host 2 {' '.join(wrong.orders[1])};",
        f"    here both deliver {' '.join(right.orders[0])}: host 1 proposes more than a's final stamp for b.",
    ]
    return schedule("errata-tomp-e1", ["host 1", "host 2"], wrong.words, arrows, notes)


PICTURES = {"E1": e1}
