"""Golden kinds of DPG: linearisation, detectors, and whole traces of one site."""

from __future__ import annotations

from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.protocols.dpg.channel import Buffers, Deadline, Numbers
from ordercast.protocols.dpg.graph import MARKED, Graph, Inconsistent
from ordercast.protocols.dpg.site import Cycles, Site, Telling


def _graph(told: dict[str, Any]) -> Graph:
    return Graph(told["v"], [(x, y, MARKED if mark else None) for x, y, mark in told["a"]])


def _told(graph: Graph) -> dict[str, Any]:
    arcs = sorted([x, y, 0 if mark is None else 1] for x, y, mark in graph.arcs())
    return {"v": sorted(graph.out), "a": arcs}


def _lin(graph: Graph) -> Any:
    try:
        graph.linearise()
    except Inconsistent:
        return "inconsistent"
    return _told(graph)


def lin(case: Case) -> list[str]:
    return differ("out", case["out"], _lin(_graph(case["g"])))


def merge(case: Case) -> list[str]:
    graph, report = _graph(case["g"]), case["report"]
    for vertex in report["v"]:
        graph.add(vertex)
    for x, y, mark in report["a"]:
        graph.arc(x, y, MARKED if mark else None)
    out = _lin(graph)
    missing = any(y not in graph.out[x] for x, y, _ in report["a"])
    return differ("out", case["out"], out) + differ("waive", case["waive"], missing)


def receive(case: Case) -> list[str]:
    graph = _graph(case["g"])
    graph.receive(case["z"], case["l_rec"], MARKED if case["contiguous"] else None)
    return differ("out", case["out"], _told(graph))


def detector_lan(case: Case) -> list[str]:
    buffers: Buffers[int] = Buffers(case["buffers"], case["policy"] == "overwrite")
    out: list[Any] = []
    for event in case["events"]:
        if event[0] == "arrive":
            buffers.arrive(event[1])
        elif event[0] == "own":
            buffers.own()
        else:
            fetched = buffers.fetch()
            out += [list(fetched)] if fetched is not None else []
    return differ("out", case["out"], out)


def detector_wan(case: Case) -> list[str]:
    detector = Deadline()
    span, out = case["delta_prime"], []
    for instant, message in sorted((sent + span, message) for message, sent in case["messages"]):
        delay = case["delays"][str(message)]
        if delay is None or delay > span:
            detector.missed(instant)
        else:
            out.append([message, detector.taken(instant)])
    return differ("out", case["out"], out)


def detector_sequencer(case: Case) -> list[str]:
    numbers, out = Numbers(), []
    for number, group, message in case["tags"]:
        if group == case["group"]:
            out.append([message, numbers.own(number)])
        else:
            numbers.other(number)
    return differ("out", case["out"], out)


def _telling(told: dict[str, Any]) -> Telling:
    return Telling(
        vertices=tuple(told["vertices"]),
        arcs=tuple((x, y, None if mark is None else frozenset(mark)) for x, y, mark in told["arcs"]),
        undelivered=tuple(told["undelivered"]),
        l_deliv=told["l_deliv"],
        lm=tuple(told["lm"]),
        rm=tuple((tag, tag) for tag in told["rm"]),
    )


def trace(case: Case) -> list[str]:
    cfg = case["cfg"]
    cycles = Cycles(cfg["deliv_cycle"], cfg["retr_cycle"], cfg["gc_cycle"], cfg["rep_keep"])
    site = Site(cycles, cfg["ordering_buffers"], set(), hears_self=cfg["hears_self"])
    given = []
    for number, (what, clock, *rest) in enumerate(case["events"]):
        match what:
            case "sent":
                site.sent(clock, rest[0], rest[0])
            case "message":
                given += site.message(clock, rest[0], rest[0], rest[1])
            case "report":
                given += site.report(clock, _telling(rest[1]))[0]
            case "poll":
                given += site.advance(clock)
            case "make_report":
                report = site.make_report(clock)
                got = {
                    "vertices": sorted(report.vertices),
                    "lm": sorted(report.lm),
                    "rm": [tag for tag, _ in report.rm],
                }
                expected = {key: rest[0][key] if key == "rm" else sorted(rest[0][key]) for key in got}
                found = differ(f"event {number} at {clock}, report", expected, got)
                if found:
                    return found
    return differ("delivered", case["delivered"], [["dummy" if g.body is None else "msg", g.tag] for g in given])


KINDS = {
    "lin": lin, "merge": merge, "receive": receive, "detector_lan": detector_lan, "detector_wan": detector_wan,
    "detector_sequencer": detector_sequencer, "trace": trace,
}  # fmt: skip
