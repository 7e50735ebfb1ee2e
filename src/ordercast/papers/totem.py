"""Totem: the figures and claims of "Performance engineering of the Totem group communication system".

Machines are those of ``[hosts] model = "totem-paper"``; every processor has a full window of messages at each visit of
the token.  What is kept of a run: `totem_runs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, pairwise

import numpy as np

from ordercast.papers.points import Curve, Picture, Point, Points, Reduced, Value, curve
from ordercast.papers.totem_rings import draw_rings
from ordercast.papers.totem_runs import BUCKET_MS, FIGURES

WINDOW = "options.max_messages"
RING_NAMES = {"one": "one ring", "two": "two rings", "three": "three rings", "four": "four rings"}


def _rate(points: Points) -> Value:
    return points.value("ring", "rate")


def _at(points: Points, window: int) -> Points:
    return points.where(**{WINDOW: window})


def _along(points: Points, axis: str, of: str) -> list[tuple[float, Value]]:
    """(place on an axis, a figure of the ring there)."""
    return [(float(at), points.where(**{axis: at}).value("ring", of)) for at in points.values(axis)]


def _best(points: Points) -> Value:
    """Of the windows tried, the rate of the best."""
    rates = [_rate(_at(points, window)) for window in points.values(WINDOW)]
    return max(rates, key=lambda value: float(value.mean))


def _mean(value: Value) -> float:
    return float(value.mean)


def _falling(values: Iterable[float]) -> bool:
    found = list(values)
    return all(after < before for before, after in pairwise(found))


def figure1(points: Points) -> Reduced:
    rows, pictures = {}, []
    for rings in points.values("rings"):
        found = points.where(rings=rings).points[0].figure("shape")
        words = f"{len(found['rings'])} rings of {', '.join(str(len(each)) for each in found['rings'])}"
        rows[RING_NAMES[rings]] = Value(words)
        pictures.append(Picture(rings, RING_NAMES[rings], draw_rings(rings, found["rings"], found["pure"])))
    return Reduced(rows, pictures=pictures)


def figure2(points: Points) -> Reduced:
    rates = [(float(size), _rate(points.where(size=size))) for size in points.values("size")]
    use = [(size, _share(value, size)) for size, value in rates]
    at = dict(rates)
    rows = {f"{size} B": at[size] for size in (100.0, 1000.0) if size in at}
    rows = {name.replace(".0", ""): value for name, value in rows.items()}
    rows["utilisation at 1400 B"] = dict(use)[1400.0]
    rows["throughput falls with the size"] = Value(_falling(_mean(value) for _, value in rates))
    rows["utilisation grows with the size"] = Value(_falling(-_mean(value) for _, value in use))
    return Reduced(
        rows, {"throughput": {"messages/s": curve(rates)}, "utilisation": {"useful utilisation": curve(use)}}
    )


def _share(value: Value, size: float) -> Value:
    """Per cent of 100 Mbit/s."""
    factor = size * 8 / 1e8 * 100
    low, high = (None if bound is None else bound * factor for bound in (value.low, value.high))
    return Value(_mean(value) * factor, low, high, value.seeds)


def figure3(points: Points) -> Reduced:
    packed, single = points.where("packed"), points.where("sizes")
    with_it = [(float(size), _rate(packed.where(size=size))) for size in packed.values("size")]
    without = [(float(size), _rate(single.where(size=size))) for size in single.values("size")]
    rows = {f"{size:g} B packed": value for size, value in with_it if size in (4.0, 100.0)}
    gain = _mean(rows["100 B packed"]) / _mean(dict(without)[100.0])
    rows["packing gains at 100 B"] = Value(gain > 5)
    return Reduced(rows, {"throughput": {"packed": curve(with_it), "one message a datagram": curve(without)}})


def figure4(points: Points) -> Reduced:
    rates = _along(points, WINDOW, "rate")
    at = {int(window): _mean(value) for window, value in rates}
    best = max(at, key=lambda window: at[window])
    rows = {
        "13": dict(rates)[13.0],
        "best window": Value(best),
        "falls from 15 on": Value(all(rate < at[14] for window, rate in at.items() if window > 14)),
        "rises up to it": Value(_falling(-rate for window, rate in at.items() if window <= best)),
    }
    good = [window for window in at if at[window] >= 0.85 * at[best]]
    rows["7 to 14 are good"] = Value(all(window in good for window in at if 7 <= window <= 14))
    return Reduced(rows, {"throughput": {"messages/s": curve(rates)}})


def figure5(points: Points) -> Reduced:
    curves: dict[str, list[tuple[float, Value]]] = {}
    for who in points.values("who"):
        some = points.where(who=who)
        curves[f"{who} sending"] = [(float(n), _rate(some.where(members=n))) for n in some.values("members")]
    everybody, one = (dict(curves[f"{who} sending"]) for who in ("all", "one"))
    most = max(everybody)
    rows = {f"all of {most:g}": everybody[most], f"one of {most:g}": one[most]}
    rows |= {f"{word} of 2": found[2.0] for word, found in (("all", everybody), ("one", one)) if 2.0 in found}
    rows["one sender is slower"] = Value(all(_mean(one[n]) < _mean(everybody[n]) for n in everybody))
    rows["and the more so the more do not send"] = Value(_falling(_mean(value) for value in one.values()))
    return Reduced(rows, {"throughput": {name: curve(each) for name, each in curves.items()}})


def figure6(points: Points) -> Reduced:
    agreed, safe = points.where(service="agreed"), points.where(service="safe")
    curves = {
        "agreed": _along(agreed, "members", "latency"),
        "safe": _along(safe, "members", "latency"),
        "token rotation": _along(agreed, "members", "rotation"),
    }
    larger = {name: [(n, value) for n, value in each if n > 2] for name, each in curves.items()}
    nine = agreed.where(members=9)
    rows = {"agreed, nine": nine.value("ring", "latency"), "throughput, nine": _rate(nine)}
    rows["agreed below rotation below safe from three on"] = Value(_ordered(larger))
    rows["all grow with the ring"] = Value(
        all(_falling(-_mean(value) for _, value in each) for each in curves.values())
    )
    return Reduced(rows, {"latency": {name: curve(each) for name, each in curves.items()}})


def _ordered(curves: dict[str, list[tuple[float, Value]]]) -> bool:
    agreed, safe, rotation = (dict(curves[name]) for name in ("agreed", "safe", "token rotation"))
    both = [at for at in rotation if at in safe]
    return all(_mean(agreed[at]) < _mean(rotation[at]) < _mean(safe[at]) for at in both)


def _against(points: Points, of: str) -> list[tuple[float, Value]]:
    """A figure by the throughput, which the window makes; none beyond the highest throughput."""
    found: list[tuple[float, Value]] = []
    for window in points.values(WINDOW):
        some = _at(points, window)
        rate = _mean(_rate(some))
        if not found or rate > found[-1][0]:
            found.append((rate, some.value("ring", of)))
    return found


def figure7(points: Points) -> Reduced:
    agreed, safe = points.where("windows"), points.where("windows-safe")
    by_window = {
        "agreed": _along(agreed, WINDOW, "latency"),
        "safe": _along(safe, WINDOW, "latency"),
        "token rotation": _along(agreed, WINDOW, "rotation"),
    }
    rows = {"agreed below rotation below safe": Value(_ordered(by_window))}
    rows["safe, window 13"] = _at(safe, 13).value("ring", "latency")
    series = {
        "agreed": _against(agreed, "latency"),
        "safe": _against(safe, "latency"),
        "token rotation": _against(agreed, "rotation"),
    }
    return Reduced(rows, {"latency": {name: curve(each) for name, each in series.items()}})


def _in_rotations(point: Point) -> float:
    return float(point.figure("ring", "latency") / point.figure("ring", "rotation"))


def figure8(points: Points) -> Reduced:
    single = _best(points.where("single"))
    curves = {}
    for rings in ("two", "three"):
        some = points.where(rings)
        curves[rings] = [(float(p), _best(some.where(p=p))) for p in sorted(some.values("p"), key=float)]
    two, three = dict(curves["two"]), dict(curves["three"])
    rows = {"one ring": single, "two rings, p = 0.1": two[0.1], "three rings, p = 0.1": three[0.1]}
    rows["three above two above one at p = 0.1"] = Value(_mean(three[0.1]) > _mean(two[0.1]) > _mean(single))
    for rings, found in (("two", two), ("three", three)):
        rows[f"{rings} rings fall with p"] = Value(_falling(_mean(found[p]) for p in found))
    crossing = _crossing(curves["two"], _mean(single))
    if crossing is not None:
        rows["two rings cross one at p"] = Value(crossing)
    ends = [min(two), max(two)]
    series = {RING_NAMES[rings]: curve(each) for rings, each in curves.items()}
    series["one ring"] = Curve(ends, [_mean(single)] * 2)
    return Reduced(rows, {"throughput": series})


def _crossing(points: list[tuple[float, Value]], level: float) -> float | None:
    """Where a falling line meets a level."""
    for (p, above), (q, below) in pairwise(points):
        if _mean(above) >= level > _mean(below):
            return p + (q - p) * (_mean(above) - level) / (_mean(above) - _mean(below))
    return None


def _topologies(points: Points, service: str) -> Reduced:
    """Latency by throughput of one, two and three rings."""
    one = points.where("windows" if service == "agreed" else "windows-safe")
    curves = {"one ring": _against(one, "latency")}
    joined = points.where("joined", service=service)
    for rings in joined.values("rings"):
        curves[RING_NAMES[rings]] = _against(joined.where(rings=rings), "latency")
    rows = {}
    for worse, better in combinations(curves, 2):
        if curves[better][0][0] <= curves[worse][-1][0]:
            rows[f"{better} below {worse} at high load"] = Value(_below(curves[better], curves[worse]))
    return Reduced(rows, {"latency": {name: curve(each) for name, each in curves.items()}})


def _below(curve: list[tuple[float, Value]], other: list[tuple[float, Value]]) -> bool:
    """At the other's highest throughput, whose latency is lower."""
    rate, latency = other[-1]
    return float(np.interp(rate, [x for x, _ in curve], [_mean(y) for _, y in curve])) < _mean(latency)


