"""Writes the pages of docs/ that follow from the code: `make docs`.  With --check: says which are out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ordercast import cli

ROOT = Path(__file__).resolve().parents[1]

CLI_HEAD = """\
# Commands

Every command has `--help` and `--json`: one JSON object on one line, with `"version": 1`.
Progress goes to stderr, and only to a terminal. An error is one sentence on stderr that begins with `ordercast:`.
Exit codes: 0 ok, 1 a promise was broken or the run failed, 2 usage, 130 interrupted.
This page is written by `make docs` from the commands themselves.
"""


def cli_page() -> str:
    context = click.Context(cli.group, info_name="ordercast")
    parts = [CLI_HEAD]
    for name in cli.group.list_commands(context):
        command = cli.group.get_command(context, name)
        assert command is not None
        own = click.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(own))
        parts.append(f"## {name}\n\n`ordercast {name} {usage}`\n\n{_paragraphs(command.help or '')}\n")
        rows = [record for param in command.params if (record := param.get_help_record(own)) is not None]
        if rows:
            parts.append("| option | |\n|---|---|\n" + "".join(f"| `{_cell(a)}` | {_cell(b)} |\n" for a, b in rows))
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES = {"docs/reference/cli.md": cli_page}


def main() -> int:
    stale = 0
    for name, page in PAGES.items():
        path, text = ROOT / name, page()
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{name} is out of date: run `make docs`", file=sys.stderr)
            stale = 1
        else:
            path.write_text(text)
            print(f"wrote {name}")
    return stale


if __name__ == "__main__":
    sys.exit(main())
