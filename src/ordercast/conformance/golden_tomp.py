"""Golden kinds of ABCAST and TOMP, on the protocol's own parts: schedules of data, acks and validations; the flush."""

from __future__ import annotations

from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.protocols.tomp.closing import Mid, Part, flush_keys, in_order
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes


class _Hosts:
    """All hosts of one schedule; the events say when what arrives."""

    def __init__(self, case: Case) -> None:
        self.hosts, self.anticipate = case["hosts"], case["variant"] == "tomp"
        n = len(self.hosts)
        self.books = {host: Book(host, n, clock) for host, clock in zip(self.hosts, case["clocks"], strict=True)}
        self.acks: dict[tuple[int, Mid], tuple[int, list[int]]] = {}
        self.votes: dict[Mid, Votes] = {}
        self.order: dict[int, list[Mid]] = {host: [] for host in self.hosts}
        self.finals: dict[Mid, Stamp] = {}

    def data(self, event: Case) -> dict[str, Any]:
        host, (sender, n) = event["host"], event["mid"]
        book, rank = self.books[host], self.hosts.index(sender)
        assert book.next_mid[rank] == n, f"{host} expects {book.next_mid[rank]} of {sender}, not {n}"
        number = book.propose(rank)
        self.acks[host, (sender, n)] = number, list(book.next_mid)
        return {"ack": {"ts": [number, host], "next_mid": list(book.next_mid)}, "queue": self._queue(host)}

    def ack(self, event: Case) -> dict[str, Any]:
        mid, source = tuple(event["mid"]), event["from"]
        votes = self.votes.setdefault(mid, Votes(self.hosts))
        number, next_mid = self.acks[source, mid]
        if not votes.add(source, number, next_mid if self.anticipate else ()):
            return {"ts_msg": None}
        told: dict[str, Any] = {"ts": list(votes.final)}
        if self.anticipate:
            told |= {"min_next_mid": votes.min_next_mid, "max_next_ts": list(map(list, votes.max_next_ts))}
        return {"ts_msg": told}

    def ts(self, event: Case) -> dict[str, Any]:
        host, (sender, n) = event["host"], event["mid"]
        book, votes, rank = self.books[host], self.votes[sender, n], self.hosts.index(sender)
        bound = book.stamp(rank, n)
        assert bound is not None and bound <= votes.final, f"P12: {bound} is above the final {votes.final}"
        book.decide(rank, n, votes.final)
        if self.anticipate:
            book.anticipate(votes.min_next_mid, votes.max_next_ts)
        delivered = [(self.hosts[rank], n) for _, rank, n in book.deliverable()]
        self.order[host] += delivered
        self.finals[sender, n] = votes.final
        return {"delivered": list(map(list, delivered)), "queue": self._queue(host), "clock": book.clock}

    def _queue(self, host: int) -> list[Any]:
        book = self.books[host]
        entries = [(stamp, 1, (self.hosts[rank], n)) for rank, n, stamp in book.listed()]
        entries += [(final, 0, (self.hosts[rank], n)) for final, rank, n in book.ready]
        return [[list(mid), list(stamp), "ud" if undecided else "dl"] for stamp, undecided, mid in sorted(entries)]


def schedule(case: Case) -> list[str]:
    """Event by event: stamps, validations, queues, clocks, deliveries; the common order and the finals at the end."""
    state = _Hosts(case)
    steps = {"data": state.data, "ack": state.ack, "ts": state.ts}
    for number, event in enumerate(case["events"]):
        for key, value in steps[event["ev"]](event).items():
            found = differ(f"event {number}, {key}", event.get(key), value)
            if found:
                return found
    finals = [list(state.finals[tuple(mid)]) for mid in case["final_order"]]
    out = [line for host in state.hosts
           for line in differ(f"order at {host}", case["final_order"], list(map(list, state.order[host])))]  # fmt: skip
    return out + differ("final_ts", case["final_ts"], finals)


def keys(case: Case) -> list[str]:
    """The end of a view: keys and order of what was agreed upon."""
    parts = {
        p: Part(case["base"][str(p)], _stamps(case["stamps"][str(p)]), list(map(tuple, case["lacked"][str(p)])))
        for p in case["T"]
    }
    finals, messages = _stamps(case["finals"]), list(map(tuple, case["messages"]))
    got = flush_keys(parts, messages, finals, {})
    listed = sorted([list(mid), list(key)] for mid, key in got.items())
    return differ("keys", sorted(case["keys"]), listed) + differ(
        "order", case["order"], list(map(list, in_order(got, finals)))
    )


def _stamps(pairs: list[Any]) -> dict[Mid, Stamp]:
    return {tuple(mid): tuple(stamp) for mid, stamp in pairs}


KINDS = {"schedule": schedule, "flush_keys": keys}
