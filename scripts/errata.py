"""The page of errata: every error found in the papers, with its smallest counterexample, run and drawn.

What the letter of a paper does is run by the variants of the tests (tests/mutants, tests/toto, tests/hybrid), beside
what the product does.  A case that does not come out as its sentence says makes the page fail, not lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import errata_dpg
import errata_hybrid
import errata_tomp
import errata_totem
from msgspec import Struct
from tests.mutants.cases import CASES, Case, messages, said
from tests.mutants.votes import LETTERS, HalfQuorum, NoClosing
from tests.toto.every_way import drained

from ordercast.conformance.golden_toto import name_of, walk
from ordercast.papers.draw import dag
from ordercast.protocols.toto.ballots import Ballots


class Erratum(Struct):
    """One error: what is printed, what is right, how it is shown."""

    id: str
    printed: str
    right: str
    see: str
    picture: Callable[[], str] | None = None  # SVG; None: wording, or an error of arithmetic that a row shows


# ---------------------------------------------------------------------------------------------------------------- ToTo


def _shown(name: str, case: Case, notes: list[str]) -> str:
    rows = []
    for word in case.messages.split():
        message, _, acks = word.partition("<")
        rows.append((message.rstrip("'"), [each for each in acks.split(",") if each], message.endswith("'")))
    classes = {message: "causal" if causal else "agreed" for message, _, causal in rows}
    lanes = [chr(ord("A") + rank) for rank in range(case.n)]
    return dag(f"errata-{name}", lanes, [(message, acks) for message, acks, _ in rows], {}, classes, notes)


def _told(names: list[str]) -> str:
    return " ".join(names) or "nothing"


def letter(name: str, form: type[Ballots] | None = None) -> Callable[[], str]:
    """The causal order; what two machines deliver by the letter, and by the rules here."""

    def picture() -> str:
        case = CASES[name]
        wrong = [said(case, order, form or LETTERS[name]) for order in (case.one, case.other)]
        right = [said(case, order, Ballots) for order in (case.one, case.other)]
        shorter = min(map(len, wrong))
        assert wrong[0][:shorter] != wrong[1][:shorter] or wrong[0] == [] or wrong != right, name
        return _shown(name, case, [
            f"Q = {case.quorum}. One machine receives {case.one.replace('crash:', 'crash of ')}:",
            f"    by the letter {_told(wrong[0])}; here {_told(right[0])}",
            f"Another receives {case.other.replace('crash:', 'crash of ')}:",
            f"    by the letter {_told(wrong[1])}; here {_told(right[1])}",
        ])  # fmt: skip

    return picture


def tails() -> str:
    text = "a1 b1 c1 d1'<a1 e1'<a1 f1'<a1,b1 g1'<a1,b1"
    order = ["a1", "d1", "b1", "c1", "f1", "g1", "e1"]
    strict, relaxed = (walk(7, 4, rule, messages(text, 7), order) for rule in (True, False))
    assert strict[0][0] > relaxed[0][0] and strict[0][1] == relaxed[0][1]
    after = [order[found[0][0]] for found in (strict, relaxed)]
    notes = [f"Q = 4, arrivals {' '.join(order)}:"]
    notes.append(f"    with the clause {' '.join(strict[0][1])} after {after[0]}, without it after {after[1]}")
    return _shown("e3", Case(7, 4, text, "", ""), notes)


def halves() -> str:
    case = Case(2, 2, "a1 b1", "a1 b1", "b1 a1")
    assert said(case, case.one, HalfQuorum) == []  # it takes one less
    right = said(case, case.one, Ballots)
    return _shown(
        "e7", case, ["Q = 1: each beats the other, nothing is ever delivered;", f"    with Q = 2 {_told(right)}"]
    )


def too_early() -> str:
    case = CASES["e8_n_shrinks"]
    early, whole = said(case, "a1 b1 crash:c", Ballots), said(case, "a1 b1 c1", Ballots)
    assert early == ["a1", "b1"] and whole[:1] == ["b1"]
    return _shown("e9", case, [f"One machine is told of the crash of c before it has c1: {_told(early)}",
                               f"Another has c1 first: {_told(whole)}"])  # fmt: skip


def alone() -> str:
    told = []
    for form in (NoClosing, Ballots):
        ballots = form(3, 2)
        ballots.insert(0, 1, (1, 0, 0), True)
        ballots.crash(2)
        out = [name_of(key) for keys in drained(ballots) for key in keys]
        ballots.close()
        told.append(_told(out + [name_of(key) for keys in drained(ballots) for key in keys]))
    assert told == ["nothing", "a1"]
    notes = [f"a1, then the crash of c, then the view ends: by the letter {told[0]};"]
    notes.append(f"    with empty ballots for all who have none {told[1]}")
    return _shown("e10", Case(3, 2, "a1", "", ""), notes)


TOTO_TEST = "tests/toto/test_errata.py"
TOTO = [
    Erratum("E1", "Figure 3, step 2: a message that follows no candidate sets a column of infinities: an empty ballot.",
            "It is no ballot.", TOTO_TEST, letter("e1_empty_vote")),
    Erratum("E2", "Two ballots that are not here compare as equal ('*' <= '*').",
            "Nothing is compared with a ballot that is not here.", TOTO_TEST, letter("e2_stars_are_equal")),
    Erratum("E3", "Section 4.2: raise phi where the clause on NTail dominates.",
            "The clause is not needed for agreement, and first matters with seven machines; phi = n/2 is best.",
            "ordercast papers toto --claim phi", tails),
    Erratum("E4", "After a delivery new values are calculated: read as blank ballots, only new messages vote.",
            "All messages held vote again.", TOTO_TEST, letter("e4_blank_ballots")),
    Erratum("E5", "Sources are delivered while another candidate may still become one.",
            "Everybody else must have lost: internal stability.", TOTO_TEST, letter("e5_no_internal_stability")),
    Erratum("E6", "No source need be in a quorum of ballots.", "One must: external stability.", TOTO_TEST,
            letter("e6_no_external_stability")),
    Erratum("E7", "phi below n/2.", "Refused: two halves beat each other, and nothing is ever delivered.", TOTO_TEST,
            halves),
    Erratum("E8", "n shrinks with a crash; or who is gone votes empty, whatever it sent.", "n, Q and its ballots stay.",
            TOTO_TEST, letter("e8_n_shrinks")),
    Erratum("E9", "Figure 4: a crash may come at any time.",
            "Only after the last message of the departed that anybody holds.", TOTO_TEST, too_early),
    Erratum("E10", "Section 5.2: crashes alone leave M empty at the configuration change.",
            "The living must vote, too: at the end of a view who has no ballot is given the empty one.", TOTO_TEST,
            alone),
    Erratum("E11", "\"n/2 messages\"; a speedup \"around 2.75\"; \"0.4 to 6.0 percent\".",
            "More than n/2 machines; the table averages 3.02; one row has 17.7 %.", "ordercast papers toto --table 3"),
    Erratum("E12", "Table 4 has 0.888 and 0.899 of the nominal period.", "Formula (2) cannot exceed 7/8 of it.",
            "ordercast papers toto --table 4"),
]  # fmt: skip

# ----------------------------------------------------------------------------------------------------------- the others


def table_of(page: Path, ids: str, pictures: Mapping[str, Callable[[], str]] | None = None) -> list[Erratum]:
    """The errata that a protocol's page lists in a table: | id | printed | right | shown by |."""
    out = []
    for row in re.findall(rf"^\| ({ids}) \| (.*) \|$", page.read_text(), re.MULTILINE):
        cells = [cell.strip() for cell in row[1].split(" | ")]
        picture = (pictures or {}).get(row[0])
        see = cells[-1].replace("golden vectors", "`tests/hybrid/test_errata.py`")  # which runs them by the letter
        out.append(Erratum(row[0], cells[0] if len(cells) > 2 else "", cells[-2], see, picture))
    return out


