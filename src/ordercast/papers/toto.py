"""ToTo: the tables and figures of Dolev, Kramer and Malki.

What is expected was found with certain draws, and single runs differ by more than the tolerances: so the cores alone
run on these very draws (draws.py), and the whole stack, in the simulator, on others, whose rows say so.  One message
per frame, T so long that nobody is ever asked for a vote (the paper has no timer), senders that go on until the last
message is submitted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from msgspec import structs

from ordercast.conformance.golden_toto import dag_of, name_of
from ordercast.contract import Setup
from ordercast.papers.draw import dag
from ordercast.papers.draws import drawn
from ordercast.papers.ideal import sender_latency_ms
from ordercast.papers.points import Curve, Picture, Point, Points, Reduced, Value, curve, over
from ordercast.protocols.layered import ordered
from ordercast.protocols.toto import PROTOCOLS as SHIPPED
from ordercast.protocols.toto.ballots import Ballots
from ordercast.protocols.toto.core import Toto
from ordercast.registry import ProtocolInfo
from ordercast.stack import Stack

N = 8
WORDS = {"toto": "ToTo", "allack": "all-ack"}
AT_SENDER = ("latency", "sender", "mean")
PLOTTED = {"2 ms": "", "1 + exp 1 ms": " with jitter"}  # delays of table 3

# --------------------------------------------------------------------------------------------------- the worked example

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
    delivered = ballots.activate()
    return {"functions": out, "delivered": " ".join(name_of(key) for key in delivered)}


def table1(points: Points) -> Reduced:
    return Reduced({name: Value(value) for name, value in points.only().figure("functions").items()})


def figure1(points: Points) -> Reduced:
    """The drawing, and what is delivered of it."""
    rows = {f"delivered together, Q = {point.axes['quorum']}": Value(point.figures["delivered"]) for point in points}
    marks = {name: "done" for name in DELIVERED} | {name: "candidate" for name in ("b1", "c1", "e2")}
    classes = {name: kind for name, _, kind in FIGURE_1}
    svg = dag("toto-figure1", "ABCDE", [(name, acks) for name, acks, _ in FIGURE_1], marks, classes)
    said = "A lane for each machine, time runs upwards; dashed: agreed; grey: delivered already; blue: candidates."
    return Reduced(rows, pictures=[Picture("order", "The causal order", svg, said)])


# ------------------------------------------------------------------------------------------------------ tables 2 and 3


def _loads(points: Points) -> list[str]:
    return [str(load) for load in points.values("load")]


def _by_load(points: Points, law: str = "") -> tuple[dict[str, Value], dict[str, Curve]]:
    """tau, omega, latency at the sender and speedup at each load."""
    rows: dict[str, Value] = {}
    head = f"{law}: " if law else ""
    series: dict[str, list[tuple[float, Value]]] = {}
    for load in _loads(points):
        some = {protocol: points.where(load=load, protocol=protocol) for protocol in WORDS}
        for protocol, word in WORDS.items():
            if len(some[protocol]):
                rows[f"{head}{word}, {load}/s"] = value = some[protocol].value("latency", "sender", "mean")
                series.setdefault(word, []).append((float(load), value))
                of = "" if protocol == "toto" else " of all-ack"
                rows[f"{head}omega{of}, {load}/s"] = some[protocol].value("index", "omega")
        rows[f"{head}tau, {load}/s"] = some["toto"].value("index", "tau")
        if len(some["allack"]):
            rows[f"{head}speedup, {load}/s"] = _speedup(some["toto"], some["allack"])
    return rows, {word: curve(pairs) for word, pairs in series.items()}


def _speedup(early: Points, late: Points) -> Value:
    """Of runs with the same seed, the mean ratio."""
    slow = {point.seed: point.figure("latency", "sender", "mean") for point in late}
    return early.of(lambda point: slow[point.seed] / point.figure("latency", "sender", "mean"))


def table2(points: Points) -> Reduced:
    rows, _ = _by_load(points.where("phases"))
    rows |= _shapes(rows, _loads(points))
    others, series = _by_load(points.where("periodic"))
    rows |= _named("other phases", others | _shapes(others, _loads(points)))
    early, late = (points.where(protocol=protocol) for protocol in WORDS)
    rows["shortest ToTo latency, in periods"] = Value(min(map(_in_periods, early)))
    rows["longest all-ack latency, in periods"] = Value(max(map(_in_periods, late)))
    return Reduced(rows, {"latency": series})


def _named(head: str, rows: dict[str, Value]) -> dict[str, Value]:
    return {f"{head}: {name}": value for name, value in rows.items()}


def _in_periods(point: Point) -> float:
    """The mean latency of a run in periods of one sender."""
    return float(point.figure("latency", "sender", "mean")) * float(point.axes["load"]) / N / 1000


def _shapes(rows: dict[str, Value], loads: list[str]) -> dict[str, Value]:
    ratio = [rows[f"speedup, {load}/s"].mean for load in loads]
    fast = [rows[f"ToTo, {load}/s"].mean for load in loads]
    return {
        "ToTo is sooner at every load": Value(all(float(each) > 1.2 for each in ratio)),
        "latency falls with load": Value(fast == sorted(fast, reverse=True)),
        "tau stays below six": Value(all(5 <= float(rows[f"tau, {load}/s"].mean) < 6.1 for load in loads)),
    }


def table3(points: Points) -> Reduced:
    same, others = _apart(points, "poisson")
    rows: dict[str, Value] = {}
    for law in same.values("law"):
        rows |= _by_load(same.where(law=law), law)[0]
    main = {name.removeprefix("2 ms: "): value for name, value in rows.items() if name.startswith("2 ms: ")}
    rows |= _shapes(main, _loads(same.where(law="2 ms")))
    series: dict[str, Curve] = {}
    for law, word in PLOTTED.items():
        if some := others.where(law=law):
            found, curves = _by_load(some)
            series |= {f"{name}{word}": each for name, each in curves.items()}
            rows |= _named("other draws", found | _shapes(found, _loads(some))) if law == "2 ms" else {}
    return Reduced(rows, {"latency": series})


def _apart(points: Points, stack: str) -> tuple[Points, Points]:
    """On the draws behind what is expected, and on others, the whole stack."""
    return Points(point for point in points if point.experiment != stack), points.where(stack)


# ----------------------------------------------------------------------------------------------------- figures 5 and 6


def _shares(points: Points) -> dict[str, Value]:
    """The share of each tau, and of each pair (tau, omega), over seeds."""
    pairs = sorted({pair for point in points for pair in point.figure("index", "joint")})
    out = {f"({pair})": over(point.figure("index", "joint").get(pair, 0.0) for point in points) for pair in pairs}
    for tau in range(1, N + 1):
        out[f"({tau},*)"] = over(_share(point, tau) for point in points)
    return out


def _share(point: Point, tau: int) -> float:
    return sum(share for pair, share in point.figure("index", "joint").items() if pair.startswith(f"{tau},"))


def _distribution(points: Points, wanted: dict[str, tuple[str, ...]]) -> Reduced:
    rows: dict[str, Value] = {}
    bars = {}
    for load in _loads(points):
        found = _shares(points.where(load=load, protocol="toto"))
        for pair in wanted.get(load, ()):
            rows[f"{pair.replace(',', ', ')} at {load}/s"] = found.get(pair, Value(0.0))
        by_tau = [float(found[f"({tau},*)"].mean) for tau in range(5, N + 1)]
        rows[f"5 or 6 in two of three, {load}/s"] = Value(by_tau[0] + by_tau[1] > 2 / 3)
        bars[f"{load}/s"] = Curve(list(range(5, N + 1)), [100 * share for share in by_tau], style="bars")
    return Reduced(rows, {"tau": bars})


def figure5(points: Points) -> Reduced:
    return _distribution(points, {})


def figure6(points: Points) -> Reduced:
    some = points.where(law="2 ms")
    return _distribution(some, {"50": ("(5,1)", "(6,1)", "(6,2)", "(7,*)"),
                                "200": ("(5,1)", "(6,1)", "(6,2)", "(7,*)", "(8,*)")})  # fmt: skip


# ------------------------------------------------------------------------------------------------------ tables 4 and 5


def formula_1(joint: dict[str, float], interval: float) -> float:
    """The latency that the paper predicts for Poisson senders."""
    return interval * sum(
        share * sum(1 / (N - k) for k in range(omega, tau)) for (tau, omega), share in _pairs(joint).items()
    )


def formula_2(joint: dict[str, float], period: float) -> float:
    """And for periodic ones."""
    return period * sum(share * (tau - omega) / (N - omega + 1) for (tau, omega), share in _pairs(joint).items())


def _pairs(joint: dict[str, float]) -> dict[tuple[int, int], float]:
    return {(int(pair[0]), int(pair[2])): share for pair, share in joint.items()}


def _against(points: Points, formula: Any) -> dict[str, Value]:
    """The formula on what was measured of (tau, omega), over the latency that was measured."""
    rows = {}
    for load in _loads(points):
        interval = 1000 * N / float(load)
        for protocol, word in WORDS.items():
            some = points.where(load=load, protocol=protocol)
            rows[f"{word}, {load}/s"] = over(
                formula(point.figure("index", "joint"), interval) / point.figure("latency", "sender", "mean")
                for point in some
            )
    return rows


def _curves(rows: dict[str, Value], loads: list[str], tail: str = "") -> dict[str, Curve]:
    return {
        f"{word}{tail}": curve((float(load), rows[f"{word}, {load}/s"]) for load in loads) for word in WORDS.values()
    }


def table4(points: Points) -> Reduced:
    rows = _against(points.where("phases"), formula_2)
    others = _against(points.where("periodic"), formula_2)
    series = _curves(rows, _loads(points)) | _curves(others, _loads(points), ", other phases")
    rows |= _named("other phases", others)
    rows["the most formula (2) can give, in periods"] = Value(formula_2({"8,1": 1.0}, 1.0))
    return Reduced(rows, {"ratio": series})


def table5(points: Points) -> Reduced:
    same, others = _apart(points, "poisson")
    rows: dict[str, Value] = {}
    for law in same.values("law"):
        rows |= _named(law, _against(same.where(law=law), formula_1))
    plain, far = same.where(law="2 ms"), others.where(law="2 ms")
    main, rest = (_against(some, formula_1) for some in (plain, far))
    rows |= _named("other draws, 2 ms", rest)
    rows["at the sender alone, furthest from 1 (%)"] = Value(max(map(_at_sender, plain.where(protocol="toto"))))
    return Reduced(rows, {"ratio": _curves(main, _loads(plain)) | _curves(rest, _loads(far), ", other draws")})


def _at_sender(point: Point) -> float:
    """How far formula (1) is from the latency at the sender, where omega is 1, in %."""
    predicted = formula_1(point.figure("sender_index", "joint"), 1000 * N / float(point.axes["load"]))
    return 100 * abs(predicted / float(point.figure("latency", "sender", "mean")) - 1)


# ----------------------------------------------------------------------------------------------------------- the claims


def log(points: Points) -> Reduced:
    """Speedup over all-ack as the group grows."""
    rows: dict[str, Value] = {}
    series: dict[str, list[tuple[float, Value]]] = {}
    for regime in points.values("regime"):
        for n in points.values("n"):
            early, late = (points.where(regime=regime, n=n, protocol=protocol) for protocol in WORDS)
            if not len(early):
                continue
            slow = {point.seed: point.figures["latency"] for point in late}
            rows[f"{regime}, n = {n}"] = value = over(slow[p.seed] / p.figures["latency"] for p in early)
            series.setdefault(regime, []).append((float(n), value))
    grown = [float(value.mean) for _, value in series["Poisson, 0.01 ms"]]
    steps = [b - a for a, b in pairwise(grown)]
    rows["Poisson: grows with every doubling"] = Value(min(steps) > 0.3)
    rows["periodic: stays below 2"] = Value(max(float(value.mean) for _, value in series["periodic, 0.01 ms"]) < 2)
    return Reduced(rows, {"speedup": {regime: curve(pairs) for regime, pairs in series.items()}})


def phi(points: Points) -> Reduced:
    """ToTo's latency by its threshold, in narrow and wide causal orders."""
    rows, _ = _by_phi(points.where("drawn_wide"))
    others, series = _by_phi(points.where("wide"))
    return Reduced(rows | _named("other draws", others), {"latency": series})


