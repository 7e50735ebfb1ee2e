"""One self-contained HTML page: what ran, what held, what broke with its picture, how it performed.

Needs neither Spark nor numpy; pictures come in as SVG text.  Everything that is not ours is escaped, and the page asks
for nothing from outside: it can be mailed, archived, opened in ten years.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from msgspec import Struct

SHORT_CELL, LONG_CELL = ' class="k"', ' class="w"'  # not broken into lines; of some width
QUANTITY = re.compile(r"-?[\d.]+(e[+-]?\d+)? (ns|µs|ms|s|min)")  # a time, as `span` of the report writes it
WITH_UNIT = re.compile(r"(?<=\d) (?=(B|kB|MB|ns|µs|ms|s|min|senders?|members?)\b|%)")  # not broken into lines here
ROWS_MAX = 200  # of one table on the page; the CSV files hold all


class Table(Struct):
    """Rows to be shown; numbers, with or without a unit, are set right."""

    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""
    anchor: str = ""
    whole: bool = False  # shown to its last row, however many


class PromiseLine(Struct):
    """One promise over all runs."""

    id: str
    name: str
    statement: str
    holds: int
    broken: int
    cannot_judge: int
    nothing: int = 0  # to judge
    judged: int = 0  # how many events were looked at


class Break(Struct):
    """One broken promise of one run."""

    run: str
    promise: str
    name: str
    statement: str
    text: str
    rows: list[dict[str, Any]]
    picture: str = ""  # SVG


class Plot(Struct):
    title: str
    svg: str
    caption: str = ""


class Section(Struct):
    """A part of a page with its own heading: words, tables, pictures."""

    title: str
    text: list[str] = []
    tables: list[Table] = []
    pictures: list[Plot] = []
    anchor: str = ""


class Content(Struct):
    """All a page says."""

    title: str
    lead: str = ""
    facts: list[tuple[str, str]] = []
    promises: list[PromiseLine] = []
    breaks: list[Break] = []
    breaks_total: int = 0
    doubts: list[tuple[str, str, str]] = []  # run, promise, why it cannot be judged
    plots: list[Plot] = []
    tables: list[Table] = []
    pictures: list[Plot] = []
    set_aside: list[tuple[str, int, str]] = []  # path, offset, reason
    foot: str = ""
    sections: list[Section] = []


STYLE = """
:root{--ink:#22303c;--soft:#5b6b79;--line:#e3e8ec;--back:#f6f8f9;--card:#fff;--good:#25724a;--goodback:#e6f4ec;
--bad:#a32f2f;--badback:#fbeaea;--doubt:#8a6514;--doubtback:#fbf3dd;--link:#2f6fb0}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1020px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:18px;margin:38px 0 10px}
h3{font-size:15px;margin:0 0 6px}
p{margin:0 0 10px;max-width:78ch}
.soft{color:var(--soft)}
.banner{border-radius:10px;padding:14px 18px;margin:18px 0;font-size:17px;font-weight:600}
.banner small{display:block;font-weight:400;font-size:14px;margin-top:2px}
.good{background:var(--goodback);color:var(--good)}.bad{background:var(--badback);color:var(--bad)}
.doubt{background:var(--doubtback);color:var(--doubt)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(130px,1fr));gap:10px;margin:16px 0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:9px 12px}
.facts b{display:block;font-size:18px;font-weight:600;overflow-wrap:anywhere}
.facts span{color:var(--soft);font-size:12.5px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;margin:12px 0}
.scroll{overflow-x:auto}
.natural svg{max-width:none}
td.w{min-width:150px}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;color:var(--soft);border-bottom:2px solid var(--line);padding:5px 10px 5px 0;
vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:5px 10px 5px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right}
td.k,td.n{white-space:nowrap}
.events td{font-size:12.5px}
.mark{display:inline-block;border-radius:6px;padding:0 8px;font-size:12.5px;font-weight:600;white-space:nowrap}
.statement{color:var(--soft);font-size:12.5px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(430px,1fr));gap:12px}
.plots .wide{grid-column:1/-1}
figure{margin:0}
figcaption{color:var(--soft);font-size:12.5px;margin-top:4px}
svg{max-width:100%;height:auto;display:block}
code{font:12.5px ui-monospace,"DejaVu Sans Mono",Menlo,monospace;overflow-wrap:anywhere}
details summary{cursor:pointer;color:var(--link)}
footer{color:var(--soft);font-size:12.5px;margin-top:40px;border-top:1px solid var(--line);padding-top:12px}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""


