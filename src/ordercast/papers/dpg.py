"""DPG: the figure and the claims of Konorski's paper, on the machines of its section 6 (`[hosts] model = "dpg-paper"`).

What is measured here and nowhere else: vertices of the graphs, the share of reports, messages out of the common order
over several runs together, and runs in which sites come and go all the time, whose list of faults is too long to write.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace

from ordercast.papers.figures import Run, halts, latency
from ordercast.papers.points import Curve, Points, Reduced, Value, curve
from ordercast.pipeline import numbers
from ordercast.protocols.dpg.packets import PACKETS, Message
from ordercast.sim.faults import Pause
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.types import Frame, Service
from ordercast.verify.columns import quasi
from ordercast.verify.columns.model import Run as Columns
from ordercast.verify.quasi import bounds
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES

FRAME_BYTES = 28  # of IP and UDP around a datagram, beside what the scenario's net adds
WINDOW_NS = 50_000_000
LOW = 0.6  # of the usual: a window below it counts
SCARCE = ("5-8", "4 s")  # units and time-out: elsewhere what is lost is hardly more than chance
MARKS = {"excused": "with Suspended Delivery", "off": "without", "none": "no detector"}
USUAL = "totem, T = 200 ms"


# -------------------------------------------------------------------------------------------------- figures of a run


def site(run: Run) -> dict[str, Any]:
    """Messages a second at a member that is there all the time, vertices, reports, misses, what violates the order."""
    c, (begin, end) = run.columns, run.window
    outcome = run.outcome
    away = {fault["member"] for fault in (run.header.scenario or {}).get("faults", ()) if "member" in fault}
    steady = [member for member in run.header.members if member not in away]
    rows = numbers.rows_of(c, Kind.DELIVER)
    rows = rows[run.counts(rows) & np.isin(c["member"][rows], steady)]
    rate = int(c["count"][rows].sum(dtype=np.int64)) / len(steady) / max(1, end - begin) * 1e9
    vertices = sorted(round(note["units"] ** 0.5) for note in run.notes("work")) or [0]
    return {
        "rate": rate,
        "vertices": {str(share): vertices[len(vertices) * share // 100] for share in (50, 95)},
        "over 30": sum(count > 30 for count in vertices) / len(vertices),
        "misses": outcome.drops["buffer"] / max(1, outcome.datagrams + outcome.drops["buffer"]),
        "halted": halts(run)["share"],
        "latency": latency(run)["all"].get("mean", 0.0),
        **_reports(run),
        **_violations(run),
    }


def _reports(run: Run) -> dict[str, float]:
    """The share of frames and bytes that reports take; each frame of the application is one datagram."""
    scenario = run.header.scenario or {}
    ends = [run.columns.sparse["detail"].get(row) or {} for row in numbers.rows_of(run.columns, Kind.END).tolist()]
    around = FRAME_BYTES + scenario["nets"][0].get("overhead_bytes", 0)
    frame = Frame(1, 1, 1, 1, int(Service.QUASI), bytes(4), bytes(scenario["sizes"][0]))
    each = Codec(PACKETS).size(Message(1000, 0, frame, 0)) + HEADER_BYTES + around
    told = [end["traffic"] for end in ends if "traffic" in end]
    datagrams = sum(end["transmitted"] for end in told)
    octets = sum(end.get("transmitted_bytes", 0) for end in told) + around * datagrams
    messages = len(numbers.rows_of(run.columns, Kind.ORIGINATE))
    return {"report frames": 1 - messages / datagrams, "report bytes": 1 - messages * each / octets}


def _violations(run: Run) -> dict[str, int]:
    found = quasi.tally(Columns(run.columns, run.header))
    return {"messages": found.messages, "violating": found.violating, "conflicts": found.conflicts}


def windows(run: Run) -> dict[str, Any]:
    """What member 1 delivers in each 50 ms: shares of them with nothing, and with less than is usual."""
    c, (begin, end) = run.columns, run.window
    rows = numbers.rows_of(c, Kind.DELIVER)
    rows = rows[c["member"][rows] == 1]
    edges = np.arange(begin, end, WINDOW_NS)
    counts = np.histogram(c["time_ns"][rows], edges, weights=c["count"][rows])[0]
    usual = float(np.median(counts))
    return {
        "none": float((counts == 0).mean()),
        "low": float(((counts > 0) & (counts < LOW * usual)).mean()),
        "rate": float(counts.mean()) * 1e9 / WINDOW_NS,
        "halted": halts(run)["share"],
        "at": ((edges[:-1] - begin) / 1e9).tolist(),
        "counts": [int(count) for count in counts],
    }


FIGURES = {"site": site, "windows": windows}


# ------------------------------------------------------------------------------------- runs that are not mere scenarios


def toggle(parameters: dict[str, Any], seed: int) -> dict[str, Any]:
    """The last `sites` of a scenario stand still for `period_ms`, are there for as long, and so on."""
    scenario = Scenario.from_dict(parameters["scenario"] | {"seed": seed}, "toggle")
    period_ms, faults = parameters["period_ms"], []
    for member in scenario.ids[-parameters["sites"] :]:
        at = scenario.load.start_ms + 100.0 + 37.0 * member
        while at + period_ms < scenario.limit_ms:
            faults.append(Pause(member=member, at_ms=at, for_ms=period_ms))
            at += 2 * period_ms
    return {"site": site(Run(run(replace(scenario, faults=tuple(faults)), level="full"), (0.06, 0.0)))}


COMPUTE = {"toggle": toggle}


# ------------------------------------------------------------------------------------------------------------- items


def figure3(points: Points) -> Reduced:
    present, offered = points.where("present"), points.where("offered")
    rows: dict[str, Value] = {}
    series: dict[str, Curve] = {}
    for word, label in MARKS.items():
        some = present.where(marks=word)
        series[label] = curve((int(n), some.where(present=n).value("site", "rate")) for n in some.values("present"))
    excused = present.where(marks="excused")
    for n in excused.values("present"):
        rows[f"{n} present, a site"] = _ratio(excused.where(present=n), float(n))
    for rate in ("740", "900"):
        if len(some := offered.where(case=rate)):
            rows[f"{rate} offered"] = some.value("site", "rate")
    full, without = offered.where(case="740"), present.where(marks="off", present="7")
    rows["misses at 740"] = full.value("site", "misses")
    most, rest = float(rows["740 offered"].mean), float(without.value("site", "rate").mean)
    rows["without / with, Deliv_Cycle 120"] = _ratio(without, most)
    rows["without falls"] = Value(rest < 0.6 * most)
    if len(longer := offered.where(case="without")):
        rows["without / with, Deliv_Cycle 200"] = _ratio(longer, most)
    if len(none := present.where(marks="none", present="7")):
        rows["no detector / without"] = _ratio(none, rest)
    return Reduced(rows, {"throughput": series})


def _ratio(points: Points, to: float) -> Value:
    return points.of(lambda point: point.figure("site", "rate") / to)


def vertices(points: Points) -> Reduced:
    some = points.where(case="740")
    return Reduced({
        "median": some.value("site", "vertices", "50"), "95 % below": some.value("site", "vertices", "95"),
        "graphs over 30": some.value("site", "over 30"),
    })  # fmt: skip


def violations(points: Points) -> Reduced:
    """Counted over all seeds together."""
    rows: dict[str, Value] = {}
    dial = []
    for case in points.values("case"):
        some = points.where(case=case)
        rows[f"{case}: violating"] = share = _share(some)
        if case.startswith("Deliv_Cycle"):
            dial.append((float(case.split()[1]), share))
    few = [float(share.mean) for _, share in dial]
    rows["a longer Deliv_Cycle leaves fewer"] = Value(few == sorted(few, reverse=True) and few[-1] < few[0])
    if len(some := points.where(case="misses")):
        rows["misses: datagrams missed"] = some.value("site", "misses")
        rows["misses: messages"] = Value(_sum(some, "messages"), seeds=len(some))
        rows["misses: violating at most (95 %)"] = Value(bounds(_sum(some, "violating"), _sum(some, "messages"))[1])
    return Reduced(rows, {"dial": {"violating": curve(dial)}})


def _rises(values: Iterable[Value]) -> bool:
    """Whether each is larger than the one before."""
    return all(float(a.mean) < float(b.mean) for a, b in pairwise(values))


def _share(points: Points) -> Value:
    """The share of violating messages, all seeds together, with the bounds of Clopper and Pearson."""
    violating, messages = _sum(points, "violating"), _sum(points, "messages")
    return Value(violating / messages, *bounds(violating, messages), len(points))


def _sum(points: Points, name: str) -> int:
    return sum(int(point.figure("site", name)) for point in points)


def reports(points: Points) -> Reduced:
    some = points.where(case="740")
    return Reduced({"of bytes": some.value("site", "report bytes"), "of frames": some.value("site", "report frames")})


def seventeen(points: Points) -> Reduced:
    return _many(points.where(sites="17"))


def fifty(points: Points) -> Reduced:
    return _many(points.where(sites="50"))


def _many(points: Points) -> Reduced:
    return Reduced({"delivered": points.value("site", "rate"), "violating": _share(points)} if len(points) else {})


def returns(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    for who in points.values("who"):
        some = points.where(who=who)
        rows[f"{who}: delivered"], rows[f"{who}: halted"] = (some.value("site", name) for name in ("rate", "halted"))
        rows[f"{who}: messages"] = Value(_sum(some, "messages"), seeds=len(some))
        rows[f"{who}: violating"] = _share(some)
        rows[f"{who}: violating at most (95 %)"] = Value(bounds(_sum(some, "violating"), _sum(some, "messages"))[1])
    return Reduced(rows)


def toggling(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    shares: dict[str, list[tuple[float, Value]]] = {"halted": [], "low": []}
    over: dict[str, Curve] = {}
    for case in points.values("case"):
        some = points.where(case=case)
        rows[f"{case}: halted"], rows[f"{case}: low"] = (some.value("windows", name) for name in shares)
        rows[f"{case}: delivered"] = some.value("windows", "rate")
        if case.startswith("totem"):
            for name, at in shares.items():
                at.append((float(case.split()[3]), rows[f"{case}: {name}"]))
        if case in (USUAL, "dpg"):
            first = some.points[0].figures["windows"]
            over[case] = Curve(first["at"], [count * 1e9 / WINDOW_NS for count in first["counts"]])
    still, never = float(rows[f"{USUAL}: halted"].mean), float(rows["dpg: halted"].mean)
    rows["totem is halted, dpg is not"] = Value(still > 0.05 and never == 0.0)
    return Reduced(rows, {"shares": {name: curve(at) for name, at in shares.items()}, "windows": over})


def sharing(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    series: dict[str, Curve] = {}
    for need in points.values("need"):
        for patience in points.values("patience"):
            some = points.where(need=need, patience=patience)
            none = _operations(some.where(load_sharing_violating=0.0))
            lost = [
                (100 * rate, Value(100 * (1 - _operations(some.where(load_sharing_violating=rate)) / none)))
                for rate in some.values("load.sharing.violating")
            ]
            rows[f"{need} units, {patience}: lost at 5 %"] = lost[1][1]
            if (need, patience) == SCARCE:
                rows[f"{need} units, {patience}: more with the rate"] = Value(_rises(value for _, value in lost))
            series[f"{need} units, {patience}"] = curve(lost)
    return Reduced(rows, {"lost": series})


def _operations(points: Points) -> float:
    return sum(point.figure("events", "operation") for point in points) / len(points)


ITEMS = {
    "figure3": figure3,
    "claim-vertices": vertices,
    "claim-violations": violations,
    "claim-reports": reports,
    "claim-17": seventeen,
    "claim-toggling": toggling,
    "claim-sharing": sharing,
    "claim-returns": returns,
    "claim-50": fifty,
}