def figure9(points: Points) -> Reduced:
    return _topologies(points, "agreed")


def figure10(points: Points) -> Reduced:
    return _topologies(points, "safe")


def _forty(points: Points, service: str) -> Reduced:
    rows, series = {}, {}
    means, deviations = [], []
    points = points.where(service=service)
    for rings in points.values("rings"):
        some = points.where(rings=rings)
        mean, deviation = some.value("waits", "mean"), some.value("waits", "sd")
        rows[f"{RING_NAMES[rings]}, mean"], rows[f"{RING_NAMES[rings]}, deviation"] = mean, deviation
        means.append(_mean(mean))
        deviations.append(_mean(deviation))
        series[RING_NAMES[rings]] = _density(some)
    if means:
        rows["deviation falls with more rings"] = Value(_falling(deviations))
        rows["mean does not rise"] = Value(all(b <= a for a, b in pairwise(means)))
    return Reduced(rows, {"density": series})


def _density(points: Points) -> Curve:
    """Over the seeds, per millisecond."""
    shares = [point.figure("waits", "shares") for point in points]
    longest = max(map(len, shares))
    total = [sum(each[k] if k < len(each) else 0.0 for each in shares) / len(shares) for k in range(longest)]
    return Curve([(k + 0.5) * BUCKET_MS for k in range(longest)], [share / BUCKET_MS for share in total])