def page(content: Content) -> str:
    """The whole file."""
    body = [
        f"<h1>{escape(content.title)}</h1>",
        f'<p class="soft">{escape(content.lead)}</p>' if content.lead else "",
        _banner(content),
        _facts(content.facts),
        _breaks(content),
        _promises(content.promises),
        _doubts(content.doubts),
        _plots(content.plots),
        *map(_table, content.tables),
        *map(_picture, content.pictures),
        *map(_section, content.sections),
        _set_aside(content.set_aside),
        f"<footer>{escape(content.foot)}</footer>" if content.foot else "",
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(content.title)}</title><style>{STYLE}</style></head><body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def _banner(content: Content) -> str:
    if not content.promises:
        return ""
    broken = [line for line in content.promises if line.broken]
    doubtful = [line for line in content.promises if line.cannot_judge]
    held = sum(line.holds for line in content.promises)
    if broken:
        names = ", ".join(f"{line.id} {line.name}" for line in broken)
        said = f"{_count(len(broken), 'promise')} broken<small>{escape(names)}</small>"
        return f'<div class="banner bad">{said}</div>'
    if doubtful:
        names = ", ".join(f"{line.id} {line.name}" for line in doubtful)
        said = f"Nothing broken, but not everything could be judged<small>{escape(names)}</small>"
        return f'<div class="banner doubt">{said}</div>'
    if not held:
        return '<div class="banner doubt">There was nothing to judge</div>'
    small = f"{_count(held, 'verdict')}: each promise in each run in which it had something to judge"
    return f'<div class="banner good">Every promise held<small>{small}</small></div>'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>" for label, value in facts)
    return f'<div class="facts">{cells}</div>' if cells else ""


def _promises(lines: Sequence[PromiseLine]) -> str:
    if not lines:
        return ""
    single = all(line.holds + line.broken + line.cannot_judge + line.nothing == 1 for line in lines)
    rows = []
    for line in lines:
        state, word = ("good", "holds") if line.holds else ("soft", "nothing to judge")
        if line.broken:
            state, word = "bad", "broken"
        elif line.cannot_judge:
            state, word = "doubt", "cannot judge"
        of_runs = () if single else (line.holds, line.broken, line.cannot_judge, line.nothing)
        rows.append(
            f'<tr><td class="k"><b>{escape(line.id)}</b> {escape(line.name)}</td>'
            f'<td><span class="mark {state}">{word}</span></td>'
            + "".join(f'<td class="n">{number(count) if count else "–"}</td>' for count in (*of_runs, line.judged))
            + f'<td class="statement">{escape(line.statement)}</td></tr>'
        )
    words = ("events",) if single else ("holds", "broken", "not judged", "nothing to judge", "events")
    head = "<tr><th>promise</th><th></th>" + "".join(f'<th class="n">{word}</th>' for word in words)
    head += "<th>what is promised</th></tr>"
    return f'<h2>Promises</h2><div class="card scroll"><table>{head}{"".join(rows)}</table></div>'


def _breaks(content: Content) -> str:
    if not content.breaks:
        return ""
    out = ["<h2>What broke</h2>"]
    hidden = max(content.breaks_total, len(content.breaks)) - len(content.breaks)
    if hidden:
        out.append(f'<p class="soft">The first {len(content.breaks)} of {number(hidden + len(content.breaks))}.</p>')
    for broken in content.breaks:
        out.append(
            f'<div class="card"><h3><span class="mark bad">{escape(broken.promise)}</span> {escape(broken.name)} '
            f'<span class="soft">in run</span> <code>{escape(broken.run)}</code></h3>'
            f"<p>{escape(broken.text)}</p>"
            + (f'<p class="statement">Promised: {escape(broken.statement)}</p>' if broken.statement else "")
            + (f"<figure>{broken.picture}</figure>" if broken.picture else "")
            + _event_rows(broken.rows)
            + "</div>"
        )
    return "\n".join(out)


# how a row of a trace is shown: heading -> (its keys, what is made of the value)
_EVENT: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("time", "time_ns", lambda ns: f"{ns / 1e6:,.6f} ms".replace(",", " ")),
    ("member", "member", str),
    ("row", "index", str),
    ("event", "kind", str),
    ("about", "about", str),
    ("message", "message", str),
    ("view", "view", str),
    ("after view", "previous", str),
    ("delivered before", "position", str),
    ("members", "members", lambda ids: ", ".join(map(str, ids))),
    ("came along", "trans", lambda ids: ", ".join(map(str, ids))),
    ("groups", "groups", lambda names: ", ".join(map(str, names))),
    ("digest", "digest", lambda digest: f"{digest:016x}"),
    ("detail", "detail", lambda detail: ", ".join(f"{key} {value}" for key, value in detail.items())),
)


def _event_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    shown = [part for part in _EVENT if any(row.get(part[1]) is not None for row in rows)]
    head = "".join(f"<th>{escape(title)}</th>" for title, _, _ in shown)
    body = ""
    for row in rows:
        cells = (None if row.get(key) is None else make(row[key]) for _, key, make in shown)
        body += "<tr>" + "".join(f'<td class="k">{_cell(cell)}</td>' for cell in cells) + "</tr>"
    return f'<div class="scroll"><table class="events"><tr>{head}</tr>{body}</table></div>'


