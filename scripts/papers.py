"""Writes docs/papers: a page for each paper from the runs of `ordercast papers`, and the page of errata.

python scripts/papers.py [DIRECTORY]      # the output of `ordercast papers`; without it only the errata are written
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]  # the errata are run by the tests' own variants

import errata  # noqa: E402

from ordercast.papers import book, page, reproduce  # noqa: E402
from ordercast.papers.judge import EXPLAINED, OUTSIDE  # noqa: E402

DOCS = ROOT / "docs" / "papers"
RUN = "`ordercast papers {name}` runs all of this again; `--table N`, `--figure N` or `--claim WORD` one item of it."


def main() -> int:
    (DOCS / "img").mkdir(parents=True, exist_ok=True)
    written = [errata.write(DOCS)]
    if len(sys.argv) > 1:
        out = Path(sys.argv[1])
        for name in book.written():
            paper = book.paper(name)
            chosen: book.Chosen = [(paper, list(paper.item))]
            results = reproduce.results(chosen, reproduce.job(chosen), out / "runs", quick=False)
            if any(result.runs and not result.lines for result in results):
                print(f"{name}: not all of it has been run in {out}: left as it is", file=sys.stderr)
                continue
            written.append(write(paper, results))
    list_pages()
    for path in written:
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def write(paper: book.Paper, results: list[reproduce.Result]) -> Path:
    """One page, with its pictures beside it."""
    counts = reproduce.tally(results)
    said = f"{counts['within']} rows within, {counts['explained']} explained, {counts['outside']} outside."
    lines = [
        f"# {paper.name}: {paper.title}",
        "",
        f"{paper.authors}. {paper.text}",
        "",
        f"{said} {RUN.format(name=paper.name)}",
        "",
    ]
    lines += ["Written by `make papers-docs`. *Fitted* and *assumed* rows rest on constants chosen to match what was",
              "published; *predicted* ones have nothing to compare with.", ""]  # fmt: skip
    for result in results:
        lines += item(result)
    path = DOCS / f"{paper.name}.md"
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return path


def list_pages() -> None:
    """The pages that are there, at the end of the first one."""
    first = DOCS / "README.md"
    text = first.read_text(encoding="utf-8").partition("\n## Pages\n")[0].rstrip() + "\n"
    there = [name for name in book.written() if (DOCS / f"{name}.md").is_file()]
    if there:
        text += "\n## Pages\n" + "".join(f"- [{name}]({name}.md): {book.paper(name).title}\n" for name in there)
    first.write_text(text, encoding="utf-8")


def item(result: reproduce.Result) -> list[str]:
    one = result.item
    beyond = " (beyond the paper)" if one.beyond else ""
    lines = [f"## {one.words[:1].upper()}{one.words[1:]}: {one.title}{beyond}", ""]
    lines += [" ".join(part for part in (f"{one.where}." if one.where else "", one.text) if part), ""]
    if one.leads:
        lines += [f"It leads to {', '.join(one.leads)}.", ""]
    for name, title, svg, caption in page.pictures(result):
        picture = f"{result.paper.name}-{one.id}-{name}.svg"
        (DOCS / "img" / picture).write_text(opaque(svg), encoding="utf-8")
        lines += [f"![{title}](img/{picture})", "", *([caption, ""] if caption else [])]
    if result.lines:
        lines += [f"| {' | '.join(page.HEADS[:-1])} | rests on | verdict |", "|" + "---|" * (len(page.HEADS) + 1)]
        for line in result.lines:
            *cells, _ = page.cells(line)
            lines.append(f"| {' | '.join(cells)} | {line.status} | {line.verdict} |")
        lines.append("")
        told = (line for line in result.lines if line.verdict in (EXPLAINED, OUTSIDE) and line.why)
        for why in dict.fromkeys(f"{line.why} See `{line.see}`." if line.see else line.why for line in told):
            lines += [f"- {why}"]
        lines.append("")
    return lines


def opaque(svg: str) -> str:
    """With a white ground, for readers on a dark one."""
    return re.sub(r"(<svg[^>]*>)", r'\1<rect width="100%" height="100%" fill="#ffffff"/>', svg, count=1) + "\n"


if __name__ == "__main__":
    sys.exit(main())
