"""TOMP's figures and claim, quickly; that a protocol without anticipation is seen; what the models rest on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ordercast.papers import book, reproduce
from ordercast.papers.judge import OUTSIDE
from ordercast.papers.stamping import BOOKS, Hosts, Lines, Steps, Timed, means
from ordercast.papers.tomp import LAWS


def test_shapes_and_signs_hold(tmp_path: Path) -> None:
    results = reproduce.run(book.choose(["tomp"], [], [], []), tmp_path, quick=True, workers=1)
    bad = [(result.item.words, line.name, line.ours) for result in results for line in result.lines
           if line.verdict == OUTSIDE]  # fmt: skip
    assert bad == [] and all(result.ok for result in results)
    exact = Counter(line.verdict for result in results for line in result.lines
                    if line.tolerance == "exact" and line.ours is not None)  # fmt: skip
    assert exact["within"] >= 50, "stamps and vectors of the example"
    assert exact["explained"] == 11, "E4 to E6: the paper prints others"


def test_no_anticipation_is_seen(tmp_path: Path) -> None:
    def plant(paper: str, scenario: dict[str, Any]) -> dict[str, Any]:
        if scenario.get("protocol") == "tomp":
            return scenario | {"protocol": "abcast"}
        return scenario | {"anticipate": False} if "anticipate" in scenario else scenario

    results = reproduce.run(
        book.choose(["tomp"], [], [2, 3], ["latency"]), tmp_path, quick=True, workers=1, plant=plant
    )
    wrong = {line.name for result in results for line in result.lines if line.verdict == OUTSIDE}
    assert {
        "t2 is shorter by TOMP for some",
        "after the first validation all three hosts deliver m1",
        "t2 falls by a tenth at least, in every model",
        "steps: the total falls by 4 % at least",
    } <= wrong


@pytest.mark.parametrize("drive", ["timed", "steps"])
@pytest.mark.parametrize("queue", ["letter", "lines"])
def test_all_hosts_deliver_everything_in_one_order_and_anticipation_is_never_later(drive: str, queue: str) -> None:
    """Equal schedules: the same finals; t2 of who knows all <= TOMP's <= ABCAST's, for every message and host."""
    found = []
    for anticipate in (False, True):
        hosts = Hosts(4, BOOKS[queue], anticipate=anticipate)
        Timed(hosts, LAWS["lan"], 200.0, 150, 7) if drive == "timed" else Steps(hosts, 12, 150, 7)
        found.append(hosts)
    plain, early = found
    least = plain.clairvoyant()
    assert len(plain.times) == 4 * 150 and plain.times.keys() == early.times.keys()
    for key, times in plain.times.items():
        assert (times.came, times.decided) == (early.times[key].came, early.times[key].decided)
        assert least[key] <= early.times[key].delivered <= times.delivered
    for hosts in found:
        finals = {mid: votes.final for mid, votes in hosts.votes.items()}
        for host in range(4):
            by_time = sorted(finals, key=lambda mid: (hosts.times[host, *mid].delivered, finals[mid]))
            assert by_time == sorted(finals, key=lambda mid: finals[mid])


def test_a_decided_message_does_not_wait_for_a_later_one_of_its_sender() -> None:
    """By the letter it does: the second message of host 1 stands before the first, whose stamp has become larger."""
    held = {}
    for name, make in BOOKS.items():
        book_ = make(2, 2)
        book_.propose(0)
        book_.propose(0)
        book_.decide(0, 1, (5, 1))
        held[name] = not book_.deliverable()
    assert held == {"letter": True, "lines": False}


@pytest.mark.parametrize(
    ("n", "rate", "t1", "t2", "cut", "tolerance"), [(5, 80.0, 3.87, 0.38, 36, 6), (10, 40.0, 4.32, 0.44, 49, 8)]
)
def test_what_anticipation_cuts_off_on_a_lan(
    n: int, rate: float, t1: float, t2: float, cut: int, tolerance: int
) -> None:
    """The reference's LAN: 1 ms + Exp(0.5 ms); two seeds here, four by `ordercast papers tomp --claim latency`."""
    sums = {}
    for anticipate in (False, True):
        found = []
        for seed in (1, 2):
            hosts = Hosts(n, Lines, anticipate=anticipate)
            Timed(hosts, LAWS["lan"], rate, 700, seed)
            found.append(means(hosts))
        sums[anticipate] = {name: sum(each[name] for each in found) / 2 for name in ("t1", "t2")}
    assert sums[False]["t1"] == pytest.approx(t1, rel=0.05) and sums[True]["t1"] == sums[False]["t1"]
    assert sums[False]["t2"] == pytest.approx(t2, rel=0.2)
    assert 100 * (1 - sums[True]["t2"] / sums[False]["t2"]) == pytest.approx(cut, abs=tolerance)
