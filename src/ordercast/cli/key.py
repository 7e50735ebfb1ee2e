"""`ordercast key`: another key for a running group, without a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import Choice, emit, group_file, json_option
from ordercast.errors import RunError, UsageError
from ordercast.words import short


def _name(key: str, folder: Path) -> str:
    """The name of a key given by name or by its file, which lies beside the configuration or where one stands."""
    import re

    from ordercast import keyfiles

    if re.fullmatch(r"[0-9a-f]{16}", key):
        return key
    path = Path(key)
    beside = folder / path.name
    if not key or (not path.exists() and not beside.exists()):
        words = "expected a file that `ordercast keygen` made, or the name that it printed, 16 hexadecimal digits"
        raise UsageError(f"{short(key)}: no such file, and no name of a key: {words}")
    return keyfiles.read(path if path.exists() or not beside.exists() else beside).name


def _told(answer: dict[str, Any]) -> str:
    words = {"add": "is held", "use": "is spoken with", "drop": "is dropped"}[answer["done"]]
    return f"key {answer['key']} {words} by members {', '.join(map(str, answer['members']))}"


@click.command("key")
@click.argument("step", type=Choice("add", "use", "drop"))
@click.argument("key", metavar="KEY")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The group's file (group.toml).")
@json_option
def command(step: str, key: str, config: Path, as_json: bool) -> int:
    """Give a running group another key: add it, use it, drop the old one.

    KEY is a file made by `ordercast keygen`, or the name that it printed.  Put the new file beside group.toml on each
    member's machine first: only its name is sent.  Each step is carried out by all members of the view; `use` is
    refused while one of them lacks the key, `drop` while one still speaks with it.  Asked of a member on this machine.
    """
    from ordercast.live import control

    checked = group_file(None, config)
    if checked.insecure:
        raise UsageError(f"{config}: insecure = true: expected a group with a key")
    name, errors = _name(key, config.parent), []
    for member in checked.ids:
        answer = control.order(checked.state_path(member), {"key": step, "name": name})
        if isinstance(answer, str):
            errors.append(answer)
            continue
        if "refused" in answer:
            raise RunError(f"{step} {name}: refused: {answer['refused']}")
        emit(answer, as_json, lambda answer=answer: _told(answer))  # type: ignore[misc]
        if missing := answer.get("missing"):
            raise RunError("; ".join(f"member {other} {why}" for other, why in missing.items()))
        return 0
    raise RunError(f"no member of {checked.group} runs on this machine: expected one to ask")
