"""Shapes of the paper's figures, on simulated machines like its own; `benchmarks/dpg_figures.py` runs them longer."""

from __future__ import annotations

from dpg_figures import measured, paper

from ordercast.verify.quasi import bounds


def test_seven_sites_order_what_is_offered() -> None:
    """Published: above 740 messages a second, graphs rarely over 30 vertices, few bytes of reports."""
    figures = measured(paper(740, 3))
    assert figures.rate > 725 and figures.misses < 0.01, figures
    assert figures.vertices_95 <= 50 and figures.report_bytes <= 0.15, figures
    assert figures.halted == 0 and not figures.tally.violating and not figures.tally.conflicts, figures


def test_without_marks_under_own_messages_throughput_falls_to_a_third_or_so() -> None:
    """Published: one third or less, and not unlike no detector at all."""
    off = measured(paper(300, 4, marks="off", deliv_cycle=120))
    assert 0.35 <= off.rate / 740 <= 0.5, off


def test_who_is_present_adds_its_share() -> None:
    figures = measured(paper(98 * 3, 3, present=3))
    assert 0.9 <= figures.rate / (98 * 3) <= 1.1 and not figures.tally.violating, figures


def test_a_site_that_toggles_halts_nobody_and_leaks_little() -> None:
    """The rules of the specification leave one violation in some 1,800 messages at returns."""
    figures = measured(paper(640, 6, toggle=(7,)))
    assert figures.rate > 600 and figures.halted < 0.01, figures
    assert figures.tally.violating <= 2 and figures.tally.messages > 3_500, figures
    heard = measured(paper(640, 4, toggle=(7,), own=True))
    assert heard.rate > 600 and bounds(heard.tally.violating, heard.tally.messages)[0] < 1e-4, heard


def test_three_sites_that_come_and_go_leak_little() -> None:
    """Who returns must not take what another who returns offers, from before both, for new."""
    figures = measured(paper(600, 5, toggle=(5, 6, 7)))
    assert figures.rate > 400 and figures.tally.messages > 1_800, figures
    assert figures.tally.violating <= 0.01 * figures.tally.messages and not figures.tally.conflicts, figures


def test_detected_misses_are_repaired() -> None:
    """Two buffers: about one datagram in a hundred is lost, and seen to be."""
    figures = measured(paper(500, 3, buffers=2))
    assert 0.003 < figures.misses < 0.03, figures
    assert figures.tally.violating <= 2 and not figures.tally.conflicts, figures