def _by_phi(points: Points) -> tuple[dict[str, Value], dict[str, Curve]]:
    rows: dict[str, Value] = {}
    series: dict[str, list[tuple[float, Value]]] = {}
    best = True
    for delay in points.values("delay"):
        found = []
        for share in points.values("phi"):
            threshold = int(share[0])
            rows[f"phi = {threshold}, {delay}"] = value = points.where(delay=delay, phi=share).value(*AT_SENDER)
            found.append(float(value.mean))
            series.setdefault(delay, []).append((threshold, value))
        rows[f"omega, {delay}"] = points.where(delay=delay, phi="4/8").value("index", "omega")
        best = best and found[0] == min(found)
    rows["phi = n/2 is best everywhere"] = Value(best)
    return rows, {delay: curve(pairs) for delay, pairs in series.items()}


def timer(points: Points) -> Reduced:
    """Half of the members hardly talk: what the acknowledgement timer gains, and what it costs."""
    rows: dict[str, Value] = {}
    for case in points.values("case"):
        some = points.where(case=case)
        rows[f"{case}: latency"] = some.value("latency", "sender", "mean")
        rows[f"{case}: nulls a message"] = some.of(_nulls)
    alone = rows.pop("one sender, timer: latency", None)
    rows.pop("one sender, timer: nulls a message", None)
    if alone is not None:
        rows["a single sender is delivered within 20 ms"] = Value(0 < float(alone.mean) < 20)
    without, with_it = (float(rows[f"ToTo, {how}: latency"].mean) for how in ("no timer", "staggered"))
    rows["the timer gains a factor of five"] = Value(without > 5 * with_it)
    names = ("ToTo, no timer", "ToTo, after 20 ms", "ToTo, after 5 ms", "ToTo, staggered",
             "all-ack, no timer", "all-ack, after 20 ms", "all-ack, after 5 ms")  # fmt: skip
    series = {
        name: Curve([float(rows[f"{name}: nulls a message"].mean)], [float(rows[f"{name}: latency"].mean)])
        for name in names
        if f"{name}: latency" in rows
    }
    return Reduced(rows, {"cost": series})


def _nulls(point: Point) -> float:
    return float(point.figure("events").get("null", 0)) / float(point.figure("traffic", "originated"))


def _with_timer(name: str, after_ms: float) -> ProtocolInfo:
    """A shipped protocol whose members all speak after the same time, whatever T is."""
    shipped = SHIPPED[name]

    def factory(setup: Setup) -> Stack:
        quorum = setup.options.quorum if name == "toto" else (lambda n: n + 1)
        core = Toto(setup, quorum)
        core.ack_ns, core.stagger_ns = round(after_ms * 1_000_000), 0
        core.patience = core.ack_ns
        return ordered(setup, core)

    return structs.replace(shipped, factory=factory)


PROTOCOLS = {f"{name}_{after}ms": _with_timer(name, after) for name in SHIPPED for after in (5, 20)}
ITEMS = {
    "table1": table1, "figure1": figure1, "table2": table2, "table3": table3, "table4": table4, "table5": table5,
    "figure5": figure5, "figure6": figure6, "claim-log": log, "claim-phi": phi, "claim-timer": timer,
}  # fmt: skip
COMPUTE = {"candidates": candidates, "growth": sender_latency_ms, "drawn": drawn}