def figure11(points: Points) -> Reduced:
    return _forty(points, "agreed")


def figure12(points: Points) -> Reduced:
    return _forty(points, "safe")


def rotation(points: Points) -> Reduced:
    found = [(float(n), points.where(members=n).value("idle_rotation")) for n in points.values("members")]
    return Reduced({f"{n:g} processors": value for n, value in found}, {"rotation": {"idle": curve(found)}})


def rule(points: Points) -> Reduced:
    agreed, safe = points.where(service="agreed"), points.where(service="safe")
    rows = {}
    for n in (2, 9):
        rows[f"safe, {n} processors"] = safe.where(members=n).of(_in_rotations)
        rest = agreed.where(members=n).of(
            lambda point: float(point.figure("ring", "latency") - point.figure("ring", "rotation") / 2)
        )
        rows[f"agreed less half a rotation, {n} processors"] = rest
    return Reduced(rows)


def loss(points: Points) -> Reduced:
    windows = points.values(WINDOW)
    shares = {window: _at(points, window).of(_per_cent) for window in windows}
    rows = {f"window {window}": value for window, value in shares.items()}
    return Reduced(rows)


def _per_cent(point: Point) -> float:
    return 100 * float(point.figure("resent"))


def window_two(points: Points) -> Reduced:
    two = _at(points, 2)
    return Reduced({"throughput": _rate(two), "latency": two.value("ring", "latency")})


def accelerated(points: Points) -> Reduced:
    rows, found = {}, []
    for behind, word in ((0, "plain"), (2, "accelerated")):
        some = points.where(**{"options.accelerated": behind})
        rate, latency = _rate(some), some.value("ring", "latency")
        rows[f"throughput, {word}"], rows[f"latency, {word}"] = rate, latency
        found.append((_mean(rate), _mean(latency)))
    (slow, long), (fast, short) = found
    rows["1.3 times the throughput at a lower latency"] = Value(fast >= 1.3 * slow and short < long)
    return Reduced(rows)


def skews(points: Points) -> Reduced:
    rows = {}
    for clocks in points.values("clocks"):
        some = points.where(clocks=clocks)
        for method in (1, 2):
            rows[f"method {method}, {clocks}"] = some.value("methods", f"method {method}")
    rows["clocks compared as they are are off by more than 1 ms"] = Value(
        all(point.figure("methods", "raw") > 1000 for point in points)
    )
    return Reduced(rows)


__all__ = ["FIGURES", "ITEMS"]

ITEMS = {
    "figure1": figure1, "figure2": figure2, "figure3": figure3, "figure4": figure4, "figure5": figure5,
    "figure6": figure6, "figure7": figure7, "figure8": figure8, "figure9": figure9, "figure10": figure10,
    "figure11": figure11, "figure12": figure12, "claim-rotation": rotation, "claim-rule": rule, "claim-loss": loss,
    "claim-window": window_two, "claim-accelerated": accelerated, "claim-methods": skews,
}  # fmt: skip