def _doubts(doubts: Sequence[tuple[str, str, str]]) -> str:
    if not doubts:
        return ""
    table = Table("", ["run", "promise", "why"], [list(doubt) for doubt in doubts])
    return f'<h2>What could not be judged</h2><div class="card scroll">{_cells(table)}</div>'


def _plots(plots: Sequence[Plot]) -> str:
    if not plots:
        return ""
    out = []
    for plot in plots:
        wide = _is_wide(plot.svg)
        caption = f"<figcaption>{escape(plot.caption)}</figcaption>" if plot.caption else ""
        out.append(
            f'<div class="card{" wide" if wide else ""}"><h3>{escape(plot.title)}</h3>'
            f"<figure>{plot.svg}{caption}</figure></div>"
        )
    return f'<h2>Measures</h2><div class="plots">{"".join(out)}</div>'


def _is_wide(svg: str) -> bool:
    box = svg.partition('viewBox="')[2].partition('"')[0].split()
    return len(box) == 4 and float(box[2]) > 450


def _table(table: Table) -> str:
    hidden = 0 if table.whole else len(table.rows) - ROWS_MAX
    note = table.note + (f" Showing {ROWS_MAX} of {number(len(table.rows))} rows." if hidden > 0 else "")
    said = f'<p class="soft">{escape(note.strip())}</p>' if note else ""
    return f'<h2>{escape(table.title)}</h2>{said}<div class="card scroll">{_cells(table)}</div>'


def _cells(table: Table) -> str:
    numeric = [
        any(_is_quantity(row[k]) for row in table.rows)
        and all(row[k] in (None, "") or _is_quantity(row[k]) for row in table.rows)
        for k in range(len(table.columns))
    ]
    mark = [' class="n"' if right else "" for right in numeric]
    heads = [escape(WITH_UNIT.sub("\u00a0", name.replace("/ ", "/\u00a0"))) for name in table.columns]
    head = "".join(f"<th{m}>{name}</th>" for name, m in zip(heads, mark, strict=True))
    rows = "".join(
        "<tr>" + "".join(_td(value, m) for value, m in zip(row, mark, strict=True)) + "</tr>"
        for row in (table.rows if table.whole else table.rows[:ROWS_MAX])
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _is_quantity(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and QUANTITY.fullmatch(value) is not None)


def _td(value: Any, mark: str) -> str:
    text = _cell(value)
    return f"<td{mark or (SHORT_CELL if len(text) < 16 else LONG_CELL)}>{text}</td>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, (list, tuple)):
        return escape(", ".join(map(str, value)))
    return escape(WITH_UNIT.sub("\u00a0", str(value)))


def _picture(plot: Plot) -> str:
    caption = f"<figcaption>{escape(plot.caption)}</figcaption>" if plot.caption else ""
    return (
        f'<h2>{escape(plot.title)}</h2><div class="card"><div class="scroll natural"><figure>{plot.svg}</figure></div>'
        f"{caption}</div>"
    )


def _section(section: Section) -> str:
    mark = f' id="{escape(section.anchor)}"' if section.anchor else ""
    parts = [f"<h2{mark}>{escape(section.title)}</h2>", *(f"<p>{escape(text)}</p>" for text in section.text)]
    for plot in section.pictures:
        caption = f"<figcaption>{escape(plot.caption)}</figcaption>" if plot.caption else ""
        parts.append(f'<div class="card"><h3>{escape(plot.title)}</h3><figure>{plot.svg}{caption}</figure></div>')
    for table in section.tables:
        said = f'<p class="soft">{escape(table.note)}</p>' if table.note else ""
        parts.append(f'{said}<div class="card scroll">{_cells(table)}</div>')
    return "\n".join(parts)


def _set_aside(bad: Sequence[tuple[str, int, str]]) -> str:
    if not bad:
        return ""
    table = Table("", ["file", "at byte", "why"], [list(entry) for entry in bad])
    said = '<p class="soft">These could not be read and are not part of any figure above.</p>'
    return f'<h2>Set aside</h2>{said}<div class="card scroll">{_cells(table)}</div>'


def number(value: int | float) -> str:
    """A number for people: thousands apart, four figures where it is not whole."""
    if isinstance(value, int) or float(value).is_integer():
        whole = int(value)
        return f"{whole:,}".replace(",", " ") if abs(whole) >= 10_000 else str(whole)
    return f"{value:,.4g}".replace(",", " ") if abs(value) < 10_000 else f"{value:,.0f}".replace(",", " ")


def _count(n: int, word: str) -> str:
    return f"{number(n)} {word}{'' if n == 1 else 's'}"
