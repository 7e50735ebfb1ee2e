"""TOMP: the example and the claim of Dasser's paper.

The example has its clocks and orders of reception, which a run of the whole stack cannot have (a sender has its own
message first there), so it is fed to the queues and votes of the core.  The paper tells no setup of its simulation: the
claim is looked for in models of a network (stamping.py), in a scheduler without time, and in the whole stack.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ordercast.papers.figures import Run
from ordercast.papers.points import Curve, Picture, Points, Reduced, Value, curve, over
from ordercast.papers.queues import Entry, queues, spans
from ordercast.papers.stamping import BOOKS, Hosts, Steps, Timed, means
from ordercast.papers.ways import Law, exponential, repaired
from ordercast.protocols.tomp.stamps import Book, Stamp, Votes
from ordercast.trace.schema import Kind

CLOCKS = (14, 15, 16)
RECEPTIONS = ((3, 1, 2), (2, 1, 3), (1, 3, 2))  # at host 1, 2, 3
LAN, WAN, WIDE = exponential(1.0, 0.5), exponential(50.0, 10.0), exponential(50.0, 50.0)
LAWS: dict[str, Law] = {
    "lan": LAN, "wan": WAN, "wide": WIDE, "lossy": repaired(LAN, 0.02, 20.0), "loose": exponential(0.0, 10.0),
}  # fmt: skip

MODELS = (
    "LAN, 3 hosts", "LAN, 5 hosts", "LAN, 10 hosts", "WAN 50 + Exp(10), 5 hosts", "WAN 50 + Exp(10), 10 hosts",
    "WAN 50 + Exp(50), 10 hosts", "LAN with loss, 10 hosts", "Exp(10), FIFO data only, 10 hosts",
)  # fmt: skip

# -------------------------------------------------------------------------------------------------------- the example


def _stamp(stamp: Stamp) -> str:
    return f"{stamp[0]}.{stamp[1]}"


def _ids(next_mid: Sequence[int]) -> str:
    return ", ".join(f"m{rank + 1}" + ("+1" if mid > 1 else "") for rank, mid in enumerate(next_mid))


def _queue(book: Book) -> list[Entry]:
    """Head first: by stamp, decided before undecided, by sender."""
    entries = [(stamp, 1, rank) for rank, _, stamp in book.listed()]
    entries += [(stamp, 0, rank) for stamp, rank, _ in book.ready]
    return [(f"m{rank + 1}", _stamp(stamp), "ud" if open_ else "dl") for stamp, open_, rank in sorted(entries)]


def example(parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """Sections 2.2 and 3.3: answers, validations, and the queues after the receptions and after each decision."""
    books = [Book(host, 3, clock) for host, clock in enumerate(CLOCKS, 1)]
    votes = {m: Votes((1, 2, 3)) for m in (1, 2, 3)}
    answers: dict[str, str] = {}
    for host, order in enumerate(RECEPTIONS, 1):
        book = books[host - 1]
        for m in order:
            number = book.propose(m - 1)
            votes[m].add(host, number, book.next_mid)
            answers[f"m{m} host{host}"] = f"{_stamp((number, host))} ({_ids(book.next_mid)})"
    states: list[list[dict[str, Any]]] = [[{"queue": _queue(book), "delivers": []} for book in books]]
    finals = {}
    for m in (1, 2, 3):
        vote = votes[m]
        bounds = ", ".join(map(_stamp, vote.max_next_ts))
        finals[f"m{m}"] = f"{_stamp(vote.final)}; {_ids(vote.min_next_mid)}; {bounds}"
        states.append([])
        for book in books:
            book.decide(m - 1, 1, vote.final)
            if parameters["anticipate"]:
                book.anticipate(vote.min_next_mid, vote.max_next_ts)
            queue = _queue(book)
            states[-1].append({"queue": queue, "delivers": [f"m{rank + 1}" for _, rank, _ in book.deliverable()]})
    return {"answers": answers, "finals": finals, "states": states}


def _words(entries: Sequence[Entry]) -> str:
    return ", ".join(" ".join(entry) for entry in entries)


def _steps(found: dict[str, Any], which: Sequence[tuple[int, int]], title: str) -> tuple[dict[str, Value], Picture]:
    """Rows and a picture of some of the states: (step in the paper, number of decisions)."""
    rows, drawn = {}, []
    said = ("receptions", "decision on m1", "decision on m2", "decision on m3")
    for step, decisions in which:
        states = []
        for host, state in enumerate(found["states"][decisions], 1):
            rows[f"step {step}, host{host}"] = Value(_words(state["queue"]))
            if decisions:
                rows[f"step {step}, host{host} delivers"] = Value(" ".join(state["delivers"]) or "nothing")
            states.append((state["queue"], state["delivers"]))
        drawn.append((f"step {step}: {said[decisions]}", states))
    return rows, Picture("queues", title, queues(title, drawn), "Green: deliverable; a thick edge: delivered now.")


def figure1(points: Points) -> Reduced:
    found = points.where(protocol="abcast").only().figures
    rows, picture = _steps(found, ((1, 0), (2, 1), (3, 2), (4, 3)), "ABCAST")
    return Reduced(rows, pictures=[picture])


def _answered(found: dict[str, Any], step: int, m: int) -> dict[str, Value]:
    rows = {f"step {step}, answer of host{host}": Value(found["answers"][f"m{m} host{host}"]) for host in (1, 2, 3)}
    return rows | {f"step {step}, ts_m{m}": Value(found["finals"][f"m{m}"])}


def figure3(points: Points) -> Reduced:
    found = points.where(protocol="tomp").only().figures
    rows, picture = _steps(found, ((1, 0), (3, 1), (5, 2)), "TOMP, steps 1 to 5")
    early = [state["delivers"] == ["m1"] for state in found["states"][1]]
    rows["after the first validation all three hosts deliver m1"] = Value(all(early))
    return Reduced(rows | _answered(found, 2, 1) | _answered(found, 4, 2), pictures=[picture])


def figure4(points: Points) -> Reduced:
    found = points.where(protocol="tomp").only().figures
    rows, picture = _steps(found, ((7, 3),), "TOMP, step 7")
    return Reduced(rows | _answered(found, 6, 3), pictures=[picture])


# --------------------------------------------------------------------------------------------------------- t1 and t2


def orders(run: Run) -> list[list[int]]:
    """Every delivery: member, sender, counter, when it was submitted, t1, when it was delivered, t2; nanoseconds."""
    trace = run.outcome.trace.rows
    sent = {(row.member, row.counter or 0): row.time_ns for row in trace if row.kind == Kind.SUBMIT}
    begin = min(sent.values())  # before it are frames of the groups, which nobody delivers
    noted: dict[int, deque[tuple[int, int]]] = {member: deque() for member in run.header.members}
    out = []
    for row in trace:
        detail = row.detail if isinstance(row.detail, dict) else {}
        if row.kind == Kind.NOTE and detail.get("name") == "order" and row.time_ns >= begin:
            noted[row.member].append((detail["t1_ns"], detail["t2_ns"]))
        elif row.kind == Kind.DELIVER:
            t1, t2 = noted[row.member].popleft()
            key = (row.sender or 0, row.counter or 0)
            out.append([row.member, *key, sent[key], t1, row.time_ns, t2])
    return out


def parts(run: Run) -> dict[str, float]:
    """Means of t1 and t2 in ms."""
    notes = run.notes("order")
    return {name: fmean(note[f"{name}_ns"] for note in notes) / 1e6 for name in ("t1", "t2")}


def figure2(points: Points) -> Reduced:
    both = {name: points.where(protocol=name).only().figure("orders") for name in ("abcast", "tomp")}
    keyed = {name: {tuple(row[:3]): row for row in rows} for name, rows in both.items()}
    plain, early = keyed["abcast"], keyed["tomp"]
    rows = {
        "t1 is the same in both, for every message and host": Value(
            all(row[4] == early[key][4] for key, row in plain.items())
        ),
        "t2 is never longer by TOMP": Value(all(early[key][6] <= row[6] for key, row in plain.items())),
        "t2 is shorter by TOMP for some": Value(any(early[key][6] < row[6] for key, row in plain.items())),
    }
    chosen = max(plain.values(), key=lambda row: row[6])  # the message that waits longest anywhere
    _, sender, counter, at, *_ = chosen
    lanes = []
    for name, word in (("abcast", "ABCAST"), ("tomp", "TOMP")):
        for member in (1, 2, 3):
            _, _, _, _, t1, delivered, t2 = keyed[name][member, sender, counter]
            span = ((delivered - t2 - t1) / 1e6, (delivered - t2) / 1e6, delivered / 1e6)
            lanes.append((f"{word}, host{member}", span))
    title = f"t1 and t2 of message {counter} of host{sender}"
    caption = "From the traces of both protocols under the same load and delays."
    return Reduced(rows, pictures=[Picture("t1-t2", title, spans(title, lanes, at / 1e6), caption)])


# ---------------------------------------------------------------------------------------------------------- the claim


def _cuts(plain: dict[str, float], early: dict[str, float]) -> dict[str, float]:
    total = plain["t1"] + plain["t2"]
    return {
        "t1": plain["t1"],
        "abcast": plain["t2"],
        "tomp": early["t2"],
        "t2": 100 * (1 - early["t2"] / plain["t2"]),
        "total": 100 * (1 - (early["t1"] + early["t2"]) / total),
        "least": 100 * (1 - (plain["t1"] + plain["least"]) / total),
    }


def _both(parameters: dict[str, Any], drive: Any) -> dict[str, float]:
    found = []
    for anticipate in (False, parameters["anticipate"]):
        hosts = Hosts(parameters["hosts"], BOOKS[parameters["queue"]], anticipate=anticipate)
        drive(hosts)
        found.append(means(hosts))
    return _cuts(*found)


def timed(parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """What anticipation cuts off, in per cent, in a model of a network."""
    law, rate, messages = LAWS[parameters["law"]], parameters["rate"], parameters["messages"]
    fifo = parameters["law"] != "loose"
    return _both(parameters, lambda hosts: Timed(hosts, law, rate, messages, seed, fifo=fifo))


def steps(parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """The same, counted in events of a scheduler."""
    return _both(parameters, lambda hosts: Steps(hosts, parameters["open"], parameters["messages"], seed))


def claim(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    cases = points.where("timed").values("case")
    for case in cases:
        here = points.where("timed", case=case)
        rows[f"{case}: t2"], rows[f"{case}: total"] = here.value("t2"), here.value("total")
        for what, word in (("t1", "t1"), ("abcast", "t2 of ABCAST"), ("tomp", "t2 of TOMP")):
            rows[f"{case}: {word}, ms"] = here.value(what)
    for case in points.where("letter").values("case"):
        rows[f"{case}, queue by the letter: t2"] = points.where("letter", case=case).value("t2")
    lines: dict[str, Curve] = {}
    counted = points.where("steps")
    for hosts in counted.values("hosts"):
        line = [(float(many), counted.where(hosts=hosts, open=many).value("total")) for many in counted.values("open")]
        lines[f"{hosts} hosts"] = curve(line)
        for many, value in line:
            rows[f"steps, {hosts} hosts, {many:g} open: total"] = value
    for size in points.where("stack").values("size"):
        here = points.where("stack", size=size)
        plain, early = here.where(protocol="abcast"), here.where(protocol="tomp")
        pairs = zip(plain.points, early.points, strict=True)
        cut = [100 * (1 - b.figure("parts", "t2") / a.figure("parts", "t2")) for a, b in pairs]
        rows[f"{size}, whole stack: t2"] = over(cut)
    modelled = [*points.where("timed"), *points.where("letter")]
    rows["t2 falls by a tenth at least, in every model"] = Value(all(point.figure("t2") >= 10 for point in modelled))
    rows["steps: the total falls by 4 % at least"] = Value(all(p.figure("total") >= 4 for p in counted))
    rows["who knew all final stamps would cut less than 22 % off the total"] = Value(
        all(points.where("timed", case=case).value("least").mean < 22 for case in cases)  # type: ignore[operator]
    )
    bars = {what: Curve(*_bars(points, what), style="bars") for what in ("t2", "total")}
    return Reduced(rows, {"steps": lines, "models": bars})


def _bars(points: Points, what: str) -> tuple[list[float], list[float]]:
    """At the numbers of the models."""
    cases = points.where("timed").values("case")
    values = [float(points.where("timed", case=case).value(what).mean) for case in cases]
    return [float(MODELS.index(case) + 1) for case in cases], values


ITEMS = {"figure1": figure1, "figure2": figure2, "figure3": figure3, "figure4": figure4, "claim-latency": claim}
COMPUTE = {"example": example, "timed": timed, "steps": steps}
FIGURES = {"orders": orders, "parts": parts}
