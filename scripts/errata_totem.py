"""Errata of the Totem paper as pictures: the cases of tests/totem/literal.py, by the letter and as built."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from errata_draw import curves
from tests.totem import literal
from tests.totem.literal import Step

from ordercast.papers.draw import schedule
from ordercast.protocols.totem.guarantee import Merge, Row
from ordercast.protocols.totem.lamport import Lamport
from ordercast.protocols.totem.ring import Ring

Event = tuple[int, int, str, str]


def _up(
    name: str, heard: Sequence[tuple[int, str]], wrong: list[list[str]], right: list[list[str]], notes: list[str]
) -> str:
    """What comes of two rings, (ring, word) step by step, and what goes up by the letter and here."""
    events: list[Event] = [(2 * k, ring, "recv", word) for k, (ring, word) in enumerate(heard)]
    for lane, kind, found in ((2, "crash", wrong), (3, "send", right)):
        events += [(2 * k, lane, kind, " ".join(out)) for k, out in enumerate(found) if out]
    return schedule(name, ["ring 1", "ring 2", "letter", "here"], events, [], notes)


def t1() -> str:
    wrong, right = literal.t1(literal.Less), literal.t1(Merge)
    assert wrong == [[], [], ["a"], []] and right == [[], ["a"], [], ["b"]]
    return _up("errata-totem-t1", [(0, "a 5"), (1, "up to 9"), (0, "b 12"), (1, "up to 15")], wrong, right, [
        "Above: what comes of each ring, with its timestamp. Below: what is delivered then.",
        "    By the letter a waits for b, the next of its own ring, and b for the one after it.",
    ])  # fmt: skip


def t2() -> str:
    wrong, right = literal.t2(literal.MessagesOnly), literal.t2(Merge)
    assert wrong == [[], [], [], []] and right[-1] == ["a", "b"]
    return _up("errata-totem-t2", [(0, "a 5"), (0, "b 8"), (0, "token 10"), (1, "token 12")], wrong, right, [
        "Nothing is sent on ring 2. By the letter only messages raise its entry, and nothing is ever delivered.",
        "    Here its token does: nothing of ring 2 comes any more up to its timestamp.",
    ])  # fmt: skip


def t3() -> str:
    found = {kind: [literal.t3(kind, first) for first in "ab"] for kind in (literal.Arrival, Merge)}
    assert found[literal.Arrival] == [["a", "b"], ["b", "a"]] and found[Merge] == [["a", "b"], ["a", "b"]]
    events: list[Event] = [(0, 0, "recv", "a 5"), (2, 0, "recv", "b 5"), (0, 1, "recv", "b 5"), (2, 1, "recv", "a 5")]
    for lane in (0, 1):
        events.append((5, lane, "crash", "letter: " + " ".join(found[literal.Arrival][lane])))
        events.append((8, lane, "send", "here: " + " ".join(found[Merge][lane])))
    return schedule("errata-totem-t3", ["one", "other"], events, [], [
        "a of ring 1 and b of ring 2 have the same timestamp; two members hear them in different order.",
        "    Right: the order is (timestamp, ring).",
    ])  # fmt: skip


def t4() -> str:
    (wrong, why), (right, taken) = literal.t4(literal.Exceeding), literal.t4(Lamport)
    assert (wrong, why) == (5, "stamp") and (right, taken) == (6, "")
    events: list[Event] = [(0, 0, "recv", "token 5"), (2, 0, "crash", f"f {wrong}"), (5, 0, "send", f"f {right}"),
                           (0, 1, "recv", "token 5"), (3, 1, "crash", "too late"), (6, 1, "send", "taken")]  # fmt: skip
    return schedule("errata-totem-t4", ["sender", "other"], events, [], [
        "The sender's clock is 5, and it takes a token stamped 5, which does not exceed it. Another had that token:",
        f"    everything up to 5 is there. Red, by the letter: f is stamped {wrong}. Blue, here: {right}.",
    ])  # fmt: skip


def t5() -> str:
    (one, other, stamps), (same, also, carried) = literal.t5(carried=False), literal.t5(carried=True)
    assert one == ["x", "y"] == same == also and other == ["y", "x"]
    events: list[Event] = [(2, 0, "view", "new ring"),
                           (0, 0, "recv", f"x {stamps[0]}"), (4, 0, "recv", f"y {stamps[1]}"),
                           (0, 1, "recv", f"x {stamps[0]}"), (4, 1, "recv", f"y {stamps[1]}"),
                           (1, 0, "send", "x up"), (6, 0, "send", "y up"),
                           (6, 1, "crash", " ".join(other))]  # fmt: skip
    return schedule("errata-totem-t5", ["one", "other"], events, [], [
        "Another waits for word of a second ring before it delivers x; by then it has y as well.",
        f"    A clock that begins anew with the ring stamps y {stamps[1]}:"
        f" one delivers {' '.join(one)}, the other {' '.join(other)}.",
        f"    Here the clock is carried on, y is stamped {carried[1]}: both deliver {' '.join(also)}.",
    ])  # fmt: skip


def _steps(name: str, lanes: list[str], steps: list[Step], wrong: int | None, notes: list[str]) -> str:
    """A run step by step; `wrong` is the step that must not be."""
    events: list[Event] = []
    for k, step in enumerate(steps):
        sends = step.word.startswith(("sends", "f again", "forwards"))
        kind = "crash" if k == wrong else "send" if sends else "recv"
        events.append((k, lanes.index(step.who), kind, step.word))
    return schedule(name, lanes, events, [], notes)


def t6() -> str:
    wrong, right = literal.t6(literal.OnReceipt), literal.t6(Row)
    has, delivers = Step("4", "has m"), Step("1", "delivers m")
    assert wrong.index(delivers) < wrong.index(has) and right.index(delivers) > right.index(has)
    last = max(k for k, step in enumerate(right) if step.who == "3")
    assert right.index(delivers) == last + 1
    return _steps("errata-totem-t6", ["1", "3", "4"], wrong, wrong.index(delivers), [
        "1 is on ring 1, the gateway 3 on both, 4 on ring 2. m is to be safe; it is lost on its way from 3 to 4.",
        "    By the letter 3 reports that m was received on ring 2, and 1 delivers it (red): 4 does not have it.",
        "    Here 3 reports what is safe on ring 2, and 1 delivers m at the last visit of 3 that is shown.",
    ])  # fmt: skip


def t7() -> str:
    wrong, right = literal.t7(literal.Once), literal.t7(Ring)
    first = next(k for k, step in enumerate(right) if step.word.endswith(": f"))
    assert wrong[1] == Step("2", "aru 1: f") and first > 4
    return _steps("errata-totem-t7", ["1", "2", "3"], wrong, 1, [
        "Visits of the token, with aru as it leaves. 1 sends f, to be safe; f does not reach 3, which lowers aru.",
        "    By the letter the mark came to 2 without being lowered: 2 delivers f (red) when 3 does not have it.",
        "    Here it must have been as high when the token left last time, too:"
        f" {right[first].who} is the first to deliver f, after {first} visits.",
    ])  # fmt: skip


def t8() -> str:
    wrong, right = literal.t8(own_counts=True), literal.t8(own_counts=False)
    assert wrong[:4] == [10, 0, 10, 0] and set(right) == {10}
    visits = list(range(1, len(wrong) + 1))
    return curves("errata-totem-t8", "visit of the token at a lone sender", "frames sent", {
        "by the letter": (visits, wrong), "here": (visits, right),
    })  # fmt: skip


def t9() -> str:
    wrong, right = literal.t9(literal.Obliging), literal.t9(Ring)
    assert [step.who for step in wrong if step.word == "f again"] == ["2"] * 4
    assert [step.who for step in right if step.word == "f again"] == ["2", "3"]
    return _steps("errata-totem-t9", ["1", "2", "3"], wrong, None, [
        "Visits of the token. 2's multicasts do not reach 1; 3 has f. By the letter 2 serves every request, in vain.",
        "    Here 2 leaves what it sent at its last visit to another, and 3 sends f when it is asked for again.",
    ])  # fmt: skip


def t10() -> str:
    backs = list(range(10, 101, 10))
    found = [literal.t10(back) for back in backs]
    assert all(here == literal.LATENCY_US for _, here in found) and found[-1][0] == literal.LATENCY_US < found[0][0]
    x = "answers to 100 messages (clocks 5 ms apart, latency 100 us)"
    return curves("errata-totem-t10", x, "mean latency (us)", {
        "by the letter": (backs, [letter for letter, _ in found]), "here": (backs, [here for _, here in found]),
    })  # fmt: skip


def t11() -> str:
    holds = [tenths / 10 for tenths in range(1, 51, 2)]
    letter = [literal.t11(int(hold * 1e9), 1e18) for hold in holds]
    here = [(hold, found) for hold in holds if (found := literal.t11(int(hold * 1e9), literal.HOLD_MAX_NS)) is not None]
    errors = [abs(found - literal.LATENCY_US) for found in letter if found is not None]
    assert len(errors) == len(holds) and errors[-1] > 100 and 0 < len(here) < len(holds)
    return curves("errata-totem-t11", "time between reception and answer (s), clocks 50 ppm apart", "error (us)", {
        "by the letter": (holds, errors),
        "here": ([hold for hold, _ in here], [abs(found - literal.LATENCY_US) for _, found in here]),
    })  # fmt: skip


PICTURES: dict[str, Callable[[], str]] = {
    "T1": t1, "T2": t2, "T3": t3, "T4": t4, "T5": t5, "T6": t6, "T7": t7, "T8": t8, "T9": t9, "T10": t10, "T11": t11,
}  # fmt: skip