def write(docs: Path) -> Path:
    """errata.md, with a picture for each that has one."""
    pages = docs.parent / "protocols"
    papers = [
        ("toto", "ToTo", TOTO),
        ("totem", "Totem", table_of(pages / "totem.md", r"T\d+", errata_totem.PICTURES)),
        ("tomp", "TOMP", table_of(pages / "tomp.md", r"E\d+", errata_tomp.PICTURES)),
        ("hybrid", "Hybrid", table_of(pages / "hybrid.md", r"H\w+", errata_hybrid.PICTURES)),
        ("dpg", "DPG", table_of(pages / "dpg.md", r"E\d+", errata_dpg.PICTURES)),
    ]
    lines = [
        "# Errata of the papers", "",
        "What was found to be wrong, or to be readable in a wrong way, while the papers were built and run again.",
        "Each has its smallest counterexample: a picture made by running the letter of the paper beside what is built",
        "here, or a test. Written by `make papers-docs`; a case that does not come out as told here stops it.", "",
        "In causal orders time runs upwards, a lane for each machine; dashed messages are agreed, the others causal",
        "only; an arrow leads to what a message acknowledges. In schedules time runs to the right. In precedence",
        "graphs messages stand in the order of the network; an arrow leads to what comes later, a thick one says that",
        "nothing lies between, dashed: unless a named message does. What only the letter gives is red.", "",
    ]  # fmt: skip
    for name, title, found in papers:
        lines += [f"## {title}", ""]
        drawn = [each for each in found if each.picture is not None]
        plain = [each for each in found if each.picture is None]
        for each in drawn:
            assert each.picture is not None
            picture = f"errata-{name}-{each.id.lower()}.svg"
            (docs / "img" / picture).write_text(_on_white(each.picture()), encoding="utf-8")
            lines += [f"### {name} {each.id}", ""]
            told = (f"{word}: {text.rstrip('.')}." for word, text in (("Printed", each.printed), ("Right", each.right)))
            lines += [f"{' '.join(told)} Shown by {_code(each.see)}.", ""]
            lines += [f"![{name} {each.id}](img/{picture})", ""]
        if plain:
            printed = any(each.printed for each in plain)  # else the page has only what is right
            heads = ["id", *(["printed"] if printed else []), "right", "shown by"]
            lines += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
            for each in plain:
                cells = [each.id, *([each.printed] if printed else []), each.right, _code(each.see)]
                lines.append(f"| {' | '.join(cells)} |")
            lines.append("")
    path = docs / "errata.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return path


def _on_white(svg: str) -> str:
    return svg.replace(">\n", '>\n<rect width="100%" height="100%" fill="#ffffff"/>\n', 1) + "\n"


def _code(text: str) -> str:
    """Commands and files as code; words as they are."""
    return f"`{text}`" if text.startswith(("ordercast ", "tests/")) else text
