"""The hybrid protocol: the figures of Rodrigues, Fonseca and Verissimo.

Processes A, B, C and D, E of the paper are members 5, 4, 3 and 2, 1 here, so that A is the token site.  Within a group
a way takes 20 ms, between the groups 20 + 500 + 20.  The table of the nine scenarios is lost; these fit all that the
text says of it.  Their order by the product's cores: distant.py.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ordercast.papers.distant import Group, Load
from ordercast.papers.points import Curve, Points, Reduced, Value, curve
from ordercast.papers.ways import chi_square
from ordercast.protocols.hybrid.assignment import assign

NAMES = "ABCDE"
MEMBER = dict(zip(NAMES, (5, 4, 3, 2, 1), strict=True))
RATES = {"H": 100.0, "M": 2.5, "L": 1.0}  # messages a second
NEAR_MS, FAR_MS = 20.0, 540.0
SCENARIOS = ("HLLLL", "HHLLL", "HHHLL", "HHHHL", "HHLHL", "HLLHL", "HLLHH", "LLLHH", "HHHHH")
S = 1_000_000_000  # nanoseconds
VARIANTS = {"token": "token, tickets at once", "piggy": "token, piggy-backed", "rate": "symmetric, rate-synchronised",
            "lamport": "symmetric, Lamport"}  # fmt: skip


def far(a: int, b: int) -> bool:
    """Whether two members are in different groups."""
    return (a > 2) != (b > 2)


def loads(word: str, seconds: float) -> Load:
    """HLLLL: A sends often, the others seldom."""
    by = dict(zip((MEMBER[name] for name in NAMES), word, strict=True))
    return Load(tuple(RATES[by[member]] for member in sorted(by)), seconds)


# ------------------------------------------------------------------------------------------------------- computations


def plain(parameters: dict[str, Any], seed: int) -> dict[str, float]:
    """Figure 1: all send equally often, every way takes `way_ms` with a deviation of 1 %."""
    law = chi_square(parameters["way_ms"], 0.01 * parameters["way_ms"])
    group = Group(
        parameters["protocol"], parameters.get("options", {}), lambda chance, a, b: law(chance),
        [Load((parameters["rate"],) * parameters["members"], parameters["seconds"])],
        source="quasi", nulls_ms=0.0, seed=seed,
    )  # fmt: skip
    group.run()
    return {"last": group.latency_ms(round(parameters["skip_s"] * S), group.end)}


def scenarios(parameters: dict[str, Any], seed: int) -> dict[str, list[float]]:
    """Figures 3 and 5: one scenario after the other; of each the mean latency, that of its last seconds, and when a
    role changed last in it; packets a second."""
    near, away = chi_square(NEAR_MS, 0.05**0.5), chi_square(FAR_MS, (0.4 + 2 * 0.05) ** 0.5)
    options = dict(parameters.get("options", {}))
    if parameters["protocol"] == "hybrid" and "active" in parameters:
        options["active"] = tuple(sorted(MEMBER[name] for name in parameters["active"]))
    seconds, skip, settled = parameters["seconds"], parameters.get("skip_s", 0.0), parameters.get("settled_s", 0.0)
    group = Group(
        parameters["protocol"], options, lambda chance, a, b: (away if far(a, b) else near)(chance),
        [loads(word, seconds) for word in parameters["loads"]],
        source=parameters["source"], nulls_ms=parameters.get("nulls_ms", 0.0), seed=seed,
        shipped=parameters.get("shipped", False),
    )  # fmt: skip
    group.run()
    found: dict[str, list[float]] = {"mean": [], "settled": [], "switch": []}
    for k in range(len(parameters["loads"])):
        begin, end = round(k * seconds * S), round((k + 1) * seconds * S)
        found["mean"].append(group.latency_ms(begin + round(skip * S), end))
        found["settled"].append(group.latency_ms(end - round(settled * S), end) if settled else 0.0)
        found["switch"].append(max([at - begin for at in group.switched if begin <= at < end], default=0) / 1e6)
    found["packets"] = [group.said / (group.schedule.now / S)]
    return found


def roles(parameters: dict[str, Any], seed: int) -> dict[str, str]:
    """Figure 2 on the nine scenarios; and what it leaves open (H16, H17)."""
    distance = {a: {b: FAR_MS if far(MEMBER[a], MEMBER[b]) else NEAR_MS for b in NAMES} for a in NAMES}
    out = {}
    for k, word in enumerate(SCENARIOS, 1):
        rates = {name: RATES[letter] for name, letter in zip(NAMES, word, strict=True)}
        out[f"scenario {k}"] = "".join(map(str, assign(rates, distance, NAMES).active))
    even = {"a": {"a": 0.0, "b": 100.0}, "b": {"a": 100.0, "b": 0.0}}
    for tie in ("passive", "active"):
        out[f"tie, {tie}"] = "".join(map(str, assign({"a": 20.0, "b": 10.0}, even, "ab", tie).active))  # type: ignore[arg-type]
    three = {"f": {"x": 100.0, "y": 100.0}, "x": {"f": 100.0, "y": 10.0}, "y": {"f": 100.0, "x": 10.0}}
    for order in ("fxy", "fyx"):
        out[f"order {order}"] = "".join(map(str, assign({"f": 100.0, "x": 20.0, "y": 20.0}, three, order).active))
    return out


# -------------------------------------------------------------------------------------------------------------- items


def figure1(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    series: dict[str, Curve] = {}
    lines: dict[str, list[tuple[float, Value]]] = {}
    some = points.where("ways")
    for variant, word in VARIANTS.items():
        for way in some.values("way_ms"):
            here = some.where(way_ms=way, variant=variant)
            if len(here):
                rows[f"{word}, D = {way}"] = here.value("last")
                lines.setdefault(word, []).append((float(way), rows[f"{word}, D = {way}"]))
    series = {word: curve(line) for word, line in lines.items()}
    stack = points.where("stack")
    for way in stack.values("way"):
        for protocol, word in (("token_site", "token, tickets at once"), ("symmetric", "symmetric, rate-synchronised")):
            rows[f"{word}, D = {way}, whole stack"] = stack.where(way=way, protocol=protocol).value(
                "latency", "last", "mean"
            )
    token, rate = lines["token, tickets at once"], lines["symmetric, rate-synchronised"]
    rows["token wins below t, the symmetric protocol above"] = Value(_first_wins(token, rate))
    if len(token) > 2:
        rows["crossing"] = Value(_crossing(token, rate))
    return Reduced(rows, {"latency": series})


def _first_wins(token: list[tuple[float, Value]], rate: list[tuple[float, Value]]) -> bool:
    """At the ends of the axis."""
    (_, low), (_, high) = token[0], token[-1]
    return bool(low.mean < rate[0][1].mean and high.mean >= 0.98 * rate[-1][1].mean)  # type: ignore[operator]


def _crossing(a: list[tuple[float, Value]], b: list[tuple[float, Value]]) -> float:
    """Where two lines between points meet."""
    gaps = [(x, float(one.mean) - float(two.mean)) for (x, one), (_, two) in zip(a, b, strict=True)]
    for (x0, g0), (x1, g1) in pairwise(gaps):
        if g0 <= 0 < g1:
            return x0 + (x1 - x0) * -g0 / (g1 - g0)
    return float("nan")


def figure2(points: Points) -> Reduced:
    return Reduced({name: Value(word) for name, word in points.only().figures.items()})


STATIC = {"token": "token, tickets at once", "piggy": "token, piggy-backed", "symmetric": "symmetric",
          "hybrid": "static hybrid"}  # fmt: skip


def figure3(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    lines: dict[str, list[tuple[float, Value]]] = {}
    for variant, word in STATIC.items():
        for k in points.values("scenario"):
            for source in points.values("source"):
                here = points.where(scenario=k, variant=variant, source=source)
                if len(here):
                    name = f"{word}, {source}"
                    lines.setdefault(name, []).append((float(k), here.value("mean", 0)))
                    rows[f"{name}, scenario {k}"] = here.value("mean", 0)
    mean = {
        variant: {k: float(value.mean) for k, value in lines.get(f"{word}, quasi", [])}
        for variant, word in STATIC.items()
    }
    best = {k: min(mean["token"][k], mean["symmetric"][k]) for k in mean["token"]}
    hybrid = mean["hybrid"]
    rows["hybrid within 3 % of the best of the others in 1 and 9"] = Value(
        all(abs(hybrid[k] / best[k] - 1) <= 0.03 for k in (1.0, 9.0))
    )
    rows["hybrid best, or within 2 %, everywhere"] = Value(all(hybrid[k] <= 1.02 * best[k] for k in hybrid))
    rows["token degrades as load moves away"] = Value(mean["token"][8.0] > 1.5 * mean["token"][1.0])
    if "poisson" in points.values("source"):
        away = [k for k in dict(lines["symmetric, poisson"]) if k != 9.0]
        rows["symmetric, Poisson: more than twice the hybrid in 1-8"] = Value(
            all(_at(lines["symmetric, poisson"], k) > 2 * _at(lines["static hybrid, poisson"], k) for k in away)
        )
    shown = ("token, tickets at once, quasi", "token, piggy-backed, quasi", "symmetric, quasi", "static hybrid, quasi")
    return Reduced(rows, {"latency": {name: curve(lines[name]) for name in shown if name in lines}})


def _at(line: list[tuple[float, Value]], x: float) -> float:
    return float(dict(line)[x].mean)


def figure5(points: Points) -> Reduced:
    rows: dict[str, Value] = {}
    series: dict[str, Curve] = {}
    for case in points.values("case"):
        here = points.where("sequence", case=case)
        count = len(here.points[0].figure("mean"))
        of = {what: [here.value(what, k) for k in range(count)] for what in ("mean", "settled")}
        series[case] = curve((float(k), value) for k, value in enumerate(of["mean"], 1))
        for k in range(count):
            rows[f"{case}, settled, scenario {k + 1}"] = of["settled"][k]
        if case == "quasi":
            flat = [float(value.mean) for value in of["settled"]]
            rows["quasi, settled: spread over the scenarios below 3 %"] = Value(max(flat) / min(flat) < 1.03)
            rows["quasi, settled: no worse than the token site, tickets at once"] = Value(
                all(_no_worse(points, k, of["settled"][k - 1]) for k in range(1, count + 1))
            )
        else:
            rows["Poisson: as good as the token site in 1-3"] = Value(
                all(_no_worse(points, k, of["mean"][k - 1]) for k in range(1, min(3, count) + 1))
            )
    for variant, word in (("token", "token, quasi (figure 3)"), ("symmetric", "symmetric, quasi (figure 3)")):
        static = points.where("static", variant=variant, source="quasi")
        series[word] = curve((float(k), static.where(scenario=k).value("mean", 0)) for k in static.values("scenario"))
    return Reduced(rows, {"latency": series})


def _no_worse(points: Points, k: int, value: Value) -> bool:
    token = points.where("static", scenario=str(k), variant="token", source="quasi")
    return float(value.mean) <= 1.02 * float(token.value("mean", 0).mean)


def beyond(points: Points) -> Reduced:
    """Nulls, another detector, roles chosen for all."""
    rows: dict[str, Value] = {}
    series: dict[str, Curve] = {}
    for case in points.where("nulls").values("case"):
        here = points.where("nulls", case=case)
        rows[case] = here.value("mean", 0)
        if case.startswith("symmetric"):
            rows[f"{case}: packets"] = here.value("packets", 0)
    for case in points.where("improved").values("case"):
        here = points.where("improved", case=case)
        values = [here.value("mean", k) for k in range(len(here.points[0].figure("mean")))]
        series[case] = curve((float(k), value) for k, value in enumerate(values, 1))
        for k, value in enumerate(values, 1):
            rows[f"{case}, scenario {k}"] = value
        flat = [float(value.mean) for value in values]
        rows[f"{case}: flat"] = Value(max(flat) <= 1.15 * min(flat))
    return Reduced(rows, {"latency": series})


ITEMS = {"figure1": figure1, "figure2": figure2, "figure3": figure3, "figure5": figure5, "claim-nulls": beyond}
COMPUTE = {"plain": plain, "scenarios": scenarios, "roles": roles}
