"""ToTo: the tables and figures of Dolev, Kramer and Malki."""

from __future__ import annotations

from typing import Any

from ordercast.conformance.golden_toto import dag_of, name_of
from ordercast.papers.points import Points, Reduced, Value, curve
from ordercast.protocols.toto.ballots import Ballots

# figure 1: name, what it acknowledges, class.  What the text leaves open (what a1, d1 and e1 acknowledge, the class of
# a2, d2 and d3) has no effect on the table.
FIGURE_1 = (
    ("a1", (), "agreed"), ("d1", ("a1",), "agreed"), ("e1", ("a1",), "agreed"), ("b1", ("a1",), "agreed"),
    ("c1", ("d1",), "agreed"), ("e2", ("e1",), "agreed"), ("d2", ("c1", "e2"), "causal"),
    ("a2", ("b1", "c1", "e2"), "causal"), ("c2", ("c1",), "agreed"), ("d3", ("b1", "d2"), "causal"),
)  # fmt: skip
DELIVERED = ("a1", "d1", "e1")  # before the table


def candidates(parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """The functions of table 1 for the causal order of figure 1, from the ballots of the product."""
    n = 5
    ballots = Ballots(n, parameters["quorum"])
    for name, (key, vec, agreed) in dag_of(n, FIGURE_1).items():
        ballots.insert(*key, vec, agreed and name not in DELIVERED)
    out: dict[str, Any] = {}
    for rank in sorted(ballots.candidates):
        name = name_of((rank, ballots.head[rank]))
        tail, votes = ballots.tail[rank], ballots.votes[rank]
        stamps = [str(ballots.first[rank][q]) if votes >> q & 1 else "inf" for q in range(n)]
        out[f"Tail({name})"] = " ".join("abcde"[q] for q in range(n) if tail >> q & 1)
        out[f"NTail({name})"] = tail.bit_count()
        out[f"VT({name})"] = " ".join(stamps)
        out[f"NVT({name})"] = votes.bit_count()
    return out


def table1(points: Points) -> Reduced:
    return Reduced({name: Value(value) for name, value in points.only().figures.items()})


def table2(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    series = {}
    for protocol, word in (("toto", "ToTo"), ("allack", "all-ack")):
        at = []
        for load in points.values("load"):
            some = points.where(protocol=protocol, load=load)
            rows[f"{word}, {load}/s"] = some.value("latency", "sender", "mean")
            at.append((float(load), rows[f"{word}, {load}/s"]))
        series[word] = curve(at)
    return Reduced(rows, {"latency": series})


ITEMS = {"table1": table1, "table2": table2}
COMPUTE = {"candidates": candidates}
