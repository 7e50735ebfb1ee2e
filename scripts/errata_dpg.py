"""Errata of the DPG paper as pictures: the cases of tests/dpg/literal.py, by the letter and as built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from errata_draw import Arc, beats, curves, precedence, wire
from tests.dpg import literal
from tests.dpg.literal import Arcs

from ordercast.protocols.dpg.channel import Buffers, Timing
from ordercast.protocols.dpg.flow import MessageCycle, Reports
from ordercast.protocols.dpg.pace import Pace
from ordercast.protocols.dpg.site import Site

TICK_MS = 5


def _drawn(arcs: Arcs, wrong: Iterable[tuple[Any, Any]] = ()) -> list[Arc]:
    bad = set(wrong)
    kinds = [(x, y, "plain" if mark is None else "excused" if mark else "marked") for x, y, mark in arcs]
    return [(x, y, f"{kind} wrong" if (x, y) in bad else kind) for x, y, kind in kinds]


def _names(found: Iterable[Any]) -> str:
    return " ".join(map(str, found)) or "nothing"


def e1() -> str:
    (wrong, early), (right, late) = literal.e1(one_order=False), literal.e1(one_order=True)
    assert early == [1, 3, 2] and late == [1, 2, 3]
    return precedence("errata-dpg-e1", [
        ("The report is heard between 1 and 2", (1, 2, 3), _drawn(wrong, {(3, 2)})),
        ("It is heard in its place, after 3", (1, 2, 3), _drawn(right)),
    ], [
        "Sent: 1, 2, 3, then a report of a site that missed 2. Heard here: 1, 2 and the report, not 3.",
        f"    by the letter, with one order of messages alone: {_names(early)}",
        f"    here, with one order of all datagrams: {_names(late)}",
    ])  # fmt: skip


def e2() -> str:
    wrong, right = literal.e2(literal.OneBit), literal.e2(Buffers)
    assert [mark is not None for *_, mark in wrong] == [False, True] != [mark is not None for *_, mark in right]
    return precedence("errata-dpg-e2", [
        ("By the letter: one bit of the site", (1, 2, 3, 4), _drawn(wrong, {(2, 4)})),
        ("Here: a bit of each slot", (1, 2, 3, 4), _drawn(right)),
    ], [
        "Two buffers. 1 is fetched; then 2, 3 and 4 come, and 4 overwrites 3; then 2 and 4 are fetched.",
        "    The bit is set when 2 is fetched, and reset by that: 4 is taken to be right after 2, and 3 lies between.",
    ])  # fmt: skip


def e3() -> str:
    wrong, right = literal.e3(literal.Apart), literal.e3(Timing)
    assert not any(wrong) and right == [False, True, True, False]
    return wire("errata-dpg-e3", literal.SPANS, [("by the letter", wrong), ("here", right)], [
        "Four frames of 80 us, the shortest there are. By the letter receptions must be less than 80 us apart.",
        "    Frames that follow each other at once are not; here less than 80 us may lie idle between two of them.",
    ])  # fmt: skip


def e4() -> str:
    printed, right = literal.e4()
    good = {(x, y): mark for x, y, mark in right}
    assert printed != set(good) and (2, 1) in printed
    found: Arcs = [(x, y, good.get((x, y))) for x, y in sorted(printed)]
    vertices = tuple(range(1, 6))
    return precedence("errata-dpg-e4", [
        ("G: 3 is before 5, and 4 right before 5", vertices, _drawn(literal.G4)),
        ("lin(G)", vertices, _drawn(right)),
        ("lin(G) by the formula", vertices, _drawn(found, printed - set(good))),
    ], ["Thick: marked. Red: arcs that the formula gives and that are not in lin(G)."])  # fmt: skip


def e5() -> str:
    after = literal.e5()
    gone = {(x, y) for x, y, _ in literal.G5} - {(x, y) for x, y, _ in after}
    assert gone == {(1, 3)}
    return precedence("errata-dpg-e5", [
        ("G, before 4 is heard", (1, 2, 3), _drawn(literal.G5, gone)),
        ("lin(G and what the reception of 4 adds)", (1, 2, 3, 4), _drawn(after)),
    ], [
        "4 is heard, right after 3 (thick: marked). 2 is before 4 as well, and so before 3:",
        "    the way over 2 takes the place of the arc from 1 to 3 (red). The order stays, the arc does not.",
    ])  # fmt: skip


def e6() -> str:
    wrong, right = literal.e6(literal.SUCCESSORS), literal.e6(Site)
    assert wrong == ["L", "b", "a"] and right == ["L", "b", "a", "c"]
    return precedence("errata-dpg-e6", [("The graph of one site", ("L", "a", "b", "c"), _drawn(literal.G6))], [
        "L was delivered. Nothing more is heard; whoever waits Deliv_Cycle delivers the larger tag first: b, then a.",
        f"    by the letter: {_names(wrong)}; then L_DELIV is a, which c does not follow: c never comes",
        f"    here: {_names(right)}",
    ])  # fmt: skip


def e7() -> str:
    wrong, right = literal.e7("dpg_reports_forget"), literal.e7()
    assert wrong[-1][1] == right[-1][1] and wrong[-1][0] > right[-1][0] + 400
    return curves("errata-dpg-e7", "time (ms)", "messages delivered", {
        "the sender, by the letter": _columns(wrong), "the sender, here": _columns(right),
    })  # fmt: skip


def _columns(points: list[tuple[float, int]]) -> tuple[list[float], list[float]]:
    """As steps: nothing changes until the next point."""
    steps, count = [(0.0, 0)], 0
    for x, y in points:
        steps += [(x, count), (x, y)]
        count = y
    return [x for x, _ in steps], [float(y) for _, y in steps]


def e8() -> str:
    wrong, right = literal.e8(literal.Together), literal.e8(Reports)
    assert len(wrong) == 4 * len(right)
    lanes = []
    for word, found, letter in (("by the letter", wrong, True), ("here", right, False)):
        lanes += [(f"{word}, site {k + 1}", [at for at, who in found if who == k], letter) for k in range(4)]
    return beats("errata-dpg-e8", lanes, 20, "messages heard; a dot is a report")


def e9() -> str:
    wrong, right = literal.e9(literal.Unlimited), literal.e9(Reports)
    assert len(wrong) == 20 and right == [0, 10]
    lanes = [("by the letter", wrong, True), ("here", right, False)]
    return beats("errata-dpg-e9", lanes, 20, "reports of others heard; a dot is an own one")


def e10() -> str:
    wrong, right = literal.e10(literal.Largest), literal.e10(MessageCycle)
    assert min(wrong) == max(wrong) == 10.0 and right[-1] < 1
    rounds = list(range(0, len(wrong), 10))
    return curves("errata-dpg-e10", "decrements at each of two sites", "pause between own messages (ms)", {
        "by the letter": (rounds, wrong[::10]), "here": (rounds, right[::10]),
    })  # fmt: skip


def e11() -> str:
    wrong, right = literal.e11(literal.SILENT), literal.e11(Pace)
    assert wrong is None and right is not None
    lanes: list[tuple[str, list[int], bool]] = [("by the letter", [], True), ("here", [right // TICK_MS], False)]
    return beats(
        "errata-dpg-e11",
        lanes,
        24,
        "silence after a message that came after a gap, 5 ms each; a dot: it is delivered",
    )


def e12() -> str:
    (wrong, soon, late), (right, waits, whole) = literal.e12(literal.SUSPENDED), literal.e12(Site)
    assert soon + late == ["x", "y", "z"] and waits + whole == ["x", "z", "y"]
    return precedence("errata-dpg-e12", [
        ("What the sender of z reports, by the letter", ("x", "z", "y"), _drawn(wrong, {("x", "y")})),
        ("Here: right after, unless z lies between", ("x", "z", "y"), _drawn(right)),
    ], [
        "Sent: x, z, y. The sender of z does not hear itself; a third site misses z and hears this report.",
        f"    by the letter the third delivers {_names(soon)}, and then {_names(late)}",
        f"    here {_names(waits)}; and {_names(whole)} as soon as somebody tells of z",
    ])  # fmt: skip


PICTURES: dict[str, Callable[[], str]] = {
    "E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "E7": e7, "E8": e8, "E9": e9, "E10": e10, "E11": e11,
    "E12": e12,
}  # fmt: skip
